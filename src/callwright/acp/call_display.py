"""The calls of a session as the editor shows them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.schema import TerminalToolCallContent, ToolCallProgress
from pydantic import BaseModel

from callwright.acp.editor import Editor
from callwright.acp.updates import (
    CallIds,
    Content,
    announce_call,
    begin_call,
    diffs_of,
    end_call,
    escape_controls,
    plan_in,
    show_progress,
)
from callwright.core.calls import Approve, Completed, Failed, Outcome, Question, Reply, ToolCall
from callwright.policy.tool_names import canonical

_PROGRESS_CHARS = 8_000


@dataclass(slots=True)
class _ShownCall:
    """What the editor was shown of a call that runs."""

    call_id: str
    diffs: list[Content] = field(default_factory=list[Content])
    output: str = ""
    """The end of its output, unless a terminal shows it."""
    output_chars: int = 0
    terminal: bool = False
    """Its output is sent as that of a terminal, which the editor draws."""
    own_terminal: str = ""
    """The terminal of the editor in which its command runs."""


class CallDisplay:
    """Shows the calls of one session in the editor.

    Args:
        editor: The editor.
        session_id: The session.
        cwd: The folder relative paths start from.
    """

    def __init__(self, editor: Editor, session_id: str, cwd: Path) -> None:
        self._editor = editor
        self._session_id = session_id
        self._cwd = cwd
        self.ids = CallIds()
        self._shown: dict[str, _ShownCall] = {}
        self._approved: set[str] = set()

    async def announce(self, call: ToolCall) -> str:
        call_id, new = self.ids.open(call.id)
        if new:
            await self._update(announce_call(call_id, call, self._cwd))
        return call_id

    async def begin(self, call: ToolCall) -> None:
        call_id, cwd = await self.announce(call), self._cwd
        shown = self._shown[call.id] = _ShownCall(call_id, diffs_of(call, cwd, on_disk=True))
        update = begin_call(call_id, call, cwd)
        if canonical(call.name) == "bash" and self._editor.shows_terminals:
            shown.terminal = True
            update.content = [TerminalToolCallContent(type="terminal", terminal_id=call_id)]
            update.field_meta = {"terminal_info": {"terminal_id": call_id, "cwd": str(cwd)}}
        await self._update(update)

    async def show_terminal(self, call: ToolCall, terminal_id: str) -> None:
        """Show the editor's own terminal, in which the command of a call runs."""
        shown = self._shown.get(call.id)
        if shown is not None:
            shown.own_terminal = terminal_id
            update = _terminal_update(shown.call_id, {})
            update.content = [TerminalToolCallContent(type="terminal", terminal_id=terminal_id)]
            await self._update(update)

    async def progress(self, call: ToolCall, piece: str) -> None:
        shown = self._shown.get(call.id)
        if shown is None:
            return
        shown.output_chars += len(piece)
        if shown.terminal:
            await self._update(_terminal_update(shown.call_id, {"terminal_output": {"data": escape_controls(piece)}}))
        else:
            shown.output = (shown.output + piece)[-_PROGRESS_CHARS:]
            await self._update(show_progress(shown.call_id, shown.output))

    async def end(self, outcome: Outcome) -> None:
        call = outcome.call
        call_id = await self.announce(call)
        shown = self._shown.pop(call.id, None) or _ShownCall(call_id)
        # progress leaves out what comes too fast; then the output is shown as text instead
        complete = shown.own_terminal or (
            shown.terminal and shown.output_chars >= len(outcome.text.rpartition("exit code:")[0].rstrip())
        )
        update = end_call(call_id, outcome, shown.diffs, plain=bool(complete))
        if shown.terminal:
            code = _exit_code(outcome)
            update.field_meta = {"terminal_exit": {"terminal_id": call_id, "exit_code": code, "signal": None}}
        await self._update(update)
        self.ids.close(call.id)
        self._approved.discard(call_id)
        plan = plan_in(outcome)
        if plan is not None:
            await self._update(plan)

    async def end_all(self) -> None:
        """Settle the calls that the editor still shows as open: those of a sub-agent, or of a discarded message."""
        for call_id in self.ids.take_open():
            status = "completed" if call_id in self._approved else "failed"
            update = _terminal_update(call_id, {})
            update.status = status
            await self._update(update)
        self._approved.clear()
        self._shown.clear()

    def settle(self, question: Question, reply: Reply) -> None:
        """Note the reply to a question: the call of a sub-agent has no other sign of how it ended."""
        if isinstance(reply, Approve):
            self._approved.add(self.ids.open(question.call_id)[0])

    async def _update(self, update: BaseModel) -> None:
        await self._editor.update(self._session_id, update)


def _terminal_update(call_id: str, fields: dict[str, dict[str, Any]]) -> ToolCallProgress:
    meta = {name: {"terminal_id": call_id, **content} for name, content in fields.items()}
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, field_meta=meta or None)


def _exit_code(outcome: Outcome) -> int | None:
    if isinstance(outcome, Completed):
        data = outcome.output.structured
        code = data.get("exit_code") if isinstance(data, dict) else None
    else:
        code = getattr(outcome.error, "exit_code", None) if isinstance(outcome, Failed) else None
    return code if type(code) is int else None
