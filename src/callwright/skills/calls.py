"""What a skill has done for it: commands and files, as calls of the session it is used in."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from callwright.core.call import Completed, Failed, Outcome, ToolCall

Execute: TypeAlias = Callable[[ToolCall], Awaitable[Sequence[Outcome]]]
"""Makes one call where hooks, policies and people have their say."""

_NOBODY = "it needs a person's approval; if you need it, call {} yourself"


class Calls:
    """Runs commands with `bash` and reads files with `read`: nothing a skill wants is judged more mildly than that."""

    def __init__(self, execute: Execute, call_id: str) -> None:
        self._execute = execute
        self._call_id = call_id
        self._count = 0

    async def run(self, line: str) -> str:
        """The output of a shell line, or why there is none."""
        match await self._call("bash", {"command": line}):
            case Completed(output=output):
                text = output.text.removesuffix("exit code: 0").removesuffix("\n")
                return "" if text == "(no output)" else text
            case other:
                return _excuse(other, "bash with this command")

    async def read(self, path: Path) -> str:
        """What a file holds, or why it is not to be had."""
        match await self._call("read", {"path": str(path)}):
            case Completed(output=output):
                return output.text
            case other:
                return _excuse(other, "read with this path")

    async def _call(self, name: str, arguments: dict[str, str]) -> Outcome:
        self._count += 1
        (outcome,) = await self._execute(ToolCall(f"{self._call_id}.{self._count}", name, {**arguments}))
        return outcome


def _excuse(outcome: Outcome, instead: str) -> str:
    if isinstance(outcome, Failed):
        return f"[{'failed' if outcome.started else 'not run'}: {outcome.error.message}]"
    return f"[not run: {_NOBODY.format(instead)}]"
