"""Finding lines in files of any size: a newline scan in constant memory, and marks that make the next one short."""

import os
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolwright.system.files import Identity

_CHUNK = 1 << 16  # fits the processor's cache: twice as fast as a megabyte at a time
_STRIDE = _CHUNK
_KEPT_FILES = 16


@dataclass(slots=True)
class _Marks:
    """How many line breaks lie before every multiple of the stride, as far as the file was scanned."""

    breaks_before: list[int] = field(default_factory=lambda: [0])


class LineIndex:
    """Where lines begin in large files, kept by file identity: a changed file is scanned anew."""

    def __init__(self) -> None:
        self._known: OrderedDict[Identity, _Marks] = OrderedDict()

    def find(self, descriptor: int, identity: Identity, line: int) -> int | None:
        """Return the offset at which a line, counted from 1, begins; None if the file has fewer line breaks."""
        marks = self._known.get(identity) or _Marks()
        self._known[identity] = marks
        self._known.move_to_end(identity)
        while len(self._known) > _KEPT_FILES:
            self._known.popitem(last=False)
        return _find(descriptor, marks.breaks_before, line - 1) if line > 1 else 0


def _find(descriptor: int, marks: list[int], wanted: int) -> int | None:
    """The offset after the `wanted`-th line break, scanning from the last mark before it."""
    known = bisect_left(marks, wanted) - 1
    breaks, offset = marks[known], known * _STRIDE
    while chunk := os.pread(descriptor, _CHUNK, offset):
        # removing and comparing lengths is several times faster than counting
        here = len(chunk) - len(chunk.replace(b"\n", b""))
        if breaks + here >= wanted:
            return offset + len(chunk) - len(chunk.split(b"\n", wanted - breaks)[-1])
        breaks, offset = breaks + here, offset + len(chunk)
        if offset == len(marks) * _STRIDE:
            marks.append(breaks)
    return None


def count_breaks(descriptor: int) -> int:
    """Count the line breaks of a whole file."""
    breaks = offset = 0
    while chunk := os.pread(descriptor, _CHUNK, offset):
        breaks, offset = breaks + len(chunk) - len(chunk.replace(b"\n", b"")), offset + len(chunk)
    return breaks


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its break, as far as it was asked for."""

    head: bytes
    size: int
    """Its length in bytes; more than `head` has if it was cut."""


def lines_from(descriptor: int, offset: int, most_bytes: int) -> Iterator[Line]:
    """Read lines from an offset on, keeping at most so many bytes of each, however long they are."""
    head, size = b"", 0
    while chunk := os.pread(descriptor, _CHUNK, offset):
        offset += len(chunk)
        first, *rest = chunk.split(b"\n")
        head, size = head + first[: max(0, most_bytes - len(head))], size + len(first)
        for part in rest:
            yield Line(head, size)
            head, size = part[:most_bytes], len(part)
    if size:
        yield Line(head, size)
