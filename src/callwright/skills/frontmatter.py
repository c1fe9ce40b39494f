"""The YAML of one value: plain and quoted texts, and lists and maps between brackets.

The part of YAML that people write at the top of a skill: texts, lists, maps and block texts, read strictly.

A whole YAML reader would be a dependency and would turn `no` into false and `1.10` into 1.1; here every value is a
text, a list or a map, and what cannot be read is refused with its line.
"""

import re
from dataclasses import dataclass, field
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


_LONGEST_VALUE_LINES = 200
_KEY = re.compile(r"([^:#\s](?:[^:#]|:(?=\S)|(?<=\S)#)*?)\s*:(?=\s|$)")
_BLOCK = re.compile(r"([|>])([+-]?)([1-9]?)([+-]?)\s*(#.*)?")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that was read, but that other readers refuse."""

    line: int
    text: str


@dataclass(slots=True)
class Document:
    """The fields of a map, where each stands, and what should be written otherwise."""

    fields: dict[str, Value] = field(default_factory=dict[str, Value])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    remarks: list[Remark] = field(default_factory=list[Remark])


def read_yaml(text: str, *, first_line: int = 1) -> Document:
    """Read a map; raises `YamlError` with the line, counted from `first_line`."""
    reader = _Reader(text.removesuffix("\n").split("\n"), first_line)
    document = Document(remarks=reader.remarks)
    document.fields = reader.map(0, 0, document.lines)
    return document


class _Reader:
    def __init__(self, lines: list[str], first_line: int) -> None:
        self._lines = lines
        self._first = first_line
        self._at = 0
        self.remarks: list[Remark] = []

    @property
    def number(self) -> int:
        return self._first + self._at

    def peek(self) -> tuple[int, str] | None:
        """The next line that says something: how far it is indented, and its text."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            said = line.lstrip(" ")
            if said.startswith("\t"):
                raise YamlError(self.number, "a tab indents this line; use spaces")
            if said and not said.startswith("#"):
                return len(line) - len(said), said
            self._at += 1
        return None

    def map(self, indent: int, depth: int, lines: dict[str, int] | None = None) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while (seen := self.peek()) is not None and seen[0] >= indent:
            if seen[0] > indent:
                spaces = "1 space" if seen[0] == 1 else f"{seen[0]} spaces"
                raise YamlError(self.number, f"this line is indented by {spaces}; the field above by {indent}")
            key, rest = self._key(seen[1])
            if key in found:
                raise YamlError(self.number, f"the field {key!r} is given twice")
            if lines is not None:
                lines[key] = self.number
            found[key] = self._value(rest, indent, depth)
        return found

    def _key(self, said: str) -> tuple[str, str]:
        if said[0] in "\"'":
            try:
                key, rest = Inline(said, self.number).quoted()
            except Unfinished:
                raise YamlError(self.number, "the quote is not closed") from None
            if rest.lstrip().startswith(":"):
                return key, rest.lstrip()[1:].strip()
        elif (match := _KEY.match(said)) and said[0] not in "[{&*!%@`|>" and not said.startswith(("? ", "- ", "<<")):
            return match[1], said[match.end() :].strip()
        raise YamlError(self.number, f"expected 'key: value', not {said[:40]!r}")

    def _value(self, rest: str, indent: int, depth: int) -> Value:
        if depth > _DEEPEST:
            raise YamlError(self.number, f"fields are inside each other more than {_DEEPEST} deep")
        if block := _BLOCK.fullmatch(rest):
            return self._block(block, indent)
        if rest[:1] in ("'", '"', "[", "{") and rest:
            return self._inline(rest)
        said, line = without_comment(rest), self.number
        self._at += 1
        if said:
            return plain(self._folded(said, indent, line), line)
        return self._nested(indent, depth)

    def _nested(self, indent: int, depth: int) -> Value:
        seen = self.peek()
        if seen is None or seen[0] < indent:
            return None
        if seen[1] == "-" or seen[1].startswith("- "):
            return self._list(seen[0], depth + 1)
        return self.map(seen[0], depth + 1) if seen[0] > indent else None

    def _list(self, indent: int, depth: int) -> list[Value]:
        found: list[Value] = []
        while (seen := self.peek()) is not None and seen[0] == indent and (seen[1] + " ").startswith("- "):
            rest = seen[1][1:].lstrip()
            inner = indent + len(seen[1]) - len(rest)
            if rest[:1] not in ("", "'", '"', "[", "{") and _KEY.match(rest) and rest[0] != "#":
                self._lines[self._at] = " " * inner + rest  # the item is a map whose first field stands on this line
                found.append(self.map(inner, depth + 1))
            else:
                found.append(self._value(rest, indent, depth))
        return found

    def _folded(self, said: str, indent: int, line: int) -> str:
        """An unquoted text with the lines it goes on in."""
        if ": " in said or said.endswith(":"):
            self.remarks.append(Remark(line, "the value holds ': ', which other readers refuse; put it in quotes"))
        words = [said]
        while (seen := self.peek()) is not None and seen[0] > indent:
            more = without_comment(seen[1])
            if ": " in more or more.endswith(":"):
                raise YamlError(self.number, "a field stands inside a text; put the whole text in quotes or after '|'")
            words.append(more)
            self._at += 1
        return " ".join(words)

    def _inline(self, rest: str) -> Value:
        line = self.number
        for _ in range(_LONGEST_VALUE_LINES):
            self._at += 1
            try:
                return Inline(rest, line).whole()
            except Unfinished:
                if self._at >= len(self._lines):
                    break
                more = self._lines[self._at].strip()
                rest = f"{rest} {more}" if more else f"{rest}\n"
        raise YamlError(line, f"{rest[0]!r} is not closed")

    def _block(self, header: re.Match[str], indent: int) -> str:
        self._at += 1
        taken: list[str] = []
        own = indent + int(header[3]) if header[3] else 0
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip("\r")
            deep = len(line) - len(line.lstrip(" "))
            if line.strip():
                own = own or deep
                if deep < own or deep <= indent:
                    break
            taken.append(line[own:] if own else "")
            self._at += 1
        text = "\n".join(taken) if header[1] == "|" else _fold(taken)
        return _chomped(text, header[2] or header[4])


def _fold(lines: list[str]) -> str:
    """Lines become one, but for blank ones and those indented further."""
    text, blanks, before = "", 0, ""
    for line in lines:
        if not line.strip():
            blanks += 1
            continue
        if not before:
            text += "\n" * blanks
        elif line[0] == " " or before[0] == " ":
            text += "\n" * (blanks + 1)
        else:
            text += "\n" * blanks or " "
        text, blanks, before = text + line, 0, line
    return text + "\n" * blanks


def _chomped(text: str, how: str) -> str:
    if how == "+":
        return text + "\n"
    body = text.rstrip("\n")
    return body if how == "-" or not body else body + "\n"
