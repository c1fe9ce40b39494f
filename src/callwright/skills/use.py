"""Using a skill inside a call: who is told, who runs its commands, who answers for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.errors import ToolFailed
from callwright.core.spec import Annotations, Effect, Limits
from callwright.skills.calls import Calls
from callwright.skills.prompt import Around, prepared
from callwright.skills.skill import Skill
from callwright.tool.base import ToolContext

SubAgent: TypeAlias = Callable[[str], Awaitable[str]]
"""Hands a prompt to an agent of its own and returns what it said."""
Fork: TypeAlias = Callable[[Skill, str, ToolContext], Awaitable[str]]
"""Hands a skill's prompt to the agent the skill asks for and returns what it said."""
Activate: TypeAlias = Callable[[Skill, ToolContext], None]
"""Told before a skill is used: the place to grant the rules it asks for, if its author is trusted."""

LIMITS = Limits(seconds=1800.0, output_chars=100_000)
# a skill may run commands, so a call is not repeated after a crash; each command is judged on its own
ANNOTATIONS = Annotations(Effect.WRITE, parallel=False)


@dataclass(frozen=True, slots=True)
class Use:
    """How skills are used in one place."""

    subagent: SubAgent | str | None = None
    fork: Fork | None = None
    activate: Activate | None = None
    project: Path | None = None
    cwd: Path | None = None
    commands: bool = True

    def forks(self, skill: Skill) -> bool:
        """Whether a skill runs as an agent of its own here."""
        return skill.fork and (self.fork is not None or self.subagent is not None)

    async def prompt(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return the instructions, their commands run and their files read as calls of the session."""
        if self.activate is not None:
            self.activate(skill, context)
        calls = Calls(context.execute, context.call_id)
        run = calls.run if self.commands else None
        return await prepared(skill, arguments, Around(self.project, self.cwd, context.session_id, run, calls.read))

    async def answer(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return what the skill's own agent said to the instructions."""
        prompt = await self.prompt(skill, arguments, context)
        if self.fork is not None:
            return await self.fork(skill, prompt, context)
        if self.subagent is None:
            raise ToolFailed(f"{skill.name} wants an agent of its own, and there is none here")
        if not isinstance(self.subagent, str):
            return await self.subagent(prompt)
        (outcome,) = await context.execute(ToolCall(f"{context.call_id}.agent", self.subagent, {"prompt": prompt}))
        if isinstance(outcome, Completed):
            return outcome.text
        raise ToolFailed(outcome.text if isinstance(outcome, Failed) else "its agent waits for a person's approval")
