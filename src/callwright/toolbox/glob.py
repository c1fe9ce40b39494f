"""The `glob` tool: finds files by path pattern, newest first."""

import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field

from callwright.core.access import Access, ReadPath
from callwright.core.content import Output
from callwright.core.errors import InvalidArguments, ToolFailed
from callwright.core.spec import Effect
from callwright.system.paths import Workspace, open_folder, opened
from callwright.system.search.content import run_in_thread
from callwright.system.search.gitignore import find_ignore_reason
from callwright.system.search.globs import BadGlob, compile_glob
from callwright.system.search.walk import Walk, walk_folders
from callwright.tool.base import Invocation, ToolContext
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import Hidden, PathArguments, VisibleFiles, format_count, one_line

_MAX_IGNORED_ENTRIES = 20_000
"""How many entries of ignored folders are searched for the note about hidden matches."""


class GlobArguments(PathArguments):
    """Arguments of `glob`."""

    pattern: str = Field(min_length=1)
    """A glob such as **/*.py or src/**/*.{ts,tsx}; * stays inside one folder, ** crosses folders."""
    path: str = Field(default=".", validation_alias=AliasChoices("path", "dir_path", "directory", "cwd"))
    """The folder to start from."""
    ignored: bool = Field(default=False, validation_alias=AliasChoices("ignored", "no_ignore", "include_ignored"))
    """Include files that .gitignore or .ignore hide."""
    limit: int = Field(default=100, ge=1, le=10_000, validation_alias=AliasChoices("limit", "head_limit"))
    """How many files to list at most."""


@dataclass(frozen=True, slots=True)
class _Search:
    root: Path
    pattern: str
    given_pattern: str
    walk: Walk
    files: VisibleFiles

    def filter(self, names: list[str]) -> list[str]:
        """Return the paths that match and are visible; they are relative to the root and end in the walk's suffix."""
        if self.pattern.removesuffix(self.walk.suffix) not in {"**", "**/*"}:
            literal, fits = _literal(self.pattern), compile_glob(self.pattern).fullmatch
            names = [name for name in names if literal in name and fits(name)]
        return self.files.visible(self.root, names)


@dataclass(slots=True)
class _Listing:
    files: list[str] = field(default_factory=list[str])
    ignored_files: list[str] = field(default_factory=list[str])
    ignored_folders: list[str] = field(default_factory=list[str])


class Glob(TypedTool[GlobArguments]):
    """Finds files of a workspace by pattern.

    Args:
        workspace: The workspace, or the path of its folder.
        hidden: Tells which files must not be shown.
    """

    spec = describe(
        "glob",
        "Find files by glob pattern (**, *, ?, [a-z], {a,b}), newest first. Dotfiles are included; files that"
        " .gitignore or .ignore hide are not, unless ignored is true. Use grep to search inside files.",
        effect=Effect.READ,
        group="file",
        aliases=("Glob", "find_files", "file_search", "search_files", "glob_search"),
        search_hint="find files by name pattern",
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".", *, hidden: Hidden | None = None) -> None:
        self._files = VisibleFiles(Workspace.of(workspace), hidden)

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits."""
        return repair_fields(invocation, self._files.workspace, {"path": "existing"})

    def accesses(self, arguments: GlobArguments) -> Sequence[Access]:
        """Declare a read of the folder the pattern starts in."""
        root, _ = self._start(arguments)
        arguments.hold(root)
        return [ReadPath(str(root))]

    async def run(self, arguments: GlobArguments, context: ToolContext) -> Output:
        """List matching files by time and note what was left out."""
        root, pattern = self._start(arguments)
        root = self._files.find(str(root))
        arguments.hold(root)
        if not root.is_dir():
            raise ToolFailed(f"{arguments.path!r} is a file; give the folder it is in")
        stop = threading.Event()  # set when the call is cancelled: a walk may take seconds
        with opened(open_folder(root)) as folder:
            walk = Walk(root, self._files.top(root), arguments.ignored, _suffix(pattern), stop, folder)
            search = _Search(root, pattern, arguments.pattern, walk, self._files)
            return await run_in_thread(lambda: _find(search, _list(walk), arguments.limit), stop)

    def _start(self, arguments: GlobArguments) -> tuple[Path, str]:
        """Return the folder to walk, including the literal folders of the pattern, and the rest of the pattern."""
        pattern = arguments.pattern.removeprefix("./")
        try:
            compile_glob(pattern)
        except BadGlob as error:
            raise InvalidArguments(f"pattern: {error}") from None
        base = self._files.workspace.resolve(arguments.path)
        if pattern.startswith(("/", "~/")):
            folder = _leading_folders(pattern) or "/"
            return self._files.workspace.resolve(folder), pattern[len(folder) :].lstrip("/")
        folder = _leading_folders(pattern)
        rest = pattern[len(folder) :].lstrip("/") if folder else pattern
        return (self._files.workspace.resolve(folder, base=base) if folder else base), rest


def _leading_folders(pattern: str) -> str:
    """Return the folders before the first wildcard, including `..` and a leading slash."""
    start = "/" if pattern.startswith("/") else ""
    parts = pattern[len(start) :].split("/")[:-1]
    kept: list[str] = []
    for part in parts:
        if any(character in part for character in "*?[{\\"):
            break
        kept.append(part)
    return start + "/".join(kept)


def _suffix(pattern: str) -> str:
    """Return the text every matching name ends in."""
    return re.split(r"[*?\]}\\]", pattern)[-1].rpartition("/")[2]


def _literal(pattern: str) -> str:
    """Return the longest literal text of a pattern: finding it costs a tenth of matching."""
    return "" if "{" in pattern else max(re.split(r"\*\*/?|[*?]|\[.*\]|\\.", pattern)[:-1], key=len, default="")


def _list(walk: Walk) -> _Listing:
    listing = _Listing()
    for path, files, hidden_files, hidden_folders in walk_folders(walk):
        listing.files += [path + name for name in files]
        if hidden_files or hidden_folders:
            listing.ignored_files += [path + name for name in hidden_files]
            listing.ignored_folders += [path + name for name in hidden_folders]
    return listing


def _find(search: _Search, listing: _Listing, limit: int) -> Output:
    dated = list(_with_times(search.walk, search.filter(listing.files)))
    prefix = search.files.prefix(search.root)
    lines = [prefix + name for name in _newest_first(dated, limit)]
    notes = list(_notes(search, listing, len(dated), limit))
    text = "\n".join([*map(one_line, lines), *([""] if lines and notes else []), *notes])
    return Output(text, {"files": lines, "total": len(dated)})


def _with_times(walk: Walk, names: list[str]) -> Iterator[tuple[int, str]]:
    folder, stat = walk.descriptor, os.stat
    for name in names:
        try:
            yield stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns, name
        except OSError:  # deleted since it was listed
            continue


def _newest_first(dated: list[tuple[int, str]], limit: int) -> list[str]:
    if len(dated) > limit:  # sorting bare numbers first is far cheaper than sorting all pairs
        oldest = sorted([time for time, _ in dated], reverse=True)[limit - 1]
        dated = [each for each in dated if each[0] >= oldest]
    return [name for _, name in sorted(dated, key=lambda each: (-each[0], each[1]))[:limit]]


def _notes(search: _Search, listing: _Listing, total: int, limit: int) -> Iterator[str]:
    if not total:
        where = search.files.prefix(search.root).rstrip("/") or "the workspace"
        yield f"no files match {search.given_pattern!r} in {where}{_suggest_deeper(search, listing)}"
    if total > limit:
        yield f"({limit:,} newest of {total:,} files; narrow the pattern or raise limit to see more)"
    elif hidden := _note_ignored(search, listing):
        yield hidden
    reason = None if search.root == search.walk.top else find_ignore_reason(search.root, search.walk.top)
    if reason is not None and not search.walk.ignored:
        yield f"(the folder itself is ignored by {reason}; files in it that other rules ignore are left out)"


def _suggest_deeper(search: _Search, listing: _Listing) -> str:
    if "/" in search.pattern or search.pattern.startswith("**"):
        return ""
    found = replace(search, pattern=f"**/{search.pattern}").filter(listing.files)
    return f"; {format_count(len(found), 'file')} deeper down: use '**/{search.pattern}'" if found else ""


def _note_ignored(search: _Search, listing: _Listing) -> str:
    deeper, more = _in_ignored_folders(search.walk, listing.ignored_folders)
    found = search.filter(listing.ignored_files + deeper)
    if not found:
        return "(ignored folders are large and were not searched to the end; ignored=true does)" if more else ""
    many = f"{'at least ' if more else ''}{format_count(len(found), 'more file')}"
    verb, them = ("matches", "it") if len(found) == 1 and not more else ("match", "them")
    example = one_line(search.files.prefix(search.root) + found[0])
    hidden = f"{many} {verb} but .gitignore or .ignore hides {them}, such as {example}"
    return f"({hidden}; ignored=true includes {them})"


def _in_ignored_folders(walk: Walk, folders: list[str]) -> tuple[list[str], bool]:
    """Return files in ignored folders, and whether the search stopped before the end."""
    files: list[str] = []
    probed = 0
    for ignored in folders:
        for folder in walk_folders(walk.below(ignored)):
            probed += 1 + len(folder.files)
            if probed > _MAX_IGNORED_ENTRIES:
                return files, True
            files += [f"{ignored}/{folder.path}{name}" for name in folder.files]
    return files, False
