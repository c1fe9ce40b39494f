"""The `write` tool: a whole file at once, in one step, and nothing the model has not seen is lost."""

import asyncio
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, WritePath
from callwright.core.errors import ToolFailed
from callwright.core.spec import Annotations, Effect
from callwright.system.atomic_write import ABSENT
from callwright.system.files import digest, usual_break, with_break
from callwright.system.paths import Workspace
from callwright.tool.base import ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._file_state import Current, Freshness, alone_with, load, store
from callwright.toolbox._paths import TargetArguments

_MARK = "\ufeff"


class WriteArguments(TargetArguments):
    """What `write` takes."""

    content: str = Field(validation_alias=AliasChoices("content", "contents", "text", "file_text"))
    """The whole new content."""
    overwrite: bool = False
    """Replace an existing file even if it was not read in this session, or changed since."""


class Write(TypedTool[WriteArguments]):
    """Creates and replaces files inside a workspace."""

    spec = describe(
        "write",
        "Write a whole file, creating folders as needed. An existing file must have been read in this session and not "
        "changed since (or pass overwrite=true); it keeps its mode, line breaks and byte order mark. To change a part "
        "of a file use edit.",
        annotations=Annotations(Effect.WRITE, idempotent=True),
        group="file",
        aliases=("Write", "write_file", "create_file", "save_file"),
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".") -> None:
        self._workspace = Workspace.of(workspace)

    def accesses(self, arguments: WriteArguments) -> Sequence[Access]:
        """One write, to what the path really leads to."""
        return (WritePath(str(arguments.settle(self._workspace.check_write))),)

    async def run(self, arguments: WriteArguments, context: ToolContext) -> str:
        """Write the file and say how many bytes it has."""
        path = arguments.settle(self._workspace.check_write)
        if arguments.path.endswith("/"):
            raise ToolFailed(f"{arguments.path} names a folder; give the path of a file")
        # flushing to the disk takes milliseconds the loop cannot spare
        return await asyncio.to_thread(_write, path, arguments, context.state.get(Freshness))


def _write(path: Path, arguments: WriteArguments, freshness: Freshness) -> str:
    with alone_with(path):
        before = load(path, arguments.path)
        if before and not arguments.overwrite:
            _refuse_unseen(path, arguments.path, before, freshness)
        data = _encoded(arguments.content, before)
        expected = None if arguments.overwrite else digest(before.data) if before else ABSENT
        store(path, arguments.path, data, expected)
        freshness.made(path, digest(data), whole=True)
    return f"Wrote {len(data)} bytes to {arguments.path}"


def _refuse_unseen(path: Path, given: str, before: Current, freshness: Freshness) -> None:
    if not before.data:
        return
    try:
        known = freshness.check(path, given, before.data, before.identity)
    except ToolFailed as error:
        raise ToolFailed(f"{error.message}, or pass overwrite=true to replace it whatever it holds") from None
    if not known.whole:
        raise ToolFailed(
            f"only a part of {given} was read in this session; read the rest, change it with edit, or pass "
            "overwrite=true to replace all of it"
        )


def _encoded(content: str, before: Current | None) -> bytes:
    """The new bytes, in the encoding and with the line breaks and the byte order mark of the old ones."""
    if before is None or not before.data:
        return content.encode()
    text = with_break(content.removeprefix(_MARK) if before.encoding.mark else content, usual_break(before.text))
    try:
        return before.encoding.mark + before.encoding.encode(text)
    except UnicodeEncodeError:  # Latin-1 has no such letter
        return text.encode()
