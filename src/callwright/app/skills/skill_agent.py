"""Skills that run as an agent of their own: the conversation gets the answer, not the work.

Skills that belong to certain files: offered when the conversation comes to one of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from callwright.agent import Agent
from callwright.agent.results import Result
from callwright.agent.subagent import Lineage, SubAgent
from callwright.app.skills.grants import ActiveSkills
from callwright.core.calls import Completed, Outcome
from callwright.core.content import Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.spec import Limits
from callwright.executor.executor import Executor
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import ByMode, Policies
from callwright.providers.base import Provider
from callwright.skills import Skill, Skills, listing
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


_PATHS = ("path", "source", "destination")
_MOST_SESSIONS = 256


class NearbySkills(Hook):
    """Adds to the outcome of a call on files which skills there are for them, once per session and skill."""

    def __init__(self, skills: Skills, found: Callable[[], None]) -> None:
        """`found` is called when folders on the way turned out to hold skills nobody knew."""
        self._skills = skills
        self._found = found
        self._offered: dict[str, set[str]] = {}

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        """Say what fits; failures and calls that touch no file stay as they are."""
        if pending.spec.group != "file" or not isinstance(outcome, Completed):
            return None
        try:
            return self._noted(pending, outcome)
        except (OSError, RuntimeError):  # a folder that cannot be looked into must not cost the call its outcome
            return None

    def _noted(self, pending: PendingCall, outcome: Completed) -> Outcome | None:
        touched = [Path(self._skills.cwd, path) for path in _touched(pending)]
        fresh = [skill for path in touched for skill in self._skills.visit(path)]
        if fresh:
            self._found()
        offered = self._unoffered(pending.session_id, touched, fresh)
        said = listing(offered, touched=touched)
        return replace(outcome, output=_with_note(outcome.output, said)) if said else None

    def _unoffered(self, session_id: str, touched: list[Path], fresh: list[Skill]) -> list[Skill]:
        if session_id not in self._offered and len(self._offered) >= _MOST_SESSIONS:
            del self._offered[next(iter(self._offered))]
        known = self._offered.setdefault(session_id, set())
        fitting = {skill.name: skill for skill in self._skills if any(map(skill.fits, touched))}
        fitting |= {skill.name: skill for skill in fresh if not skill.paths}
        new = [skill for name, skill in fitting.items() if name not in known]
        known.update(skill.name for skill in new)
        return new


def _touched(pending: PendingCall) -> Iterator[str]:
    for name in _PATHS:
        value = pending.arguments.get(name)
        if isinstance(value, str) and value and "\0" not in value:
            yield value


def _with_note(output: Output, said: str) -> Output:
    note = f"[skills for what is here, to be loaded with the tool skill when they fit:\n{said}]"
    if isinstance(output.content, str):
        return replace(output, content=f"{output.content}\n\n{note}")
    return replace(output, content=(*output.content, Text(note)))
