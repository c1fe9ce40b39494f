"""`Terminal`: what a person sees and types. Light, so that the first prompt is there before anything else is loaded."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

from toolwright.cli.palette import Palette
from toolwright.cli.terminal.editor import Editor
from toolwright.cli.terminal.keys import KeyReader
from toolwright.cli.terminal.screen import Screen, width_of, wrapped

_FRAME_SECONDS = 1 / 30
_ESCAPE_SECONDS = 0.03
_TWICE_SECONDS = 2.0
_MOST_PARTIAL_ROWS = 6
_MOST_INPUT_ROWS = 10
_MOST_SUGGESTIONS = 8


class Terminal:
    """Lines scroll above; below stand what is under way, the input and a status line."""

    def __init__(self, screen: Screen, palette: Palette) -> None:
        self.screen = screen
        self.palette = palette
        self.editor = Editor()
        self.status = "loading…"
        self.busy = False
        self.running: dict[str, list[str]] = {}
        """Rows for the calls that are running, by call id, no wider than the screen."""
        self.style: Callable[[str], str] = str
        self.on_interrupt: Callable[[], None] = lambda: None
        self.on_mode: Callable[[], None] = lambda: None
        self.over = asyncio.Event()
        self._keys = KeyReader()
        self._partial = ""
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: list[str] = []
        self._question: asyncio.Future[str | None] | None = None
        self._hint = ""
        self._frame: asyncio.TimerHandle | None = None
        self._interrupted_at = 0.0

    def readable(self, descriptor: int) -> None:
        """Take what was typed."""
        try:
            data = os.read(descriptor, 65_536)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self.leave()
            return
        for kind, value in self._keys.feed(data):
            self._typed(kind, value)
        if self._keys.undecided:
            asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._settle)
        self.refresh()

    def show(self, *lines: str) -> None:
        """Add lines that stay."""
        self.screen.scroll(*lines)
        self.refresh()

    def stream(self, text: str) -> None:
        """Add to the text that is being written; whole lines of it stay, the rest is drawn as it grows."""
        *lines, self._partial = (self._partial + text).split("\n")
        self.screen.scroll(*(self.style(line) for line in lines))
        self.refresh()

    def end_stream(self) -> None:
        """Let the text stay as it is."""
        if self._partial:
            self.show(self.style(self._partial))
            self._partial = ""

    async def ask(self, hint: str, prefill: str = "") -> str | None:
        """Let the person answer on the input line; None if they turned away."""
        if self.over.is_set():
            return None
        draft = self.editor.text
        self.editor.set(prefill)
        self._hint = hint
        self._question = asyncio.get_running_loop().create_future()
        self.refresh()
        try:
            return await self._question
        finally:
            self._question, self._hint = None, ""
            self.editor.set(draft)
            self.refresh()

    async def prompt(self) -> str | None:
        """The next thing the person has said; None when they are done."""
        said = await self._prompts.get()
        if self._waiting:
            self._waiting.pop(0)
        return said

    def say(self, text: str) -> None:
        """Put something in line as if it had been typed."""
        self._waiting.append(text)
        self._prompts.put_nowait(text)

    def leave(self) -> None:
        """End the conversation: whoever waits for a prompt or an answer is told that there is none."""
        self.over.set()
        self._answer(None)
        if self.busy:
            self.on_interrupt()
        self._prompts.put_nowait(None)

    def refresh(self) -> None:
        """Draw soon; everything that changes until then is one frame."""
        if self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.draw)

    def draw(self) -> None:
        """Draw now."""
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        width = self.screen.width
        above = self._under_way(width)
        prompt = f"{self._hint} > " if self._hint else "> "
        before = wrapped(prompt + self.editor.text[: self.editor.cursor], width)
        rows = wrapped(prompt + self.editor.text, width)
        first = max(0, len(before) - _MOST_INPUT_ROWS)
        shown = rows[first : first + _MOST_INPUT_ROWS]
        below = [*self._suggested(width), self.palette.paint(self.status[:width], "dim")]
        cursor = (len(above) + len(before) - 1 - first, width_of(before[-1]))
        self.screen.draw([*above, *shown, *below], cursor)

    def _under_way(self, width: int) -> list[str]:
        partial = wrapped(self._partial, width)[-_MOST_PARTIAL_ROWS:] if self._partial else []
        running = [row for rows in self.running.values() for row in rows]
        waiting = [self.palette.paint(f"  queued: {text}"[:width].replace("\n", " "), "dim") for text in self._queued()]
        return [*partial, *running, *waiting]

    def _queued(self) -> list[str]:
        return self._waiting if self.busy else []

    def _suggested(self, width: int) -> list[str]:
        found = self.editor.suggestions
        if not found:
            return []
        more = f"  … {len(found) - _MOST_SUGGESTIONS} more" if len(found) > _MOST_SUGGESTIONS else ""
        return [self.palette.paint(("  ".join(found[:_MOST_SUGGESTIONS]) + more)[:width], "dim")]

    def _settle(self) -> None:
        for kind, value in self._keys.settle():
            self._typed(kind, value)
        self.refresh()

    def _typed(self, kind: str, value: str) -> None:
        if kind == "text":
            self.editor.insert(value)
            return
        match value:
            case "enter":
                self._entered()
            case "escape":
                self._turn_away()
            case "interrupt":
                self._interrupt()
            case "end-of-input" if not self.editor.text:
                self.leave()
            case "end-of-input":
                self.editor.press("delete")
            case "shift-tab":
                self.on_mode()
            case _:
                self.editor.press(value)

    def _entered(self) -> None:
        if self._question is not None:
            text = self.editor.text
            self.editor.set("")
            self._answer(text)
            return
        text = self.editor.take()
        if text.strip():
            self.say(text)

    def _answer(self, text: str | None) -> None:
        if self._question is not None and not self._question.done():
            self._question.set_result(text)

    def _turn_away(self) -> None:
        if self._question is not None:
            self._answer(None)
        elif self.busy:
            self.on_interrupt()
        else:
            self.editor.set("")

    def _interrupt(self) -> None:
        if self._question is None and not self.busy and not self.editor.text:
            if time.monotonic() - self._interrupted_at < _TWICE_SECONDS:
                self.leave()
                return
            self._interrupted_at = time.monotonic()
            self.show(self.palette.paint("press Ctrl-C again, or Ctrl-D, to leave", "dim"))
        self._turn_away()


def restored(text: str) -> list[str]:
    """Lines of a history file, newest last; what cannot be read is left out."""
    import json

    found: list[str] = []
    for line in text.splitlines():
        with suppress(ValueError):
            read: object = json.loads(line)
            if isinstance(read, str):
                found.append(read)
    return found
