"""The slash commands `/undo`, `/redo` and `/rewind`."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from callwright.agent.undo import Rewinding, RewindScope, UndoConflict, UndoHistory
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.cli.render.calls import point_lines, relative_path, rewind_lines
from callwright.cli.render.text import visible_line
from callwright.cli.terminal.ui import Terminal
from callwright.core.errors import UsageError

_SCOPES: dict[str, RewindScope] = {"": "both", "both": "both", "conversation": "conversation", "files": "files"}
_USAGE = "the number of a point, and conversation, files or both"


class UndoHost(Protocol):
    """The parts of a chat that these commands use."""

    app: App
    conversation: Conversation
    terminal: Terminal
    locations: Locations


class UndoCommands:
    """Undoes, redoes and rewinds the session of a chat.

    Args:
        chat: The chat.
        show: Shows lines to the user.
    """

    def __init__(self, chat: UndoHost, show: Callable[..., None]) -> None:
        self._chat = chat
        self._show = show

    async def undo(self, rest: str) -> None:
        """Undo the last prompt: what the model did since, in the conversation and in files."""
        if rest:
            raise UsageError("/undo takes no argument; /rewind returns to an earlier point")
        history = self._history()
        await self._perform("undone", lambda overwrite: history.rewind(overwrite=overwrite))

    async def redo(self, rest: str) -> None:
        """Take the last undo back."""
        history = self._history()
        await self._perform("redone", lambda overwrite: history.redo(overwrite=overwrite))

    async def rewind(self, rest: str) -> None:
        """Return to a point of a list; without an argument, show the list and ask."""
        history = self._history()
        if not rest:
            points = await history.points()
            if not points:
                raise UsageError("nothing to rewind: the session has no prompt to return to")
            self._show(*point_lines(points, self._chat.terminal.screen.width))
            self._show(f"a point is the state before its prompt; type {_USAGE}; Esc leaves all as it is")
            rest = (await self._chat.terminal.ask("rewind to: ") or "").strip()
        if not rest:
            self._show("nothing was changed")
            return
        to, _, scope = rest.partition(" ")
        if scope.strip() not in _SCOPES:
            raise UsageError(f"expected {_USAGE}, got {rest!r}")
        chosen = _SCOPES[scope.strip()]
        await self._perform("undone", lambda overwrite: history.rewind(to, scope=chosen, overwrite=overwrite))

    def _history(self) -> UndoHistory:
        agent = self._chat.app.agent
        if agent.undo is None:
            raise UsageError('undo is off: remove "undo": "off" from the settings to switch it on')
        return UndoHistory(agent.sessions, self._chat.conversation.session_id, agent.undo)

    async def _perform(self, verb: str, action: Callable[[bool], Awaitable[Rewinding]]) -> None:
        try:
            result = await action(False)
        except UndoConflict as conflict:
            if not await self._may_overwrite(conflict):
                self._show("nothing was changed")
                return
            result = await action(True)
        self._show(*rewind_lines(result, self._chat.locations.cwd, verb=verb))

    async def _may_overwrite(self, conflict: UndoConflict) -> bool:
        cwd = self._chat.locations.cwd
        self._show("changed by another program since:")
        self._show(*(f"  {visible_line(relative_path(path, cwd))}" for path in conflict.paths))
        answer = await self._chat.terminal.ask("overwrite them? y/n ", settled=False)
        return (answer or "").strip().lower() in ("y", "yes")
