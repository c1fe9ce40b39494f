"""Finding lines in files of any size: a newline scan in constant memory, and marks that make the next one short."""

import os
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from callwright.system.files import Identity

_CHUNK = 1 << 16  # fits the processor's cache: twice as fast as a megabyte at a time
_SLICE = 1 << 23
_KEPT_FILES = 16


@dataclass(slots=True)
class _Marks:
    """How many line breaks lie before every multiple of a chunk, as far as the file was scanned."""

    breaks_before: list[int] = field(default_factory=lambda: [0])
    total: int | None = None
    """All line breaks of the file, once its end was reached."""


class LineIndex:
    """Where lines begin in large files, kept by file identity: a changed file is scanned anew."""

    def __init__(self) -> None:
        self._known: OrderedDict[Identity, _Marks] = OrderedDict()

    def reach(self, descriptor: int, identity: Identity, line: int) -> bool:
        """Scan on towards a line, for some milliseconds at most; True once the line or the end was reached."""
        marks = self._marks(identity)
        breaks, offset = marks.breaks_before[-1], (len(marks.breaks_before) - 1) * _CHUNK
        stop = offset + _SLICE
        while breaks < line - 1 and marks.total is None and offset < stop:
            chunk = os.pread(descriptor, _CHUNK, offset)
            # removing and comparing lengths is several times faster than counting
            breaks, offset = breaks + len(chunk) - len(chunk.replace(b"\n", b"")), offset + len(chunk)
            if offset == len(marks.breaks_before) * _CHUNK:
                marks.breaks_before.append(breaks)
            elif not chunk:
                marks.total = breaks
        return breaks >= line - 1 or marks.total is not None

    def find(self, descriptor: int, identity: Identity, line: int) -> int | None:
        """Return the offset at which a line that was reached begins, counted from 1; None if there is no such line."""
        marks, wanted = self._marks(identity), line - 1
        if not wanted:
            return 0
        if marks.total is not None and wanted > marks.total:
            return None
        known = bisect_left(marks.breaks_before, wanted) - 1
        chunk = os.pread(descriptor, _CHUNK, known * _CHUNK)
        rest = chunk.split(b"\n", wanted - marks.breaks_before[known])
        return known * _CHUNK + len(chunk) - len(rest[-1])

    def breaks(self, identity: Identity) -> int:
        """How many line breaks a file has whose end was reached."""
        return self._marks(identity).total or 0

    def _marks(self, identity: Identity) -> _Marks:
        marks = self._known.setdefault(identity, _Marks())
        self._known.move_to_end(identity)
        while len(self._known) > _KEPT_FILES:
            self._known.popitem(last=False)
        return marks


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
