"""Reads regular files: encodings that lose no byte, line breaks that are kept, line search in constant memory."""

import codecs
import errno
import os
import stat
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system.line_diff import compare_lines
from callwright.system.paths import open_beneath, open_resolved, opened, parent_folder


def unify_line_breaks(text: str) -> str:
    """Write every line break as `\\n`."""
    return text.replace("\r\n", "\n")


def most_common_break(text: str) -> str:
    """Return the line break that most lines of a text end with; empty if it has none."""
    windows, all_breaks = text.count("\r\n"), text.count("\n")
    if not all_breaks:
        return ""
    return "\r\n" if windows * 2 > all_breaks else "\n"


def with_break(text: str, line_break: str) -> str:
    """Write every line break of a text as the given one; an empty one leaves the text as it is."""
    return unify_line_breaks(text).replace("\n", line_break) if line_break else text


def replace_range(text: str, start: int, end: int, new: str) -> str:
    """Replace a range of `text`; offsets refer to its unified form, and unchanged lines keep their own breaks."""
    return replace_ranges(text, [(start, end)], new)


def replace_ranges(text: str, ranges: Sequence[tuple[int, int]], new: str) -> str:
    """Replace several ranges of `text`, given in their order, as `replace_range` does one."""
    plain = unify_line_breaks(text)
    starts, ends = [0, *(end for _, end in ranges)], [*(start for start, _ in ranges), len(plain)]
    replaced = new.join(plain[start:end] for start, end in zip(starts, ends, strict=True))
    if len(plain) == len(text):
        return replaced
    own = ["\r\n" if line.endswith("\r") else "\n" for line in text.split("\n")[:-1]]
    if "\n" not in own:
        return replaced.replace("\n", "\r\n")
    breaks: list[str] = []
    done = passed = 0
    for start, end in ranges:
        first = passed + plain.count("\n", done, start)
        last = first + plain.count("\n", start, end)
        breaks += own[passed:first]
        breaks += _choose_breaks(new, plain[start:end], own[first:last], own[min(first, len(own) - 1)])
        done, passed = end, last
    breaks += [*own[passed:], ""]
    return "".join(line + line_break for line, line_break in zip(replaced.split("\n"), breaks, strict=True))


def _choose_breaks(new: str, old: str, own: list[str], following: str) -> list[str]:
    """Choose breaks for the new lines: an unchanged line keeps its own, the others take the most common one nearby."""
    usual = max(dict.fromkeys(own), key=own.count) if own else following
    breaks = [usual] * new.count("\n")
    for tag, a, end, b, _ in compare_lines(old.split("\n"), new.split("\n")):
        for offset in range(end - a if tag == "equal" else 0):
            if a + offset < len(own) and b + offset < len(breaks):
                breaks[b + offset] = own[a + offset]
    return breaks


_MARKS = (  # UTF-32 first: its little-endian mark starts like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = (b"%PDF-", b"PK\x03\x04", b"\x7fELF", b"\x1f\x8b", b"GIF8", b"\xff\xd8\xff", b"\x89PNG")
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b")
_CONTROLS = bytes(sorted(set(range(32)) - _TEXT_CONTROLS)) + b"\x7f"
_MOST_CONTROLS = 0.1
_UTF8_TAIL = 3


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a file and its byte order mark."""

    name: str = "utf-8"
    mark: bytes = b""
    """The byte order mark it starts with."""

    def decode(self, data: bytes) -> str:
        """Decode the bytes after the mark; invalid UTF-8 becomes lone surrogates, so that it can be written back."""
        return data.decode(self.name, "surrogateescape" if self.name == "utf-8" else "surrogatepass")

    def encode(self, text: str) -> bytes:
        """Encode text without the mark; raises `UnicodeEncodeError` for characters that the encoding lacks."""
        return text.encode(self.name, "surrogateescape" if self.name == "utf-8" else "surrogatepass")


def detect_encoding(head: bytes, *, whole: bool = True) -> Encoding | None:
    """Detect the encoding from the first bytes, which may end inside a character unless `whole`; None means binary."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return _if_decodable(Encoding(name, mark), head, whole=whole)
    if head.startswith(_SIGNATURES):
        return None
    if b"\0" in head:
        found = _detect_utf16(head)
        return found and _if_decodable(found, head, whole=whole)
    if len(head.translate(None, _CONTROLS)) < len(head) * (1 - _MOST_CONTROLS):
        return None
    return Encoding() if _is_utf8(head, whole=whole) or _mostly_utf8(head) else Encoding("latin-1")


def _if_decodable(encoding: Encoding, head: bytes, *, whole: bool) -> Encoding | None:
    """Return an encoding unless the bytes cannot be decoded, such as UTF-16 with half a character at its end."""
    if whole:
        try:
            encoding.decode(head[len(encoding.mark) :])
        except UnicodeDecodeError:
            return None
    return encoding


def _is_utf8(head: bytes, *, whole: bool) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return not whole and error.reason == "unexpected end of data" and error.start >= len(head) - _UTF8_TAIL
    return True


def _mostly_utf8(head: bytes) -> bool:
    """Whether most non-ASCII characters are valid UTF-8: a few broken bytes do not make a file Latin-1."""
    text = head.decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= letter <= "\udcff" for letter in text)
    return sum(letter > "\x7f" for letter in text) > 2 * broken


def _detect_utf16(head: bytes) -> Encoding | None:
    """Detect UTF-16 without a mark: a zero in most odd or even bytes and none in the others."""
    even, odd = head[0::2], head[1::2]
    for zeros, letters, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if b"\0" not in letters and zeros.count(0) > len(zeros) * 0.7 and not _CONTROL_SET.intersection(letters):
            return Encoding(name)
    return None


_CONTROL_SET = frozenset(_CONTROLS)


_CHUNK = 1 << 20
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file it is and in which state, from `stat` alone."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Identity":
        """Create it from a `stat` result."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def digest(data: bytes) -> str:
    """Return the SHA-256 digest of a content."""
    return sha256(data).hexdigest()


def open_regular(path: Path) -> int:
    """Open a resolved path for reading.

    Raises:
        ToolFailed: It is a pipe, a socket or a device, which could block.
    """
    with parent_folder(path) as folder:
        name = path.name or "."
        _refuse_irregular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))  # opening a device may act on it
        descriptor = open_beneath(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _refuse_irregular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Read a resolved path up to a number of bytes; raises as `open_regular` does."""
    with opened(open_regular(path)) as descriptor:
        return read_all(descriptor, most_bytes)


# no platform has them all
_AT_ONCE = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


def read_start(path: str | Path, most_bytes: int) -> bytes | None:
    """Return the first bytes of a regular file; None for anything else, which could block or never end."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # opening a device may act on it
            return None
        with os.fdopen(os.open(path, _AT_ONCE), "rb") as file:
            return file.read(most_bytes) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def _refuse_irregular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for matches, kind in _KINDS:
        if matches(found.st_mode):
            raise ToolFailed(f"{path} is {kind}, not a regular file; it cannot be read or written")


def folder_names(path: Path) -> list[str]:
    """Return the sorted names in a resolved folder, sub-folders with a slash."""
    with opened(open_resolved(path, os.O_RDONLY | os.O_DIRECTORY)) as folder, os.scandir(folder) as entries:
        return sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)


def read_all(descriptor: int, most_bytes: int | None = None) -> bytes:
    """Read an open file to its end, or to `most_bytes`; the size from `stat` is not trusted."""
    chunks: list[bytes] = []
    offset = 0
    while most_bytes is None or offset < most_bytes:
        wanted = _CHUNK if most_bytes is None else min(_CHUNK, most_bytes - offset)
        try:
            chunk = os.pread(descriptor, wanted, offset)
        except BlockingIOError:  # such as a kernel log without new entries
            break
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


_SCAN_CHUNK = 1 << 16  # fits the processor's cache: twice as fast as a megabyte at a time
_SLICE = 1 << 23
_KEPT_FILES = 16


@dataclass(slots=True)
class _Marks:
    """The number of line breaks before every multiple of the chunk size, as far as the file was scanned."""

    breaks_before: list[int] = field(default_factory=lambda: [0])
    total: int | None = None
    """The number of line breaks in the file, once its end was reached."""


class LineIndex:
    """Offsets of lines in large files, cached by file identity: a changed file is scanned again."""

    def __init__(self) -> None:
        self._known: OrderedDict[Identity, _Marks] = OrderedDict()

    def reach(self, descriptor: int, identity: Identity, line: int) -> bool:
        """Continue scanning towards a line, for some milliseconds; return True once the line or the end was reached."""
        marks = self._marks(identity)
        breaks, offset = marks.breaks_before[-1], (len(marks.breaks_before) - 1) * _SCAN_CHUNK
        stop = offset + _SLICE
        while breaks < line - 1 and marks.total is None and offset < stop:
            chunk = os.pread(descriptor, _SCAN_CHUNK, offset)
            # removing and comparing lengths is several times faster than counting
            breaks, offset = breaks + len(chunk) - len(chunk.replace(b"\n", b"")), offset + len(chunk)
            if offset == len(marks.breaks_before) * _SCAN_CHUNK:
                marks.breaks_before.append(breaks)
            elif not chunk:
                marks.total = breaks
        return breaks >= line - 1 or marks.total is not None

    def find(self, descriptor: int, identity: Identity, line: int) -> int | None:
        """Return the offset of a line (counted from 1) that was reached; None if there is no such line."""
        marks, wanted = self._marks(identity), line - 1
        if not wanted:
            return 0
        if marks.total is not None and wanted > marks.total:
            return None
        known = bisect_left(marks.breaks_before, wanted) - 1
        chunk = os.pread(descriptor, _SCAN_CHUNK, known * _SCAN_CHUNK)
        rest = chunk.split(b"\n", wanted - marks.breaks_before[known])
        return known * _SCAN_CHUNK + len(chunk) - len(rest[-1])

    def breaks(self, identity: Identity) -> int:
        """Return the number of line breaks of a file whose end was reached."""
        return self._marks(identity).total or 0

    def _marks(self, identity: Identity) -> _Marks:
        marks = self._known.setdefault(identity, _Marks())
        self._known.move_to_end(identity)
        while len(self._known) > _KEPT_FILES:
            self._known.popitem(last=False)
        return marks


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line without its break, possibly cut."""

    head: bytes
    size: int
    """The length of the whole line in bytes."""


def lines_from(descriptor: int, offset: int, most_bytes: int) -> Iterator[FileLine | None]:
    """Read lines from an offset, keeping at most `most_bytes` of each; None after every some milliseconds of work."""
    head, size, pause = b"", 0, offset + _SLICE
    while chunk := os.pread(descriptor, _SCAN_CHUNK, offset):
        offset += len(chunk)
        if offset > pause:
            pause = offset + _SLICE
            yield None
        first, *rest = chunk.split(b"\n")
        head, size = head + first[: max(0, most_bytes - len(head))], size + len(first)
        for part in rest:
            yield FileLine(head, size)
            head, size = part[:most_bytes], len(part)
    if size:
        yield FileLine(head, size)
