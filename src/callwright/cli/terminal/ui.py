"""`Terminal`: what a person sees and types. Light, so that the first prompt is there before anything else is loaded."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from callwright.cli.render.text import Palette, cut, visible, width_of, wrapped
from callwright.cli.terminal.input import Editor
from callwright.cli.terminal.keys import KeyReader
from callwright.cli.terminal.screen import Screen

_FRAME_SECONDS = 1 / 30
_TICK_SECONDS = 1.0
_ESCAPE_SECONDS = 0.03
_PASTE_SECONDS = 3.0
_TWICE_SECONDS = 2.0
_MOST_PARTIAL_ROWS = 6
_MOST_INPUT_ROWS = 10
_MOST_QUEUED = 3


class Style(Protocol):
    """How lines that were said become rows on a screen."""

    table: list[str]

    def rows(self, line: str, width: int) -> list[str]:
        """The rows of one line; none while it is kept back."""
        ...

    def end(self, width: int) -> list[str]:
        """What was kept back."""
        ...


class _Plain:
    def __init__(self) -> None:
        self.table: list[str] = []

    def rows(self, line: str, width: int) -> list[str]:
        return [visible(line)]

    def end(self, width: int) -> list[str]:
        return []


class Terminal:
    """Lines scroll above; below stand what is under way, the input and a status line."""

    def __init__(self, screen: Screen, palette: Palette, *, lines: bool = False) -> None:
        self.screen = screen
        self._lines = lines
        """The terminal sends whole lines, not keys."""
        self.palette = palette
        self.editor = Editor()
        self.status = "loading…"
        self.busy = False
        self.style: Style = _Plain()
        self.running: Callable[[int], Sequence[str]] = lambda width: ()
        """Rows for the calls that are running, no wider than they are told."""
        self.on_interrupt: Callable[[], None] = lambda: None
        self.on_mode: Callable[[], None] = lambda: None
        self.edit_outside: Callable[[str], Awaitable[str | None]] | None = None
        """Lets the person change a text in a program of their choice, where they have chosen one."""
        self.over = asyncio.Event()
        self._keys = KeyReader()
        self._partial = ""
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: list[str] = []
        self._question: asyncio.Future[str | None] | None = None
        self._hint = self._draft = ""
        self._frame: asyncio.TimerHandle | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._interrupted_at = 0.0
        self.paused = False
        """Somebody else has the screen."""

    def readable(self, descriptor: int) -> None:
        """Take what was typed."""
        try:
            data = os.read(descriptor, 65_536)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self.leave()
            return
        if self._lines:
            data = data.replace(b"\n", b"\r")
            self.screen.typed()
        for kind, value in self._keys.feed(data):
            self._typed(kind, value)
        self._settle_later()
        self.refresh()

    def show(self, *lines: str) -> None:
        """Add lines that stay."""
        self.screen.scroll(*lines)
        self.refresh()

    def stream(self, text: str) -> None:
        """Add to the text that is being written; whole lines of it stay, the rest is drawn as it grows."""
        *lines, self._partial = (self._partial + text).split("\n")
        if lines:
            width = self.screen.width
            self.screen.scroll(*(row for line in lines for row in self.style.rows(line, width)))
        self.refresh()

    def end_stream(self) -> None:
        """Let the text stay as it is."""
        width = self.screen.width
        partial, self._partial = self._partial, ""
        self.show(*(self.style.rows(partial, width) if partial else ()), *self.style.end(width))

    async def ask(self, hint: str, prefill: str = "") -> str | None:
        """Let the person answer on the input line; None if they turned away."""
        if self.over.is_set():
            return None
        self._draft = self.editor.text
        self.editor.set(prefill)
        self._hint = hint
        self._question = question = asyncio.get_running_loop().create_future()
        self.refresh()
        try:
            return await question
        finally:
            if self._question is question:
                self._answer(None)

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

    def interrupt(self) -> None:
        """Do what Ctrl-C does: stop what is under way, empty the line, and the second time leave."""
        if self._question is None and not self.busy and not self.editor.text:
            if time.monotonic() - self._interrupted_at < _TWICE_SECONDS:
                self.leave()
                return
            self._interrupted_at = time.monotonic()
            self.show(self.palette.paint("press Ctrl-C again, or Ctrl-D, to leave", "dim"))
        self._turn_away()

    def refresh(self) -> None:
        """Draw soon; everything that changes until then is one frame."""
        if self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.draw)

    def draw(self) -> None:
        """Draw now."""
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        if self.paused:
            return
        width, height = self.screen.width, self.screen.height
        shown, (row, column) = self._input(width, min(_MOST_INPUT_ROWS, max(height // 2, 1)))
        below = [*self._suggested(width), self.palette.paint(cut(visible(self.status), width), "dim")]
        below = below[max(0, len(shown) + len(below) - height + 1) :]
        room = height - len(shown) - len(below) - 1
        above = self._under_way(width)[-room:] if room > 0 else []
        self.screen.draw([*above, *shown, *below], (len(above) + row, column))

    def _input(self, width: int, most_rows: int) -> tuple[list[str], tuple[int, int]]:
        """The rows of the input line around the cursor, and where in them it is."""
        prompt = f"{self._hint} > " if self._hint else "> "
        before = wrapped(prompt + _typed_text(self.editor.text[: self.editor.cursor]), width)
        rows = wrapped(prompt + _typed_text(self.editor.text), width)
        first = max(0, len(before) - most_rows)
        return rows[first : first + most_rows], (len(before) - 1 - first, width_of(before[-1]))

    def _under_way(self, width: int) -> list[str]:
        running = list(self.running(width))
        if running and self._tick is None:  # the time they took is shown beside them
            self._tick = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._ticked)
        paint = self.palette.paint
        queued = self._waiting if self.busy else []
        waiting = [paint(cut(f"  queued: {_typed_text(text)}".replace("\n", " "), width), "dim") for text in queued]
        if len(waiting) > _MOST_QUEUED:
            waiting[_MOST_QUEUED - 1 :] = [paint(f"  … and {len(waiting) - _MOST_QUEUED + 1} more queued", "dim")]
        return [*self._growing(width), *running, *waiting]

    def _growing(self, width: int) -> list[str]:
        """The end of the text that is being written; whole rows are left out, so that the rest stands still."""
        kept = [cut(line, width) for line in self.style.table[-_MOST_PARTIAL_ROWS:]]
        if not self._partial:
            return kept
        start = max(0, len(self._partial) // width - _MOST_PARTIAL_ROWS) * width
        rows = wrapped(visible(self._partial[start:]).replace("\t", "    "), width)
        return [*kept, *rows][-_MOST_PARTIAL_ROWS:]

    def _ticked(self) -> None:
        self._tick = None
        self.refresh()

    def _suggested(self, width: int) -> list[str]:
        found = [visible(text) for text in self.editor.suggestions]
        if not found:
            return []
        row = "  ".join(found)
        while width_of(row) > width and len(found) > 1:
            found.pop()
            row = "  ".join([*found, f"… {len(self.editor.suggestions) - len(found)} more"])
        return [self.palette.paint(cut(row, width), "dim")]

    def _settle_later(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if self._keys.undecided:
            seconds = _PASTE_SECONDS if self._keys.pasting else _ESCAPE_SECONDS
            self._settling = asyncio.get_running_loop().call_later(seconds, self._settle)

    def _settle(self) -> None:
        for kind, value in self._keys.settle():
            self._typed(kind, value)
        self.refresh()

    def _typed(self, kind: str, value: str) -> None:
        if kind != "key":
            (self.editor.paste if kind == "paste" else self.editor.insert)(value)
            return
        match value:
            case "enter":
                self._entered()
            case "escape":
                self._turn_away()
            case "interrupt":
                self.interrupt()
            case "end-of-input" if not self.editor.text:
                self.leave()
            case "end-of-input":
                self.editor.press("delete")
            case "shift-tab":
                self.on_mode()
            case "redraw":
                self.screen.clear()
            case _:
                self.editor.press(value)

    def _entered(self) -> None:
        if self._question is not None:
            self._answer(self.editor.whole)
            return
        text = self.editor.take()
        if text.strip():
            self.say(text)

    def _answer(self, text: str | None) -> None:
        """The draft is back at once: the next key may have come together with this one."""
        question, self._question = self._question, None
        if question is None:
            return
        if not question.done():
            question.set_result(text)
        self._hint = ""
        self.editor.set(self._draft)
        self.refresh()

    def _turn_away(self) -> None:
        if self._question is not None:
            self._answer(None)
        elif self.busy:
            self.on_interrupt()
        else:
            self.editor.set("")


def _typed_text(text: str) -> str:
    """What stands on the input line: pasted text must not steer the terminal either."""
    return visible(text).replace("\t", "    ")
