"""Reads JSON with the mistakes models make, where only one reading is possible; never a text that was cut off.

Accepted: a code fence, tokens of a chat template or doubled braces around it, single, typographic, triple or back
quotes, raw control characters and invalid escapes in strings, trailing commas, comments, unquoted keys, Python's
constants, closing brackets too many at the end, the same value written twice, a whole object with its quotes escaped.
Refused: an end inside a value, a quote inside a string that is not escaped, a missing comma, two different values for
one key, a comment that may be a part of a string or a division, half a character, `\\'` that may be the shell's, any
other text before or after.
"""

import json
import re
from typing import Any, cast

from callwright.core.json import RepeatedKey, canonical, make_object

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\n")
_OPENING = re.compile(r"(?:(?P<mark>`{3,}|~{3,})[ \t]*[\w+-]*|json)\s*(?=[{\[])")
_SPACE = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
# not before `// 7`, which may be a comment or a division
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]|[ \t]*//[ \t]*[-+(.\d])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PROGRAMS = frozenset({"command", "cmd", "command_line", "commandline", "shell_command", "code", "script"})
"""Fields in which `\\'` may be meant as it is written."""
_COMMENT = 'after a string stands a comment with a quote in it: inside a string, write a quote as \\"'
_BACKSLASH = "inside a string, write ' and ` as they are, and a backslash as \\\\"
_SURROGATE = "a \\u escape is only half of a character: write the characters themselves"
_MOST_DEPTH = 100
_MOST_REPEATS = 8
_MOST_DOUBLINGS = 4
_TAIL_CHARS = 200
_TEMPLATE = r"\s|<\|[^|<>\"]*\|>|</?(?:tool_calls?|function_calls?|tools?|s)>|</(?:function|parameter|invoke)>"
_BEFORE, _AFTER = re.compile(rf"\A(?:{_TEMPLATE})+"), re.compile(rf"(?:{_TEMPLATE}|;)+\Z")
_ESCAPED = re.compile(r"[{\[]\s*(?:\{\s*)?\\\"")
_DRIVE = re.compile(r"[A-Za-z]:\\(?!\\)")
_QUOTE_TOKENS = ('<|"|>', '<|">', "<escape>")
"""Quotes that a server left in the form of its template."""


class NotJson(ValueError):
    """The text has no reading, or more than one."""


class CutOff(NotJson):
    """The text ends inside a value."""


class TwoValues(NotJson):
    """An object has one key twice, with different values; the message names the key."""


class TwoReadings(NotJson):
    """A mark or an escape in a string may mean one thing or another; the message says what to write."""


def read_lenient(text: str) -> Any:
    """Return the value of a JSON text with mistakes.

    Raises:
        CutOff: The text ends inside a value; what is missing cannot be known.
        NotJson: The text has no reading, or more than one.
    """
    stripped = strip_end(_BEFORE.sub("", text.strip().strip("\ufeff\u200b")), _AFTER)
    fenced = strip_fence(stripped)
    body = _strip_opening(stripped) if fenced is None else fenced.strip()
    return _read_escaped(body) if _ESCAPED.match(body) else _read_body(body)


def try_read(text: str) -> Any:
    """Return the value of a JSON text with mistakes; None if it has no reading, or more than one."""
    try:
        return read_lenient(text)
    except NotJson:
        return None


def try_read_object(text: str) -> dict[str, Any] | None:
    """Return the object of a JSON text with mistakes; None if it is anything else."""
    value = try_read(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_beginning(text: str) -> Any:
    """Return the value that a text begins with, whatever follows.

    Raises:
        NotJson: The text does not begin with a value that has exactly one reading.
    """
    return _Reader(text).read_value(0)


def read_first(text: str) -> Any:
    """Return the value that a text begins with, whatever follows; None if it begins with none."""
    try:
        return read_beginning(text)
    except NotJson:
        return None


def strip_fence(text: str) -> str | None:
    """Return what stands in a code fence; None if the text is not one."""
    opening = _FENCE.match(text)
    if opening is None or not text.endswith(opening["mark"]) or len(text) < opening.end() + len(opening["mark"]):
        return None
    return text[opening.end() : -len(opening["mark"])].rstrip(" \t").removesuffix("\n")


def _strip_opening(text: str) -> str:
    """Remove `json` or a fence on the same line, or one that was not closed; the value in it shows that it is whole."""
    opening = _OPENING.match(text)
    if opening is None:
        return text
    return text[opening.end() :].removesuffix(opening["mark"] or "\n").rstrip()


def _read_escaped(body: str) -> Any:
    """Read an object whose quotes are escaped as inside of a string, without the quotes of that string."""
    try:
        written: str = json.loads(f'"{body}"', strict=False)
    except ValueError:
        raise NotJson("escaped and plain quotes") from None
    return _read_body(written)


def strip_end(text: str, pattern: re.Pattern[str]) -> str:
    """Remove what a pattern matches at the end; only a short tail is searched, because of a long text all would be."""
    text = text.rstrip()
    kept, tail = text[:-_TAIL_CHARS], text[-_TAIL_CHARS:]
    return (kept + pattern.sub("", tail)).rstrip()


def _read_body(body: str, doublings: int = _MOST_DOUBLINGS) -> Any:
    if doublings and body.startswith("{{") and body.endswith("}}"):
        return _read_doubled(body, doublings - 1)
    reader = _Reader(body)
    value = reader.read_value(0)
    reader.read_rest(value)
    return value


def _read_doubled(body: str, doublings: int) -> Any:
    """Read `{{…}}`, in which all braces or only the outer ones were doubled by a template.

    Args:
        body: The text.
        doublings: How often what is read may be doubled again; each has two readings.
    """
    readings: list[Any] = []
    for text in (body[1:-1], body.replace("{{", "{").replace("}}", "}")):
        try:
            readings.append(_read_body(text, doublings))
        except NotJson:
            continue
    if len({canonical(reading) for reading in readings}) != 1:
        raise NotJson("doubled braces with no reading, or two")
    return readings[0]


def _to_number(digits: str) -> int | float:
    try:
        number = float(digits) if set(digits) & set(".eE") else int(digits)
    except ValueError:  # Python reads no integer of thousands of digits
        raise NotJson("a number that is too long") from None
    if number in (float("inf"), float("-inf")):
        raise NotJson("a number that is out of range")
    return number


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._key = ""
        self._closing = ""
        """The mark that ended the last string."""

    def read_value(self, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise NotJson("nested too deeply")
        match self._peek():
            case "{":
                return self._read_object(depth)
            case "[":
                return self._read_list(depth)
            case char if char in _QUOTES:
                return self._read_string()
            case "<":
                return self._read_token_quoted()
            case _:
                return self._read_plain()

    def read_rest(self, value: Any) -> None:
        """Read what follows the value: nothing, closing brackets too many, or the same value a few times more."""
        for _ in range(_MOST_REPEATS):
            self._skip_brackets(value)
            if self._at == len(self._text):
                return
            if not isinstance(value, dict) or canonical(self.read_value(0)) != canonical(cast("Any", value)):
                break
        raise NotJson("more text after the value")

    def _skip_brackets(self, value: Any) -> None:
        self._skip()
        while self._at < len(self._text) and self._text[self._at] in "}]":
            if not isinstance(value, (dict, list)):
                raise NotJson("a bracket after the value")
            self._at += 1
            self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        end = found.end() if found else self._at
        if self._closing and self._closing in self._text[self._at : end]:  # "a "# b" is no string with a comment
            raise TwoReadings(_COMMENT)
        self._at = end

    def _peek(self) -> str:
        self._skip()
        if self._at >= len(self._text):
            raise CutOff("the text ends inside a value")
        return self._text[self._at]

    def _read_object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        found: list[tuple[str, Any]] = []
        while self._peek() != "}":
            key = self._read_key()
            if self._peek() != ":":
                raise NotJson("expected a colon")
            self._at += 1
            self._key = key
            found.append((key, self.read_value(depth + 1)))
            self._read_comma("}")
        self._at += 1
        try:
            return make_object(found)
        except RepeatedKey as error:
            raise TwoValues(str(error)) from None

    def _read_list(self, depth: int) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        while self._peek() != "]":
            found.append(self.read_value(depth + 1))
            self._read_comma("]")
        self._at += 1
        return found

    def _read_comma(self, closing: str) -> None:
        char = self._peek()
        if char == ",":
            self._at += 1
        elif char != closing:
            raise NotJson("expected a comma")

    def _read_key(self) -> str:
        char = self._peek()
        if char in _QUOTES or char == "<":
            return self._read_token_quoted() if char == "<" else self._read_string()
        word = _WORD.match(self._text, self._at)
        if word is None:
            raise NotJson("expected a key")
        self._at = word.end()
        return word[0]

    def _read_plain(self) -> Any:
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return _to_number(number[0])
        word = _WORD.match(self._text, self._at)
        if word is None or word[0] not in _CONSTANTS:
            raise NotJson("expected a value")
        self._at = word.end()
        return _CONSTANTS[word[0]]

    def _read_string(self) -> str:
        opening = self._text[self._at]
        if self._text.startswith(opening * 3, self._at) and opening in "\"'":
            return self._read_until(opening * 3)
        if opening == "`":
            return self._read_until("`")
        return self._read_quoted(_QUOTES[opening])

    def _read_token_quoted(self) -> str:
        mark = next((token for token in _QUOTE_TOKENS if self._text.startswith(token, self._at)), None)
        if mark is None:
            raise NotJson("expected a value")
        return self._read_until(mark)

    def _is_apostrophe(self) -> bool:
        """Tell whether the escaped quote is that of `it\\'s`, in a text that is no program."""
        around = self._text[self._at - 2] + self._text[self._at + 1 : self._at + 2]
        return self._text[self._at] == "'" and around.isalpha() and len(around) == 2 and self._key not in _PROGRAMS

    def _read_until(self, mark: str) -> str:
        """Read a string of another language; with an escape or a placeholder it has two readings."""
        end = self._text.find(mark, self._at + len(mark))
        if end < 0:
            raise CutOff("the text ends inside a string")
        value = self._text[self._at + len(mark) : end]
        if "\\" in value or "${" in value:
            raise NotJson("an escape in a string with foreign quotes")
        self._at, self._closing = end + len(mark), mark
        return value

    def _read_quoted(self, closing: str) -> str:
        self._at += 1
        self._closing = closing
        start, pieces, foreign, apostrophes = self._at, list[str](), False, 0
        while True:
            if self._at >= len(self._text):
                raise CutOff("the text ends inside a string")
            char = self._text[self._at]
            self._at += 1
            if char == closing:
                break
            if char == "\\":
                at, char = self._at, self._read_escape(closing)
                foreign = foreign or self._at == at
                apostrophes += char == self._text[at] == "'" != closing
            pieces.append(char)
        if apostrophes and pieces.count("'") > apostrophes:
            raise TwoReadings(_BACKSLASH)
        text = "".join(pieces) if not foreign else self._keep_backslashes(self._text[start : self._at - 1], pieces)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")  # joins surrogate pairs
        except UnicodeDecodeError:
            raise TwoReadings(_SURROGATE) from None

    def _keep_backslashes(self, raw: str, pieces: list[str]) -> str:
        """Return a string with escapes that JSON does not have: beside `\\d`, `\\b` is a word boundary."""
        if not _DRIVE.match(raw):
            return "".join(pieces).replace("\b", "\\b").replace("\f", "\\f")
        if "\\\\" in raw or '\\"' in raw:
            raise NotJson("a Windows path with and without doubled backslashes")
        return raw

    def _read_escape(self, closing: str) -> str:
        if self._at >= len(self._text):
            raise CutOff("the text ends inside a string")
        char = self._text[self._at]
        if char == "u" and (digits := _HEX.match(self._text, self._at + 1)):
            self._at = digits.end()
            return chr(int(digits[0], 16))
        if char in _ESCAPES:
            self._at += 1
            return _ESCAPES[char]
        if char in "'`":
            if char != closing and not self._is_apostrophe():
                raise TwoReadings(_BACKSLASH)  # in a shell line, \\` is a text, and ` runs a command
            self._at += 1
            return char
        return "\\"  # an escape that JSON does not have: a regular expression or a Windows path, as written
