"""What one command may use: the value that every sandbox mechanism turns into its own rules."""

import errno
import fnmatch
import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from callwright.core.access import is_below
from callwright.core.errors import ToolError
from callwright.system.atomic_write import temporary_name
from callwright.system.output_capture import OUTPUT_PREFIX, output_folder
from callwright.system.paths import give_owner_access, parent_folder
from callwright.system.sensitive_paths import (
    GIT_ATTRIBUTES,
    HOME_SECRETS,
    READABLE_OF_OURS,
    SYSTEM_SECRETS,
    comparable,
    is_installer_secret,
    is_secret,
    own_home,
)

_NOTE = b"# masked: this file may hold secrets; ask the user to approve a command that names it\n"
_LARGEST_MASK = 1 << 16
_MOST_HELD = 200
"""How many folders on the way to masked paths are kept from being moved: each one more takes longer than the last."""
_CACHE_SECONDS = 5.0
_NAME_CHARS = 40
_MOST_COPIED, _MOST_COPIED_BYTES = 10_000, 1 << 28
_TEMPORARY = ("/tmp", "/var/tmp")
_KERNEL = ("/dev", "/proc", "/sys")
GIT_ATTRIBUTES_PLACE = "/run/callwright-git-attributes"
"""Where a command in bubblewrap finds `git_attributes_file`."""
SHARED_CACHES = ".cache"
"""The folder in the private `/tmp` with the caches of commands that write; other commands only read it."""


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """The paths that an approved line names: they are opened for it."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def reads_masked(self, masked: str) -> bool:
        """Whether the line names a masked path, or something inside it, to read or write."""
        return any(_names(named, masked) for named in (*self.reads, *self.writes))

    def writes_protected(self, protected: str) -> bool:
        """Whether the line names a protected path, or something inside or around it, to write."""
        return any(_names(named, protected) or protected.startswith(named.rstrip("/") + "/") for named in self.writes)

    def folders_to_open(self, roots: Sequence[str]) -> Iterator[str]:
        """Yield the folders outside of the writable ones that the line needs to write its named paths."""
        for path in self.writes:
            real = os.path.realpath(path)
            if is_below(real, (*roots, *_KERNEL)) or not path.startswith("/") or is_below(path, _KERNEL):
                continue
            folder = real if os.path.isdir(real) else os.path.dirname(real)
            if not _is_vital(folder) and os.path.isdir(folder):
                yield folder
            elif os.path.isfile(real):
                yield real


@dataclass(frozen=True, slots=True)
class Wall:
    """The files and the network that a command may use; everything else on the disk is read-only."""

    cwd: str
    scratch: Path
    """The command's private folder: its `/tmp`."""
    writable: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    """Read-only paths that stay visible below a replaced `/tmp`."""
    protected: tuple[str, ...] = ()
    """Paths inside the writable folders that stay read-only."""
    masked: tuple[str, ...] = ()
    """Files and folders whose content is hidden."""
    network: bool = False
    searched: tuple[str, ...] = ()
    """Folders that were searched for secrets, so that all of them are masked."""
    unsearched: tuple[str, ...] = ()
    """Folders that are too large for that."""
    closed: frozenset[str] = frozenset()
    """Folders that cannot be searched until their mode is changed: masked as a whole."""
    opened: NamedPaths = NamedPaths()
    """The paths that the line names, if they are opened for it."""

    def folders_around(self) -> list[str]:
        """Return the folders on the way to protected and masked paths, which the command must not move.

        Moved to and fro, they would hide these paths from the search before the next command.
        """
        masked = (path for path in self.masked if not self.opened.writes_protected(path))
        around = self._folders_above(self.protected)
        # the outermost first: they hold most
        more = sorted(self._folders_above(masked) - around, key=lambda folder: (folder.count(os.sep), folder))
        around.update(more[:_MOST_HELD])
        return [folder for folder in sorted(around) if not is_below(folder, self.protected)]

    def _folders_above(self, paths: Iterable[str]) -> set[str]:
        above: set[str] = set()
        for path in paths:
            folder = os.path.dirname(path)
            while is_below(folder, self.writable) and folder not in self.writable and folder not in above:
                above.add(folder)
                folder = os.path.dirname(folder)
        return above


def _names(named: str, path: str) -> bool:
    if named == path or named.startswith(path.rstrip("/") + "/") or os.path.realpath(named) == path:
        return True
    return not frozenset("*?[").isdisjoint(named) and _matches(named.split("/"), path.split("/"))


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a shell would expand a pattern to a path: `*` stays in its folder and matches no leading dot."""
    return len(pattern) == len(path) and all(
        fnmatch.fnmatchcase(part, wanted) and (part[:1] != "." or wanted[:1] == ".")
        for wanted, part in zip(pattern, path, strict=True)
    )


def _is_vital(folder: str) -> bool:
    """Whether opening a folder would open a home folder or a part of the system."""
    if folder.count("/") < 2 or any(is_below(home, (folder,)) for home in _homes()):
        return True
    return os.path.dirname(folder) in ("/home", "/Users") or is_below(folder, ("/etc", "/usr", "/bin", "/lib", "/boot"))


def outermost(paths: Iterable[str]) -> list[str]:
    """Leave out the paths that lie in another of the paths; the rest comes in order."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):  # else a-b stands between a and a/b
        if not is_below(path, kept[-1:]):
            kept.append(path)
    return kept


@dataclass(slots=True)
class _Cached:
    until: float = 0.0
    key: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


_user_secrets = _Cached()


def user_secrets() -> tuple[str, ...]:
    """Return the credential files of this user and machine that exist, and our own folder.

    Links are followed, but for settings of package managers: their names say that they are such.
    """
    homes = _homes()
    key = (*homes, own_home())
    if _user_secrets.until > time.monotonic() and _user_secrets.key == key:
        return _user_secrets.paths
    found = [os.path.realpath(own_home())] if os.path.isdir(own_home()) else []
    for home in homes:
        found.extend(_secrets_of_home(home))
    found.extend(str(path) for pattern in SYSTEM_SECRETS for path in Path("/").glob(pattern))
    existing = (path for path in found if os.path.exists(path))
    paths = tuple(outermost(p if is_installer_secret(comparable(p)) else os.path.realpath(p) for p in existing))
    _user_secrets.until, _user_secrets.key, _user_secrets.paths = time.monotonic() + _CACHE_SECONDS, key, paths
    return paths


def _homes() -> tuple[str, ...]:
    found = [os.path.expanduser("~")]
    with suppress(ImportError, KeyError):
        import pwd

        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.realpath(home) for home in found if home != "/"))


def is_around_home(folder: str) -> bool:
    """Whether a folder is the user's home folder or contains it."""
    return any(is_below(home, (os.path.realpath(folder),)) for home in _homes())


def _secrets_of_home(home: str) -> Iterator[str]:
    for folder in ("", ".ssh"):
        with suppress(OSError), os.scandir(os.path.join(home, folder)) as entries:
            for entry in entries:
                # keys lie in .ssh beside files that programs need: each is masked by itself
                if entry.name != ".ssh" and is_secret(comparable(f"/{folder}/{entry.name}")):
                    yield entry.path
    for pattern in HOME_SECRETS:
        with suppress(OSError):
            yield from map(str, Path(home).glob(pattern))


def shown_of_ours() -> tuple[str, ...]:
    """Return the folders inside our own one that commands may read."""
    home = os.path.realpath(own_home())
    return tuple(f"{home}/{name}" for name in READABLE_OF_OURS if os.path.isdir(f"{home}/{name}"))


def hideable_parts(secret: str, roots: Sequence[str]) -> Iterator[str]:
    """Yield what to mask of a secret: itself, or what lies beside the workspace if that is in our own folder."""
    real = os.path.realpath(secret)
    if not any(is_below(root, (real,)) for root in roots) or not is_below(real, (os.path.realpath(own_home()),)):
        yield secret
        return
    with suppress(OSError), os.scandir(real) as entries:
        for entry in entries:
            if entry.path not in (*roots, *shown_of_ours()):
                yield from hideable_parts(entry.path, roots)


def visible_below_temporary(roots: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """Return what a command needs to see although it lies in `/tmp`: homes, programs, and what its line names."""
    wanted = [*roots, *_homes(), sys.prefix, sys.base_prefix, *os.environ.get("PATH", "").split(os.pathsep)]
    wanted += [os.environ.get("VIRTUAL_ENV", ""), *named]
    # a link that leads to /proc or to the whole of /tmp must not bring these back
    real = (os.path.realpath(path) for path in wanted if is_below(path, _TEMPORARY))
    return tuple(outermost(path for path in real if is_below(path, _TEMPORARY) and path not in _TEMPORARY))


@lru_cache(maxsize=512)
def _mask_file(path: str, size: int, changed_ns: int, folder: str) -> str:
    """Make a file that stands in for a secret: same size and time, so that git takes it for unchanged."""
    name = hashlib.sha256(f"{path}\0{size}\0{changed_ns}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    mask = f"{folder}/{name}"
    with suppress(FileNotFoundError):
        os.unlink(mask)  # made before and forgotten: it is read-only, so only root could write it again
    with open(mask, "wb") as file:
        file.write(_NOTE[:size].ljust(min(size, _LARGEST_MASK), b"\n"))
        file.truncate(size)
    os.utime(mask, ns=(changed_ns, changed_ns))
    os.chmod(mask, 0o444)
    return mask


def mask_file(path: str) -> str:
    """Return the path of the file to mount over a secret file."""
    folder = f"{output_folder()}/masks"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stat = os.stat(path)
    mask = _mask_file(path, stat.st_size, stat.st_mtime_ns, folder)
    if not os.path.exists(mask):  # the folder was removed meanwhile
        _mask_file.cache_clear()
        mask = _mask_file(path, stat.st_size, stat.st_mtime_ns, folder)
    return mask


def list_private(writable: Sequence[str]) -> list[str]:
    """Return the temporary folders of this program in folders that commands may write to: masks lie in them."""
    folder = output_folder()
    private = (os.path.realpath(path) for path in folder.parent.glob(f"{OUTPUT_PREFIX}*"))
    return [path for path in private if is_below(path, writable) and os.path.isdir(path)]


def git_attributes_file() -> str:
    """Return the path of a file with attributes that keep git from printing committed secrets."""
    file = output_folder() / "masks" / "git-attributes"
    if not file.exists():
        file.parent.mkdir(mode=0o700, exist_ok=True)
        draft = file.with_name(temporary_name())
        draft.write_text(GIT_ATTRIBUTES)
        draft.replace(file)  # whole or not at all: with half of it, on a full disk, git would print secrets
    return str(file)


@dataclass(slots=True)
class Confined:
    """A command line behind its wall, and what the wall did when the command had ended."""

    argv: tuple[str, ...]
    wall: Wall | None = None
    """The wall; None if there is none."""
    removed: list[str] = field(default_factory=list[str])
    """Protected paths that the command made and that were moved away."""


def find_first_link(path: str, roots: Sequence[str]) -> str:
    """Return the outermost link in the workspace on the way to a path; the path itself if there is none."""
    folders = (str(folder) for folder in reversed(Path(path).parents) if str(folder) not in roots)
    return next((folder for folder in folders if is_below(folder, roots) and os.path.islink(folder)), path)


def read_links(paths: Iterable[str]) -> dict[str, str]:
    """Return where the links among some paths lead."""
    return {path: os.readlink(path) for path in paths if os.path.islink(path)}


def restore_links(links: Mapping[str, str]) -> list[str]:
    """Put back protected links that a command replaced; return those in whose place something was moved away."""
    removed: list[str] = []
    for path, target in links.items():
        folder = os.path.dirname(path)
        # below a folder that became a link, the path would be another file
        if os.path.realpath(folder) != folder or read_links((path,)).get(path) == target:
            continue
        if os.path.lexists(path):
            if not move_away(path):
                continue
            removed.append(path)
        with suppress(OSError, ToolError), parent_folder(Path(path)) as above:  # its folder may be gone
            os.symlink(target, os.path.basename(path), dir_fd=above)
    return removed


def move_away(path: str) -> bool:
    """Move a path out of the workspace into our private folder, following no link; return whether it is gone.

    What is on another file system and cannot be copied, or is too large for that, stays beside it by another name.
    """
    try:
        folder = output_folder() / "removed"
        folder.mkdir(mode=0o700, exist_ok=True)
        for each in (os.path.dirname(path), path):  # a command may have made them read-only
            with suppress(OSError):
                give_owner_access(Path(each), 0o300)
        with parent_folder(Path(path)) as above:
            name = os.path.basename(path)
            _take_away(above, name, os.path.dirname(path), f"{folder}/{time.time_ns():x}-{name[:_NAME_CHARS]}")
    except (OSError, ToolError):  # such as a link on the way
        return False
    return True


def _take_away(above: int, name: str, folder: str, target: str) -> None:
    try:
        os.rename(name, target, src_dir_fd=above)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        aside = f".callwright-removed-{secrets.token_hex(8)}"
        os.rename(name, aside, src_dir_fd=above, dst_dir_fd=above)  # a copy may fail: of a pipe, on a full disk
        # by its descriptor, where the system has such names: another command may replace a folder on the way
        place = f"/proc/self/fd/{above}" if os.path.isdir("/proc/self/fd") else folder
        with suppress(OSError, RecursionError):  # folders nested too deep
            if _is_small(f"{place}/{aside}"):
                shutil.move(f"{place}/{aside}", target)


def _is_small(path: str) -> bool:
    """Whether a file, or a folder with all in it, can be copied in a moment; a sparse file counts as a full one."""
    if os.path.islink(path):
        return True
    size, count = os.lstat(path).st_size, 0
    for folder, _, names in os.walk(path):
        count += len(names) + 1
        size += sum(os.lstat(f"{folder}/{name}").st_size for name in names[:_MOST_COPIED])
        if size > _MOST_COPIED_BYTES or count > _MOST_COPIED:
            return False
    return size <= _MOST_COPIED_BYTES
