"""Files, folders and Unix sockets that only their owner can use."""

import os
import shutil
import socket
import stat
import struct
import sys
import tempfile
import weakref
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TextIO

from callwright.system.platforms import sync_folder

_MOST_ENTRIES = 20_000
_DRAFT_CHARS = 32
"""Of a file's name in that of its draft, which must not be too long."""


def make_temporary_folder(owner: object, prefix: str) -> Path:
    """Create a private folder that is removed together with its owner, by the process that created it only."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process_id: int) -> None:
    if os.getpid() == process_id:  # a child that ends must not delete what its parent uses
        shutil.rmtree(folder, ignore_errors=True)


def open_private(path: Path, *, exclusive: bool = False, append: bool = False) -> TextIO:
    """Open a text file for writing that only its owner can read, also if it existed with another mode.

    Args:
        path: The file; a device or a pipe keeps its mode.
        exclusive: Fail if it exists.
        append: Keep what is in it.

    Raises:
        OSError: It cannot be opened, or it exists and `exclusive` is set.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if exclusive else 0) | (os.O_APPEND if append else os.O_TRUNC)
    descriptor = os.open(path, flags, 0o600)
    # a device or a pipe, such as /dev/null, belongs to everyone who uses it
    if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(descriptor).st_mode):  # Windows has no such modes
        with suppress(PermissionError):  # another owner's file stays as it is
            os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "a" if append else "w", encoding="utf-8", errors="backslashreplace")


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read; if that fails, the file that was there is still whole.

    Args:
        path: The file; a link is followed, and a device or a pipe is written to.
        text: All of its content.

    Raises:
        OSError: It cannot be written.
    """
    exists = path.exists()
    if exists and not path.is_file():
        _overwrite(path, text)
        return
    if exists:
        os.close(os.open(path, os.O_WRONLY))  # a file that is read-only stays
    try:
        replace_private(Path(os.path.realpath(path)), text.encode(errors="backslashreplace"))
    except PermissionError:  # the folder may not be changed, but perhaps the file
        if not exists:
            raise
        _overwrite(path, text)


def _overwrite(path: Path, text: str) -> None:
    with open_private(path) as file:
        file.write(text)


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file by one that only its owner can read; a crash leaves the old one or the new one, never half.

    Args:
        path: The file, without a link at its end, in a folder that exists; one that is read-only is replaced too.
        data: All of its content.

    Raises:
        OSError: It cannot be written; the old file is still whole.
    """
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name[:_DRAFT_CHARS]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a crash could leave the new name without its content
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems cannot, and the content is in place
        sync_folder(path.parent)


def make_private(folder: Path) -> None:
    """Create a folder with its parents if needed, and take all access to what is in it from other users."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):  # Windows: folders of a user are private by their place
        return
    pending, seen = [folder], 0
    while pending and seen < _MOST_ENTRIES:
        place = pending.pop()
        _restrict(place)
        with suppress(OSError):
            for entry in os.scandir(place):
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    _restrict(Path(entry.path))


def _restrict(path: Path) -> None:
    with suppress(OSError):
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o077 and found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode):
            path.chmod(mode & 0o700)


_MOST_PATH_BYTES = 100
"""A little less than the shortest limit of an operating system (104 on macOS, 108 on Linux)."""
_NAME_BYTES = 24


def socket_folder(wanted: Path) -> Path:
    """Return a folder for sockets: the wanted one, or one with a shorter path if a socket's would be too long.

    Args:
        wanted: The folder; need not exist.
    """
    if len(os.fsencode(wanted)) + _NAME_BYTES <= _MOST_PATH_BYTES:
        return wanted
    digest = sha256(os.fsencode(wanted)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"callwright-{os.getuid()}", digest)


def make_socket_folder(folder: Path) -> None:
    """Create a folder that only this user can enter, with its parent.

    Raises:
        OSError: It cannot be created, or belongs to another user, or others can enter it.
    """
    for each in (folder.parent, folder):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    check_socket_folder(folder)


def check_socket_folder(folder: Path) -> None:
    """Check that no other user can put a socket into a folder.

    Raises:
        OSError: Another user can, or it is not a folder.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} must be a folder that belongs to you and has the mode 0700")
    # in a shared folder such as /tmp, the owner of the parent could replace the folder
    above = folder.parent.lstat()
    sticky = bool(above.st_mode & stat.S_ISVTX)
    if above.st_uid not in (os.getuid(), 0) or (above.st_mode & 0o022 and not sticky):
        raise PermissionError(f"{folder.parent} can be changed by other users; give it the mode 0700")


class _Connection(Protocol):
    def getsockopt(self, level: int, name: int, size: int, /) -> bytes: ...


def _peer_uid(connection: _Connection) -> int | None:
    """Return the user id of the process at the other end; None if the system does not tell."""
    try:
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
            return uid
        # struct xucred of macOS and BSD: version, uid, group ids; the level is SOL_LOCAL, the option LOCAL_PEERCRED
        version, uid = struct.unpack_from("II", connection.getsockopt(0, 1, 76))
        return uid if version == 0 else None
    except (OSError, struct.error, AttributeError):
        return None


def is_own_peer(connection: _Connection | None) -> bool:
    """Whether the other end of a connection is a process of this user."""
    return connection is not None and _peer_uid(connection) == os.getuid()
