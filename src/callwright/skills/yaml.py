"""The part of YAML that people write at the top of a skill: texts, lists, maps and block texts, read strictly.

A whole YAML reader would be a dependency and would turn `no` into false and `1.10` into 1.1; here every value is a
text, a list or a map, and what cannot be read is refused with its line.
"""

import re
from dataclasses import dataclass, field

from callwright.skills.scalars import Inline, Unfinished, Value, YamlError, plain, without_comment

_DEEPEST = 8
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
