"""The `glob` tool: find files by the shape of their path, newest first."""

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
from callwright.system.paths import Workspace
from callwright.system.search.content import in_thread
from callwright.system.search.gitignore import why_ignored
from callwright.system.search.globs import BadGlob, compile_glob
from callwright.system.search.walk import Walk, walk_folders
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._paths import Hidden, Lookout, counted

_ENTRIES_PROBED = 20_000
"""How far into ignored folders we look for the note that something was hidden there."""


class GlobArguments(Arguments):
    """What `glob` takes."""

    pattern: str = Field(min_length=1)
    """A glob such as **/*.py or src/**/*.{ts,tsx}; * stays inside one folder, ** crosses folders."""
    path: str = Field(default=".", validation_alias=AliasChoices("path", "dir_path", "directory", "cwd"))
    """The folder to start from."""
    ignored: bool = Field(default=False, validation_alias=AliasChoices("ignored", "no_ignore", "include_ignored"))
    """Include files that .gitignore or .ignore hide."""
    limit: int = Field(default=100, ge=1, le=10_000, validation_alias=AliasChoices("limit", "head_limit"))
    """How many files to name at most."""


@dataclass(frozen=True, slots=True)
class _Search:
    root: Path
    pattern: str
    shown: str
    """The pattern as it was given."""
    walk: Walk
    lookout: Lookout

    def fitting(self, names: list[str]) -> list[str]:
        """Return those of some paths, relative to the root and ending as the walk demands, that fit and may be seen."""
        if self.pattern.removesuffix(self.walk.suffix) not in {"**", "**/*"}:
            literal, fits = _literal(self.pattern), compile_glob(self.pattern).fullmatch
            names = [name for name in names if literal in name and fits(name)]
        return self.lookout.visible(self.root, names)


@dataclass(slots=True)
class _Listing:
    files: list[str] = field(default_factory=list[str])
    ignored_files: list[str] = field(default_factory=list[str])
    ignored_folders: list[str] = field(default_factory=list[str])


class Glob(TypedTool[GlobArguments]):
    """Finds files by pattern below a folder of the workspace."""

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
        self._lookout = Lookout(Workspace.of(workspace), hidden)

    def accesses(self, arguments: GlobArguments) -> Sequence[Access]:
        """A glob reads the folder its pattern starts in."""
        return [ReadPath(str(self._start(arguments)[0]))]

    async def run(self, arguments: GlobArguments, context: ToolContext) -> Output:
        """Walk, sort by time, and say what was left out."""
        root, pattern = self._start(arguments)
        root = self._lookout.find(str(root))
        if not root.is_dir():
            raise ToolFailed(f"{arguments.path!r} is a file; give the folder it is in")
        stop = threading.Event()
        walk = Walk(root, self._lookout.top(root), arguments.ignored, _suffix(pattern), stop)
        search = _Search(root, pattern, arguments.pattern, walk, self._lookout)
        return await in_thread(lambda: _find(search, _list(walk), arguments.limit), stop)

    def _start(self, arguments: GlobArguments) -> tuple[Path, str]:
        """Where the walk begins, the pattern's own leading folders included, and what is left of the pattern."""
        pattern = arguments.pattern.removeprefix("./")
        try:
            compile_glob(pattern)
        except BadGlob as error:
            raise InvalidArguments(f"pattern: {error}") from None
        base = self._lookout.workspace.resolve(arguments.path)
        if pattern.startswith(("/", "~/")):
            folder = _leading(pattern) or "/"
            return self._lookout.workspace.resolve(folder), pattern[len(folder) :].lstrip("/")
        folder = _leading(pattern)
        rest = pattern[len(folder) :].lstrip("/") if folder else pattern
        return (self._lookout.workspace.resolve(folder, base=base) if folder else base), rest


def _leading(pattern: str) -> str:
    """The folders before the first wildcard, `..` and a leading slash included."""
    start = "/" if pattern.startswith("/") else ""
    parts = pattern[len(start) :].split("/")[:-1]
    kept: list[str] = []
    for part in parts:
        if any(character in part for character in "*?[{\\"):
            break
        kept.append(part)
    return start + "/".join(kept)


def _suffix(pattern: str) -> str:
    """The letters every matching name must end in."""
    return re.split(r"[*?\]}\\]", pattern)[-1].rpartition("/")[2]


def _literal(pattern: str) -> str:
    """The longest text in the middle of a pattern: looking for it costs a tenth of matching."""
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
    dated = list(_dated(f"{search.root}/", search.fitting(listing.files)))
    prefix = search.lookout.prefix(search.root)
    lines = [prefix + name for name in _newest_first(dated, limit)]
    notes = list(_notes(search, listing, len(dated), limit))
    text = "\n".join([*lines, *([""] if lines and notes else []), *notes])
    return Output(text, {"files": lines, "total": len(dated)})


def _dated(start: str, names: list[str]) -> Iterator[tuple[int, str]]:
    for name in names:
        try:
            yield os.lstat(start + name).st_mtime_ns, name
        except OSError:  # gone since it was listed
            continue


def _newest_first(dated: list[tuple[int, str]], limit: int) -> list[str]:
    if len(dated) > limit:  # to sort numbers alone and then a few names is far cheaper
        oldest = sorted([time for time, _ in dated], reverse=True)[limit - 1]
        dated = [each for each in dated if each[0] >= oldest]
    return [name for _, name in sorted(dated, key=lambda each: (-each[0], each[1]))[:limit]]


def _notes(search: _Search, listing: _Listing, total: int, limit: int) -> Iterator[str]:
    if not total:
        where = search.lookout.prefix(search.root).rstrip("/") or "the workspace"
        yield f"no files match {search.shown!r} in {where}{_deeper(search, listing)}"
    if total > limit:
        yield f"({limit:,} newest of {total:,} files; narrow the pattern or raise limit to see more)"
    elif hidden := _hidden_by_rules(search, listing):
        yield hidden
    reason = None if search.root == search.walk.top else why_ignored(search.root, search.walk.top)
    if reason is not None and not search.walk.ignored:
        yield f"(the folder itself is ignored by {reason}; what other rules hide in it is left out)"


def _deeper(search: _Search, listing: _Listing) -> str:
    if "/" in search.pattern or search.pattern.startswith("**"):
        return ""
    found = replace(search, pattern=f"**/{search.pattern}").fitting(listing.files)
    return f"; {counted(len(found), 'file')} deeper down: use '**/{search.pattern}'" if found else ""


def _hidden_by_rules(search: _Search, listing: _Listing) -> str:
    deeper, more = _in_ignored_folders(search.walk, listing.ignored_folders)
    found = search.fitting(listing.ignored_files + deeper)
    if not found:
        return "(ignored folders are large and were not searched to the end; ignored=true does)" if more else ""
    many = f"{'at least ' if more else ''}{counted(len(found), 'more file')}"
    verb, them = ("matches", "it") if len(found) == 1 and not more else ("match", "them")
    return f"({many} {verb} but .gitignore or .ignore hides {them}, such as {found[0]}; ignored=true includes {them})"


def _in_ignored_folders(walk: Walk, folders: list[str]) -> tuple[list[str], bool]:
    """Return files in ignored folders, and whether there were more than we were willing to look at."""
    files: list[str] = []
    probed = 0
    for ignored in folders:
        inside = replace(walk, root=walk.root / ignored, ignored=True)
        for folder in walk_folders(inside):
            probed += 1 + len(folder.files)
            if probed > _ENTRIES_PROBED:
                return files, True
            files += [f"{ignored}/{folder.path}{name}" for name in folder.files]
    return files, False
