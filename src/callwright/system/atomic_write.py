"""Replaces a file's content atomically: a reader, a crash or another writer sees the old or the new, never a mixture.

    draft      a file without a name in the target's folder; written, given mode and owner, flushed
    new file   the draft gets the name, which fails if another process took it
    old file   the draft gets a temporary name and is exchanged with the target while a lease makes writers wait; the
               file that comes out must be the one that was checked, else both are exchanged back: no update is lost
    fallback   where the system offers none of this, a named draft is renamed; where even that is refused, the file
               is overwritten in place

The temporary name lies in a private folder of the user if that is on the same file system, so that even a kill in
that moment leaves nothing in the user's tree.
"""

import ctypes
import errno
import itertools
import os
import secrets
import signal
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from callwright.core.errors import ToolError, ToolFailed
from callwright.system.files import digest, read_all
from callwright.system.paths import open_beneath, open_folder, opened, parent_folder
from callwright.system.platforms import fcntl, sync_folder

_NOT_OFFERED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EISDIR})
"""The errors of systems that do not support the call."""

_LEFT_OVER_SECONDS = 600.0
_SUFFIX = ".callwright-draft"
_DESCRIPTORS = Path("/proc/self/fd")
_NAMELESS = getattr(os, "O_TMPFILE", 0) if _DESCRIPTORS.exists() else 0
_numbers = itertools.count()


def open_nameless(folder: int) -> int | None:
    """Create a nameless file in a folder, which is deleted with its last descriptor; None if not supported."""
    if not _NAMELESS:
        return None
    try:
        return os.open(".", _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_OFFERED:
            return None
        raise


def give_name(draft: int, folder: int, name: str) -> None:
    """Put a nameless file into a folder; raises `FileExistsError` if the name is taken."""
    os.link(str(_DESCRIPTORS / str(draft)), name, dst_dir_fd=folder, follow_symlinks=True)


def temporary_name() -> str:
    """Return a unique name that contains our process id, which another container may use too."""
    return f"{os.getpid()}-{secrets.token_hex(4)}-{next(_numbers)}{_SUFFIX}"


def _fill_draft(draft: int, data: bytes, folder: int, model: str | None) -> None:
    """Write a draft to the disk, with the mode, owner and attributes of the file `model` it will replace."""
    write_all(draft, data)
    if model is not None:
        with opened(open_beneath(folder, model, os.O_RDONLY | os.O_NONBLOCK)) as source:
            _copy_attributes(source, draft)
    os.fsync(draft)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_attributes(source: int, draft: int) -> None:
    found = os.fstat(source)
    with suppress(OSError, AttributeError):  # not every file system has them, nor every system the calls
        for name in os.listxattr(source):
            with suppress(OSError):  # one that only root may set, such as a label, must not cost the others
                os.setxattr(draft, name, os.getxattr(source, name))
    give_owner(draft, found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))


def give_owner(descriptor: int, owner: int, group: int, mode: int) -> None:
    """Give an open file its owner, group and mode; -1 leaves the owner or the group.

    What may not be given away stays ours, as with any editor. Then it does not run with our rights where it had
    another's, and our group may do no more than everyone.
    """
    for user_id, group_id in ((-1, group), (owner, -1)):
        with suppress(OSError):  # not permitted, or unknown in this user namespace
            os.fchown(descriptor, user_id, group_id)
    kept = os.fstat(descriptor)
    if owner not in (-1, kept.st_uid):
        mode &= ~stat.S_ISUID
    if group not in (-1, kept.st_gid):
        mode = mode & ~(stat.S_ISGID | stat.S_IRWXG) | (mode & stat.S_IRWXO) << 3
    os.fchmod(descriptor, mode)  # after the attributes: access lists would change it


@contextmanager
def _open_private_folder(device: int) -> Generator[int | None, None, None]:
    """Open the user's own folder for drafts, without left-overs of killed processes, if it is on the same device."""
    folder = None
    with suppress(OSError, ToolError, RuntimeError):
        folder = _open_private()
    try:
        yield folder if folder is not None and os.fstat(folder).st_dev == device else None
    finally:
        if folder is not None:
            os.close(folder)


def _open_private() -> int:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(os.path.realpath(cache)) / "callwright" / "drafts"
    folder = open_folder(path, create=True)
    try:
        if os.fstat(folder).st_mode & 0o077:
            path.chmod(0o700)
        for name in os.listdir(path):  # noqa: PTH208 - names are all that is needed
            _remove_left_over(folder, name)
    except BaseException:
        os.close(folder)
        raise
    return folder


def _remove_left_over(folder: int, name: str) -> None:
    """Remove a draft whose process is gone; other names are left alone."""
    owner = name.removeprefix(".").partition("-")[0]
    if not name.endswith(_SUFFIX) or not owner.isdecimal() or _is_running(int(owner)):
        return
    with suppress(OSError):  # another process removes left-overs too, and a repository may have folders of such a name
        # the process may run in another container, where ids mean something else; a draft is written in a moment
        if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _LEFT_OVER_SECONDS:
            os.unlink(name, dir_fd=folder)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # not ours, or no process id at all
        return True
    return True


Hold: TypeAlias = Literal["held", "busy", "unavailable"]
"""Writers wait; the file is already open for writing; the system does not support leases here."""

_RENAME_EXCHANGE = 2


def exchange_names(folder: int, name: str, other_folder: int, other_name: str) -> None:
    """Exchange two names atomically; raises `OSError` (ENOSYS, EINVAL, EXDEV) where that is impossible."""
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(name), other_folder, os.fsencode(other_name), _RENAME_EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)


@cache
def _renameat2() -> Any:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call


def _hold_writers(descriptor: int) -> Hold:
    """Make processes that open the file for writing wait until the descriptor is closed.

    The kernel grants such a lease to the file's owner on most file systems.
    """
    if fcntl is None:
        return "unavailable"
    try:
        # the kernel announces a waiting writer with a signal; the default one would kill us
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return "busy"
    except (OSError, AttributeError):
        return "unavailable"
    return "held"


def _no_writer_waits(descriptor: int) -> bool:
    """Whether no writer came during the lease, so that none is about to write to the replaced file."""
    return fcntl is not None and fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK


ABSENT = "absent"
"""The value of `expected` for a file that must not exist yet."""

_IN_PLACE = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EBUSY})


class Changed(Exception):
    """The file has changed or another process is writing to it; nothing was written."""


def replace_file(path: Path, data: bytes, *, expected: str | None = None) -> None:
    """Make `data` the content of a resolved path, creating missing folders.

    Args:
        path: A resolved path.
        data: The new content.
        expected: The digest the old content must have, `ABSENT`, or None for any content.

    Raises:
        Changed: The old content is not the expected one.
        ToolFailed: The path is not a regular file, or it is read-only.
    """
    with parent_folder(path, create=True) as folder:
        target = _Target(folder, path.name, expected)
        exists = target.exists()
        target.check()
        try:
            _replace(target, data, exists=exists)
        except OSError as error:
            if error.errno not in _IN_PLACE or not exists:
                raise
            _overwrite(target, data)
        with suppress(OSError):  # some file systems cannot, and the content is in place
            sync_folder(path.parent)


@dataclass(frozen=True, slots=True)
class _Target:
    folder: int
    name: str
    expected: str | None

    def exists(self) -> bool:
        try:
            mode = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return False
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(self.name)
        if not stat.S_ISREG(mode):
            raise ToolFailed(f"{self.name} is not a regular file; it cannot be written")
        if not os.access(self.name, os.W_OK, dir_fd=self.folder, effective_ids=os.access in os.supports_effective_ids):
            raise ToolFailed(f"{self.name} is read-only; make it writable first if it is meant to change")
        return True

    def check(self) -> None:
        if self.expected is not None and _read_digest(self.folder, self.name) != self.expected:
            raise Changed

    def take(self, folder: int, name: str) -> None:
        os.rename(name, self.name, src_dir_fd=folder, dst_dir_fd=self.folder)

    def swap(self, folder: int, name: str) -> None:
        exchange_names(folder, name, self.folder, self.name)


def _replace(target: _Target, data: bytes, *, exists: bool) -> None:
    draft = open_nameless(target.folder)
    if draft is None:
        _rename_named(target, data, exists=exists)
        return
    try:
        _fill_draft(draft, data, target.folder, target.name if exists else None)
        if exists:
            _exchange_old(target, draft, digest(data))
        else:
            give_name(draft, target.folder, target.name)
    except (FileExistsError, FileNotFoundError):  # created or removed by another process meanwhile
        raise Changed from None
    finally:
        os.close(draft)


def _exchange_old(target: _Target, draft: int, ours: str) -> None:
    with _open_private_folder(os.fstat(draft).st_dev) as private:
        if private is not None:
            try:
                _exchange_by_name(target, draft, private, ours)
            except OSError as error:
                if error.errno != errno.EXDEV:  # the same device, yet another mount
                    raise
            else:
                return
    _exchange_by_name(target, draft, target.folder, ours)


def _exchange_by_name(target: _Target, draft: int, folder: int, ours: str) -> None:
    name = temporary_name()
    give_name(draft, folder, name)
    try:
        _exchange(target, folder, name, ours)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _exchange(target: _Target, folder: int, name: str, ours: str) -> None:
    if target.expected is None:
        target.take(folder, name)
        return
    with opened(open_beneath(target.folder, target.name, os.O_RDONLY | os.O_NONBLOCK)) as held:
        hold = _hold_writers(held)
        if hold == "busy" or digest(read_all(held)) != target.expected:
            raise Changed
        try:
            target.swap(folder, name)
        except OSError as error:
            if error.errno not in _NOT_OFFERED:
                raise
            target.take(folder, name)
            return
        unspoilt = _no_writer_waits(held) if hold == "held" else digest(read_all(held)) == target.expected
        if not unspoilt or not _was_replaced(folder, name, held):
            _swap_back(target, folder, name, ours)
            raise Changed


def _was_replaced(folder: int, name: str, held: int) -> bool:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == os.fstat(held).st_ino


def _swap_back(target: _Target, folder: int, name: str, ours: str) -> None:
    target.swap(folder, name)
    if _read_digest(folder, name) != ours:  # another process has edited our version meanwhile: keep theirs, the newest
        target.swap(folder, name)


def _read_digest(folder: int, name: str) -> str:
    try:
        return digest(_read(folder, name))
    except FileNotFoundError:
        return ABSENT


def _read(folder: int, name: str) -> bytes:
    with opened(open_beneath(folder, name, os.O_RDONLY | os.O_NONBLOCK)) as descriptor:
        return read_all(descriptor)


def _rename_named(target: _Target, data: bytes, *, exists: bool) -> None:
    _remove_left_overs(target)
    name = f".{temporary_name()}"
    draft = open_beneath(target.folder, name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        _fill_draft(draft, data, target.folder, target.name if exists else None)
        target.check()
        target.take(target.folder, name)
    except BaseException:
        os.unlink(name, dir_fd=target.folder)
        raise
    finally:
        os.close(draft)


def _remove_left_overs(target: _Target) -> None:
    """Remove the named drafts that killed processes left in a folder."""
    with opened(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=target.folder)) as folder:
        for name in os.listdir(folder):  # noqa: PTH208 - a descriptor, not a path
            _remove_left_over(folder, name)


def _overwrite(target: _Target, data: bytes) -> None:
    """Write over the old content: not atomic, yet all there is where the folder cannot be written to."""
    target.check()
    with opened(open_beneath(target.folder, target.name, os.O_WRONLY | os.O_NONBLOCK)) as descriptor:
        before = None
        with suppress(OSError):  # it may be writable and not readable
            before = _read(target.folder, target.name)
        try:
            _write_over(descriptor, data)
        except OSError:  # such as a full disk
            if before is not None:
                with suppress(OSError):
                    _write_over(descriptor, before)
            raise


def _write_over(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
