"""Restores the states of several paths: all of them, or none.

    prepare    every content is read, checked and written to a staging folder on the same file system; nothing shows
    announce   the steps are written to the journal, so that the next process can take them back
    perform    each old entry is moved to the staging folder and each new one out of it; folders are made and removed
    finish     the staging folder with the old entries is deleted

A failure, or a crash in between, takes back the steps that were done. No link is followed on the way to a path.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callwright.core.errors import ToolError
from callwright.system.atomic_write import give_owner
from callwright.system.paths import open_beneath, opened, parent_folder
from callwright.system.undo.kept_content import ABSENT, ContentFolder, EntryState, NotKept, UndoError, read_state

Step = list[Any]
_STAGING = ".callwright-undo-"
_HANDLE = getattr(os, "O_PATH", os.O_RDONLY)
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, slots=True)
class Restoration:
    """A path, what it is now and what it becomes."""

    path: str
    current: EntryState
    target: EntryState

    @property
    def mode_only(self) -> bool:
        """Whether only the permissions of a file change, so that the file itself can stay."""
        return self.current.kind == self.target.kind == "file" and self.current.content == self.target.content


@dataclass(slots=True)
class Restored:
    """A restore whose steps were done; `finish` or `roll_back` ends it."""

    steps: list[Step]
    staging: list[str]
    left: list[str] = field(default_factory=list[str])
    """Folders that were to be removed and stay, because other files are in them."""

    def finish(self) -> None:
        """Delete the old entries."""
        _remove_staging(self.staging)

    def roll_back(self) -> None:
        """Take every step back."""
        _take_back(self.steps)
        _remove_staging(self.staging)


def restore(
    restorations: Sequence[Restoration], kept: ContentFolder, home: Path, announce: Callable[[list[Step]], None]
) -> Restored:
    """Bring paths to their target states.

    Args:
        restorations: What to restore; `current` must be what the paths are.
        kept: Has the contents.
        home: A private folder, for staging where it is on the same file system.
        announce: Records the steps, before the first is done.

    Raises:
        UndoError: A content is damaged, a path was changed meanwhile, or a step failed; nothing was changed.
        OSError: The contents cannot be written; nothing was changed.
        Unsafe: A folder on the way is a link; nothing was changed.
    """
    staging = _Staging(restorations, home)
    steps: list[Step] = []
    try:
        steps = list(_plan_steps(restorations, staging, kept))
        announce([["stage", folder] for folder in staging.folders] + steps)
    except BaseException:
        _remove_staging(staging.folders)
        raise
    done: list[Step] = []
    result = Restored(done, staging.folders)
    try:
        for step in steps:
            _perform_or_name(step, result)
            done.append(step)
        _check_replaced(restorations, steps)
    except BaseException:
        result.roll_back()
        raise
    return result


def recover(steps: Sequence[Step], *, finished: bool) -> None:
    """Complete what a killed process left: take its steps back, or delete the staging folder of finished ones.

    Raises:
        UndoError: A path was changed since, so that a step cannot be taken back.
        OSError: A step cannot be taken back.
    """
    staging = [step[1] for step in steps if step[0] == "stage"]
    if not any(map(os.path.lexists, staging)):
        return
    if not finished:
        _take_back([step for step in steps if step[0] != "stage"])
    _remove_staging(staging)


class _Staging:
    """One private folder per file system that is restored to."""

    def __init__(self, restorations: Sequence[Restoration], home: Path) -> None:
        self.folders: list[str] = []
        self._home = home
        self._by_device: dict[int, str] = {}
        self._count = 0
        # the folder above the outermost path exists, or it would be a path itself
        self._outermost = sorted((each.path for each in restorations), key=lambda path: path.count("/"))

    def name_for(self, path: str) -> str:
        """Return an unused name in the staging folder of the path's file system."""
        device = _device(path)
        if device not in self._by_device:
            self._by_device[device] = self._make(device)
        self._count += 1
        return f"{self._by_device[device]}/{self._count}"

    def _make(self, device: int) -> str:
        name = f"{_STAGING}{secrets.token_hex(6)}"
        place = self._home
        if place.stat().st_dev != device:
            place = next(Path(path).parent for path in self._outermost if _device(path) == device)
        folder = place / name
        with parent_folder(folder) as above:
            os.mkdir(name, 0o700, dir_fd=above)
        self.folders.append(str(folder))
        return str(folder)


def _device(path: str) -> int:
    device = -1
    for folder in reversed(Path(path).parents):
        try:
            found = folder.lstat()
        except OSError:
            break
        if not stat.S_ISDIR(found.st_mode):  # nothing counts that lies behind a link
            break
        device = found.st_dev
    return device


def _plan_steps(restorations: Sequence[Restoration], staging: _Staging, kept: ContentFolder) -> Iterator[Step]:
    """Yield the steps in order; contents are staged on the way."""
    inwards = sorted(restorations, key=lambda each: each.path)
    outwards = inwards[::-1]
    for each in inwards:  # a folder must be writable before its entries can be changed
        if each.current.kind == "folder":
            opened = (each.target.mode if each.target.kind == "folder" else each.current.mode) | 0o700
            if opened != each.current.mode:
                yield ["chmod", each.path, each.current.mode, opened]
    for each in outwards:
        if each.current.kind in ("file", "link", "special") and not each.mode_only:
            yield ["away", each.path, staging.name_for(each.path), each.current.mode]
        elif each.current.kind == "folder" and each.target.kind != "folder":
            yield ["rmdir", each.path, each.current.mode | 0o700, each.target == ABSENT]
    for each in inwards:
        if each.target.kind == "folder" and each.current.kind != "folder":
            yield ["mkdir", each.path]
    for each in inwards:
        if each.mode_only:
            yield ["chmod", each.path, each.current.mode, each.target.mode]
        elif each.target.kind in ("file", "link"):
            yield ["place", _stage(each, staging, kept), each.path, each.target.content]
    for each in outwards:
        if each.target.kind == "folder":
            before = each.target.mode | 0o700 if each.current.kind == "folder" else 0o700
            if before != each.target.mode:
                yield ["chmod", each.path, before, each.target.mode]


def _stage(each: Restoration, staging: _Staging, kept: ContentFolder) -> str:
    """Create the new entry in the staging folder."""
    name, target = staging.name_for(each.path), each.target
    # a command in the background may have put a link in the place of the staging folder
    with parent_folder(Path(name)) as folder:
        if target.kind == "link":
            os.symlink(target.content, os.path.basename(name), dir_fd=folder)
            return name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        new = open_beneath(folder, os.path.basename(name), flags)
    with opened(new) as descriptor:
        os.fchmod(descriptor, 0o600)
        try:
            kept.copy_to(target.content, descriptor)
        except UndoError as error:
            raise UndoError(f"nothing was restored: {each.path}: {error}") from None
        give_owner(descriptor, *target.owner, target.mode)
        os.fsync(descriptor)
    return name


def _perform_or_name(step: Step, result: Restored) -> None:
    try:
        _perform(step, result)
    except OSError as error:  # which has a bare name, or the one in the staging folder
        path = step[2 if step[0] == "place" else 1]
        raise UndoError(f"nothing was restored: {path}: {error.strerror}") from None


def _perform(step: Step, result: Restored) -> None:
    match step:
        case ["away", str(path), str(staged), _]:
            _rename(path, staged)
        case ["place", str(staged), str(path), _]:
            _place(staged, path)
        case ["mkdir", str(path)]:
            with parent_folder(Path(path)) as folder:
                os.mkdir(os.path.basename(path), 0o700, dir_fd=folder)
        case ["rmdir", str(path), _, bool(optional)]:
            _remove_folder(path, result, optional=optional)
        case ["chmod", str(path), _, int(mode)]:
            _change_mode(path, mode)
        case _:
            raise UndoError(f"an unknown step: {step!r}")


def _remove_folder(path: str, result: Restored, *, optional: bool) -> None:
    try:
        with parent_folder(Path(path)) as folder:
            os.rmdir(os.path.basename(path), dir_fd=folder)
    except OSError as error:
        if not optional or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        result.left.append(path)


def _rename(source: str, target: str) -> None:
    with parent_folder(Path(source)) as old, parent_folder(Path(target)) as new:
        os.rename(os.path.basename(source), os.path.basename(target), src_dir_fd=old, dst_dir_fd=new)


def _place(staged: str, path: str) -> None:
    """Move an entry to a free name; one that another program has taken meanwhile is not replaced."""
    with parent_folder(Path(staged)) as old, parent_folder(Path(path)) as new:
        source, target = os.path.basename(staged), os.path.basename(path)
        try:
            os.link(source, target, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
            os.rename(source, target, src_dir_fd=old, dst_dir_fd=new)
        else:
            os.unlink(source, dir_fd=old)


def _change_mode(path: str, mode: int) -> None:
    with parent_folder(Path(path)) as folder:
        handle = open_beneath(folder, os.path.basename(path), _HANDLE | os.O_NONBLOCK)
    with opened(handle):
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            raise UndoError(f"{path} was replaced by a link meanwhile")
        if _HANDLE == os.O_RDONLY:
            os.fchmod(handle, mode)
        else:  # a handle needs no permission to read the file, but fchmod refuses it
            os.chmod(f"/proc/self/fd/{handle}", mode)


def _check_replaced(restorations: Sequence[Restoration], steps: Iterable[Step]) -> None:
    """Check that what was moved away is what was compared before: another program may have written meanwhile."""
    current = {each.path: each.current for each in restorations}
    for step in steps:
        if step[0] == "away":
            expected = current[step[1]]
            found = read_state(Path(step[2]))
            # a mode is shared with hard links, which other steps may have changed
            if expected.kind != "special" and (found.kind, found.content) != (expected.kind, expected.content):
                raise UndoError(f"nothing was restored: {step[1]} is being changed by another program; try again")


def _take_back(steps: Sequence[Step]) -> None:
    """Take steps back, last first; a step that was not done is left out."""
    failure: Exception | None = None
    for step in reversed(steps):
        try:
            _take_back_one(step)
        except (OSError, ToolError, UndoError, NotKept) as error:  # the other steps are taken back all the same
            failure = failure or error
    if failure is not None:
        raise UndoError(f"it could not be taken back completely: {failure}") from failure


def _take_back_one(step: Step) -> None:
    match step:
        case ["away", str(path), str(staged), int(mode)] if _exists(staged):
            _place(staged, path)
            if mode:  # links have none; files in our private folder may have lost theirs meanwhile
                _change_mode(path, mode)
        case ["place", str(staged), str(path), str(content)] if _exists(path):
            if not _exists(staged):
                if read_state(Path(path)).content != content:
                    raise UndoError(f"{path} was changed since")
                _rename(path, staged)
            elif os.path.samestat(os.lstat(staged), os.lstat(path)):  # linked, and not unlinked yet
                _remove_name(path)
        case ["mkdir", str(path)]:
            with suppress(OSError), parent_folder(Path(path)) as folder:
                os.rmdir(os.path.basename(path), dir_fd=folder)
        case ["rmdir", str(path), int(mode), _] if not _exists(path):
            with parent_folder(Path(path)) as folder:
                os.mkdir(os.path.basename(path), 0o700, dir_fd=folder)
            _change_mode(path, mode)
        case ["chmod", str(path), int(mode), _] if _exists(path):
            _change_mode(path, mode)
        case _:
            pass


def _exists(path: str) -> bool:
    """Whether there is something at a path, following no link."""
    try:
        with parent_folder(Path(path)) as folder:
            os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False)
    except (OSError, ToolError):
        return False
    return True


def _remove_name(path: str) -> None:
    with parent_folder(Path(path)) as folder:
        os.unlink(os.path.basename(path), dir_fd=folder)


def _remove_staging(folders: Iterable[str]) -> None:
    for folder in folders:
        if os.path.basename(folder).startswith(_STAGING):  # the name comes from a file
            with suppress(OSError):
                shutil.rmtree(folder)
