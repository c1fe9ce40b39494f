"""The input line: the text with its cursor and history, completion, and prompts that wait for the agent."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from callwright.cli.render.text import cut, split_characters
from callwright.system.private_files import open_private

_MOST_LINES, _MOST_CHARS = 12, 2_000
"""Pastes up to these limits are shown in full."""
Complete = Callable[[str], Sequence[str]]
"""Returns the completions of the word before the cursor; `^` marks the first word of the line."""


class LineEditor:
    """Edits one text, independent of any screen.

    Args:
        history: Earlier texts, newest last.
        complete: Returns the completions of a word.
    """

    def __init__(self, history: Sequence[str] = (), complete: Complete = lambda word: ()) -> None:
        self.text = ""
        self.cursor = 0
        self.suggestions: Sequence[str] = ()
        self.complete = complete
        self.on_clear: Callable[[], None] = lambda: None
        self._history = list(history)
        self._place = len(self._history)
        self._draft = ""
        self._pastes: dict[str, str] = {}
        """Long pasted texts by the placeholder shown on the line."""

    def set(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self.text, self.cursor, self.suggestions = text, len(text), ()

    def take(self) -> str:
        """Return the text with all pastes, add it to the history and clear the line."""
        text = self.full_text
        self._pastes.clear()
        if text.strip() and (not self._history or self._history[-1] != text):
            self._history.append(text)
        self._place = len(self._history)
        self.clear()
        return text

    def clear(self) -> None:
        """Empty the line: what is typed next is a new text."""
        self.set("")
        self.on_clear()

    def prepend_history(self, texts: Sequence[str]) -> None:
        """Add texts of earlier conversations in front of those of this one."""
        self._history[:0] = texts
        self._place += len(texts)

    @property
    def history(self) -> Sequence[str]:
        """Earlier texts, newest last."""
        return tuple(self._history)

    def restore(self, *texts: str) -> None:
        """Put texts back in front of what is on the line; long ones are shown as placeholders."""
        self.set("\n".join(filter(None, [*map(self._fold, texts), self.text])))

    def insert(self, text: str) -> None:
        """Insert text at the cursor; inside of a placeholder, which stands for a paste as a whole, after it."""
        self.cursor = self._find_placeholder(self.cursor)[1]
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)
        self.suggestions = ()

    def insert_apart(self, words: str) -> None:
        """Insert words with blanks around them: glued to another word, `@FILE` names no file."""
        before = self.text[: self.cursor]
        self.insert(f"{' ' if before and not before[-1].isspace() else ''}{words} ")

    def paste(self, text: str) -> None:
        """Insert a pasted text; a long one is shown as a placeholder and expanded when the line is taken."""
        self.insert(self._fold(text))

    @property
    def full_text(self) -> str:
        """The text with the placeholders of pastes expanded."""
        if not self._pastes:
            return self.text
        # in one pass: a pasted text may contain what looks like the placeholder of another one
        placeholders = re.compile("|".join(map(re.escape, self._pastes)))
        return placeholders.sub(lambda found: self._pastes[found[0]], self.text)

    def _fold(self, text: str) -> str:
        lines = text.count("\n") + 1
        if lines <= _MOST_LINES and len(text) <= _MOST_CHARS:
            return text
        much = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
        placeholder = f"[pasted {len(self._pastes) + 1}: {much}]"
        self._pastes[placeholder] = text
        return placeholder

    def press(self, key: str) -> bool:
        """Apply an editing key; False if the key edits nothing."""
        # keys are named after their methods: "word-left" is _press_word_left
        action = getattr(self, f"_press_{key.replace('-', '_')}", None)
        if action is None:
            return False
        if key != "tab":
            self.suggestions = ()
        action()
        return True

    def _press_left(self) -> None:
        self.cursor -= self._count_before()

    def _press_right(self) -> None:
        self.cursor += self._count_after()

    def _count_before(self) -> int:
        """Return the length of the character before the cursor: with its accents, or the parts of its emoji."""
        line = self.text[self._line_start : self.cursor]
        return len(split_characters(line)[-1]) if line else min(self.cursor, 1)

    def _count_after(self) -> int:
        line = self.text[self.cursor : self._line_end]
        return len(split_characters(line)[0]) if line else min(len(self.text) - self.cursor, 1)

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.cursor) + 1

    @property
    def _line_end(self) -> int:
        found = self.text.find("\n", self.cursor)
        return len(self.text) if found < 0 else found

    def _press_home(self) -> None:
        self.cursor = self._line_start

    def _press_end(self) -> None:
        self.cursor = self._line_end

    def _press_word_left(self) -> None:
        self.cursor = self._word_start()

    def _press_word_right(self) -> None:
        self.cursor = self._word_end()

    def _word_end(self) -> int:
        rest = self.text[self.cursor :]
        return self.cursor + len(rest) - len(rest.lstrip()) + len((rest.split(maxsplit=1) or [""])[0])

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return max(before.rfind(" "), before.rfind("\n")) + 1

    def _press_backspace(self) -> None:
        before = self.text[: self.cursor]
        removed = next((len(pasted) for pasted in self._pastes if before.endswith(pasted)), self._count_before())
        self.remove(self.cursor - removed, self.cursor)

    def _press_delete(self) -> None:
        self.remove(self.cursor, self.cursor + self._count_after())

    def _press_delete_word(self) -> None:
        self.remove(self._word_start(), self.cursor)

    def _press_delete_next_word(self) -> None:
        self.remove(self.cursor, self._word_end())

    def _press_delete_to_start(self) -> None:
        self.remove(self._line_start, self.cursor)

    def _press_delete_to_end(self) -> None:
        self.remove(self.cursor, self._line_end)

    def remove(self, start: int, end: int) -> None:
        """Remove a part of the text; a placeholder of which it would leave a rest goes as a whole."""
        if start < end:
            start, end = self._find_placeholder(start)[0], self._find_placeholder(end)[1]
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _find_placeholder(self, at: int) -> tuple[int, int]:
        """Return where the placeholder that a position is inside of begins and ends; twice the position if in none."""
        for placeholder in self._pastes:
            start = self.text.find(placeholder, max(at - len(placeholder) + 1, 0))
            if 0 <= start < at < start + len(placeholder):
                return start, start + len(placeholder)
        return at, at

    def _press_newline(self) -> None:
        self.insert("\n")

    def _press_up(self) -> None:
        start = self._line_start
        if not start:
            self._recall(-1)
            return
        above = self.text.rfind("\n", 0, start - 1) + 1
        self.cursor = min(above + self.cursor - start, start - 1)

    def _press_down(self) -> None:
        column, end = self.cursor - self._line_start, self._line_end
        if end == len(self.text):
            self._recall(1)
            return
        self.cursor = end + 1
        self.cursor = min(self.cursor + column, self._line_end)

    def _recall(self, step: int) -> None:
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._draft = self.text
        self._place = place
        self.set(self._draft if place == len(self._history) else self._fold(self._history[place]))

    def _press_tab(self) -> None:
        start = self._find_word_start()
        word = self.text[start : self.cursor]
        found = list(self.complete(word if start else f"^{word}"))
        self.suggestions = found if len(found) > 1 else ()
        common = _find_common_start(found)
        if len(common) > len(word):
            self.remove(start, self.cursor)
            kept = self.suggestions
            self.insert(common + (" " if len(found) == 1 and not common.endswith("/") else ""))
            self.suggestions = kept

    def _find_word_start(self) -> int:
        """Return where the word that Tab completes begins; `@"` begins one that may contain spaces."""
        line = self.text[self._line_start : self.cursor]
        _, mark, name = line.rpartition('@"')
        return self.cursor - len(mark + name if mark and '"' not in name else line.rpartition(" ")[2])


def _find_common_start(texts: Sequence[str]) -> str:
    """Return what all texts begin with; it has the quote of `@"` only if all of them have it."""
    if not texts:
        return ""
    if not all(text.startswith('@"') for text in texts):
        texts = [text.replace('@"', "@", 1) for text in texts]
    first, last = min(texts), max(texts)
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:same]


@dataclass(frozen=True, slots=True)
class PromptHistory:
    """The prompts of earlier conversations: a file with one JSON string per line, newest last."""

    file: Path
    written: bool = True
    """Whether new prompts are stored."""

    def read(self) -> list[str]:
        """Return all prompts; lines that are not valid are skipped, and so is a file that cannot be read."""
        try:
            text = self.file.read_text("utf-8", errors="replace")
        except OSError:
            return []
        found: list[str] = []
        # not splitlines(): JSON leaves some of the characters at which it splits as they are, such as U+2028
        for line in text.split("\n"):
            with suppress(ValueError):
                prompt: object = json.loads(line)
                if isinstance(prompt, str):
                    found.append(prompt)
        return found

    def add(self, prompt: str) -> None:
        """Append a prompt; one that cannot be written, such as to a full disk, is sent all the same."""
        if not self.written:
            return
        with suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_private(self.file, append=True) as lines:
                lines.write(json.dumps(prompt, ensure_ascii=False) + "\n")


_MOST_SHOWN = 3


class PromptQueue:
    """The prompts that wait for the agent, oldest first.

    Args:
        editable: Whether prompts can go back to the input line; a terminal that sends whole lines cannot change them.
    """

    def __init__(self, *, editable: bool = True) -> None:
        self._texts: list[str] = []
        self._editable = editable
        self._over = False
        self._changed = asyncio.Event()

    async def get(self) -> str | None:
        """Wait for the next prompt; None when the conversation is over."""
        while not self._texts:
            if self._over:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._texts.pop(0)

    def add(self, text: str, *, first: bool = False) -> None:
        """Add a prompt, at the end or as the next one."""
        self._texts.insert(0 if first else len(self._texts), text)
        self._changed.set()

    def end(self) -> None:
        """Let `get` return None after the last prompt."""
        self._over = True
        self._changed.set()

    def take_last(self) -> str | None:
        """Remove and return the newest prompt, to be edited; None if none waits."""
        return self._texts.pop() if self._texts else None

    def take_all(self) -> list[str]:
        """Remove and return all prompts."""
        texts, self._texts = self._texts, []
        return texts

    def return_to(self, editor: LineEditor) -> bool:
        """Put every prompt back on the input line: the run it was written for was stopped. False if none waits.

        One that cannot be edited there is dropped: it would become the start of what is typed next.
        """
        texts = self.take_all()
        if texts and self._editable:
            editor.restore(*texts)
        return bool(texts)

    def rows(self, width: int, show: Callable[[str], str]) -> list[str]:
        """Return a row for each prompt; of many, the first ones and how many more there are.

        Args:
            width: The columns of the screen.
            show: Escapes what a user typed or pasted.
        """
        rows = [cut(f"  queued: {show(text)}".replace("\n", " "), width) for text in self._texts]
        if len(rows) > _MOST_SHOWN:
            rows[_MOST_SHOWN - 1 :] = [f"  … and {len(rows) - _MOST_SHOWN + 1} more queued"]
        return [*rows, cut("  Up takes the last one back to edit it", width)] if rows else []
