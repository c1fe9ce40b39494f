"""`Terminal`: the user interface of a conversation. Imports little, so that the first prompt appears at once.

    lines that scroll away      streamed text, finished calls, dialogs
    ------------------------
    the text being streamed     its last rows
    running calls               one row each
    queued prompts
    > the input line
    completions
    status line

prompt_toolkit was measured instead: its first prompt takes twice as long, and after a terminal is resized its renderer
leaves rows of earlier frames behind.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from callwright.cli.render.text import Palette, cut, visible
from callwright.cli.terminal import frame
from callwright.cli.terminal.frame import LineStyle, PagedView, PlainStyle
from callwright.cli.terminal.input import LineEditor, PromptQueue
from callwright.cli.terminal.keys import KeyReader
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.vi_keys import ViKeys

_FRAME_SECONDS = 1 / 30
_TICK_SECONDS = 0.2
_SETTLE_SECONDS = 0.4
"""How long a question is on the screen before keys can answer it: a person who types does not see it at once."""
_SECOND_INTERRUPT_SECONDS = 2.0
_MOST_INPUT_ROWS = 10


class Terminal:
    """Shows lines, streams text, reads prompts and asks questions.

    Args:
        screen: The screen to draw on.
        palette: The colours.
        lines: Whether the terminal sends whole lines, not keys.
    """

    def __init__(self, screen: Screen, palette: Palette, *, lines: bool = False) -> None:
        self.screen = screen
        self.scrolls_only = lines
        """Whether the screen cannot be redrawn, so that everything shown stays."""
        self.palette = palette
        self.editor = LineEditor()
        self.status = frame.LOADING
        self.busy = False
        self.style: LineStyle = PlainStyle()
        self.running: Callable[[int], Sequence[str]] = lambda width: ()
        """Returns the rows of running calls for a width."""
        self.on_interrupt: Callable[[], object] = lambda: None
        self.on_mode: Callable[[], None] = lambda: None
        self.edit_externally: Callable[[str], Awaitable[str | None]] | None = None
        """Opens a text in the user's editor, if one is configured."""
        self.on_key: dict[str, Callable[[], None]] = {}
        """What further keys do: `search-history`, `expand`, `paste-image`, `suspend`."""
        self.on_paste: Callable[[str], None] = self.editor.paste
        self.vi: ViKeys | None = None
        self.over = asyncio.Event()
        self._keys = KeyReader()
        self._partial = ""
        self._queue = PromptQueue(editable=not lines)
        self._question: asyncio.Future[str | None] | None = None
        self._hint = self._draft = ""
        self._view: PagedView | None = None
        self._begin_answer: Callable[[], None] | None = None
        """Called when keys start to answer the question; None as soon as they do."""
        self.settle_seconds = _SETTLE_SECONDS
        self._settle_timer: asyncio.TimerHandle | None = None
        self._frame_timer: asyncio.TimerHandle | None = None
        self._tick_timer: asyncio.TimerHandle | None = None
        self._flush_timer: asyncio.TimerHandle | None = None
        self._interrupted_at = self._turned_at = 0.0
        self._chosen = self._run_interrupted = False
        self.paused = False
        """Whether another program, such as an editor, uses the screen."""

    def read_input(self, descriptor: int) -> None:
        """Read and handle what was typed."""
        try:
            data = os.read(descriptor, 65_536)
        except OSError:
            data = b""
        if not data:  # the terminal was closed
            self.leave()
            return
        if self.scrolls_only:
            data = data.replace(b"\n", b"\r")
            self.screen.note_echo()
        for kind, value in self._keys.feed(data):
            self._handle(kind, value)
        self._flush_later()
        self.refresh()

    def show(self, *lines: str) -> None:
        """Add lines that stay."""
        self.screen.scroll(*lines)
        self.refresh()

    def stream(self, text: str) -> None:
        """Add to the streamed text; whole lines stay, the last incomplete one is redrawn as it grows."""
        first, *rest = text.split("\n")
        partial, self._partial = self._partial, ""
        partial += first  # in place, as nothing else refers to it: a line of megabytes arrives in small pieces
        *lines, self._partial = partial, *rest
        self.show(*(row for line in lines for row in self.style.rows(line, self.screen.width)))

    def end_stream(self) -> None:
        """End the streamed text; its incomplete last line stays as it is."""
        width = self.screen.width
        partial, self._partial = self._partial, ""
        self.show(*(self.style.rows(partial, width) if partial else ()), *self.style.end(width))

    async def ask(
        self, hint: str, prefill: str = "", *, view: PagedView | None = None, settled: bool = True
    ) -> str | None:
        """Ask the user on the input line.

        What was typed before the question appeared stays a draft and never answers it.

        Args:
            hint: The prompt in front of the input.
            prefill: The text to start from.
            view: What the question is about; shown above the input line until it is answered.
            settled: Whether the user has already seen the question; a new one takes answers only after a moment.

        Returns:
            The answer; None if the user pressed Esc or left.
        """
        if self.over.is_set():
            return None
        self._answer(None)  # a search in the history gives way to a question
        self._question = question = asyncio.get_running_loop().create_future()
        self._chosen = False
        self._view = view
        if view is not None and self.scrolls_only:
            self.show(*view.next_rows(self.screen.width, self.screen.height))
        self._begin_answer = partial(self._take_answer, hint, prefill)
        if settled:
            self._begin_answer()
        self.refresh()
        try:
            return await question
        finally:
            if self._question is question:
                self._answer(None)

    def _take_answer(self, hint: str, prefill: str) -> None:
        self._begin_answer = self._settle_timer = None
        self._draft = self.editor.text
        self.editor.set(prefill)
        self._hint = hint
        self.refresh()

    async def prompt(self) -> str | None:
        """Return the next prompt; None when the user leaves."""
        return await self._queue.get()

    def submit(self, text: str, *, first: bool = False) -> None:
        """Queue a prompt as if it had been typed, after what was typed or `first`."""
        self._queue.add(text, first=first)

    def take_unsent(self) -> list[str]:
        """Remove and return the prompts that wait."""
        return self._queue.take_all()

    def _take_queued(self) -> bool:
        """Put the newest queued prompt back on an empty input line; False if the key is for the history."""
        text = None if not self.busy or self.editor.text or self._answering else self._queue.take_last()
        if text is not None:
            self.editor.restore(text)
        return text is not None

    def leave(self) -> None:
        """End the conversation: pending `ask` and `prompt` calls return None."""
        again = self.over.is_set()  # a closed window says so twice, by a signal and by its input
        self.over.set()
        asked = again or self._question is not None
        self._answer(None)
        if self.busy and not asked:  # a run that waits for an answer ends as paused, with its question on record
            self.on_interrupt()
        self._queue.end()

    def interrupt(self) -> None:
        """Handle Ctrl-C: stop the run, or clear the line, or leave at the second time."""
        self.refresh()
        at_prompt = self._question is None and not self.busy
        if at_prompt and self._queue.return_to(self.editor):  # Enter was pressed, but its run has not begun
            return
        if at_prompt and not self.editor.text:
            if time.monotonic() - self._interrupted_at < _SECOND_INTERRUPT_SECONDS:
                self.leave()
                return
            self._interrupted_at = time.monotonic()
            self.show(self.palette.paint("press Ctrl-C again, or Ctrl-D, to leave", "dim"))
        self._run_interrupted = self.busy and self._question is None
        self.cancel()

    def end_run(self, *, complete: bool) -> None:
        """Leave the busy state; a Ctrl-C that came too late to stop a complete run counts for the prompt."""
        late = complete and self._run_interrupted and not self.editor.text
        self.busy = self._run_interrupted = False
        if late:
            self.interrupt()

    def refresh(self) -> None:
        """Draw soon; all changes until then go into one frame."""
        if self._frame_timer is None:
            self._frame_timer = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self.draw)

    def draw(self) -> None:
        """Draw now."""
        if self._frame_timer is not None:
            self._frame_timer.cancel()
            self._frame_timer = None
        if self.paused:
            return
        width, height = self.screen.width, self.screen.height
        prompt = f"{self._hint} > " if self._hint else "> "
        most_rows = min(_MOST_INPUT_ROWS, max(height // 2, 1))
        shown, (row, column) = frame.input_rows(prompt, self.editor.text, self.editor.cursor, width, most_rows)
        suggested = [self.palette.paint(row, "dim") for row in frame.suggestion_rows(self.editor.suggestions, width)]
        below = [*suggested, self.palette.paint(cut(visible(self.status), width), "dim")]
        below = below[max(0, len(shown) + len(below) - height + 1) :]
        room = height - len(shown) - len(below) - 1
        above = self._live_rows(width, room)[-room:] if room > 0 else []
        self._settle_soon()
        self.screen.draw([*above, *shown, *below], (len(above) + row, column))

    def _settle_soon(self) -> None:
        """Start the time after which keys answer, with the frame that shows the question."""
        if self._begin_answer is not None and self._settle_timer is None:
            self._settle_timer = asyncio.get_running_loop().call_later(self.settle_seconds, self._begin_answer)

    def _live_rows(self, width: int, height: int) -> list[str]:
        if self._view is not None and not self.scrolls_only:
            return self._view.rows(width, height)
        running = list(self.running(width))
        if running and self._tick_timer is None:  # rows of running calls show seconds, so redraw them every second
            self._tick_timer = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._on_tick)
        waiting = self._queue.rows(width, frame.visible_input) if self.busy else []
        return [
            *frame.partial_rows(self._partial, self.style.held, width),
            *running,
            *(self.palette.paint(row, "dim") for row in waiting),
        ]

    def _on_tick(self) -> None:
        self._tick_timer = None
        self.refresh()

    def _flush_later(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if seconds := self._keys.wait_seconds:
            self._flush_timer = asyncio.get_running_loop().call_later(seconds, self._flush)

    def _flush(self) -> None:
        for kind, value in self._keys.flush():
            self._handle(kind, value)
        self.refresh()

    def _handle(self, kind: str, value: str) -> None:
        if kind != "key":
            value = self._turn_pages(value) if kind == "text" else value
            if kind == "paste":
                self.on_paste(value)
            elif self.vi is None or self._answering or not self.vi.type(value):
                self.editor.insert(value)
            self._mark_typed()
            return
        if self._use_menu(value):
            return
        match value:
            case "page-down" | "page-up":
                if self._view is not None:
                    self._view.turn(1 if value == "page-down" else -1)
            case "enter":
                self._enter()
            case "escape" if self.vi is not None and not self._answering and not self.busy and self.vi.escape():
                pass
            case "escape":
                self.cancel()
            case "interrupt":
                self.interrupt()
            case "end-of-input" if not self.editor.text:
                self.leave()
            case "end-of-input":
                self.editor.press("delete")
            case "shift-tab":
                self.on_mode()
            case "up" if self._take_queued():
                pass
            case _ if value in self.on_key:
                self.on_key[value]()
            case "redraw":
                self.screen.clear()
            case _:
                self.editor.press(value)
                self._mark_typed()

    def _mark_typed(self) -> None:
        if self._answering and self._view is not None:
            self._view.mark(self.editor.text)

    def _use_menu(self, key: str) -> bool:
        """Let arrow keys on an empty line choose an answer, and Tab show everything; False for any other key."""
        if not self._answering or self._view is None or self.scrolls_only:
            return False
        match key:
            case "up" | "down" if not self.editor.text or self._view.filters:
                self._chosen = True
                return self._view.move(1 if key == "down" else -1)
            case "tab":
                return self._view.toggle()
            case _:
                return False

    def _turn_pages(self, typed: str) -> str:
        """Let spaces on an empty line turn the pages of an unread dialog; return the rest of the text."""
        while typed.startswith(" ") and self._answering and not self.editor.text and self._unread:
            self._turn_page()
            typed = typed[1:]
        return typed

    @property
    def _unread(self) -> bool:
        return self._view is not None and not self._view.read

    def _turn_page(self) -> bool:
        """Show the next page of an unread dialog; False if there is none."""
        if self._view is None or self._view.read:
            return False
        self._turned_at = time.monotonic()
        if self.scrolls_only:
            self.show(*self._view.next_rows(self.screen.width, self.screen.height))
            return True
        return self._view.turn(1)

    @property
    def asking(self) -> bool:
        """Whether a question is on the screen."""
        return self._question is not None

    @property
    def _answering(self) -> bool:
        """Whether what is typed now answers a question."""
        return self._question is not None and self._begin_answer is None

    def _enter(self) -> None:
        if self._answering:
            picked = self._view is not None and self._view.filters and not self.scrolls_only
            if picked or self.editor.text or not self._turn_page():
                self._answer(("" if picked else self.editor.full_text) or self._marked_answer())
            return
        text = self.editor.take()
        if text.strip():
            self.submit(text)

    def _marked_answer(self) -> str:
        """Return the answer marked in the menu; none while Enter may be turning pages or ending an earlier draft."""
        turning = time.monotonic() - self._turned_at < self.settle_seconds
        # who was typing when the question came has not chosen the first row: only the arrow keys do
        if self._view is None or self.scrolls_only or turning:
            return ""
        return "" if self._draft and not self._chosen and not self._view.filters else self._view.answer

    def _answer(self, text: str | None) -> None:
        """Answer the open question and restore the draft at once: more keys may have arrived together with Enter."""
        question, self._question, self._view = self._question, None, None
        if question is None:
            return
        if not question.done():
            question.set_result(text)
        if self._settle_timer is not None:
            self._settle_timer.cancel()
        if self._begin_answer is None:
            self.editor.set(self._draft)
        self._begin_answer = self._settle_timer = None
        self._hint = ""
        self.refresh()

    def cancel(self) -> None:
        """Do what Esc does: close the question, stop the run and return queued prompts to the line, or clear it."""
        asked = self._question is not None
        self._answer(None)
        if self.busy:
            self._queue.return_to(self.editor)
        if self.busy and not asked:
            self.on_interrupt()
        elif not asked:
            self.editor.clear()
