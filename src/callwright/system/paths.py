"""Resolves paths, checks that they are inside the workspace, and opens them without following links."""

import errno
import os
import stat
import unicodedata
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import Unsafe, UsageError
from callwright.system.platforms import require_posix

Reads: TypeAlias = Literal["inside", "anywhere"]
Outside: TypeAlias = Literal["refuse", "ask"]

# bidirectional overrides make a prompt show another path than the one that is opened
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNPRINTABLE = frozenset({"Cc", "Zl", "Zp"})
# a folder is passed through, not listed: where the system offers it, that needs no permission to read it
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_MAYBE_A_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})


def expand_home(path: str | PathLike[str]) -> Path:
    """Return a path with the home folder in place of a leading `~` or `~user`; as it is if there is none."""
    with suppress(ValueError):  # a name of a user that the system refuses to look up
        path = os.path.expanduser(path)  # noqa: PTH111 - pathlib raises where there is no home
    return Path(path)


def resolve_links(path: str | PathLike[str]) -> Path:
    """Return the real path. Links that lead to each other are left as they are; `Path.resolve` may raise for them."""
    return Path(os.path.realpath(path))


def shorten_path(path: str, folder: str | PathLike[str]) -> str:
    """Return a path below a folder as seen from there; any other path unchanged."""
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def trusted_owners(here: Path) -> set[int]:
    """Return whose files above a folder count: the user's, the administrator's, and those of the folder's owner."""
    user = os.getuid() if hasattr(os, "getuid") else 0  # on Windows every file has the owner 0
    with suppress(OSError):
        return {user, 0, here.stat().st_uid}
    return {user, 0}


def is_trusted_repository(folder: Path, owners: set[int]) -> bool:
    """Whether a folder above the working folder is a repository of an owner that counts.

    In a shared folder such as /tmp anyone can put a `.git`.
    """
    marker = folder / ".git"  # a file in worktrees and submodules, a folder elsewhere
    return marker.exists() and {folder.stat().st_uid, marker.lstat().st_uid} <= owners


@dataclass(frozen=True, slots=True, init=False)
class Workspace:
    """The folders an agent works in, and how paths outside of them are treated.

    Args:
        root: The folder that relative paths start from.
        more: Further folders.
        reads: `inside` or `anywhere`: where reading is allowed.
        outside: `refuse` or `ask`: what happens to paths outside.

    Raises:
        UsageError: A root is empty or is a file, or this is not a POSIX system.
    """

    roots: tuple[Path, ...]
    reads: Reads
    """`inside`: reading outside is treated like writing outside; `anywhere`: only writes are restricted."""
    outside: Outside
    """`refuse`: the tools themselves raise `Unsafe`; `ask`: a policy asks the user first."""
    prefix: str = field(repr=False, compare=False)
    """The first root as text, with a slash at its end: turning a `Path` into text costs more than a system call."""

    def __init__(
        self,
        root: str | PathLike[str],
        *more: str | PathLike[str],
        reads: Reads = "inside",
        outside: Outside = "refuse",
    ) -> None:
        require_posix("workspaces")
        object.__setattr__(self, "roots", tuple(_real_root(each) for each in (root, *more)))
        object.__setattr__(self, "prefix", f"{str(self.roots[0]).rstrip('/')}/")
        object.__setattr__(self, "reads", reads)
        object.__setattr__(self, "outside", outside)

    @classmethod
    def of(cls, value: "Workspace | str | PathLike[str]") -> "Workspace":
        """Return a workspace unchanged, and a folder as a workspace with one root."""
        return value if isinstance(value, Workspace) else cls(value)

    @property
    def root(self) -> Path:
        """The first root: what relative paths start from."""
        return self.roots[0]

    def resolve(self, path: str, *, base: Path | None = None) -> Path:
        """Return the real path, with links followed; its end need not exist yet.

        `~` and `~/…` mean the home folder, as they would in a shell; nothing else is expanded or decoded.

        Args:
            path: The path, as it was written.
            base: The folder that a relative path is in; by default the root.
        """
        _check_characters(path)
        if path == "~" or path.startswith("~/"):
            path = os.path.expanduser(path)  # noqa: PTH111 - pathlib would drop a trailing slash and a dot
        return Path(os.path.realpath(os.path.join(base or self.root, path)))  # noqa: PTH118 - realpath needs the raw text

    def contains(self, path: str | PathLike[str]) -> bool:
        """Whether a path is a root or below one, compared by components after links are followed."""
        return self._holds(self.resolve(os.fspath(path)))

    def check_read(self, path: str) -> Path:
        """Resolve a path that is about to be read.

        Raises:
            Unsafe: It is outside, and neither `reads` nor `outside` permits that.
        """
        resolved = self.resolve(path)
        if self.reads == "inside" and self.outside == "refuse":
            self._refuse_outside(path, resolved, "read")
        return resolved

    def check_write(self, path: str) -> Path:
        """Resolve a path that is about to be changed.

        Raises:
            Unsafe: It is outside, and `outside` is `refuse`.
        """
        resolved = self.resolve(path)
        if self.outside == "refuse":
            self._refuse_outside(path, resolved, "write")
        return resolved

    def _holds(self, resolved: Path) -> bool:
        return any(resolved.is_relative_to(root) for root in self.roots)

    def _refuse_outside(self, path: str, resolved: Path, verb: str) -> None:
        if self._holds(resolved):
            return
        leads = "" if path == str(resolved) else f", which leads to {str(resolved)!r}"
        roots = " or ".join(str(root) for root in self.roots)
        raise Unsafe(f"refused to {verb} {path!r}{leads}: it is outside the workspace {roots}; use a path inside it")


def _real_root(root: str | PathLike[str]) -> Path:
    name = os.fspath(root)
    if not name or "\0" in name:  # an unset variable must not become the current folder
        raise UsageError(f"expected a folder as the root of a workspace, got {name!r}")
    real = Path(os.path.realpath(name))
    if real.is_file():  # a folder may still be made, a file never becomes one
        raise UsageError(f"{name!r} is a file; give the folder to work in, such as {str(real.parent)!r}")
    return real


def _check_characters(path: str) -> None:
    if not path:
        raise Unsafe("the path is empty; give one relative to the workspace, such as '.'")
    if path[:7].lower() == "file://":
        raise Unsafe(f"{path!r} is a URL; give a plain path")
    if path.isascii() and path.isprintable():
        return
    for character in path:
        if character in _BIDIRECTIONAL or unicodedata.category(character) in _UNPRINTABLE:
            raise Unsafe(f"the path {path!r} contains the control character {character!r}; leave it out")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Unsafe(f"the path {path!r} contains half a character; no file can have that name") from None


def open_resolved(path: Path, flags: int) -> int:
    """Open a resolved absolute path, following no link on the way: what was checked is what is opened."""
    with parent_folder(path) as folder:
        return open_beneath(folder, path.name or ".", flags)


@contextmanager
def opened(descriptor: int) -> Generator[int, None, None]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def parent_folder(path: Path, *, create: bool = False) -> AbstractContextManager[int]:
    """Open the parent folder of a resolved path; rename, link and unlink use its descriptor."""
    return opened(open_folder(path.parent, create=create))


def open_folder(path: Path, *, create: bool = False) -> int:
    """Open a resolved folder for use as `dir_fd`, following no link; `create` makes missing folders."""
    require_posix("files that are opened or replaced following no link")
    folder = os.open("/", _FOLDER | os.O_CLOEXEC)
    for name in path.parts[1:]:
        above = folder
        try:
            folder = _open_subfolder(above, name, create=create)
        finally:
            os.close(above)
    return folder


_DESCRIPTORS = "/proc/self/fd" if os.path.exists("/proc/self/fd") else ""  # noqa: PTH110 - runs with every start


def descriptor_path(folder: int, path: Path) -> Path:
    """Return a path by which this process and its children reach an open folder, whatever is put in its place.

    Args:
        folder: Its descriptor.
        path: Its path, which is returned on systems without /proc.
    """
    return Path(f"{_DESCRIPTORS}/{folder}") if _DESCRIPTORS else path


def give_owner_access(path: Path, mode: int) -> None:
    """Add permissions of the owner to those of a resolved folder, following no link; anything else stays as it is.

    Raises:
        OSError: It cannot be changed.
        Unsafe: A folder on the way is a link.
    """
    with parent_folder(path) as above:
        found = os.stat(path.name, dir_fd=above, follow_symlinks=False)
        wanted = stat.S_IMODE(found.st_mode) | mode
        if not stat.S_ISDIR(found.st_mode) or wanted == stat.S_IMODE(found.st_mode):
            return
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(path.name, wanted, dir_fd=above, follow_symlinks=False)
            return
        with opened(open_beneath(above, path.name, _FOLDER)) as folder:
            Path(f"/proc/self/fd/{folder}").chmod(wanted)  # fchmod refuses a folder that was opened to pass through


def open_beneath(folder: int, name: str, flags: int) -> int:
    """Open one name in an open folder; a link in its place is `Unsafe`."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in _MAYBE_A_LINK and _is_link(folder, name):
            raise Unsafe(
                f"{name!r} is a link that appeared after the path was checked, or that leads in a circle"
            ) from None
        raise


def _open_subfolder(folder: int, name: str, *, create: bool) -> int:
    try:
        return open_beneath(folder, name, _FOLDER)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):  # another process may create it first; opening it checks what it is
        os.mkdir(name, dir_fd=folder)
    return open_beneath(folder, name, _FOLDER)


def _is_link(folder: int, name: str) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False
