"""Commands in the editor's own terminals: only those that the user allowed to run outside the sandbox."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from acp.exceptions import RequestError
from acp.schema import CreateTerminalResponse, TerminalOutputResponse, WaitForTerminalExitResponse
from pydantic import ValidationError

from callwright.acp.call_display import Editor
from callwright.core.errors import ToolFailed
from callwright.core.escaping import visible_line
from callwright.system.output_capture import OutputCapture, OutputLimits
from callwright.system.process import Command, CommandResult

_END_SECONDS = 10.0
_SIGNALLED = 128 + 9


@dataclass(frozen=True, slots=True)
class TerminalOpened:
    """Progress of a call: its command runs in this terminal of the editor."""

    terminal_id: str


class EditorTerminals:
    """Runs commands in terminals that the editor opens.

    The editor starts a command without our sandbox and supervisor. So this is used only for a line that the user has
    allowed to run outside the sandbox; every other line runs here, and the editor is shown its output.

    Args:
        editor: The editor.
        session_id: The session.
    """

    def __init__(self, editor: Editor, session_id: str) -> None:
        self._editor = editor
        self._session_id = session_id

    async def run(
        self, command: Command, seconds: float, report: Callable[[object], None], caps: OutputLimits
    ) -> CommandResult | None:
        """Run a command to its end; None if the editor has no terminals, or opened none.

        Raises:
            ToolFailed: The terminal was lost; the command may have had an effect.
        """
        if self._editor.capabilities.terminal is not True:
            return None
        opening = asyncio.ensure_future(self._open(command, caps))
        try:
            terminal_id = await asyncio.shield(opening)
        except asyncio.CancelledError:  # the command may run already
            await asyncio.shield(self._abandon(opening))
            raise
        if terminal_id is None:
            return None
        report(TerminalOpened(terminal_id))
        try:
            return await self._follow(terminal_id, seconds, caps)
        except (TimeoutError, RequestError, ConnectionError, ValidationError) as error:
            reason = visible_line(str(error))[:200] or "no answer"
            raise ToolFailed(f"the editor lost its terminal ({reason}); the command may have had an effect") from None
        finally:
            # also after a cancellation: a terminal that is released ends its command
            await asyncio.shield(self._release(terminal_id))

    async def _open(self, command: Command, caps: OutputLimits) -> str | None:
        program, *arguments = command.argv
        added = {name: value for name, value in command.environment.items() if os.environ.get(name) != value}
        params = {
            "command": program,
            "args": arguments,
            "cwd": command.cwd,
            "env": [{"name": name, "value": value} for name, value in added.items()],
            "outputByteLimit": caps.kept_chars,
        }
        try:
            return CreateTerminalResponse.model_validate(await self._ask("terminal/create", params)).terminal_id
        except (RequestError, ConnectionError, ValidationError):
            return None

    async def _follow(self, terminal_id: str, seconds: float, caps: OutputLimits) -> CommandResult:
        timed_out = False
        code = _SIGNALLED
        try:
            waiting = self._ask("terminal/wait_for_exit", {"terminalId": terminal_id})
            status = WaitForTerminalExitResponse.model_validate(await asyncio.wait_for(waiting, seconds))
            code = status.exit_code if status.exit_code is not None else _SIGNALLED
        except TimeoutError:
            timed_out = True
            await asyncio.wait_for(self._ask("terminal/kill", {"terminalId": terminal_id}), _END_SECONDS)
        asking = self._ask("terminal/output", {"terminalId": terminal_id})
        shown = TerminalOutputResponse.model_validate(await asyncio.wait_for(asking, _END_SECONDS))
        output = OutputCapture(caps)
        output.feed(shown.output.encode("utf-8", "replace"))
        output.close()
        return CommandResult(code, "timed_out" if timed_out else "exited", output)

    async def _abandon(self, opening: "asyncio.Future[str | None]") -> None:
        terminal_id = await opening
        if terminal_id is not None:
            await self._release(terminal_id)

    async def _release(self, terminal_id: str) -> None:
        for method in ("terminal/kill", "terminal/release"):
            try:
                await asyncio.wait_for(self._ask(method, {"terminalId": terminal_id}), _END_SECONDS)
            except (TimeoutError, RequestError, ConnectionError):
                continue  # it has ended, or the editor has

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        return await self._editor.request(method, {"sessionId": self._session_id, **params})
