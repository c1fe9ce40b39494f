"""vi commands for the input line: Esc leaves insert mode, and letters are then commands."""

from callwright.cli.terminal.input import Editor

_MOVES = {
    "h": "left",
    "l": "right",
    "w": "word-right",
    "b": "word-left",
    "0": "home",
    "$": "end",
    "j": "down",
    "k": "up",
}
_INSERTS = {"i": "", "a": "right", "I": "home", "A": "end"}


class ViKeys:
    """Translates typed text into edits while the editor is in normal mode.

    Args:
        editor: The editor of the input line.
    """

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self.normal = False
        """Whether letters are commands."""
        self._operator = ""
        self._undo: list[tuple[str, int]] = []
        editor.on_clear = self._start_over

    def _start_over(self) -> None:
        """Begin a new text in insert mode."""
        self.normal, self._operator = False, ""
        self._undo.clear()

    def escape(self) -> bool:
        """Leave insert mode; False if it was left already, so that Esc means what it means without vi keys."""
        if self.normal or not self._editor.text:
            self.normal, self._operator = False, ""
            return False
        self.normal = True
        self._editor.press("left")
        return True

    def type(self, text: str) -> bool:
        """Apply commands; False if the text is to be inserted."""
        if not self.normal:
            return False
        for at, key in enumerate(text):
            if not self.normal:
                self._editor.insert(text[at:])
                return True
            self._command(key)
        return True

    def _command(self, key: str) -> None:
        editor = self._editor
        if self._operator:
            operator, self._operator = self._operator, ""
            self._operate(operator, key)
        elif key in _MOVES:
            self._move(key)
        elif key in _INSERTS:
            self.normal = False
            if _INSERTS[key]:
                editor.press(_INSERTS[key])
        elif key in ("d", "c"):
            self._operator = key
        else:
            self._edit(key)

    def _edit(self, key: str) -> None:
        editor = self._editor
        match key:
            case "u" if self._undo:
                text, cursor = self._undo.pop()
                editor.set(text)
                editor.cursor = min(cursor, len(text))
            case "x":
                self._save()
                editor.press("delete")
            case "D" | "C":
                self._save()
                editor.press("delete-to-end")
                self.normal = key == "D"
            case "o":
                editor.press("end")
                editor.press("newline")
                self.normal = False
            case _:
                pass  # an unknown command does nothing, as in vi without the bell

    def _operate(self, operator: str, key: str) -> None:
        editor = self._editor
        before = editor.cursor
        if key != operator and (key not in _MOVES or key in "jk"):  # up and down may recall another text
            return
        self._save()
        if key == operator:
            editor.press("home")
            editor.press("delete-to-end")
        else:
            if operator + key == "cw":  # leaves the space before the next word
                editor.press("word-right")
            else:
                self._move(key)
            start, end = sorted((before, editor.cursor))
            text = editor.text
            editor.set(text[:start] + text[end:])
            editor.cursor = start
        self.normal = operator == "d"

    def _move(self, key: str) -> None:
        """Move the cursor; `w` moves to the start of the next word."""
        editor = self._editor
        if key != "w" or not editor.text[editor.cursor : editor.cursor + 1].isspace():
            editor.press(_MOVES[key])
        if key == "w":
            rest = editor.text[editor.cursor :]
            editor.cursor += len(rest) - len(rest.lstrip())

    def _save(self) -> None:
        self._undo.append((self._editor.text, self._editor.cursor))
