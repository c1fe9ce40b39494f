"""Skills that run as an agent of their own: the conversation gets the answer, not the work."""

from dataclasses import dataclass
from typing import cast

from callwright.agent import Agent
from callwright.agent.result import Result
from callwright.agent.subagent import Lineage, SubAgent
from callwright.app.active import ActiveSkills
from callwright.core.errors import ToolFailed
from callwright.core.spec import Limits
from callwright.executor.executor import Executor
from callwright.policy import ByMode, Policies
from callwright.providers.base import Provider
from callwright.skills import Skill
from callwright.skills.skill import EVERYTHING, LOOKING
from callwright.tool.base import Tool

_LIMITS = Limits(seconds=1800.0, output_chars=100_000)


@dataclass(frozen=True, slots=True)
class SkillAgent:
    """An agent for one skill: the outer one's tools and rules, the skill's own grants and model."""

    skill: Skill
    agent: Agent
    active: ActiveSkills

    @property
    def durable(self) -> bool:
        """Its sessions end with the call."""
        return False

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        """Run for a call of the outer agent, the skill's rules in force."""
        with self.active.during(self.skill, session_id):
            return await self.agent.run_inside(prompt, session_id, lineage, self.skill.name)

    def tool(self) -> Tool:
        """The agent as a tool that takes a prompt."""
        made = SubAgent(self).tool("skill_agent", f"The agent of the skill {self.skill.name}.", _LIMITS)
        return cast("Tool", made)


def skill_agent(skill: Skill, outer: Agent, provider: Provider, active: ActiveSkills) -> SkillAgent:
    """Make the agent a skill asks for by its `agent` field: one that only looks, or one that can do everything."""
    kind = skill.agent.lower()
    if kind and kind not in LOOKING | EVERYTHING:
        raise ToolFailed(
            f"the skill {skill.name} asks for the agent {skill.agent!r}, which there is not;"
            " write agent: Explore (looks, changes nothing) or general-purpose in its file"
        )
    executor = _looking(outer.executor) if kind in LOOKING else outer.executor
    agent = Agent(
        provider,
        outer.registry,
        executor=executor,
        system=outer.system,
        limits=outer.limits,
        ask=outer.ask,
        requests=outer.requests,
    )
    return SkillAgent(skill, agent, active)


def _looking(outer: Executor) -> Executor:
    """An executor that lets through what reads; what the outer one forbids is forbidden by descent."""
    return Executor(
        outer.registry, Policies(ByMode("plan")), bounds=outer.bounds, outputs=outer.outputs, hooks=outer.hooks
    )
