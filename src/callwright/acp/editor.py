"""The editor at the other end: its capabilities, its files with unsaved changes, and its terminals."""

import asyncio
import concurrent.futures
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.schema import (
    ClientCapabilities,
    CreateTerminalResponse,
    ReadTextFileResponse,
    SessionNotification,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)
from acp.utils import serialize_params
from pydantic import ValidationError

from callwright.acp.transport import NO_VALID_ANSWER, SENT_REQUEST
from callwright.core.errors import ToolFailed
from callwright.core.escaping import visible_line
from callwright.system.atomic_write import ABSENT
from callwright.system.files import detect_encoding, digest, most_common_break, unify_line_breaks, with_break
from callwright.system.output_capture import OutputCapture, OutputLimits
from callwright.system.process import Command, CommandResult
from callwright.toolbox import FileAccess, LoadedFile

_READ_SECONDS = 10.0
_WRITE_SECONDS = 60.0
_END_SECONDS = 10.0
_MARK = "\ufeff"
_SIGNALLED = 128 + 9
_TERMINAL_BYTES = 1 << 20
"""How much of a command's output an editor is asked to keep: from more, it drops the beginning."""
_DROPPED = b"[the beginning of the output is missing here: the editor has dropped it]\n"


class Editor:
    """The editor at the other end: sends requests and updates, and has its capabilities."""

    def __init__(self, send_request: Callable[..., Awaitable[Any]], notify: Callable[..., Awaitable[None]]) -> None:
        self._send_request = send_request
        self._notify = notify
        self.capabilities = ClientCapabilities()

    @property
    def shows_terminals(self) -> bool:
        """Whether it draws a terminal for output that is sent along with a call."""
        return (self.capabilities.field_meta or {}).get("terminal_output") is True

    @property
    def shows_forms(self) -> bool:
        """Whether it shows forms to fill in."""
        offered = self.capabilities.elicitation
        return offered is not None and offered.form is not None

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result.

        Raises:
            ConnectionError: The editor has gone.
            RequestError: The editor refused it.
        """
        return await self._send_request(method, params)

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Show the user a dialog and return the result; it is withdrawn if it is answered elsewhere.

        Raises the same errors as `request`. An editor that cannot withdraw a dialog ignores that it should.
        """
        SENT_REQUEST.set(None)
        try:
            return await self.request(method, params)
        except asyncio.CancelledError:
            if (request_id := SENT_REQUEST.get()) is not None:
                with suppress(ConnectionError):
                    await self._notify("$/cancel_request", {"requestId": request_id})
            raise

    async def update(self, session_id: str, update: Any) -> None:
        """Send an update; one that cannot be delivered is dropped, because the run must still reach its end."""
        note = SessionNotification(session_id=session_id, update=update)
        with suppress(ConnectionError):
            await self._notify("session/update", serialize_params(note))


class EditorFiles(FileAccess):
    """Loads and stores files through the editor, where it offers both.

    Paths are those that the tools have resolved and the policies have judged. Where the editor offers only one of the
    two, or does not answer, files are those on disk.

    Args:
        editor: The editor.
        session_id: The session.
        loop: The event loop of the connection; the methods here run in threads.
    """

    def __init__(self, editor: Editor, session_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self._editor = editor
        self._session_id = session_id
        self._loop = loop

    @property
    def shares_buffers(self) -> bool:  # type: ignore[override] - the capabilities come with the connection
        """Whether the editor lets files be read and written through it."""
        offered = self._editor.capabilities.fs
        return offered is not None and bool(offered.read_text_file) and bool(offered.write_text_file)

    def load(self, path: Path, given: str) -> LoadedFile | None:
        """Return a file, with the content of the editor if that differs from the disk."""
        found = super().load(path, given)
        if found is None or not self.shares_buffers or detect_encoding(found.data) is None:
            return found
        text = self._read_buffer(path)
        if text is None or unify_line_breaks(text.removeprefix(_MARK)) == unify_line_breaks(found.text):
            return found
        body = with_break(unify_line_breaks(text.removeprefix(_MARK)), most_common_break(found.text))
        try:
            data = found.encoding.mark + found.encoding.encode(body)
        except UnicodeEncodeError:  # a character that the old encoding lacks
            data = body.encode()
        return replace(found, data=data, encoding=detect_encoding(data) or found.encoding, unsaved=True)

    def store(self, path: Path, given: str, data: bytes, expected: str | None) -> None:
        """Let the editor write a file, if it still has the content that the change was made for."""
        encoding = detect_encoding(data)
        if not self.shares_buffers or encoding is None:
            super().store(path, given, data, expected)
            return
        current = self.load(path, given)
        known = ABSENT if current is None else digest(current.data)
        if expected is not None and known != expected:
            raise ToolFailed(f"{given} was changed since it was read; read it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = encoding.decode(data[len(encoding.mark) :])
        try:
            self._ask("fs/write_text_file", {"path": str(path), "content": text}, _WRITE_SECONDS)
        except (RequestError, ConnectionError, concurrent.futures.TimeoutError) as error:
            reason = visible_line(str(error))[:200] or "it did not answer"
            raise ToolFailed(
                f"the editor could not write {given}: {reason}; it may have changed, read it again"
            ) from None

    def _read_buffer(self, path: Path) -> str | None:
        """Return the text of the editor's buffer; None if it cannot be had."""
        try:
            answer = self._ask("fs/read_text_file", {"path": str(path)}, _READ_SECONDS)
            return ReadTextFileResponse.model_validate(answer).content
        except (RequestError, ConnectionError, ValidationError, concurrent.futures.TimeoutError):
            return None

    def _ask(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        request = self._editor.request(method, {"sessionId": self._session_id, **params})
        asking = asyncio.run_coroutine_threadsafe(_await(request), self._loop)
        try:
            return asking.result(seconds)
        finally:
            asking.cancel()  # if it was not answered: nothing waits for it any more


async def _await(request: Any) -> Any:
    return await request


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
        """Run a command to its end; None if the editor has no terminals, or refused to open one.

        Raises:
            ToolFailed: The terminal was lost, or it is not known whether one was opened: the command may have had an
                effect, and must not run again.
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
        # the editor's own variables reach the command too, also those with which bash would run something else
        dropped = [word for name in os.environ if name and name not in command.environment for word in ("-u", name)]
        program, *arguments = ("env", *dropped, *command.argv) if dropped else command.argv
        added = {name: value for name, value in command.environment.items() if os.environ.get(name) != value}
        params = {
            "command": program,
            "args": arguments,
            "cwd": command.cwd,
            "env": [{"name": name, "value": value} for name, value in added.items()],
            "outputByteLimit": max(caps.kept_chars, _TERMINAL_BYTES),
        }
        try:
            return CreateTerminalResponse.model_validate(await self._ask("terminal/create", params)).terminal_id
        except RequestError as error:
            if str(error) != NO_VALID_ANSWER:
                return None
            reason = NO_VALID_ANSWER
        except ValidationError:
            reason = NO_VALID_ANSWER
        except ConnectionError:
            reason = "it has disconnected"
        raise ToolFailed(
            f"the editor did not tell whether its terminal runs the command ({reason}); it may have had an effect"
        )

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
        if shown.truncated:
            output.feed(_DROPPED)
        output.feed(shown.output.encode("utf-8", "replace"))
        output.close()
        return CommandResult(code, "timed_out" if timed_out else "exited", output)

    async def _abandon(self, opening: "asyncio.Future[str | None]") -> None:
        with suppress(ToolFailed):
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
