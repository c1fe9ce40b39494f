"""The `write` tool: writes a whole file atomically and never replaces content the model has not seen."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, WritePath
from callwright.core.errors import ToolFailed
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, Effect
from callwright.system.atomic_write import ABSENT
from callwright.system.files import detect_encoding, digest, most_common_break, with_break
from callwright.system.paths import Workspace
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import Invocation, Preview, State, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._content_slips import find_slip
from callwright.toolbox._file_state import DISK, FileAccess, LoadedFile, SeenFiles, lock_path
from callwright.toolbox._path_repairs import PathChanges, explain_new, repair_fields
from callwright.toolbox._paths import TargetArguments, one_line
from callwright.toolbox.change_preview import preview_call

_MARK = "\ufeff"
_MOST_LOST_LINES = 8
_MOST_COMPARED_LINES = 200
_LINE_CHARS = 200


class WriteArguments(TargetArguments):
    """Arguments of `write`."""

    content: str = Field(validation_alias=AliasChoices("content", "contents", "text", "file_text"))
    """The whole new content."""
    overwrite: bool = False
    """Replace an existing file even if it was not read in this session, or changed since."""


class Write(TypedTool[WriteArguments]):
    """Creates and replaces files of a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
        files: Where files are loaded and stored.
    """

    spec = describe(
        "write",
        "Write a whole file, creating folders as needed. An existing file must have been read in this session and not "
        "changed since (or pass overwrite=true). To change a part of a file use edit.",
        annotations=Annotations(Effect.WRITE, idempotent=True),
        group="file",
        aliases=("Write", "write_file", "create_file", "save_file"),
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".", *, files: FileAccess = DISK) -> None:
        self._workspace = Workspace.of(workspace)
        self._files = files

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._workspace, {"path": "new"})

    def accesses(self, arguments: WriteArguments) -> Sequence[Access]:
        """Declare a write to the resolved path."""
        return (WritePath(str(arguments.resolve(self._workspace.check_write))),)

    def preview(self, arguments: JsonObject) -> Preview | None:
        """Return the difference that the call would make to the file as it is now."""
        return preview_call(self._workspace, arguments)

    async def run(self, arguments: WriteArguments, context: ToolContext) -> str:
        """Write the file and return its size."""
        path = arguments.resolve(self._workspace.check_write)
        if arguments.path.endswith("/"):
            raise ToolFailed(f"{arguments.path} names a folder; give the path of a file")
        if (reason := explain_new(arguments.path)) and not path.exists():
            raise ToolFailed(f"{one_line(arguments.path)!r} was not created: {reason}")
        # in a thread: flushing to disk takes milliseconds, in which the event loop would stand still
        return await asyncio.to_thread(_write, path, arguments, context.state, self._files)


def _write(path: Path, arguments: WriteArguments, state: State, files: FileAccess) -> str:
    seen = state.get(SeenFiles)
    lost, count = list[str](), 0  # with overwrite the model may not have read the file, and must not see its lines
    with lock_path(path):
        before = files.load(path, arguments.path)
        if before and not arguments.overwrite:
            _refuse_unseen(path, arguments.path, before, seen)
            lost, count = _find_lost_lines(before, arguments.content)
            _refuse_lost(arguments, lost, count)
        _refuse_slip(arguments, before)
        data = _encode(arguments.content, before)
        # compared again when the file is replaced, because other programs do not take our lock
        expected = None if arguments.overwrite else digest(before.data) if before else ABSENT
        with state.get(UndoRecorder).changing(path):
            files.store(path, arguments.path, data, expected)
        seen.remember_written(path, digest(data), whole=True)
    wrote = f"Wrote {len(data)} bytes to {arguments.path}"
    gone = f"; {len(lost)} of its {count} lines are no longer in it:\n{_show(lost)}" if lost else ""
    return f"{wrote}{before.describe_links()}{gone}" if before else wrote


def _find_lost_lines(before: LoadedFile, content: str) -> tuple[list[str], int]:
    """Return the lines that a shorter content leaves out, and how many lines the file has."""
    old = _count_lines(before.text) if detect_encoding(before.data) else Counter[str]()
    new = _count_lines(content)
    return list((old - new).elements()) if old.total() > new.total() else [], old.total()


def _count_lines(text: str) -> Counter[str]:
    return Counter(filter(None, map(str.strip, text.splitlines())))


def _show(lines: Sequence[str]) -> str:
    shown = [line[:_LINE_CHARS] for line in lines[:_MOST_LOST_LINES]]
    more = [f"… ({len(lines) - len(shown)} more lines)"] if len(lines) > len(shown) else []
    return "\n".join([*shown, *more])


def _refuse_lost(arguments: WriteArguments, lost: Sequence[str], count: int) -> None:
    """Refuse a shorter content that has none of the lines: models forget the rest of a file they mean to add to."""
    written = "".join(arguments.content.split())
    if not written or not lost or len(lost) < count:
        return
    if any("".join(line.split()) in written for line in lost[:_MOST_COMPARED_LINES]):  # as of JSON put on one line
        return
    raise ToolFailed(
        f"nothing was written to {arguments.path}: content has none of its {count} lines:\n{_show(lost)}\n"
        "To keep them, write them together with the new ones, or use edit; to replace them, pass overwrite=true"
    )


def _refuse_unseen(path: Path, given: str, before: LoadedFile, seen: SeenFiles) -> None:
    if not before.data:  # nothing to lose
        return
    try:
        known = seen.check(path, given, before.data, before.identity)
    except ToolFailed as error:
        raise ToolFailed(f"{error.message}, or pass overwrite=true to replace it anyway") from None
    if not known.whole:
        raise ToolFailed(
            f"only a part of {given} was read in this session; read the rest, change it with edit, or pass "
            "overwrite=true to replace all of it"
        )


def _refuse_slip(arguments: WriteArguments, before: LoadedFile | None) -> None:
    known = before.text if before and detect_encoding(before.data) else ""
    if reason := find_slip(arguments.path, arguments.content, known):
        raise ToolFailed(f"nothing was written to {arguments.path}: {reason}")


def _encode(content: str, before: LoadedFile | None) -> bytes:
    """Encode new content with the encoding, line breaks and byte order mark of the old."""
    if before is None or not before.data or detect_encoding(before.data) is None:
        return content.encode()
    text = with_break(content.removeprefix(_MARK) if before.encoding.mark else content, most_common_break(before.text))
    try:
        return before.encoding.mark + before.encoding.encode(text)
    except UnicodeEncodeError:  # the old encoding lacks a character: UTF-8 it is
        return text.encode()
