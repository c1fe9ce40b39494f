"""Which files .gitignore, .ignore and .rgignore hide, with ripgrep's precedence and git's pattern rules."""

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from callwright.system.rules import Rule, RuleSet, parse_rules

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
"""Strongest first: a rule of a stronger file beats one of a weaker file in a nearer folder."""

REPOSITORY_FOLDERS = frozenset({".git", ".hg", ".jj", ".svn"})
"""Never listed or searched, unless asked for by path: they hold history, not files."""

_Layer: TypeAlias = tuple[tuple[int, RuleSet], ...]
_EXCLUDES_FILE = re.compile(r"^\s*excludesfile\s*=\s*\"?(.+?)\"?\s*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Why a path is hidden."""

    path: str
    """The path, or the folder above it, that a rule names."""
    source: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.source}:{self.rule.line} ({self.rule.text})"


@dataclass(frozen=True, slots=True)
class IgnoreScope:
    """The rules in force inside one folder. Folders without ignore files share their parent's scope."""

    layers: tuple[_Layer, _Layer, _Layer] = ((), (), ())
    """Per kind of ignore file, nearest folder first: where its folder's path ends, and its rules."""
    repository: _Layer = ()
    """.git/info/exclude and the user's global excludes: asked last."""
    searches: tuple[Callable[[str], object], ...] = field(init=False)
    """Those of all rules, in no order that matters."""

    def __post_init__(self) -> None:
        everything = [rules for layer in (*self.layers, self.repository) for _, rules in layer]
        object.__setattr__(self, "searches", tuple(search for rules in everything for search in rules.searches))

    @classmethod
    def of(cls, folder: Path, top: Path) -> "IgnoreScope":
        """Gather what holds in a folder: inside a git repository everything above counts, else only up to `top`."""
        chain = [folder, *folder.parents]
        if not any((each / ".git").exists() for each in chain):
            chain = [each for each in chain if each.is_relative_to(top)]
        scope = cls(repository=_global_rules(chain[-1]))
        for each in reversed(chain):
            scope = scope.enter(str(each), present(each))
        return scope

    def enter(self, folder: str, names: Collection[str]) -> "IgnoreScope":
        """Return the scope inside a folder that holds these names."""
        found = [name in names for name in IGNORE_FILES]
        boundary = ".git" in names
        if not boundary and not any(found):
            return self
        offset = len(folder.rstrip("/")) + 1
        above = (*self.layers[:2], ()) if boundary else self.layers
        layers = [
            ((offset, _load(f"{folder}/{name}")), *layer) if here else layer
            for name, here, layer in zip(IGNORE_FILES, found, above, strict=True)
        ]
        return IgnoreScope(
            (layers[0], layers[1], layers[2]), self._excludes(folder, offset) if boundary else self.repository
        )

    def _excludes(self, folder: str, offset: int) -> _Layer:
        shared = tuple((offset, rules) for _, rules in self.repository if not rules.source.endswith("info/exclude"))
        local = f"{folder}/.git/info/exclude"
        return ((offset, _load(local)), *shared) if os.path.isfile(local) else shared  # noqa: PTH113 - hot and textual

    def verdict(self, path: str, *, folder: bool) -> Ignored | None:
        """Say which rule hides an absolute path, judged by itself: the folders above it were judged before."""
        name = path[path.rfind("/") + 1 :]
        for layer in (*self.layers, self.repository):
            for offset, rules in layer:
                rule = rules.verdict(path[offset:], name, folder=folder)
                if rule is not None:
                    return Ignored(path, rules.source, rule) if rule.hides else None
        return None

    def may_hide(self, joined: str) -> bool:
        """Whether any of the names in one folder, given as `/a/b/`, could be hidden; wrong only by saying yes."""
        for search in self.searches:  # noqa: SIM110 - a generator for any() costs as much as the question
            if search(joined):
                return True
        return False

    def part(self, prefix: str, names: list[str], *, folders: bool) -> tuple[list[str], list[str]]:
        """Part the names in one folder, whose path with a slash is `prefix`, into visible and hidden ones."""
        if not self.may_hide(f"/{'/'.join(names)}/"):
            return names, []
        hidden = [name for name in names if self.verdict(prefix + name, folder=folders)]
        return ([name for name in names if name not in set(hidden)], hidden) if hidden else (names, hidden)


def why_ignored(path: Path, top: Path) -> Ignored | None:
    """Say why a path is hidden from a search that starts at `top`, a folder above it counted; None if it is not."""
    scope = IgnoreScope.of(top, top)
    current = top
    parts = path.relative_to(top).parts
    for place, part in enumerate(parts, 1):
        current = current / part
        reason = scope.verdict(str(current), folder=place < len(parts) or current.is_dir())
        if reason is not None:
            return reason
        scope = scope.enter(str(current), present(current))
    return None


def present(folder: str | Path) -> list[str]:
    """Which of the names that change the rules a folder holds."""
    return [name for name in (*IGNORE_FILES, ".git") if os.path.lexists(f"{folder}/{name}")]


def _load(path: str) -> RuleSet:
    try:
        state = os.stat(path)  # noqa: PTH116 - one call per ignore file and search
    except OSError:
        return RuleSet((), path)
    return _parsed(path, state.st_ino, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _parsed(path: str, _inode: int, _mtime: int, _size: int) -> RuleSet:
    """Parse a file once per state; compiling a long one takes milliseconds."""
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError:  # unreadable, or a folder of that name: as if it were not there
        text = ""
    return RuleSet(parse_rules(text), path)


def global_excludes() -> Path | None:
    """The user's own excludes file, found where git and ripgrep look for it."""
    home = Path(os.environ.get("HOME") or "/")
    configured = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    chosen = configured / "ignore"
    for config in (configured / "config", home / ".gitconfig"):
        if config.is_file() and (found := _EXCLUDES_FILE.search(config.read_text("utf-8", "replace"))):
            chosen = Path(os.path.expanduser(found[1]))  # noqa: PTH111 - pathlib raises where there is no home
    return chosen if chosen.is_file() else None


def _global_rules(top: Path) -> _Layer:
    """What the user always excludes holds from the top of the search down."""
    excludes = global_excludes()
    return ((len(str(top).rstrip("/")) + 1, _load(str(excludes))),) if excludes else ()


def repository_of(folder: Path) -> Path | None:
    """The git work tree a folder lies in; None outside of one and inside the history itself."""
    for each in (folder, *folder.parents):
        if each.name == ".git":
            return None
        if os.path.lexists(each / ".git"):
            return each
    return None
