"""Unix sockets between processes of one user: private folders, and the user id of the other side."""

import os
import socket
import stat
import struct
import sys
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

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


def peer_uid(connection: _Connection) -> int | None:
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
    return connection is not None and peer_uid(connection) == os.getuid()
