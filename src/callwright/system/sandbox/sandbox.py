"""The sandbox around commands: chooses what the machine offers and builds a wall for each command.

confinement            the command may
READ_ONLY              read the disk, without secrets; write only to a private /tmp
WORKSPACE              also write in the workspace, but for protected paths
NETWORK                also use the network
NAMED                  also use the paths its line names, which were judged or shown one by one
UNCONFINED             everything
"""

import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.access import Confinement, is_below
from callwright.core.errors import UsageError
from callwright.system.environment import program_folders
from callwright.system.sandbox import bubblewrap, landlock, seatbelt
from callwright.system.sandbox.scan import (
    MAX_FOLDERS,
    FolderScan,
    Hidden,
    Sensitive,
    has_more_folders,
    is_plain_part_of_repository,
    is_there,
)
from callwright.system.sandbox.wall import (
    Confined,
    NamedPaths,
    Wall,
    find_first_link,
    hideable_parts,
    is_around_home,
    list_private,
    move_away,
    outermost,
    read_links,
    restore_links,
    user_secrets,
    visible_below_temporary,
)
from callwright.system.sensitive_paths import comparable, is_installer_secret

SandboxMode: TypeAlias = Literal["require", "prefer", "off"]
SandboxKind: TypeAlias = Literal["bubblewrap", "seatbelt", "landlock", "none"]
MODES: tuple[SandboxMode, ...] = ("off", "prefer", "require")

INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and allow user namespaces"
_LANDLOCK_GAPS = (
    "secrets can be read",
    "protected paths inside the workspace can be changed",
    "permissions, owners and times of files anywhere can be changed",
    "programs listening on local sockets (docker, ssh-agent) can be reached",
)
_MAX_MASKS = 400
_OTHER_FOLDERS = 300
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/dev", "/proc", "/sys")
_NEEDED_FOLDERS = frozenset(("/", "/etc", "/opt", "/run", "/var"))
_MAX_OTHER_SCANS = 8
_NOTHING = NamedPaths()
_TOO_LARGE = Sensitive(complete=False)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox in use on this machine, chosen once; `gaps` lists what it does not cover."""

    kind: SandboxKind
    roots: tuple[str, ...] = ()
    """The folders of the workspace, links followed."""
    mode: SandboxMode = "prefer"
    gaps: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    """Further paths that stay read-only, relative to each root."""
    writable: tuple[str, ...] = ()
    """Further folders that commands with write access may write to."""
    readable: tuple[str, ...] = ()
    """Patterns of secrets that are not masked, matched against the path and the name."""
    hidden: Hidden | None = None
    denied: tuple[str, ...] = ()
    """Paths outside the workspace that are hidden, or have something hidden below them."""
    unwritable: Hidden | None = None
    """Says which further paths of the workspace stay read-only, or hold only such paths."""
    approved: "Sandbox | None" = None
    """The sandbox of commands that the user approved, who need not be asked about some paths any more."""
    max_folders: int = MAX_FOLDERS
    """How many folders of the workspace are searched for secrets."""
    _scans: dict[str, FolderScan] = field(default_factory=dict[str, FolderScan], repr=False, compare=False)

    @property
    def confines(self) -> bool:
        """Whether there is a wall at all."""
        return self.kind != "none"

    def walls(self, confinement: Confinement) -> bool:
        """Return whether a command with this confinement runs behind a wall."""
        return self.confines and Confinement.UNCONFINED not in confinement

    @property
    def complete(self) -> bool:
        """Whether the wall has no gaps, so that a wrong guess about a command does no harm."""
        return self.confines and not self.gaps

    def find_unsearched(self) -> str:
        """Return which folder of the workspace is too large to be searched for secrets; empty if none is."""
        large = [root for root in self.roots if self.complete and has_more_folders(root, self.max_folders)]
        return f"{large[0]} has more than {self.max_folders:,} folders, so secrets in it may be shown" if large else ""

    def scan(self) -> None:
        """Search the workspace now, so that the next command need not wait for it. Thread-safe."""
        for root in self.roots:
            self._scan(root).find()

    @property
    def scanned(self) -> bool:
        """Whether the workspace was searched before: to search it again is much cheaper."""
        return not self.confines or all(root in self._scans for root in self.roots)

    def describe(self) -> str:
        """Describe the sandbox in a sentence, for people and for prompts."""
        if self.mode == "off":
            return "off: commands are not confined"
        if not self.confines:
            return f"commands are not confined{''.join(f': {gap}' for gap in self.gaps)}"
        missing = f"; not covered: {'; '.join(self.gaps)}" if self.gaps else ""
        what = "commands that were not approved cannot write outside the workspace"
        more = " or use the network" if self.gaps else ", use the network or read secrets"
        return f"{self.kind}: {what}{more}{missing}"

    def writable_roots(self, confinement: Confinement) -> tuple[str, ...]:
        """Return the folders of the workspace if a command may write to them, else none."""
        return () if self.walls(confinement) and Confinement.WORKSPACE not in confinement else self.roots

    def wall(
        self, confinement: Confinement, cwd: str, scratch: Path, named: NamedPaths = _NOTHING
    ) -> tuple[Wall, frozenset[str]]:
        """Build the wall for one command; also return the protected paths that exist now.

        Args:
            confinement: What the command may use.
            cwd: The folder it runs in.
            scratch: Its private folder.
            named: The paths its line names.

        Raises:
            OSError: The workspace cannot be searched for secrets.
        """
        if self.approved is not None and Confinement.APPROVED in confinement:
            return self.approved.wall(confinement, cwd, scratch, named)
        opened = named if Confinement.NAMED in confinement else _NOTHING
        found = {root: self._scan(root).find() for root in self.roots}
        found |= self._scan_named(found, named)
        closed = frozenset(path for each in found.values() for path in each.closed)
        for path in closed:
            if any(is_below(used, (path,)) for used in (*self.roots, cwd)):  # a mask would be open there
                raise PermissionError(f"{path} cannot be searched for secrets; chmod u+rx permits it")
        denied = self._scan_denied()
        writes, network = Confinement.WORKSPACE in confinement, Confinement.NETWORK in confinement
        writable = outermost((*self.roots, *self.writable, *opened.folders_to_open(self.roots))) if writes else []
        holding = self._choose_protecting(confinement)
        protected = holding.list_protected(found if holding is self else None)
        return Wall(
            cwd=cwd,
            scratch=scratch,
            writable=tuple(writable),
            visible=visible_below_temporary(self.roots, named.reads),
            protected=tuple(self._protect((*protected, *list_private(writable)), opened)) if writes else (),
            masked=tuple(self._mask((*found.values(), *denied.values()), opened, network=network)),
            network=network,
            searched=tuple(folder for folder, each in found.items() if each.complete),
            unsearched=tuple(folder for folder, each in (*found.items(), *denied.items()) if not each.complete),
            closed=closed,
            opened=opened,
        ), protected

    @contextmanager
    def confine(
        self,
        argv: Sequence[str],
        cwd: str,
        confinement: Confinement,
        *,
        scratch: Path,
        named: NamedPaths = _NOTHING,
    ) -> Generator[Confined, None, None]:
        """Yield the command line behind its wall; leave the block only when the command has ended.

        Raises:
            OSError: The wall cannot be built; the command must not run.
        """
        if not self.walls(confinement):
            yield Confined(tuple(argv))
            return
        wall, before = self.wall(confinement, cwd, scratch, named)
        confined = Confined(self._wrap(argv, wall), wall)
        links = read_links(before)
        try:
            yield confined
        finally:  # also after a command that was cancelled
            if Confinement.WORKSPACE in confinement and Confinement.NAMED not in confinement:
                confined.removed = [*self._remove_new(before, wall.closed, confinement), *restore_links(links)]

    def _wrap(self, argv: Sequence[str], wall: Wall) -> tuple[str, ...]:
        if self.kind == "bubblewrap":
            return bubblewrap.wrap_command(argv, wall, (*self.roots, *self.writable))
        (wall.scratch / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.kind == "seatbelt":
            return seatbelt.wrap_command(argv, wall)
        request = {"writable": [*wall.writable, str(wall.scratch)], "network": wall.network}
        return (sys.executable, "-I", "-S", landlock.__file__, json.dumps(request), *argv)

    def _scan(self, folder: str, max_folders: int | None = None) -> FolderScan:
        scan = self._scans.get(folder)
        if scan is None:
            if len(self._scans) > _MAX_OTHER_SCANS + len(self.roots) + len(self.denied):
                self._scans.clear()
            scan = FolderScan(folder, self.hidden, self.unwritable, max_folders=max_folders or self.max_folders)
            self._scans[folder] = scan
        return scan

    def _extra_protected(self) -> list[str]:
        paths = [os.path.join(root, path) for root in self.roots for path in self.protected]
        paths += program_folders(self.roots)
        return [path for path in paths if os.path.lexists(path)]

    def _protect(self, protected: Iterable[str], opened: NamedPaths) -> list[str]:
        # a mount covers the target of a link; the link itself could be replaced, which is undone afterwards
        real = {real for path in protected if (real := os.path.realpath(path)) == path or self._is_inside(real)}
        return self._limit_mounts(outermost(path for path in real if not opened.writes_protected(path)))

    def _is_inside(self, path: str) -> bool:
        """Whether a path exists in the workspace, and is not all of it."""
        around = any(is_below(root, (path,)) for root in self.roots)
        return is_below(path, self.roots) and not around and os.path.exists(path)

    def _scan_named(self, known: Mapping[str, Sensitive], named: NamedPaths) -> dict[str, Sensitive]:
        """Search the folders that a line reads and that the search of the workspace did not cover."""
        searched = [root for root, found in known.items() if found.complete]
        missing = (path for read in named.reads if not is_below(path := os.path.realpath(read), searched))
        found = {path: _TOO_LARGE for path in dict.fromkeys(missing) if path not in known and os.path.isdir(path)}
        for path in found:
            if path != "/":
                found[path] = self._scan(path, None if is_below(path, self.roots) else _OTHER_FOLDERS).find()
        return found

    def _scan_denied(self) -> dict[str, Sensitive]:
        """Search the places outside the workspace that read-deny rules are about."""
        found: dict[str, Sensitive] = {}
        for path in self.denied:
            if self.hidden is None or path in _NEEDED_FOLDERS or is_below(path, (*self.roots, *_PROGRAMS)):
                continue  # no program runs without these
            if self.hidden(path):
                found[path] = Sensitive(frozenset((path,)))
            elif os.path.isdir(path) and not is_around_home(path):
                found[path] = self._scan(path).find()
            elif os.path.isdir(path):  # as a rule for any depth: the whole disk or home folder is not searched
                found[path] = self._scan(path, _OTHER_FOLDERS).find()._replace(complete=True)
        return found

    def _mask(self, found: Iterable[Sensitive], opened: NamedPaths, *, network: bool) -> list[str]:
        found = tuple(found)
        secrets = {*user_secrets(), *(path for each in found for path in each.secrets)}
        closed = frozenset(path for each in found for path in each.closed)
        masked = outermost(
            real
            for secret in secrets
            for path in hideable_parts(secret, self.roots)
            if is_there(real := os.path.realpath(path), (*self.roots, *self.writable), closed)
            and not is_below(real, ("/dev", "/proc", "/sys"))
            and not any(is_below(root, (real,)) for root in self.roots)
            and not (opened.reads_masked(path) or opened.reads_masked(real))
            and not self._is_readable(path)
            and not (network and self._is_for_installing(path))
        )
        return self._limit_mounts(masked)

    def _is_for_installing(self, path: str) -> bool:
        """Whether a path holds the settings of a package manager, and no rule hides it."""
        return is_installer_secret(comparable(path)) and not (self.hidden is not None and self.hidden(path))

    def _limit_mounts(self, paths: list[str]) -> list[str]:
        """Return whole folders instead of many paths: the kernel and the command line have limits."""
        half = _MAX_MASKS // 2
        return paths if len(paths) <= _MAX_MASKS else outermost((*paths[:half], *map(self._widen, paths[half:])))

    def _widen(self, path: str) -> str:
        """Return the folder of a path, or the path itself if its folder is or holds the workspace."""
        folder = os.path.dirname(path)
        return path if any(is_below(root, (folder,)) for root in self.roots) else folder

    def _is_readable(self, path: str) -> bool:
        name = os.path.basename(path)
        return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in self.readable)

    def _choose_protecting(self, confinement: Confinement) -> "Sandbox":
        """Return the sandbox whose protected paths count: what a command makes that a rule allows is left to it."""
        return self.approved if self.approved is not None and Confinement.RULE in confinement else self

    def list_protected(
        self, found: Mapping[str, Sensitive] | None = None, closed: frozenset[str] | None = None
    ) -> frozenset[str]:
        """Return the protected paths that exist now, with what was `found` if known, or `closed` before a command."""
        found = {root: self._scan(root).find(closed) for root in self.roots} if found is None else found
        return frozenset(path for root in self.roots for path in found[root].protected).union(self._extra_protected())

    def _remove_new(self, before: frozenset[str], closed: frozenset[str], confinement: Confinement) -> list[str]:
        """Move away protected paths that a command made: a mount cannot hold a path that does not exist yet."""
        removed: list[str] = []
        protected = self._choose_protecting(confinement).list_protected(closed=closed)
        # what lies in a folder that could not be searched before need not be new
        for path in outermost(path for path in protected - before if not is_below(path, closed)):
            real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            inside = is_below(real, self.roots)
            if inside and is_plain_part_of_repository(path):
                continue
            made = real if inside else find_first_link(path, self.roots)  # what lies outside is not the command's
            if move_away(made):
                removed.append(made)
        return removed


def check_mode(mode: object) -> SandboxMode:
    """Return a valid mode.

    Raises:
        UsageError: It is not one.
    """
    for known in MODES:
        if mode == known:
            return known
    raise UsageError(f'sandbox: expected "off", "prefer" or "require", got {mode!r}')


def find_sandbox(
    mode: SandboxMode,
    *,
    roots: Iterable[str | Path],
    protected: Iterable[str] = (),
    writable: Iterable[str | Path] = (),
    readable: Iterable[str] = (),
    hidden: Hidden | None = None,
) -> Sandbox:
    """Choose the strongest sandbox this machine offers.

    Args:
        mode: "require", "prefer" (go on with less where there is no complete one) or "off".
        roots: The folders of the workspace.
        protected: Further paths that stay read-only, relative to each root.
        writable: Further folders that commands with write access may write to.
        readable: Patterns of secrets that are not masked.
        hidden: Says which further paths are masked.

    Raises:
        UsageError: The mode is not valid, or it is "require" and no complete sandbox can be used.
    """
    mode = check_mode(mode)
    folders = tuple(os.path.realpath(root) for root in roots)
    if mode == "off":
        return Sandbox("none", folders, mode)
    more = tuple(os.path.realpath(os.path.expanduser(folder)) for folder in writable)
    kind, problem = _choose_kind((*folders, *more))
    if mode == "require" and kind in ("landlock", "none"):
        raise UsageError(f'sandbox="require", but commands cannot be confined here: {problem}; {INSTALL}')
    gaps = _LANDLOCK_GAPS if kind == "landlock" else (f"{problem}; {INSTALL}",) if kind == "none" else ()
    return Sandbox(kind, folders, mode, gaps, tuple(protected), more, tuple(readable), hidden)


def _choose_kind(writable: Sequence[str]) -> tuple[SandboxKind, str]:
    problem = bubblewrap.find_problem(writable)
    if not problem:
        return "bubblewrap", ""
    if not seatbelt.find_problem():
        return "seatbelt", ""
    # before version 3 a file outside could still be emptied
    if landlock.version() >= 3 and landlock.has_seccomp():
        return "landlock", problem
    return "none", problem
