"""The slash commands `/undo`, `/redo` and `/rewind`."""

from collections.abc import Awaitable, Callable

from callwright.agent.undo import Rewinding, RewindScope, UndoConflict, UndoHistory
from callwright.cli.render.text import visible_line
from callwright.cli.render.undo import point_entries, rewind_lines
from callwright.cli.terminal.chat_actions import ChatHost
from callwright.cli.terminal.views import PickEntry, Picker
from callwright.core.errors import UsageError
from callwright.system.paths import shorten_path

_SCOPES: dict[str, RewindScope] = {"": "both", "both": "both", "conversation": "conversation", "files": "files"}
_SCOPE_ENTRIES = (
    PickEntry("both", "conversation and files"),
    PickEntry("conversation", "conversation; files stay as they are"),
    PickEntry("files", "files; the conversation goes on"),
)


class UndoCommands:
    """Undoes, redoes and rewinds the session of a chat; `show` shows lines to the user."""

    def __init__(self, chat: ChatHost, show: Callable[..., None]) -> None:
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
        """Return to before a prompt; without an argument, let the user pick the prompt and what to return."""
        history = self._history()
        rest = rest or await self._pick_point(history)
        if not rest:
            self._show("nothing was changed")
            return
        to, _, scope = rest.partition(" ")
        if scope.strip() not in _SCOPES:
            raise UsageError(f"expected the number of a point, and conversation, files or both; got {rest!r}")
        chosen = _SCOPES[scope.strip()]
        await self._perform("undone", lambda overwrite: history.rewind(to, scope=chosen, overwrite=overwrite))

    async def _pick_point(self, history: UndoHistory) -> str:
        """Return the number of a point and what to return, as they can be typed; empty if the user leaves."""
        points = await history.points()
        if not points:
            raise UsageError("nothing to rewind: the session has no prompt to return to")
        terminal = self._chat.terminal
        entries = [PickEntry(number, *texts) for number, *texts in point_entries(points)]
        picked = await terminal.ask("rewind to before", view=Picker("prompts", entries[::-1], terminal.palette))
        if not picked or terminal.scrolls_only:  # there, all is typed on one line: 2 files
            return (picked or "").strip()
        view = Picker("what to return", _SCOPE_ENTRIES, terminal.palette)
        scope = await terminal.ask("return", view=view, settled=False)  # a second Enter that was too fast is no answer
        return f"{picked} {scope}" if scope else ""

    def _history(self) -> UndoHistory:
        return self._chat.app.undo_history(self._chat.conversation.session_id)

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
        self._show(*(f"  {visible_line(shorten_path(path, cwd))}" for path in conflict.paths))
        answer = await self._chat.terminal.ask("overwrite them? y/n ", settled=False)
        return (answer or "").strip().lower() in ("y", "yes")
