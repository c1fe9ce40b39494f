"""Searches files with Python's regular expressions: a script that writes ripgrep's output format.

Needed on platforms without a ripgrep wheel (32-bit ARM and x86, ppc64le, s390x, BSD) when no `rg` is on PATH, and on
every platform for a search outside a repository with ignore files above the workspace, which ripgrep would obey.

One process per core runs it: the job comes in on standard input, the result goes out as `path NUL line : text`, so
that one parser reads both engines. It imports little, because it starts with every search.
"""

import marshal
import os
import re
import sys

TYPE_CHECKING = False  # the module that has it takes longer to import than all the others
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "word": "\\w",
    "xdigit": "0-9A-Fa-f",
}
_PIECE = re.compile(
    r"(?P<literal>[^\\.+*?()\[\]{}^$]|\\[^A-Za-z0-9])"
    r"|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]])*\]"
    r"|\{[^}]*\}"
    r"|\\?.",
    re.DOTALL,
)
"""One step of an expression: a literal character, a class, a repetition, anything else."""
_ENCODINGS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_MARKS = tuple(mark for mark, _ in _ENCODINGS)
_BUFFER_BYTES = 1 << 20
# Windows has none of the three
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


_SPELLED = re.compile(r"\\[xuUNopP0-9]")
"""Characters written by number or name."""


def translate(pattern: str) -> str:
    """Translate ripgrep's syntax to Python's: named groups, `\\z`, POSIX classes."""
    pattern = re.sub(r"(?<!\\)\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    pattern = re.sub(r"\[:(\w+):\]", lambda found: _POSIX.get(found[1], found[0]), pattern)
    return pattern.replace("\\z", "\\Z")


def compile_pattern(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """Compile as ripgrep would read it; raises `re.error`."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if multiline else 0)
    return re.compile(translate(pattern), flags)


def find_required_literal(pattern: str) -> str:
    """Return the longest text that every match must contain, because searching for it first is far cheaper."""
    if "|" in pattern or "(?" in pattern or _SPELLED.search(pattern):
        return ""
    best, run, depth = "", "", 0
    for piece in _PIECE.finditer(pattern):
        text = piece[0]
        if piece["literal"] is not None:
            run += "" if depth else text[-1]  # a group may be optional
            continue
        best = max(best, run[:-1] if text[0] in "*?{" else run, key=len)  # what may be absent is not required
        run = ""
        depth += (text == "(") - (text == ")")
    return max(best, run, key=len)


def main() -> None:
    """Search the files of one job."""
    job, names = marshal.loads(sys.stdin.buffer.read())
    matcher = _Matcher(job)
    for name in names.split(b"\0"):
        matcher.search(name)
    matcher.flush()


class _Matcher:
    def __init__(self, job: "dict[str, Any]") -> None:
        self.job = job
        self.parts: list[bytes] = []
        self.buffer = bytearray(_BUFFER_BYTES)  # one for all files: fresh memory for each costs more than reading it
        self.view = memoryview(self.buffer)
        self.into = [self.buffer]
        options = {"ignore_case": job["ignore_case"], "multiline": job["multiline"]}
        self.regex = compile_pattern(job["pattern"], **options)
        pattern: str = job["pattern"]
        self.literal = find_required_literal(pattern).encode()
        if job["ignore_case"]:
            self.literal = self.literal.lower() if self.literal.isascii() else b""
        # in plain ASCII, bytes match exactly where text does, and need no decoding
        self.ascii_regex = (
            re.compile(self.regex.pattern.encode(), self.regex.flags & ~re.UNICODE) if pattern.isascii() else None
        )

    def search(self, name: bytes) -> None:
        """Search one file; most do not contain the literal and are only read."""
        try:
            descriptor = os.open(name, _READ)
        except OSError:
            return
        try:
            size = os.readv(descriptor, self.into)
            if size == _BUFFER_BYTES:
                data = self.buffer + _read_rest(descriptor)
            elif self._passes(size):
                data = self.view[:size]
            else:
                return
        except OSError:
            return
        finally:
            os.close(descriptor)
        self._examine(name, bytes(data))

    def _passes(self, size: int) -> bool:
        """Whether the file in the buffer contains the literal and may match."""
        if not self.literal or self.buffer.startswith(_MARKS):
            return True
        if not self.job["ignore_case"]:
            return self.buffer.find(self.literal, 0, size) >= 0
        data = bytes(self.view[:size])
        return not data.isascii() or self.literal in data.lower()  # outside of ASCII, letters have other cases

    def _examine(self, name: bytes, data: bytes) -> None:
        readable = self._read_matching(data)
        if readable is not None:
            self._match(name, readable)

    def _match(self, name: bytes, data: bytes) -> None:
        if b"\0" in data:
            if self.job["explicit"] and self.regex.search(data.decode("utf-8", "surrogateescape")):
                self.parts.append(name + b': binary file matches (found "\\0" byte)\n')
            return
        text = data.decode("utf-8", "surrogateescape")
        if b"\r\n" in data and not self.job["multiline"]:
            text = text.replace("\r\n", "\n")
        if self.job["mode"] == "files":
            if next(self._lines(text), None):
                self.parts.append(name + b"\0")
        else:
            self._report(name, text)

    def _read_matching(self, data: bytes) -> bytes | None:
        """Return contents as UTF-8; None where no match is in them."""
        for mark, encoding in _ENCODINGS:
            if data.startswith(mark):
                return data[len(mark) :].decode(encoding, "replace").encode()
        if self.ascii_regex is not None and data.isascii() and b"\r" not in data and not self.ascii_regex.search(data):
            return None
        return data

    def flush(self) -> None:
        sys.stdout.buffer.write(b"".join(self.parts))
        sys.stdout.buffer.flush()
        self.parts.clear()

    def _report(self, name: bytes, text: str) -> None:
        spans = list(self._lines(text))
        if self.job["mode"] == "content":
            self._show(name, text, spans)
        elif spans:
            self.parts.append(b"%b\0%d\n" % (name, len(spans)))
        if len(self.parts) > 1000:
            self.flush()

    def _lines(self, text: str) -> "Iterator[tuple[int, int]]":
        """Yield where each matching line, or run of lines, begins and ends."""
        place = 0
        while place <= len(text) and (found := self.regex.search(text, place)):
            start = text.rfind("\n", 0, found.start()) + 1
            if start == len(text):  # behind the last line break, or in an empty file, there is no line
                return
            end = self._end(text, found)
            # a match may run over the line's end where ripgrep's would not: the line alone decides
            if self.job["multiline"] or self.regex.search(text[start:end]):
                yield start, end
            place = end + 1

    def _end(self, text: str, found: re.Match[str]) -> int:
        place = found.start()
        if self.job["multiline"]:
            place = max(place, found.end() - 1)  # a line break at the end of a match begins no further line
        end = text.find("\n", place)
        return len(text) if end < 0 else end

    def _show(self, name: bytes, text: str, spans: list[tuple[int, int]]) -> None:
        if not spans:
            return
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        matched = set(_line_numbers(text, spans))
        shown = {
            near
            for number in matched
            for near in range(max(1, number - self.job["before"]), min(len(lines), number + self.job["after"]) + 1)
        }
        previous = 0
        for number in sorted(shown):
            if previous and number > previous + 1 and (self.job["before"] or self.job["after"]):
                self.parts.append(b"--\n")
            self.parts.append(self._line(name, number, lines[number - 1], number in matched))
            previous = number

    def _line(self, name: bytes, number: int, line: str, matched: bool) -> bytes:
        limit = self.job["max_columns"]
        line = line if len(line) <= limit else line[:limit] + " [... omitted end of long line]"
        mark = b":" if matched else b"-"
        return b"%b\0%d%b%b\n" % (name, number, mark, line.encode("utf-8", "surrogateescape"))


def _read_rest(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while more := os.read(descriptor, 1 << 22):
        parts.append(more)
    return b"".join(parts)


def _line_numbers(text: str, spans: list[tuple[int, int]]) -> "Iterator[int]":
    number, counted = 1, 0
    for start, end in spans:
        number += text.count("\n", counted, start)
        counted = start
        yield from range(number, number + text.count("\n", start, end) + 1)


if __name__ == "__main__":
    main()
