"""Parses the YAML front matter of a skill and reports mistakes by line.

PyYAML scans the text; this module builds the values from its events. Every scalar stays a text (`no` is not false,
`1.10` is not 1.1). Anchors, aliases and tags are refused where they occur, so nothing expands to more than was written.

Importing this module imports PyYAML: import it when there is front matter to read.
"""

import re
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias

import yaml

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue] | None"

_MAX_CHARS = 1 << 16
_MAX_DEPTH = 8
_MAX_REPAIRS = 20
_MAX_SLOW_CHARS = 1 << 12
"""A longer text is repaired only if the fast parser finds the places: the other one takes a second for each."""
_LOOSE = re.compile(r"[|>][-+0-9]*#|[\[{][^?]*\?")
"""What the fast parser may accept and the other refuses: a comment behind the mark of a block, `?` in brackets."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_UNQUOTED_VALUE = re.compile(r"""(\s*(?:-\s+)*[^\s#'"\[{&*!|>%@`:-][^:#]*:\s+)(?![\s'"\[{&*!|>%@`])(.*?:(?:\s.*)?)""")
_HINT = re.compile(r"^(argument-hint:[ \t]+)(?!['\"|>#])(\S.*)$(?!\n[ \t])", re.MULTILINE)
"""A hint in one line. It is a text for people, and `[pr-number] [priority]`, as it is usually written, is not YAML."""
_COLON_WARNING = "the value holds ': ', which is not valid YAML without quotes; put the value in quotes"


class InvalidFrontMatter(ValueError):
    """Front matter that cannot be read.

    Args:
        line: Number of the line in the file.
        message: What is wrong and what to write instead.
    """

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


class _ColonInText(InvalidFrontMatter):
    """A `: ` inside an unquoted text, at `index`."""

    def __init__(self, line: int, index: int) -> None:
        super().__init__(line, "': ' stands inside an unquoted text; put the whole text in quotes or below '|'")
        self.index = index


@dataclass(slots=True)
class FrontMatter:
    """The fields of a skill, the line of each, and warnings by line about what other YAML parsers refuse."""

    fields: dict[str, YamlValue] = field(default_factory=dict[str, YamlValue])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    warnings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def parse_front_matter(text: str, *, first_line: int = 1) -> FrontMatter:
    """Parse a YAML mapping.

    Args:
        text: The front matter without the lines that fence it.
        first_line: Number of its first line in the file, for messages.

    Raises:
        InvalidFrontMatter: The text is not YAML, not a mapping, too large or too deep, or uses a key twice.
    """
    if len(text) > _MAX_CHARS:  # PyYAML takes a second for this much
        raise InvalidFrontMatter(first_line, f"the fields have {len(text)} characters; at most {_MAX_CHARS} are read")
    text = text.removesuffix("\n") + "\n"  # without a final line break the last line of a block text loses its own
    text = _HINT.sub(_quote_hint, text)
    repaired: dict[int, str] = {}
    while True:
        try:
            front = _parse(text, first_line)
        except _ColonInText as error:
            # `description: Use when: needed` is the most frequent mistake in skills, and other programs forgive it
            fixed = _quote_value(text, error.index)
            slow = len(text) > _MAX_SLOW_CHARS and not _is_fast(text)
            if fixed is None or slow or error.line in repaired or len(repaired) >= _MAX_REPAIRS:
                raise
            repaired[error.line], text = _COLON_WARNING, fixed
        else:
            front.warnings = list(repaired.items())
            return front


def _quote_hint(match: re.Match[str]) -> str:
    value = match[2].partition(" #")[0].rstrip()
    quoted = value.replace("'", "''")
    return match[0] if value in _NULLS else f"{match[1]}'{quoted}'"


def _quote_value(text: str, index: int) -> str | None:
    """Put the value in the line at `index` in quotes; None if the line is not `key: value`."""
    start = text.rfind("\n", 0, index) + 1
    line, *rest = text[start:].split("\n")
    match = _UNQUOTED_VALUE.fullmatch(line)
    if match is None:
        return None
    more = list(takewhile(lambda below: _indent(below) > _indent(line), rest))
    if any(": " in below or below.rstrip().endswith(":") for below in more):
        return None  # as likely a misplaced field as a part of the text
    value = "\n".join([re.sub(r"\s#.*", "", match[2]).rstrip(), *more]).replace("'", "''")
    return text[:start] + "\n".join([f"{match[1]}'{value}'", *rest[len(more) :]])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _fast_loader(text: str) -> Any:
    """Return the fast parser, if there is one and it does not accept more of the text than the other one."""
    return None if _LOOSE.search(text) else getattr(yaml, "CBaseLoader", None)


def _is_fast(text: str) -> bool:
    """Whether the fast parser finds the same `: ` in unquoted texts as the other one, which refuses more tabs."""
    return _fast_loader(text) is not None and "\t" not in text


def _parse(text: str, first_line: int) -> FrontMatter:
    if (fast := _fast_loader(text)) is not None:
        try:
            return _Builder(text, first_line, fast(text)).build()
        except (yaml.YAMLError, ValueError) as error:
            found = _explain(error, text, first_line) if isinstance(error, yaml.MarkedYAMLError) else None
            if isinstance(found, _ColonInText) and _is_fast(text):
                raise found from None
            # the Python parser repeats the others: `_explain` is written for its messages
    try:
        return _Builder(text, first_line, yaml.BaseLoader(text)).build()
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text, first_line) from None
    except yaml.reader.ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise InvalidFrontMatter(line, f"the character {chr(error.character)!r} is not allowed; remove it") from None


class _Builder:
    """Builds one mapping from the events of a YAML parser."""

    def __init__(self, text: str, first_line: int, loader: Any) -> None:
        self._text = text
        self._first_line = first_line
        self._loader = loader
        self._front = FrontMatter()
        self._counted = (0, first_line)
        """An index in the text and its line: counting from the start for every key takes quadratic time."""

    def build(self) -> FrontMatter:
        self._next()  # the stream starts
        if isinstance(self._next(), yaml.StreamEndEvent):
            return self._front
        start = self._next()
        if not isinstance(start, yaml.MappingStartEvent):
            raise self._error(start, self._expected_field(start))
        self._front.fields = self._mapping(start, 0)
        self._next()  # the document ends
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._error(after, "a second document starts here; write all fields in one")
        return self._front

    def _next(self) -> Any:
        try:
            return self._loader.get_event()
        except (ValueError, OverflowError) as error:  # what chr() raises for "\UFFFFFFFF"
            index = getattr(self._loader, "index", 0)  # of the Python parser; the other one does not get here
            raise _at(index, _bad_escape(self._text, index), self._text, self._first_line) from error

    def _mapping(self, start: Any, depth: int) -> dict[str, YamlValue]:
        self._check(start, depth)
        fields: dict[str, YamlValue] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(key, str) or (key == "<<" and not event.style):
                raise self._error(event, self._expected_field(event))
            if key in fields:
                raise self._error(event, f"the field {key!r} is given twice")
            if depth == 0:
                self._front.lines[key] = self._line(event)
            fields[key] = self._value(self._next(), depth + 1)
        return fields

    def _value(self, event: Any, depth: int) -> YamlValue:
        self._check(event, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[YamlValue] = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            return items
        return None if not event.style and event.value in _NULLS else event.value

    def _check(self, event: Any, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._unsupported("aliases", event)
        if event.anchor is not None:
            raise self._unsupported("anchors", event)
        if event.tag is not None:
            raise self._unsupported("tags", event)
        if isinstance(event, yaml.ScalarEvent):
            if not event.value.isascii() and any("\ud800" <= char <= "\udfff" for char in event.value):
                raise self._error(event, f"{self._text_at(event)!r} holds half of a character; {_ESCAPE_HINT}")
        elif depth > _MAX_DEPTH:
            raise self._error(event, f"values are nested more than {_MAX_DEPTH} deep")

    def _unsupported(self, kind: str, event: Any) -> InvalidFrontMatter:
        return self._error(event, f"{kind} ({self._text_at(event)!r}) are not supported; put the value in quotes")

    def _line(self, event: Any) -> int:
        # counted here: for PyYAML U+0085 and U+2028 are line breaks too, for editors they are not
        index: int = event.start_mark.index
        start, line = self._counted if index >= self._counted[0] else (0, self._first_line)
        self._counted = index, line + self._text.count("\n", start, index)
        return self._counted[1]

    def _text_at(self, event: Any) -> str:
        return _line_from(self._text, event.start_mark.index)

    def _expected_field(self, event: Any) -> str:
        return f"expected 'key: value', not {self._text_at(event)!r}"

    def _error(self, event: Any, message: str) -> InvalidFrontMatter:
        return InvalidFrontMatter(self._line(event), message)


_ESCAPE_HINT = "write \\\\ for a backslash or use single quotes"


def _explain(error: yaml.MarkedYAMLError, text: str, first_line: int) -> InvalidFrontMatter:
    """Say in terms of fields what PyYAML says in terms of tokens."""
    problem, context = error.problem or "", error.context or ""
    index = error.problem_mark.index if error.problem_mark else 0
    opened = error.context_mark.index if error.context_mark else index
    if problem.startswith("mapping values are not allowed"):
        return _ColonInText(first_line + text.count("\n", 0, index), index)
    if "quoted scalar" in context and "end of stream" in problem:
        return _at(opened, f"the quote {text[opened]} is not closed", text, first_line)
    if "flow" in context and "<stream end>" in problem:
        if opened >= len(text):  # PyYAML points at the end when nothing follows the bracket
            opened = max(text.rfind("["), text.rfind("{"))
        return _at(opened, f"{text[opened]!r} is not closed", text, first_line)
    if "expected ':'" in problem:
        return _at(opened, f"expected 'key: value', not {_line_from(text, opened)!r}", text, first_line)
    if "escape" in problem:
        return _at(index, _bad_escape(text, index), text, first_line)
    message = _explain_token(problem, text, index) or f"not valid YAML: {context}{', ' if context else ''}{problem}"
    return _at(index, message, text, first_line)


def _explain_token(problem: str, text: str, index: int) -> str:
    """Explain a token that stands where it may not; empty if there is nothing to add to PyYAML's words."""
    before, after = text[text.rfind("\n", 0, index) + 1 : index], _line_from(text, index)
    if "cannot start any token" in problem:
        tab = after.startswith("\t") and not before.strip()
        return "a tab indents this line; use spaces" if tab else f"{after[:1]!r} cannot start a value; put it in quotes"
    if "<block end>" not in problem:
        return ""
    if before.strip():
        return f"{after!r} stands after the end of the value; put the whole value in quotes"
    if not before:
        return f"expected 'key: value', not {after!r}"
    spaces = "1 space" if len(before) == 1 else f"{len(before)} spaces"
    return f"this line is indented by {spaces}, like no field above it; align it, or put a longer text in quotes"


def _bad_escape(text: str, index: int) -> str:
    found = re.compile(r"\\\w{0,9}").match(text, max(text.rfind("\\", 0, index + 1), 0))
    return f"{found[0] if found else ''} is no escape; {_ESCAPE_HINT}"


def _line_from(text: str, index: int) -> str:
    return text[index:].split("\n", 1)[0][:40]


def _at(index: int, message: str, text: str, first_line: int) -> InvalidFrontMatter:
    return InvalidFrontMatter(first_line + text.count("\n", 0, index), message)
