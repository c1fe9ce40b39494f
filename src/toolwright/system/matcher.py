"""Searching files with Python's own expressions, where ripgrep is missing: a script that speaks ripgrep's output.

It runs beside the caller, one process per core: the job comes in on standard input, the answer goes out as
`path NUL line : text`, so that one reader understands both engines. It imports the standard library only.
"""

import json
import os
import re
import sys
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
_METACHARACTERS = frozenset("\\.+*?()|[]{}^$")
_ENCODINGS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def translate(pattern: str) -> str:
    """Rewrite what ripgrep's expressions spell differently: named groups, `\\z`, POSIX classes."""
    pattern = re.sub(r"(?<!\\)\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    pattern = re.sub(r"\[:(\w+):\]", lambda found: _POSIX.get(found[1], found[0]), pattern)
    return pattern.replace("\\z", "\\Z")


def compile_pattern(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """Compile as ripgrep would read it; raises `re.error`."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if multiline else 0)
    return re.compile(translate(pattern), flags)


def main() -> None:
    """Search the files of one job."""
    header, _, names = sys.stdin.buffer.read().partition(b"\n")
    job = json.loads(header)
    matcher = _Matcher(job)
    for name in names.split(b"\0"):
        matcher.search(name)
    matcher.flush()


class _Matcher:
    def __init__(self, job: Any) -> None:
        self.regex = compile_pattern(job["pattern"], ignore_case=job["ignore_case"], multiline=job["multiline"])
        literal = not job["ignore_case"] and _METACHARACTERS.isdisjoint(job["pattern"])
        self.literal: bytes | None = job["pattern"].encode() if literal else None
        self.job = job
        self.parts: list[bytes] = []

    def search(self, name: bytes) -> None:
        data = _read(name)
        if data is None or (self.literal is not None and self.literal not in data):
            return
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

    def _lines(self, text: str) -> Iterator[tuple[int, int]]:
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
        matched = set(_numbers(text, spans))
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


def _numbers(text: str, spans: list[tuple[int, int]]) -> Iterator[int]:
    number, counted = 1, 0
    for start, end in spans:
        number += text.count("\n", counted, start)
        counted = start
        yield from range(number, number + text.count("\n", start, end) + 1)


def _read(name: bytes) -> bytes | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) < size and (more := os.read(descriptor, size - len(data) + 1)):
            data += more
    except OSError:
        return None
    finally:
        os.close(descriptor)
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


if __name__ == "__main__":
    main()
