"""Using a skill inside a call: who is told, who runs its commands, who answers for it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from toolwright.core.call import Completed, Failed, Outcome, ToolCall
from toolwright.core.errors import ToolFailed
from toolwright.core.spec import Annotations, Effect, Limits
from toolwright.skills.prompt import prepare
from toolwright.skills.skill import Skill
from toolwright.tool.base import ToolContext

SubAgent: TypeAlias = Callable[[str], Awaitable[str]]
"""Hands a prompt to an agent of its own and returns what it said."""
Activate: TypeAlias = Callable[[Skill, ToolContext], None]
"""Told before a skill is used: the place to grant the rules it asks for, if its author is trusted."""

LIMITS = Limits(seconds=1800.0, output_chars=100_000)
# a skill may run commands, so a call is not repeated after a crash; each command is judged on its own
ANNOTATIONS = Annotations(Effect.WRITE, parallel=False)
_NOBODY = "it needs a person's approval; if you need it, call bash with this command yourself"


class Use:
    """How skills are used in one place."""

    def __init__(
        self, subagent: SubAgent | str | None, activate: Activate | None, project: Path | None, *, commands: bool = True
    ) -> None:
        self.subagent = subagent
        self._activate = activate
        self._project = project
        self._commands = commands

    async def prompt(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return the instructions, their commands run as calls of the session."""
        if self._activate is not None:
            self._activate(skill, context)
        run = _Shell(context).run if self._commands else None
        return await prepare(skill, arguments, run=run, project=self._project, session=context.session_id)

    async def answer(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return what the skill's own agent said to the instructions."""
        prompt = await self.prompt(skill, arguments, context)
        if self.subagent is None:
            raise ToolFailed(f"{skill.name} wants an agent of its own, and there is none here")
        if not isinstance(self.subagent, str):
            return await self.subagent(prompt)
        (outcome,) = await context.execute(ToolCall(f"{context.call_id}.agent", self.subagent, {"prompt": prompt}))
        if isinstance(outcome, Completed):
            return outcome.text
        raise ToolFailed(outcome.text if isinstance(outcome, Failed) else "its agent waits for a person's approval")


class _Shell:
    """Runs a skill's commands as calls of `bash`: same hooks, policies and questions as the model's own."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._count = 0

    async def run(self, line: str) -> str:
        self._count += 1
        call = ToolCall(f"{self._context.call_id}.{self._count}", "bash", {"command": line})
        (outcome,) = await self._context.execute(call)
        return _said(outcome)


def _said(outcome: Outcome) -> str:
    match outcome:
        case Completed(output=output):
            text = output.text.removesuffix("exit code: 0").removesuffix("\n")
            return "" if text == "(no output)" else text
        case Failed(error=error, started=started):
            return f"[{'failed' if started else 'not run'}: {error.message}]"
        case _:
            return f"[not run: {_NOBODY}]"
