"""A window on a file's lines: numbered, long lines cut, and what to ask for to see the rest."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from callwright.system.breaks import unified
from callwright.system.encoding import Encoding
from callwright.system.files import Identity, digest
from callwright.system.lines import Line, LineIndex, lines_from
from callwright.toolbox.freshness import Shown

LINE_CHARS = 2000
WINDOW_CHARS = 100_000
_HASHED_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16
_BROKEN = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines as the model reads them."""

    text: str
    first: int
    last: int
    """Number of the last line given; below `first` if there was none."""
    cut: bool = False
    """Some line was too long to be given whole."""
    more: bool = False
    """Lines follow."""
    broken: int = 0
    """Bytes that are not in the file's encoding, shown as �."""


def numbered(lines: Iterable[tuple[str, int]], first: int, count: int) -> Window:
    """Number lines from `first` on; each comes with how many of its characters were left out already."""
    shown: list[str] = []
    room, number, cut, broken = WINDOW_CHARS, first - 1, False, 0
    source = iter(lines)
    for line, missing in islice(source, count):
        if len(line) > LINE_CHARS:
            line, missing = line[:LINE_CHARS], missing + len(line) - LINE_CHARS
        if missing:
            line, cut = f"{line}… (+{missing} characters, line cut)", True
        if not line.isascii():
            line, lost = _printable(line)
            broken += lost
        room -= len(line) + 8
        if room < 0 and shown:
            return Window("\n".join(shown) + "\n", first, number, cut, True, broken)
        number += 1
        shown.append(f"{number}\t{line}")
    more = next(source, None) is not None
    return Window("\n".join(shown) + "\n" if shown else "", first, number, cut, more, broken)


def _printable(line: str) -> tuple[str, int]:
    return _BROKEN.subn("\ufffd", line)


def window_on(lines: Sequence[str], first: int, count: int) -> Window:
    """A window on lines that are in memory; the first of them has the number `first`, one beyond `count` means more."""
    window = _quick(lines[:count], first, more=len(lines) > count)
    return window or numbered(((line, 0) for line in lines), first, count)


def _quick(lines: Sequence[str], first: int, *, more: bool) -> Window | None:
    """The window when nothing has to be cut, which is nearly always: no look at single lines."""
    text = "\n".join(lines)
    if len(text) + 8 * len(lines) > WINDOW_CHARS or max(map(len, lines), default=0) > LINE_CHARS:
        return None
    if not text.isascii() and _BROKEN.search(text):
        return None
    shown = "".join([f"{number}\t{line}\n" for number, line in enumerate(lines, first)])
    return Window(shown, first, first + len(lines) - 1, more=more)


def window_of_file(
    descriptor: int, encoding: Encoding, index: LineIndex, first: int, count: int
) -> tuple[Window, Shown] | None:
    """A window on a file too large to be read whole, and the stretch it showed; None past the end."""
    identity = Identity.of(os.fstat(descriptor))
    offset = index.find(descriptor, identity, first)
    if offset is None or offset >= identity.size:
        return None
    offset += len(encoding.mark) if first == 1 else 0
    return _at_once(descriptor, encoding, offset, first, count) or _by_line(descriptor, encoding, offset, first, count)


def _at_once(descriptor: int, encoding: Encoding, offset: int, first: int, count: int) -> tuple[Window, Shown] | None:
    """The window when it lies in one block and nothing has to be cut, which is nearly always."""
    block = os.pread(descriptor, _BLOCK_BYTES, offset)
    rest = block.split(b"\n", count)[count:]
    if not rest and len(block) == _BLOCK_BYTES:
        return None
    shown = block[: len(block) - len(rest[0])] if rest else block
    more = bool(os.pread(descriptor, 1, offset + len(shown)))
    window = _quick(unified(encoding.decode(shown)).removesuffix("\n").split("\n"), first, more=more)
    return window and (window, Shown(offset, len(shown), digest(shown)))


def _by_line(descriptor: int, encoding: Encoding, offset: int, first: int, count: int) -> tuple[Window, Shown]:
    lines = _taken(descriptor, offset, count)
    window = numbered((_decode(line, encoding) for line in lines), first, count)
    size = sum(line.size + 1 for line in lines[: window.last - first + 1])
    shown = os.pread(descriptor, min(size, _HASHED_BYTES), offset)
    return window, Shown(offset, len(shown), digest(shown))


def _taken(descriptor: int, offset: int, count: int) -> list[Line]:
    """As many lines as a window can hold and one more, which tells whether lines follow."""
    lines: list[Line] = []
    room = 4 * WINDOW_CHARS
    for line in islice(lines_from(descriptor, offset, 4 * LINE_CHARS), count + 1):
        lines.append(line)
        room -= len(line.head)
        if room < 0:
            break
    return lines


def _decode(line: Line, encoding: Encoding) -> tuple[str, int]:
    return encoding.decode(line.head.removesuffix(b"\r")), line.size - len(line.head)
