"""Skills that run as separate agents, and skills that are offered when a call touches their files."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from callwright.agent import Agent, RunLimits
from callwright.agent.results import Result
from callwright.agent.subagent import Lineage, SubAgent
from callwright.app.hook_approvals import AskInside
from callwright.app.skills.grants import ActiveSkills
from callwright.core.calls import Completed, Outcome
from callwright.core.errors import ToolFailed
from callwright.core.spec import Limits
from callwright.executor.executor import Executor
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.policy import ByMode, Policies
from callwright.providers.base import Provider
from callwright.skills import Skill, Skills, list_skills
from callwright.skills.skill import FULL_AGENTS, READ_ONLY_AGENTS
from callwright.tool.base import Tool

_LIMITS = Limits(seconds=1800.0, output_chars=100_000)


@dataclass(frozen=True, slots=True)
class SkillAgent:
    """An agent for one skill, with the tools and rules of the outer agent and the grants and model of the skill."""

    skill: Skill
    agent: Agent
    active: ActiveSkills
    ask_inside: AskInside

    @property
    def durable(self) -> bool:
        """Always False: its sessions end with the call."""
        return False

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        """Run for a call of the outer agent while the skill's rules hold."""
        inner = copy(lineage)
        inner.ask = self.ask_inside(lineage.ask, session_id)
        with self.active.during(self.skill, session_id):
            return await self.agent.run_inside(prompt, session_id, inner, self.skill.name)

    def tool(self) -> Tool:
        """Return the agent as a tool that takes a prompt."""
        kind = self.skill.agent or "general-purpose"
        tool = SubAgent(self, kind).tool("skill_agent", f"The agent of the skill {self.skill.name}.", _LIMITS)
        return cast("Tool", tool)


def skill_agent(
    skill: Skill, outer: Agent, provider: Provider, limits: RunLimits, active: ActiveSkills, ask_inside: AskInside
) -> SkillAgent:
    """Create the agent that a skill's `agent` field names: a read-only one, or one with every tool.

    Raises:
        ToolFailed: The field names an unknown agent.
    """
    kind = skill.agent.lower()
    if kind and kind not in READ_ONLY_AGENTS | FULL_AGENTS:
        raise ToolFailed(
            f"the skill {skill.name} requests the unknown agent {skill.agent!r};"
            " write agent: Explore (read-only) or agent: general-purpose in its file"
        )
    executor = _read_only_executor(outer.executor) if kind in READ_ONLY_AGENTS else outer.executor
    agent = Agent(
        provider,
        outer.registry,
        executor=executor,
        system=outer.system,
        limits=limits,
        ask=outer.ask,
        requests=outer.requests,
    )
    return SkillAgent(skill, agent, active, ask_inside)


def _read_only_executor(outer: Executor) -> Executor:
    """Return an executor that allows reads only, and no more than the outer one, with and without a lineage."""
    policies = Policies(*outer.policies.policies, ByMode("plan"))
    return Executor(outer.registry, policies, limits=outer.limits, outputs=outer.outputs, hooks=outer.hooks)


_PATHS = ("path", "source", "destination")
_MOST_SESSIONS = 256


class PathScopedSkills(Hook):
    """Adds a note about matching skills to the outcome of a call on files, once per session and skill.

    Args:
        skills: The skills of the app.
        found: Called when a visited folder held skills that were not known before.
    """

    def __init__(self, skills: Skills, found: Callable[[], None]) -> None:
        self._skills = skills
        self._found = found
        self._offered: dict[str, set[str]] = {}

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        """Add the note; failures and calls that touch no file stay unchanged."""
        if pending.spec.group != "file" or not isinstance(outcome, Completed):
            return None
        try:
            return self._add_note(pending, outcome)
        except (OSError, RuntimeError):  # an unreadable folder must not lose the outcome of the call
            return None

    def _add_note(self, pending: PendingCall, outcome: Completed) -> Outcome | None:
        touched = [Path(self._skills.cwd, path) for path in _touched_paths(pending)]
        fresh = [skill for path in touched for skill in self._skills.visit(path)]
        if fresh:
            self._found()
        offered = self._new_offers(pending.session_id, touched, fresh)
        text = list_skills(offered, touched=touched)
        if not text:
            return None
        note = f"[skills for these files (load one with the tool skill when it fits):\n{text}]"
        return replace(outcome, output=outcome.output.with_note(note))

    def _new_offers(self, session_id: str, touched: list[Path], fresh: list[Skill]) -> list[Skill]:
        if session_id not in self._offered and len(self._offered) >= _MOST_SESSIONS:
            # drop the oldest: a long-lived process sees any number of sessions
            del self._offered[next(iter(self._offered))]
        known = self._offered.setdefault(session_id, set())
        fitting = {skill.name: skill for skill in self._skills if any(map(skill.fits, touched))}
        fitting |= {skill.name: skill for skill in fresh if not skill.paths}
        new = [skill for name, skill in fitting.items() if name not in known]
        known.update(skill.name for skill in new)
        return new


def _touched_paths(pending: PendingCall) -> Iterator[str]:
    for name in _PATHS:
        value = pending.arguments.get(name)
        # a NUL would make every path function raise
        if isinstance(value, str) and value and "\0" not in value:
            yield value
