"""The `read` tool: a window on a file, a folder's names, a picture, a document.

Files that are not plain text but can be shown: pictures, PDF pages, notebooks.

A window on a file's lines: numbered, long lines cut, and what to ask for to see the rest.
"""

import asyncio
import base64
import binascii
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, AliasChoices, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Image, Part, Text
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect, Limits
from callwright.system.files import (
    Encoding,
    Identity,
    Line,
    LineIndex,
    detect,
    digest,
    folder_names,
    lines_from,
    open_regular,
    read_all,
    unified,
)
from callwright.system.paths import Workspace
from callwright.tool.base import ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._file_state import Freshness, Known, Shown
from callwright.toolbox._paths import TargetArguments, explain, explain_missing

MOST_IMAGE_BYTES = 5 * 1024 * 1024
_MOST_PAGES = 20
_OUTPUT_CHARS = 2000
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture_type(head: bytes) -> str | None:
    """Tell a picture models can look at from its first bytes, whatever the file is called."""
    for signature, media_type in _PICTURES:
        if head.startswith(signature):
            return media_type
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def pdf_pages(data: bytes, name: str, first: int, count: int) -> str:
    """The text of some pages, and how to get at the others."""
    try:
        from pypdf import PdfReader  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - an extra
        from pypdf.errors import PyPdfError  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - same
    except ImportError:
        raise ToolFailed(f"{name} is a PDF; reading it needs pypdf: pip install 'callwright[pdf]'") from None
    try:
        reader: Any = cast("Any", PdfReader)(io.BytesIO(data))
        pages = cast("Sequence[Any]", reader.pages)
        total = len(pages)
        if first > total:
            raise ToolFailed(f"offset {first} is past the end: {name} has {total} pages")
        last = min(total, first + min(count, _MOST_PAGES) - 1)
        texts = [f"--- page {n} of {total} ---\n{pages[n - 1].extract_text().strip()}" for n in range(first, last + 1)]
    except PyPdfError as error:  # pyright: ignore[reportUnknownVariableType] - as above
        raise ToolFailed(f"{name} is not a readable PDF: {error}") from None
    more = f"\n(pages {first}-{last} of {total}; continue with offset={last + 1})" if last < total else ""
    return "\n".join(texts) + more


def notebook_cells(data: bytes, name: str) -> list[Part]:
    """A notebook's cells with their outputs, pictures as pictures."""
    try:
        notebook = json.loads(data)
        cells = cast("list[dict[str, Any]]", notebook["cells"])
        parts = [part for number, cell in enumerate(cells, 1) for part in _cell(number, cell)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ToolFailed(f"{name} is not a readable notebook; read its lines with an explicit limit") from None
    note = "(cells of a notebook; to edit it, read its lines with an explicit limit)"
    return [*parts, Text(note if parts else "(the notebook has no cells)")]


def _cell(number: int, cell: dict[str, Any]) -> list[Part]:
    kind = cell.get("cell_type", "raw")
    parts: list[Part] = [Text(f"--- cell {number}, {kind} ---\n{_joined(cell.get('source', ''))}")]
    for output in cell.get("outputs", ()) if kind == "code" else ():
        parts += _output(output)
    return parts


def _output(output: dict[str, Any]) -> list[Part]:
    shown = output.get("data", {})
    text = _joined(output.get("text") or shown.get("text/plain") or output.get("traceback") or output.get("evalue", ""))
    parts: list[Part] = [Text(f"output: {_cut(text)}")] if text else []
    for media_type in ("image/png", "image/jpeg"):
        if media_type in shown:
            try:
                parts.append(Image(base64.b64decode(_joined(shown[media_type])), media_type))
            except binascii.Error:
                parts.append(Text("output: a picture that cannot be decoded"))
    return parts


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _cut(text: str) -> str:
    return text if len(text) <= _OUTPUT_CHARS else f"{text[:_OUTPUT_CHARS]}… (+{len(text) - _OUTPUT_CHARS} characters)"


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


SMALL_BYTES = 1 << 20
"""Up to here a file is read, hashed and split whole, which is quicker than anything cleverer."""
_HEAD_BYTES = 1 << 16
_SAMPLE_BYTES = 1 << 13
_LARGEST_WHOLE = 1 << 26
_LIMIT = 2000


def _at_least_one(number: int) -> int:
    return max(1, number)


class ReadArguments(TargetArguments):
    """What `read` takes."""

    offset: Annotated[int, Field(ge=0), AfterValidator(_at_least_one)] = Field(
        default=1, validation_alias=AliasChoices("offset", "start_line", "from")
    )
    """First line to give, counted from 1 (of a PDF: first page)."""
    limit: Annotated[int, Field(ge=1)] = Field(default=_LIMIT, validation_alias=AliasChoices("limit", "line_count"))
    """How many lines to give at most."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open file and what its first bytes say."""

    path: Path
    descriptor: int
    identity: Identity
    head: bytes

    def whole(self, most_bytes: int) -> bytes:
        data = read_all(self.descriptor, most_bytes + 1)
        if len(data) > most_bytes:
            raise ToolFailed(f"{self.path} has {self.identity.size} bytes, too many to be shown as a whole")
        return data


class Read(TypedTool[ReadArguments]):
    """Shows files inside a workspace."""

    spec = describe(
        "read",
        "Read a file: numbered lines (number, tab, text) of text in any encoding, pictures, PDF pages, notebook cells; "
        "of a folder its names. Long files come in windows: the last line says how to get the rest. Read a file "
        "before changing it.",
        effect=Effect.READ,
        group="file",
        aliases=("Read", "read_file", "view", "view_file", "open_file", "cat"),
        limits=Limits(output_chars=WINDOW_CHARS + 20_000),
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".") -> None:
        self._workspace = Workspace.of(workspace)

    def accesses(self, arguments: ReadArguments) -> Sequence[Access]:
        """One read, of what the path really leads to."""
        return (ReadPath(str(arguments.settle(self._workspace.check_read))),)

    async def run(self, arguments: ReadArguments, context: ToolContext) -> object:
        """Show what the path leads to."""
        path = arguments.settle(self._workspace.check_read)
        try:
            descriptor = open_regular(path)
        except IsADirectoryError:
            return _folder(path, arguments)
        except FileNotFoundError:
            raise explain_missing(arguments.path, path) from None
        except OSError as error:
            raise explain(error, arguments.path, "read") from None
        try:
            found = Identity.of(os.fstat(descriptor))
            head = read_all(descriptor, _HEAD_BYTES if found.size <= SMALL_BYTES else _SAMPLE_BYTES)
            return await _show(_Opened(path, descriptor, found, head), arguments, context)
        except OSError as error:
            raise explain(error, arguments.path, "read") from None
        finally:
            os.close(descriptor)


async def _show(opened: _Opened, arguments: ReadArguments, context: ToolContext) -> object:
    if media_type := picture_type(opened.head):
        return Image(opened.whole(MOST_IMAGE_BYTES), media_type)
    if opened.head.startswith(b"%PDF-"):
        data = opened.whole(_LARGEST_WHOLE)
        return await asyncio.to_thread(pdf_pages, data, arguments.path, arguments.offset, arguments.limit)
    if opened.path.suffix == ".ipynb" and (arguments.offset, arguments.limit) == (1, _LIMIT):
        return notebook_cells(opened.whole(_LARGEST_WHOLE), arguments.path)
    if opened.identity.size <= SMALL_BYTES:  # a hop to a thread takes longer than the read
        return _show_small(opened, arguments, context)
    encoding = _encoding(opened.head, arguments.path, whole=False)
    if encoding.name.startswith(("utf-16", "utf-32")):
        return await asyncio.to_thread(_show_small, opened, arguments, context)
    return await _show_large(opened, encoding, arguments, context)


def _encoding(data: bytes, given: str, *, whole: bool) -> Encoding:
    encoding = detect(data, whole=whole)
    if encoding is None:
        raise ToolFailed(f"{given} is a binary file; look at it with a program made for its format")
    return encoding


def _show_small(opened: _Opened, arguments: ReadArguments, context: ToolContext) -> str:
    complete = opened.identity.size <= SMALL_BYTES and len(opened.head) < _HEAD_BYTES
    data = opened.head if complete else opened.whole(_LARGEST_WHOLE)
    content = digest(data)
    freshness = context.state.get(Freshness)
    if not data:
        freshness.saw(opened.path, Known(content, lines=frozenset({(1, 1)}), total=1))
        return "(the file is empty)"
    encoding = _encoding(data, arguments.path, whole=True)
    lines = unified(encoding.decode(data[len(encoding.mark) :])).removesuffix("\n").split("\n")
    if arguments.offset > len(lines):
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has {len(lines)} lines")
    wanted = lines[arguments.offset - 1 : arguments.offset + arguments.limit]
    window = window_on(wanted, arguments.offset, arguments.limit)
    shown = frozenset({(window.first, window.last)}) if not window.cut else frozenset[tuple[int, int]]()
    freshness.saw(opened.path, Known(content, lines=shown, total=len(lines)))
    return window.text + _note(window, encoding, len(lines))


async def _show_large(opened: _Opened, encoding: Encoding, arguments: ReadArguments, context: ToolContext) -> str:
    index = context.state.get(LineIndex)
    while not index.reach(opened.descriptor, opened.identity, arguments.offset):  # noqa: ASYNC110 - it works, not waits
        await asyncio.sleep(0)  # others have their turn; a thread would scan no faster
    found = window_of_file(opened.descriptor, encoding, index, arguments.offset, arguments.limit)
    if found is None:
        lines = index.breaks(opened.identity)
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has about {lines} lines")
    window, part = found
    shown = frozenset({(window.first, window.last)}) if not window.cut else frozenset[tuple[int, int]]()
    total = 0 if window.more else window.last
    context.state.get(Freshness).saw(opened.path, Known("", opened.identity, frozenset({part}), shown, total))
    return window.text + _note(window, encoding, total)


def _note(window: Window, encoding: Encoding, total: int) -> str:
    """Say how much was given, how to get the rest, and what the text does not show."""
    notes: list[str] = []
    if window.more or window.first > 1:
        given = f"lines {window.first}-{window.last}" + (f" of {total}" if total else "")
        notes.append(f"{given}; continue with offset={window.last + 1}" if window.more else f"{given}; end of file")
    if encoding.name != "utf-8":
        notes.append(f"decoded from {encoding.name}")
    if window.broken:
        notes.append(f"{window.broken} bytes that are not UTF-8 are shown as \ufffd")
    return f"({'; '.join(notes)})" if notes else ""


def _folder(path: Path, arguments: ReadArguments) -> str:
    try:
        names = folder_names(path)
    except OSError as error:
        raise explain(error, arguments.path, "list") from None
    if not names:
        return f"({arguments.path} is an empty folder)"
    if arguments.offset > len(names):
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has {len(names)} entries")
    given = names[arguments.offset - 1 : arguments.offset - 1 + arguments.limit]
    last = arguments.offset + len(given) - 1
    more = f"; continue with offset={last + 1}" if last < len(names) else ""
    return (
        "\n".join(given) + f"\n({arguments.path} is a folder; entries {arguments.offset}-{last} of {len(names)}{more})"
    )
