"""The input line: text, a cursor, what was typed before, and what could come next."""

from collections.abc import Callable, Sequence

Complete = Callable[[str], Sequence[str]]
"""Told the word before the cursor; returns what it could become."""


class Editor:
    """Edits one text. Knows nothing of screens, so that it can be tried without one."""

    def __init__(self, history: Sequence[str] = (), complete: Complete = lambda word: ()) -> None:
        self.text = ""
        self.cursor = 0
        self.suggestions: Sequence[str] = ()
        self.complete = complete
        self._history = list(history)
        self._place = len(self._history)
        self._draft = ""

    def set(self, text: str) -> None:
        """Replace the text, cursor at its end."""
        self.text, self.cursor, self.suggestions = text, len(text), ()

    def take(self) -> str:
        """Return the text and begin anew; it becomes part of the history."""
        text = self.text
        if text.strip() and (not self._history or self._history[-1] != text):
            self._history.append(text)
        self._place = len(self._history)
        self.set("")
        return text

    def remember(self, texts: Sequence[str]) -> None:
        """Add what was typed on other days, before what was typed today."""
        self._history[:0] = texts
        self._place += len(texts)

    def insert(self, text: str) -> None:
        """Type or paste something where the cursor is."""
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)
        self.suggestions = ()

    def press(self, key: str) -> bool:
        """Carry out an editing key; False if it is none."""
        action = getattr(self, f"_{key.replace('-', '_')}", None)
        if action is None:
            return False
        if key != "tab":
            self.suggestions = ()
        action()
        return True

    def _left(self) -> None:
        self.cursor = max(0, self.cursor - 1)

    def _right(self) -> None:
        self.cursor = min(len(self.text), self.cursor + 1)

    def _home(self) -> None:
        self.cursor = self.text.rfind("\n", 0, self.cursor) + 1

    def _end(self) -> None:
        found = self.text.find("\n", self.cursor)
        self.cursor = len(self.text) if found < 0 else found

    def _word_left(self) -> None:
        self.cursor = self._word_start()

    def _word_right(self) -> None:
        rest = self.text[self.cursor :]
        self.cursor += len(rest) - len(rest.lstrip()) + len((rest.split(maxsplit=1) or [""])[0])

    def _word_start(self) -> int:
        before = self.text[: self.cursor].rstrip()
        return max(before.rfind(" "), before.rfind("\n")) + 1

    def _backspace(self) -> None:
        if self.cursor:
            self._cut(self.cursor - 1, self.cursor)

    def _delete(self) -> None:
        self._cut(self.cursor, self.cursor + 1)

    def _delete_word(self) -> None:
        self._cut(self._word_start(), self.cursor)

    def _delete_to_start(self) -> None:
        self._cut(self.text.rfind("\n", 0, self.cursor) + 1, self.cursor)

    def _delete_to_end(self) -> None:
        found = self.text.find("\n", self.cursor)
        self._cut(self.cursor, len(self.text) if found < 0 else found)

    def _cut(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _newline(self) -> None:
        self.insert("\n")

    def _up(self) -> None:
        self._recall(-1)

    def _down(self) -> None:
        self._recall(1)

    def _recall(self, step: int) -> None:
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._draft = self.text
        self._place = place
        self.set(self._draft if place == len(self._history) else self._history[place])

    def _tab(self) -> None:
        start = max(self.text.rfind(" ", 0, self.cursor), self.text.rfind("\n", 0, self.cursor)) + 1
        word = self.text[start : self.cursor]
        found = list(self.complete(word if start else f"^{word}"))
        self.suggestions = found if len(found) > 1 else ()
        common = _common(found)
        if len(common) > len(word):
            self._cut(start, self.cursor)
            kept = self.suggestions
            self.insert(common + (" " if len(found) == 1 and not common.endswith("/") else ""))
            self.suggestions = kept


def _common(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:same]
