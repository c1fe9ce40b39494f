"""The `read` tool: a window on a file, a folder's names, a picture, a document."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Image
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect, Limits
from callwright.system.breaks import unified
from callwright.system.encoding import Encoding, detect
from callwright.system.files import Identity, digest, folder_names, open_regular, read_all
from callwright.system.lines import LineIndex
from callwright.system.paths import Workspace
from callwright.tool.base import ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox.freshness import Freshness, Known
from callwright.toolbox.media import MOST_IMAGE_BYTES, notebook_cells, pdf_pages, picture_type
from callwright.toolbox.target import TargetArguments, explain, explain_missing
from callwright.toolbox.window import WINDOW_CHARS, Window, window_of_file, window_on

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
