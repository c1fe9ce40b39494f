"""The `move` tool: moves or renames a file, link or folder."""

import asyncio
import errno
import os
import stat
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, WritePath
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.system.paths import Workspace, parent_folder
from callwright.system.sensitive_paths import comparable
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._file_state import SeenFiles
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import PathArguments, check_entry, explain_no_entry, resolve_entry

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class MoveArguments(PathArguments):
    """Arguments of `move`."""

    source: str = Field(validation_alias=AliasChoices("source", "old_path", "from", "source_path"))
    """The file, link or folder to move."""
    destination: str = Field(validation_alias=AliasChoices("destination", "new_path", "to", "destination_path"))
    """Its full new path; missing folders are created."""
    overwrite: bool = False
    """Replace a file that is already there."""


class Move(TypedTool[MoveArguments]):
    """Moves files, links and folders inside a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
    """

    spec = describe(
        "move",
        "Move or rename a file, link or folder. Refuses to replace an existing file unless overwrite is true.",
        effect=Effect.WRITE,
        group="file",
        aliases=("rename", "move_file", "rename_file"),
        deferred=True,
        search_hint="rename move file mv",
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".") -> None:
        self._workspace = Workspace.of(workspace)

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._workspace, {"source": "named", "destination": "new"})

    def accesses(self, arguments: MoveArguments) -> Sequence[Access]:
        """Declare a write to both paths."""
        ends = [resolve_entry(self._workspace, end) for end in (arguments.source, arguments.destination)]
        arguments.hold(*ends)
        return [WritePath(str(end)) for end in ends]

    async def run(self, arguments: MoveArguments, context: ToolContext) -> str:
        """Move the entry by descriptors of both folders, so that no link is followed out of the workspace."""
        source = check_entry(self._workspace, arguments.source, "move")
        destination = check_entry(self._workspace, arguments.destination, "replace")
        arguments.hold(source, destination)
        if destination.is_relative_to(source):
            raise ToolFailed(
                f"{arguments.destination!r} is {arguments.source!r} itself or inside it; give another path"
            )
        undo = context.state.get(UndoRecorder)
        await asyncio.to_thread(_move, source, destination, arguments, undo)
        context.state.get(SeenFiles).remember_moved(source, destination)
        return f"Moved {arguments.source} to {arguments.destination}"


def _move(source: Path, destination: Path, arguments: MoveArguments, undo: UndoRecorder) -> None:
    try:
        with undo.changing(source, destination), parent_folder(source) as old:
            # both fail before folders are created for nothing
            found = os.stat(source.name, dir_fd=old, follow_symlinks=False)
            _refuse_folder_name(arguments, source.name, found)
            with parent_folder(destination, create=True) as new:
                _rename((old, source.name), (new, destination.name), overwrite=arguments.overwrite)
    except FileNotFoundError:
        raise explain_no_entry(arguments.source) from None
    except FileExistsError:
        advice = "give another path" if destination.is_dir() else "set overwrite=true to replace it"
        raise ToolFailed(f"{arguments.destination!r} already exists; {advice}") from None
    except OSError as error:
        reason = "they are on different file systems" if error.errno == errno.EXDEV else error.strerror
        raise ToolFailed(f"cannot move {arguments.source!r} to {arguments.destination!r}: {reason}") from None


def _refuse_folder_name(arguments: MoveArguments, name: str, found: os.stat_result) -> None:
    given = arguments.destination
    if given.endswith(("/", "/.")) and not stat.S_ISDIR(found.st_mode):
        full = f"{given.removesuffix('.')}{name}"
        raise ToolFailed(f"{given!r} names a folder; give the full new path, such as {full!r}")


def _rename(source: tuple[int, str], destination: tuple[int, str], *, overwrite: bool) -> None:
    (old, old_name), (new, new_name) = source, destination
    if not overwrite and _is_file(old, old_name) and _link(source, destination):
        try:
            os.unlink(old_name, dir_fd=old)
        except OSError:  # such as in a folder that cannot be written to
            os.unlink(new_name, dir_fd=new)
            raise
        return
    # folders and links cannot be hard-linked; for them the race is accepted
    if _exists(new, new_name):
        if not overwrite or not _is_file(new, new_name):
            raise FileExistsError(new_name)
        if _are_hard_links(source, destination):  # rename would leave both names
            os.unlink(old_name, dir_fd=old)
            return
    os.rename(old_name, new_name, src_dir_fd=old, dst_dir_fd=new)


def _link(source: tuple[int, str], destination: tuple[int, str]) -> bool:
    """Make a hard link, which fails if the name is taken: a check before a rename would have a race in between.

    Returns:
        False where there are none: on some file systems, and of the files of other users.
    """
    try:
        os.link(source[1], destination[1], src_dir_fd=source[0], dst_dir_fd=destination[0], follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True


def _is_file(folder: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _are_hard_links(one: tuple[int, str], other: tuple[int, str]) -> bool:
    """Tell whether two names are of one file; in one folder, names that differ in case only may be the same name."""
    first, second = (os.stat(name, dir_fd=folder, follow_symlinks=False) for folder, name in (one, other))
    if first.st_nlink == 1 or not os.path.samestat(first, second):
        return False
    in_one_folder = os.path.samestat(os.fstat(one[0]), os.fstat(other[0]))
    return not in_one_folder or comparable(one[1]) != comparable(other[1])


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
