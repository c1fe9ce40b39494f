"""Replacing a file's content in one step: a reader, a crash or a rival sees the old or the new, never a mixture.

    draft      a file without a name in the target's folder; written, given mode and owner, flushed
    new file   the draft gets the name, which fails if somebody else took it
    old file   the draft gets a passing name and is exchanged with the target while writers are made to wait; what
               came out must be what was checked, else both are exchanged back: no update by others is lost
    fallback   where the system offers none of this, a named draft is renamed; where even that is refused, the file
               is rewritten in place

The passing name lies in a private folder of the user if that is on the same file system, so that not even a kill in
that moment leaves something in the tree people look at.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system.drafts import (
    NOT_OFFERED,
    fill,
    give_name,
    open_nameless,
    passing_name,
    private_folder,
    remove_left_over,
    write_all,
)
from callwright.system.exchange import exchange, hold_writers, nobody_waits
from callwright.system.files import digest, read_all
from callwright.system.paths import open_beneath, parent_folder

ABSENT = "absent"
"""Expected where a file must not exist yet."""

_IN_PLACE = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EBUSY})


class Changed(Exception):
    """The file is not what was expected, or somebody is writing to it; nothing was written."""


def replace_file(path: Path, data: bytes, *, expected: str | None = None) -> None:
    """Make `data` the content of a resolved path, folders included.

    Raises `Changed` unless the content was `expected`: a digest, `ABSENT`, or None for whatever is there.
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
            _rewrite(target, data)


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
            raise ToolFailed(f"{self.name} is not a regular file; it cannot be written here")
        if not os.access(self.name, os.W_OK, dir_fd=self.folder, effective_ids=os.access in os.supports_effective_ids):
            raise ToolFailed(f"{self.name} is read-only; make it writable first if it is meant to change")
        return True

    def check(self) -> None:
        if self.expected is not None and _content(self.folder, self.name) != self.expected:
            raise Changed

    def take(self, folder: int, name: str) -> None:
        os.rename(name, self.name, src_dir_fd=folder, dst_dir_fd=self.folder)

    def swap(self, folder: int, name: str) -> None:
        exchange(folder, name, self.folder, self.name)


def _replace(target: _Target, data: bytes, *, exists: bool) -> None:
    draft = open_nameless(target.folder)
    if draft is None:
        _rename_named(target, data, exists=exists)
        return
    try:
        fill(draft, data, target.folder, target.name if exists else None)
        if exists:
            _exchange_old(target, draft, digest(data))
        else:
            give_name(draft, target.folder, target.name)
    except (FileExistsError, FileNotFoundError):  # made, or removed, by somebody else meanwhile
        raise Changed from None
    finally:
        os.close(draft)


def _exchange_old(target: _Target, draft: int, ours: str) -> None:
    with private_folder(os.fstat(draft).st_dev) as private:
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
    name = passing_name()
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
    held = open_beneath(target.folder, target.name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        hold = hold_writers(held)
        if hold == "busy" or digest(read_all(held)) != target.expected:
            raise Changed
        target.swap(folder, name)
        unspoilt = nobody_waits(held) if hold == "held" else digest(read_all(held)) == target.expected
        if not unspoilt or not _came_out(folder, name, held):
            _swap_back(target, folder, name, ours)
            raise Changed
    except OSError as error:
        if error.errno not in NOT_OFFERED:
            raise
        target.take(folder, name)
    finally:
        os.close(held)


def _came_out(folder: int, name: str, held: int) -> bool:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == os.fstat(held).st_ino


def _swap_back(target: _Target, folder: int, name: str, ours: str) -> None:
    target.swap(folder, name)
    if _content(folder, name) != ours:  # somebody built on ours meanwhile: theirs is the newest
        target.swap(folder, name)


def _content(folder: int, name: str) -> str:
    try:
        descriptor = open_beneath(folder, name, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ABSENT
    try:
        return digest(read_all(descriptor))
    finally:
        os.close(descriptor)


def _rename_named(target: _Target, data: bytes, *, exists: bool) -> None:
    _sweep(target)
    name = f".{passing_name()}"
    draft = open_beneath(target.folder, name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fill(draft, data, target.folder, target.name if exists else None)
        target.check()
        target.take(target.folder, name)
    except BaseException:
        os.unlink(name, dir_fd=target.folder)
        raise
    finally:
        os.close(draft)


def _sweep(target: _Target) -> None:
    """Remove the named drafts that killed processes left in a folder."""
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=target.folder)
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - a descriptor, not a path
            remove_left_over(folder, name)
    finally:
        os.close(folder)


def _rewrite(target: _Target, data: bytes) -> None:
    """Write over the old content: not atomic, yet all there is where the folder cannot be written to."""
    target.check()
    descriptor = open_beneath(target.folder, target.name, os.O_WRONLY)
    try:
        write_all(descriptor, data)
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
