"""Restores the states of several paths: all of them, or none.

    prepare    every content that no replaced file has is read, checked and written to a staging folder on the same
               file system; nothing shows
    announce   the steps are written to the journal, so that the next process can take them back; it does so if the
               staging folder exists
    perform    each old entry is moved to the staging folder and each new one out of it, so that a file that was moved
               is moved back; folders are made and removed
    finish     the staging folder with the old entries is deleted

A failure, or a crash in between, takes back the steps that were done. No link is followed on the way to a path.
"""

import errno
import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callwright.core.errors import ToolError
from callwright.system.paths import open_beneath, opened, parent_folder
from callwright.system.undo.kept_content import ABSENT, ContentFolder, EntryState, NotKept, UndoError, read_state
from callwright.system.undo.staging import ReusableFiles, Staging, is_removal_begun, remove_staging

Step = list[Any]
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
        remove_staging(self.staging)

    def roll_back(self) -> None:
        """Take every step back."""
        _take_back(self.steps, all_done=True)
        remove_staging(self.staging)


def restore(
    restorations: Sequence[Restoration], kept: ContentFolder, home: Path, announce: Callable[[list[Step]], None]
) -> Restored:
    """Bring paths to their target states.

    Args:
        restorations: What to restore; `current` must be what the paths are.
        kept: Has the contents.
        home: A private folder, for staging where it is on the same file system.
        announce: Records the steps before the first is done, and each staging folder before it is made.

    Raises:
        UndoError: A content is damaged, a path was changed meanwhile, or a step failed; nothing was changed.
        OSError: The contents cannot be written; nothing was changed.
        Unsafe: A folder on the way is a link; nothing was changed.
    """
    staging = Staging([each.path for each in restorations], home, lambda folder: announce([["prepare", folder]]))
    steps: list[Step] = []
    try:
        staging.open()
        steps = list(_plan_steps(restorations, staging, kept))
        staging.sync()
        announce([["stage", folder] for folder in staging.folders] + steps)
    except BaseException:
        remove_staging(staging.folders)
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


def recover(announced: Iterable[tuple[str, Sequence[Step]]], finished: Container[str]) -> None:
    """Complete what killed processes left: take their steps back, or delete the staging folders of finished ones.

    Args:
        announced: What restores have announced, with their ids.
        finished: The ids of those that were finished.

    Raises:
        UndoError: A path was changed since, so that a step cannot be taken back.
        OSError: A step cannot be taken back.
    """
    restores: dict[str, list[Step]] = {}
    for restore_id, steps in announced:
        restores.setdefault(restore_id, []).extend(steps)
    failure: Exception | None = None
    for restore_id, steps in restores.items():
        try:
            _recover_one(steps, finished=restore_id in finished)
        except (OSError, ToolError, UndoError) as error:
            failure = error
    if failure is not None:
        raise failure


def _recover_one(steps: Sequence[Step], *, finished: bool) -> None:
    # `prepare` was announced before the folder was made, `stage` together with the steps that use it
    staging = [step[1] for step in steps if step[0] in ("prepare", "stage")]
    begun = is_removal_begun(staging)
    if not begun and not any(map(os.path.lexists, staging)):
        return
    if not finished and not begun:
        _take_back([step for step in steps if step[0] not in ("prepare", "stage")])
    remove_staging(staging)


def _plan_steps(restorations: Sequence[Restoration], staging: Staging, kept: ContentFolder) -> Iterator[Step]:
    """Yield the steps in order; contents are staged on the way."""
    inwards = sorted(restorations, key=lambda each: each.path)
    outwards = inwards[::-1]
    reusable = ReusableFiles(each.target for each in restorations)
    for each in inwards:  # a folder must be writable before its entries can be changed
        if each.current.kind == "folder":
            opened = (each.target.mode if each.target.kind == "folder" else each.current.mode) | 0o700
            if opened != each.current.mode:
                yield ["chmod", each.path, each.current.mode, opened]
    for each in outwards:
        if each.current.kind in ("file", "link", "special") and not each.mode_only:
            name = staging.name_for(each.path)
            reusable.offer(each.path, each.current, name)
            yield ["away", each.path, name, each.current.mode]
        elif each.current.kind == "folder" and each.target.kind != "folder":
            yield ["rmdir", each.path, each.current.mode | 0o700, each.target == ABSENT]
    for each in inwards:
        if each.target.kind == "folder" and each.current.kind != "folder":
            yield ["mkdir", each.path]
    for each in inwards:
        if each.mode_only:
            yield ["chmod", each.path, each.current.mode, each.target.mode]
        elif each.target.kind in ("file", "link"):
            name = staging.name_for(each.path)
            reused = reusable.take(each.target, name)
            if not reused:
                staging.create(name, each.path, each.target, kept)
            yield ["place", reused or name, each.path, each.target.content]
    for each in outwards:
        if each.target.kind == "folder":
            before = each.target.mode | 0o700 if each.current.kind == "folder" else 0o700
            if before != each.target.mode:
                yield ["chmod", each.path, before, each.target.mode]


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


def _check_replaced(restorations: Sequence[Restoration], steps: Sequence[Step]) -> None:
    """Check that what was moved away is what was compared before: another program may have written meanwhile."""
    current = {each.path: each.current for each in restorations}
    placed = {step[1]: step[2] for step in steps if step[0] == "place"}
    for step in steps:
        if step[0] == "away":
            expected = current[step[1]]
            found = read_state(Path(placed.get(step[2], step[2])))
            # a mode is shared with hard links, which other steps may have changed
            if expected.kind != "special" and (found.kind, found.content) != (expected.kind, expected.content):
                raise UndoError(f"nothing was restored: {step[1]} is being changed by another program; try again")


def _take_back(steps: Sequence[Step], *, all_done: bool = False) -> None:
    """Take steps back, last first; a step that was not done is left out, unless it is known that all were done."""
    failure: Exception | None = None
    origins = {step[2]: step[1] for step in steps if step[0] == "away"}
    made = {step[1] for step in steps if step[0] == "mkdir"}
    for step in reversed(steps):
        try:
            if step[0] == "chmod" and step[1] in made and not _is_folder(step[1]):
                continue  # what the folder was to replace is still there
            _take_back_one(step, origins, all_done=all_done)
        except (OSError, ToolError, UndoError, NotKept) as error:  # the other steps are taken back all the same
            failure = failure or error
    if failure is not None:
        raise UndoError(f"it could not be taken back completely: {failure}") from failure


def _take_back_one(step: Step, origins: Mapping[str, str], *, all_done: bool) -> None:
    match step:
        case ["away", str(path), str(staged), int(mode)] if _exists(staged):
            if _are_one_file(staged, path):  # a process was killed that took it back
                _remove_name(staged)
            else:
                _place(staged, path)
            if mode:  # links have none; files in our private folder may have lost theirs meanwhile
                _change_mode(path, mode)
        case ["place", str(staged), str(path), str(content)] if _exists(path):
            if _exists(staged):
                if _are_one_file(staged, path):  # linked, and not unlinked yet
                    _remove_name(path)
            elif all_done and staged in origins:  # a file that was moved, and may have been changed just before
                _rename(path, staged)
            elif staged not in origins or read_state(Path(origins[staged])).content != content:
                if read_state(Path(path)).content != content:
                    raise UndoError(f"{path} was changed since")
                _rename(path, staged)
        case ["mkdir", str(path)]:
            with suppress(OSError), parent_folder(Path(path)) as folder:
                os.rmdir(os.path.basename(path), dir_fd=folder)
        case ["rmdir", str(path), int(mode), _]:
            with suppress(FileExistsError), parent_folder(Path(path)) as folder:
                os.mkdir(os.path.basename(path), 0o700, dir_fd=folder)
            if _is_folder(path):
                _change_mode(path, mode)
        case ["chmod", str(path), int(mode), _] if _exists(path):
            _change_mode(path, mode)
        case _:
            pass


def _exists(path: str) -> bool:
    """Whether there is something at a path, following no link."""
    return _find_mode(path) is not None


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(_find_mode(path) or 0)


def _find_mode(path: str) -> int | None:
    try:
        with parent_folder(Path(path)) as folder:
            return os.stat(os.path.basename(path), dir_fd=folder, follow_symlinks=False).st_mode
    except (OSError, ToolError):
        return None


def _are_one_file(one: str, other: str) -> bool:
    return _exists(one) and _exists(other) and os.path.samestat(os.lstat(one), os.lstat(other))


def _remove_name(path: str) -> None:
    with parent_folder(Path(path)) as folder:
        os.unlink(os.path.basename(path), dir_fd=folder)
