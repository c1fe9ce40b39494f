"""The `list` tool: lists the entries of a folder."""

import os
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Output
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.system.paths import Workspace, open_resolved, opened
from callwright.system.search.gitignore import IgnoreScope
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import Hidden, PathArguments, VisibleFiles, one_line


class ListArguments(PathArguments):
    """Arguments of `list`."""

    path: str = Field(
        default=".", validation_alias=AliasChoices("path", "dir_path", "target_directory", "directory", "relative_path")
    )
    """The folder to list."""
    ignored: bool = False
    """Include entries that .gitignore or .ignore hide."""
    limit: int = Field(default=500, ge=1, le=10_000)
    """How many entries to list at most."""
    offset: int = Field(default=0, ge=0)
    """How many entries to skip, to read the next page."""


class List(TypedTool[ListArguments]):
    """Lists folders of a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
        hidden: Tells which files must not be listed.
    """

    spec = describe(
        "list",
        "List a folder: folders first, marked with a slash; links with their target. Use glob to search deeper.",
        effect=Effect.READ,
        group="file",
        aliases=("LS", "ls", "list_files", "list_directory", "list_dir"),
        search_hint="list folder directory contents",
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".", *, hidden: Hidden | None = None) -> None:
        self._files = VisibleFiles(Workspace.of(workspace), hidden)

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._files.workspace, {"path": "existing"})

    def accesses(self, arguments: ListArguments) -> Sequence[Access]:
        """Declare a read of the folder."""
        path = self._files.workspace.resolve(arguments.path)
        arguments.hold(path)
        return [ReadPath(str(path))]

    async def run(self, arguments: ListArguments, context: ToolContext) -> Output:
        """List one folder; too fast to be worth a thread."""
        folder = self._files.find(arguments.path)
        arguments.hold(folder)
        if not folder.is_dir():
            raise ToolFailed(f"{arguments.path!r} is a file; read it, or list the folder it is in")
        folders, files, links = self._entries(folder)
        scope = IgnoreScope() if arguments.ignored else IgnoreScope.of(folder, self._files.top(folder))
        folders, hidden_folders = scope.part(f"{folder}/", folders, folders=True)
        files, hidden_files = scope.part(f"{folder}/", files, folders=False)
        entries = [f"{name}/" for name in sorted(folders)] + [name + links.get(name, "") for name in sorted(files)]
        return _output(arguments, entries, len(hidden_folders) + len(hidden_files))

    def _entries(self, folder: Path) -> tuple[list[str], list[str], dict[str, str]]:
        """Return the names of folders and of other entries, and where links lead; no link on the way is followed."""
        folders: list[str] = []
        files: list[str] = []
        links: dict[str, str] = {}
        with (
            opened(open_resolved(folder, os.O_RDONLY | os.O_DIRECTORY)) as descriptor,
            os.scandir(descriptor) as entries,
        ):
            for entry in entries:
                if self._files.hides(folder / entry.name):
                    continue
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
                if entry.is_symlink():
                    with suppress(OSError):  # replaced meanwhile
                        links[entry.name] = f" -> {os.readlink(entry.name, dir_fd=descriptor)}"
        return folders, files, links


def _output(arguments: ListArguments, entries: list[str], hidden: int) -> Output:
    page = entries[arguments.offset : arguments.offset + arguments.limit]
    notes: list[str] = []
    if not entries:
        notes.append(f"{arguments.path} is empty")
    elif not page:
        notes.append(f"no entries at offset {arguments.offset:,}: there are {len(entries):,}")
    elif len(page) < len(entries):
        last = arguments.offset + len(page)
        rest = f"; offset={last} for more" if last < len(entries) else ""
        notes.append(f"(entries {arguments.offset + 1:,} to {last:,} of {len(entries):,}{rest})")
    if hidden:
        notes.append(f"({hidden:,} ignored, not shown; ignored=true shows all)")
    return Output("\n".join([*map(one_line, page), *notes]), {"entries": page, "total": len(entries)})
