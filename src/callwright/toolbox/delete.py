"""The `delete` tool: deletes a file, link or folder."""

import asyncio
import errno
import os
import shutil
import stat
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, DeletePath
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.system.paths import Workspace, parent_folder
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import PathArguments, check_entry, explain_no_entry, resolve_entry


class DeleteArguments(PathArguments):
    """Arguments of `delete`."""

    path: str = Field(validation_alias=AliasChoices("path", "file_path", "filePath", "filename", "target_file"))
    """The file, link or folder to remove; of a link, the link itself."""
    recursive: bool = False
    """Remove a folder with everything in it."""


class Delete(TypedTool[DeleteArguments]):
    """Deletes files, links and folders of a workspace, never the target of a link.

    Args:
        workspace: The workspace, or the path of its folder.
    """

    spec = describe(
        "delete",
        "Delete a file, a link (not its target), an empty folder, or with recursive=true a whole folder.",
        effect=Effect.DESTROY,
        group="file",
        aliases=("remove_file", "delete_file"),
        deferred=True,
        search_hint="remove file rm",
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".") -> None:
        self._workspace = Workspace.of(workspace)

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._workspace, {"path": "named"})

    def accesses(self, arguments: DeleteArguments) -> Sequence[Access]:
        """Declare the deletion of the entry itself, not of a link's target."""
        path = resolve_entry(self._workspace, arguments.path)
        arguments.hold(path)
        return [DeletePath(str(path))]

    async def run(self, arguments: DeleteArguments, context: ToolContext) -> str:
        """Delete the entry, in a thread because a folder may be large."""
        path = check_entry(self._workspace, arguments.path, "delete")
        arguments.hold(path)
        return await asyncio.to_thread(_remove, path, arguments, context.state.get(UndoRecorder))


def _remove(path: Path, arguments: DeleteArguments, undo: UndoRecorder) -> str:
    try:
        with undo.changing(path), parent_folder(path) as folder:
            return _remove_entry(folder, path.name, arguments)
    except FileNotFoundError:
        raise explain_no_entry(arguments.path) from None
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            raise ToolFailed(
                f"the folder {arguments.path!r} is not empty; pass recursive=true to delete all of it"
            ) from None
        raise ToolFailed(f"cannot delete {arguments.path!r}: {error.strerror}") from None
    except RecursionError:
        raise ToolFailed(
            f"cannot delete all of {arguments.path!r}: its folders are nested too deep; use a command, such as rm -r"
        ) from None


def _remove_entry(folder: int, name: str, arguments: DeleteArguments) -> str:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        os.unlink(name, dir_fd=folder)
        return f"Deleted {arguments.path}"
    if arguments.recursive:
        shutil.rmtree(name, dir_fd=folder)  # by descriptor: a link swapped in meanwhile is not followed
    else:
        os.rmdir(name, dir_fd=folder)
    return f"Deleted folder {arguments.path}"
