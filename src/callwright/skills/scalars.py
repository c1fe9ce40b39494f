"""The YAML of one value: plain and quoted texts, and lists and maps between brackets."""

import re
from typing import TypeAlias

Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"

_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_CODES = {"x": 2, "u": 4, "U": 8}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_REFUSED = {
    "&": "anchors", "*": "aliases", "!": "tags", "%": "directives", "@": "reserved signs", "`": "reserved signs",
}  # fmt: skip
_COMMENT = re.compile(r"(^|\s)#.*")
_DEEPEST = 8


class YamlError(ValueError):
    """Something that cannot be read; `line` counts from the start of what was read."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


class Unfinished(Exception):
    """The value goes on in the next line."""


def without_comment(text: str) -> str:
    """A plain text up to its comment."""
    return _COMMENT.sub("", text).rstrip()


def plain(text: str, line: int) -> str | None:
    """Read an unquoted value. Numbers and booleans stay texts: whoever wants one knows what it should be."""
    if text in _NULLS:
        return None
    if text[0] in _REFUSED:
        raise YamlError(line, f"{text[0]!r} starts a value, but {_REFUSED[text[0]]} are not supported; quote the value")
    return text


class Inline:
    """Reads one value that begins with a quote or a bracket, from one line or several that were joined."""

    def __init__(self, text: str, line: int) -> None:
        self._text = text
        self._line = line
        self._at = 0

    def whole(self) -> Value:
        """The value; nothing but a comment may follow it. Raises `Unfinished` where the text ends too early."""
        value = self._value(0)
        rest = without_comment(self._text[self._at :]).strip()
        if rest:
            raise YamlError(self._line, f"{rest[:40]!r} stands after the end of the value; quote the whole value")
        return value

    def quoted(self) -> tuple[str, str]:
        """A quoted text and what stands behind it."""
        return self._quoted(), self._text[self._at :]

    def _value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise YamlError(self._line, f"values are inside each other more than {_DEEPEST} deep")
        match self._peek():
            case "[":
                return self._list(depth)
            case "{":
                return self._map(depth)
            case '"' | "'":
                return self._quoted()
            case _:
                return self._bare()

    def _list(self, depth: int) -> list[Value]:
        found: list[Value] = []
        self._at += 1
        while self._peek() != "]":
            found.append(self._value(depth + 1))
            self._separator("]")
        self._at += 1
        return found

    def _map(self, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        self._at += 1
        while self._peek() != "}":
            key = self._value(depth + 1)
            if not isinstance(key, str) or self._peek() != ":":
                raise YamlError(self._line, f"expected 'key: value' between the braces, not {key!r}")
            self._at += 1
            if key in found:
                raise YamlError(self._line, f"{key!r} is given twice")
            found[key] = self._value(depth + 1)
            self._separator("}")
        self._at += 1
        return found

    def _separator(self, closing: str) -> None:
        if self._peek() == ",":
            self._at += 1
        elif self._peek() != closing:
            raise YamlError(self._line, f"expected ',' or {closing!r}, not {self._text[self._at : self._at + 20]!r}")

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        if self._at >= len(self._text):
            raise Unfinished
        return self._text[self._at]

    def _bare(self) -> str | None:
        begin = self._at
        while self._at < len(self._text) and not self._ends_bare():
            self._at += 1
        return plain(self._text[begin : self._at].strip(), self._line)

    def _ends_bare(self) -> bool:
        char, after = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        return char in ",[]{}" or (char == ":" and (not after or after in " ,]}"))

    def _quoted(self) -> str:
        quote = self._peek()
        self._at += 1
        found: list[str] = []
        while True:
            if self._at >= len(self._text):
                raise Unfinished
            char = self._text[self._at]
            self._at += 1
            if char == "\\" and quote == '"':
                found.append(self._escape())
            elif char != quote:
                found.append(char)
            elif quote == "'" and self._text[self._at : self._at + 1] == "'":
                self._at += 1
                found.append("'")
            else:
                return "".join(found)

    def _escape(self) -> str:
        letter = self._text[self._at : self._at + 1]
        if not letter:
            raise Unfinished
        self._at += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        digits = self._text[self._at : self._at + _CODES.get(letter, 0)]
        try:
            code = chr(int(digits, 16))
            code.encode()
        except (ValueError, OverflowError):
            raise YamlError(
                self._line, f"'\\{letter}{digits}' is no escape; write \\\\ for a backslash or use single quotes"
            ) from None
        self._at += len(digits)
        return code
