"""vi commands for the input line: Esc leaves insert mode, and letters are then commands."""

from callwright.cli.terminal.input import LineEditor

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

    def __init__(self, editor: LineEditor) -> None:
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
        self._step_back()
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
            case "x" if not self._at_line_end:
                self._save()
                editor.press("delete")
                if self._at_line_end:
                    self._step_back()
            case "D" | "C":
                self._save()
                editor.press("delete-to-end")
                self.normal = key == "D"
            case "o":
                self._save()
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
            if operator == "d" and "\n" in editor.text:
                # the line goes with its break; of the last, with the one before
                editor.press("backspace" if editor.cursor == len(editor.text) else "delete")
                editor.press("home")
        else:
            if operator + key == "cw":  # leaves the space before the next word
                editor.press("word-right")
            else:
                self._move(key)
            editor.remove(*sorted((before, editor.cursor)))
        self.normal = operator == "d"

    def _move(self, key: str) -> None:
        """Move the cursor; `w` moves to the start of the next word."""
        editor = self._editor
        if key != "w" or not editor.text[editor.cursor : editor.cursor + 1].isspace():
            editor.press(_MOVES[key])
        if key == "w":
            rest = editor.text[editor.cursor :]
            editor.cursor += len(rest) - len(rest.lstrip())

    @property
    def _at_line_end(self) -> bool:
        return self._editor.text[self._editor.cursor : self._editor.cursor + 1] in ("", "\n")

    def _step_back(self) -> None:
        """Move to the character before, unless it is in the line above."""
        if self._editor.text[: self._editor.cursor].rpartition("\n")[2]:
            self._editor.press("left")

    def _save(self) -> None:
        self._undo.append((self._editor.text, self._editor.cursor))
