"""The `read` tool: numbered lines of a file, entries of a folder, images, documents.

A small file is read whole. Of a large one only a window of lines is read, found through an index of line offsets.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Image, image_type
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect, Limits
from callwright.system.files import (
    Encoding,
    FileLine,
    Identity,
    LineIndex,
    detect_encoding,
    digest,
    folder_names,
    lines_from,
    open_regular,
    read_all,
    unify_line_breaks,
)
from callwright.system.paths import Workspace
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._file_state import DISK, FileAccess, KnownFile, SeenFiles, ShownPart
from callwright.toolbox._media import MAX_IMAGE_BYTES, notebook_cells, pdf_pages
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import TargetArguments, explain_error, explain_missing, one_line

LINE_CHARS = 2000
_WINDOW_CHARS = 100_000
_HASHED_BYTES = 1 << 20  # of a shown part; a single line may be gigabytes long
_BLOCK_BYTES = 1 << 16
_NUMBER = re.compile(r"^[0-9]+\t", re.MULTILINE)
_BROKEN = re.compile("[\ud800-\udfff]")  # undecodable bytes are decoded as lone surrogates


@dataclass(frozen=True, slots=True)
class Window:
    """Numbered lines as shown to the model."""

    text: str
    first: int
    last: int
    """Number of the last line; below `first` if there is none."""
    cut: bool = False
    """A line was too long and was cut."""
    more: bool = False
    """More lines follow."""
    broken: int = 0
    """Bytes that are not in the file's encoding, shown as �."""

    def show(self, *, numbered: bool) -> str:
        """Return the lines, with their numbers or without."""
        return self.text if numbered else _NUMBER.sub("", self.text)


def _number_lines(lines: Iterable[tuple[str, int]], first: int, count: int) -> Window:
    """Number lines from `first` on; each comes with the number of its characters that are missing already."""
    shown: list[str] = []
    room, number, cut, broken = _WINDOW_CHARS, first - 1, False, 0
    source = iter(lines)
    for line, missing in islice(source, count):
        if len(line) > LINE_CHARS:
            line, missing = line[:LINE_CHARS], missing + len(line) - LINE_CHARS
        if missing:
            line, cut = f"{line}… (+{missing} characters, line cut)", True
        if not line.isascii():
            line, lost = _printable(line)
            broken += lost
        room -= len(line) + 8  # the number, the tab and the line break
        if room < 0 and shown:
            return Window("\n".join(shown) + "\n", first, number, cut, True, broken)
        number += 1
        shown.append(f"{number}\t{line}")
    more = next(source, None) is not None
    return Window("\n".join(shown) + "\n" if shown else "", first, number, cut, more, broken)


def _printable(line: str) -> tuple[str, int]:
    return _BROKEN.subn("\ufffd", line)


def _window_of_lines(lines: Sequence[str], first: int, count: int) -> Window:
    """Return a window on lines in memory, the first numbered `first`; a line beyond `count` means more follow."""
    window = _uncut_window(lines[:count], first, more=len(lines) > count)
    return window or _number_lines(((line, 0) for line in lines), first, count)


def _uncut_window(lines: Sequence[str], first: int, *, more: bool) -> Window | None:
    """Return the window if nothing has to be cut, which is the usual case and needs no look at single lines."""
    text = "\n".join(lines)
    if len(text) + 8 * len(lines) > _WINDOW_CHARS or max(map(len, lines), default=0) > LINE_CHARS:
        return None
    if not text.isascii() and _BROKEN.search(text):
        return None
    shown = "".join([f"{number}\t{line}\n" for number, line in enumerate(lines, first)])
    return Window(shown, first, first + len(lines) - 1, more=more)


async def _window_of_file(
    descriptor: int, encoding: Encoding, index: LineIndex, first: int, count: int
) -> tuple[Window, ShownPart] | None:
    """Return a window on a large file and the part of it that was shown; None past the end."""
    identity = Identity.of(os.fstat(descriptor))
    offset = index.find(descriptor, identity, first)
    if offset is None or offset >= identity.size:
        return None
    offset += len(encoding.mark) if first == 1 else 0
    window = _window_in_block(descriptor, encoding, offset, first, count)
    return window or await _window_by_line(descriptor, encoding, offset, first, count)


def _window_in_block(
    descriptor: int, encoding: Encoding, offset: int, first: int, count: int
) -> tuple[Window, ShownPart] | None:
    """Return the window if it lies in one block and nothing has to be cut, which is the usual case."""
    block = os.pread(descriptor, _BLOCK_BYTES, offset)
    rest = block.split(b"\n", count)[count:]
    if not rest and len(block) == _BLOCK_BYTES:
        return None
    shown = block[: len(block) - len(rest[0])] if rest else block
    more = bool(os.pread(descriptor, 1, offset + len(shown)))
    window = _uncut_window(unify_line_breaks(encoding.decode(shown)).removesuffix("\n").split("\n"), first, more=more)
    return window and (window, ShownPart(offset, len(shown), digest(shown)))


async def _window_by_line(
    descriptor: int, encoding: Encoding, offset: int, first: int, count: int
) -> tuple[Window, ShownPart]:
    lines = await _take_lines(descriptor, offset, count)
    window = _number_lines((_decode(line, encoding) for line in lines), first, count)
    size = sum(line.size + 1 for line in lines[: window.last - first + 1])
    shown = os.pread(descriptor, min(size, _HASHED_BYTES), offset)
    return window, ShownPart(offset, len(shown), digest(shown))


async def _take_lines(descriptor: int, offset: int, count: int) -> list[FileLine]:
    """Return as many lines as a window can hold, and one more to tell whether lines follow."""
    lines: list[FileLine] = []
    room = 4 * _WINDOW_CHARS
    for line in lines_from(descriptor, offset, 4 * LINE_CHARS):
        if line is None:
            await asyncio.sleep(0)  # lets other tasks run: a single line may be gigabytes long
            continue
        lines.append(line)
        room -= len(line.head)
        if room < 0 or len(lines) > count:
            break
    return lines


def _decode(line: FileLine, encoding: Encoding) -> tuple[str, int]:
    return encoding.decode(line.head.removesuffix(b"\r")), line.size - len(line.head)


SMALL_BYTES = 1 << 20
"""Up to this size a file is read, hashed and split whole, which is faster than an index."""
_HEAD_BYTES = 1 << 16
_SAMPLE_BYTES = 1 << 13  # enough to detect the type and encoding of a large file
_MAX_WHOLE_BYTES = 1 << 26
_DEFAULT_LINES = 2000


def _at_least_one(number: int) -> int:
    return max(1, number)


def _at_most_shown(number: int) -> int:
    """Return a limit that makes no difference: a window holds fewer lines, and a larger number may fit nowhere."""
    return min(number, _WINDOW_CHARS)


class ReadArguments(TargetArguments):
    """Arguments of `read`."""

    offset: Annotated[int, Field(ge=0), AfterValidator(_at_least_one)] = Field(
        default=1, validation_alias=AliasChoices("offset", "start_line", "from")
    )
    """First line to return, counted from 1 (of a PDF: first page)."""
    limit: Annotated[int, Field(ge=1), AfterValidator(_at_most_shown)] = Field(
        default=_DEFAULT_LINES, validation_alias=AliasChoices("limit", "line_count")
    )
    """How many lines to return at most."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open file and its first bytes."""

    path: Path
    descriptor: int
    identity: Identity
    head: bytes
    numbered: bool

    def whole(self, most_bytes: int) -> bytes:
        data = read_all(self.descriptor, most_bytes + 1)
        if len(data) > most_bytes:
            raise ToolFailed(f"{self.path} has {self.identity.size} bytes; at most {most_bytes} can be shown")
        return data


class Read(TypedTool[ReadArguments]):
    """Reads files and lists folders of a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
        files: Where files are loaded, if an editor may have content that is not on disk.
        numbered: Whether lines are shown with their numbers, which small models take for a part of the text.
    """

    spec = describe(
        "read",
        "Read a file: numbered lines (number, tab, text), images, PDF pages, notebook cells; of a folder its entries. "
        "Long files come in parts: the last line says how to read on.",
        effect=Effect.READ,
        group="file",
        aliases=("Read", "read_file", "view", "view_file", "open_file", "cat"),
        limits=Limits(output_chars=_WINDOW_CHARS + 20_000),
    )

    def __init__(
        self, workspace: Workspace | str | PathLike[str] = ".", *, files: FileAccess = DISK, numbered: bool = True
    ) -> None:
        self._workspace = Workspace.of(workspace)
        self._files = files
        self._numbered = numbered

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._workspace, {"path": "existing"})

    def accesses(self, arguments: ReadArguments) -> Sequence[Access]:
        """Declare a read of the resolved path."""
        return (ReadPath(str(arguments.resolve(self._workspace.check_read))),)

    async def run(self, arguments: ReadArguments, context: ToolContext) -> object:
        """Return the contents of the file or folder."""
        path = arguments.resolve(self._workspace.check_read)
        if self._files.shares_buffers:
            shown = await asyncio.to_thread(self._show_unsaved, path, arguments, context)
            if shown is not None:
                return shown
        try:
            descriptor = open_regular(path)
        except IsADirectoryError:
            return _folder(path, arguments)
        except FileNotFoundError:
            raise explain_missing(arguments.path, path) from None
        except OSError as error:
            raise explain_error(error, arguments.path, "read") from None
        try:
            found = Identity.of(os.fstat(descriptor))
            head = read_all(descriptor, _HEAD_BYTES if found.size <= SMALL_BYTES else _SAMPLE_BYTES)
            return await _show(_Opened(path, descriptor, found, head, self._numbered), arguments, context)
        except OSError as error:
            raise explain_error(error, arguments.path, "read") from None
        finally:
            os.close(descriptor)

    def _show_unsaved(self, path: Path, arguments: ReadArguments, context: ToolContext) -> str | None:
        """Return the lines of a file as an editor has it; None if the disk has the same."""
        if not path.is_file() or path.stat().st_size > SMALL_BYTES:
            return None
        found = self._files.load(path, arguments.path)
        if found is None or not found.unsaved or len(found.data) >= _HEAD_BYTES:
            return None
        identity = replace(found.identity, size=len(found.data))
        return _show_small(_Opened(path, -1, identity, found.data, self._numbered), arguments, context)


async def _show(opened: _Opened, arguments: ReadArguments, context: ToolContext) -> object:
    if media_type := image_type(opened.head):
        return Image(opened.whole(MAX_IMAGE_BYTES), media_type)
    if opened.head.startswith(b"%PDF-"):
        data = opened.whole(_MAX_WHOLE_BYTES)
        return await asyncio.to_thread(pdf_pages, data, arguments.path, arguments.offset, arguments.limit)
    if opened.path.suffix == ".ipynb" and not {"offset", "limit"} & arguments.model_fields_set:
        return await asyncio.to_thread(notebook_cells, opened.whole(_MAX_WHOLE_BYTES), arguments.path)
    if opened.identity.size <= SMALL_BYTES:  # switching to a thread takes longer than the read
        return _show_small(opened, arguments, context)
    encoding = _encoding(opened.head, arguments.path, whole=False)
    if encoding.name.startswith(("utf-16", "utf-32")):  # the line index looks for single bytes
        return await asyncio.to_thread(_show_small, opened, arguments, context)
    return await _show_large(opened, encoding, arguments, context)


def _encoding(data: bytes, given: str, *, whole: bool) -> Encoding:
    encoding = detect_encoding(data, whole=whole)
    if encoding is None:
        raise ToolFailed(f"{given} is a binary file; use a program for its format")
    return encoding


def _show_small(opened: _Opened, arguments: ReadArguments, context: ToolContext) -> str:
    complete = opened.identity.size <= SMALL_BYTES and len(opened.head) < _HEAD_BYTES
    data = opened.head if complete else opened.whole(_MAX_WHOLE_BYTES)
    content = digest(data)
    seen = context.state.get(SeenFiles)
    if not data:
        seen.remember_read(opened.path, KnownFile(content, lines=frozenset({(1, 1)}), total=1))
        return "(the file is empty)"
    encoding = _encoding(data, arguments.path, whole=True)
    lines = unify_line_breaks(encoding.decode(data[len(encoding.mark) :])).removesuffix("\n").split("\n")
    if arguments.offset > len(lines):
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has {len(lines)} lines")
    wanted = lines[arguments.offset - 1 : arguments.offset + arguments.limit]
    window = _window_of_lines(wanted, arguments.offset, arguments.limit)
    shown = frozenset({(window.first, window.last)}) if not window.cut else frozenset[tuple[int, int]]()
    seen.remember_read(opened.path, KnownFile(content, lines=shown, total=len(lines)))
    return window.show(numbered=opened.numbered) + _note(window, encoding, len(lines))


async def _show_large(opened: _Opened, encoding: Encoding, arguments: ReadArguments, context: ToolContext) -> str:
    index = context.state.get(LineIndex)
    while not index.reach(opened.descriptor, opened.identity, arguments.offset):  # noqa: ASYNC110 - each round works, it does not wait
        await asyncio.sleep(0)  # lets other tasks run; a thread would not scan faster
    found = await _window_of_file(opened.descriptor, encoding, index, arguments.offset, arguments.limit)
    if found is None:
        lines = index.breaks(opened.identity)
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has about {lines} lines")
    window, part = found
    shown = frozenset({(window.first, window.last)}) if not window.cut else frozenset[tuple[int, int]]()
    total = 0 if window.more else window.last
    context.state.get(SeenFiles).remember_read(
        opened.path, KnownFile("", opened.identity, frozenset({part}), shown, total)
    )
    return window.show(numbered=opened.numbered) + _note(window, encoding, total)


def _note(window: Window, encoding: Encoding, total: int) -> str:
    """Say which lines were returned, how to read on, and what the text does not show."""
    notes: list[str] = []
    if window.more or window.first > 1:
        lines = f"lines {window.first}-{window.last}" + (f" of {total}" if total else "")
        notes.append(f"{lines}; continue with offset={window.last + 1}" if window.more else f"{lines}; end of file")
    if encoding.name != "utf-8":
        notes.append(f"decoded from {encoding.name}")
    if window.broken:
        notes.append(f"{window.broken} bytes that are not UTF-8 are shown as \ufffd")
    return f"({'; '.join(notes)})" if notes else ""


def _folder(path: Path, arguments: ReadArguments) -> str:
    try:
        names = folder_names(path)
    except OSError as error:
        raise explain_error(error, arguments.path, "list") from None
    if not names:
        return f"({arguments.path} is an empty folder)"
    if arguments.offset > len(names):
        raise ToolFailed(f"offset {arguments.offset} is past the end: {arguments.path} has {len(names)} entries")
    page = names[arguments.offset - 1 : arguments.offset - 1 + arguments.limit]
    last = arguments.offset + len(page) - 1
    more = f"; continue with offset={last + 1}" if last < len(names) else ""
    return (
        "\n".join(map(one_line, page))
        + f"\n({one_line(arguments.path)} is a folder; entries {arguments.offset}-{last} of {len(names)}{more})"
    )
