"""The private folder in which a restore prepares new entries and keeps the old ones until it is done."""

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from callwright.system.atomic_write import give_owner
from callwright.system.paths import open_beneath, open_resolved, opened, parent_folder
from callwright.system.platforms import SYNCS_FILE_SYSTEMS, sync_file_system
from callwright.system.undo.kept_content import ContentFolder, EntryState, UndoError

_PREFIX = ".callwright-undo-"
_REMOVED = "-removed"
_MOST_SYNCED_ALONE = 100
"""New files that wait for the disk one by one; for more, the whole file system is written once."""


class Staging:
    """One private folder per file system that is restored to.

    Args:
        paths: What is restored.
        home: A private folder, for staging where it is on the same file system.
        announce: Records a folder before it is made, so that the next process can remove it.
    """

    def __init__(self, paths: Sequence[str], home: Path, announce: Callable[[str], None]) -> None:
        self.folders: list[str] = []
        self._home = home
        self._announce = announce
        self._by_device: dict[int, str] = {}
        self._devices: dict[str, int] = {}
        self._count = 0
        self._synced_alone = _MOST_SYNCED_ALONE if SYNCS_FILE_SYSTEMS else len(paths)
        # the folder above the outermost path exists, or it would be a path itself
        self._outermost = sorted(paths, key=lambda path: path.count("/"))

    def open(self) -> None:
        """Make the first folder, also if no entry will be in it: while it exists, the restore is not finished."""
        device = self._home.stat().st_dev
        self._by_device[device] = self._make(device)

    def name_for(self, path: str) -> str:
        """Return an unused name in the staging folder of the path's file system."""
        device = self._device(path)
        if device not in self._by_device:
            self._by_device[device] = self._make(device)
        self._count += 1
        return f"{self._by_device[device]}/{self._count}"

    def _device(self, path: str) -> int:
        above = os.path.dirname(path)
        if above not in self._devices:
            self._devices[above] = _find_device(Path(path))
        return self._devices[above]

    def _make(self, device: int) -> str:
        name = f"{_PREFIX}{secrets.token_hex(6)}"
        place = self._home
        if place.stat().st_dev != device:
            place = next(Path(path).parent for path in self._outermost if self._device(path) == device)
        folder = place / name
        self._announce(str(folder))
        self.folders.append(str(folder))
        with parent_folder(folder) as above:
            os.mkdir(name, 0o700, dir_fd=above)
        return str(folder)

    def create(self, name: str, path: str, target: EntryState, kept: ContentFolder) -> None:
        """Create what a path becomes, a file or a link, by a name in the staging folder.

        Raises:
            UndoError: Its content is missing or damaged.
            OSError: It cannot be written.
            Unsafe: A link is in the place of the staging folder.
        """
        # a command in the background may have put a link in the place of the staging folder
        with parent_folder(Path(name)) as folder:
            if target.kind == "link":
                os.symlink(target.content, os.path.basename(name), dir_fd=folder)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            new = open_beneath(folder, os.path.basename(name), flags)
        with opened(new) as descriptor:
            os.fchmod(descriptor, 0o600)
            try:
                kept.copy_to(target.content, descriptor)
            except UndoError as error:
                raise UndoError(f"nothing was restored: {path}: {error}") from None
            give_owner(descriptor, *target.owner, target.mode)
            if self._synced_alone > 0:
                os.fsync(descriptor)
            self._synced_alone -= 1

    def sync(self) -> None:
        """Write the new files to the disk that are not there yet, before an old one is removed.

        Raises:
            OSError: They cannot be written.
        """
        if self._synced_alone < 0:
            for folder in self.folders:
                with opened(open_resolved(Path(folder), os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
                    sync_file_system(descriptor)


def _find_device(path: Path) -> int:
    device = -1
    for folder in reversed(path.parents):
        try:
            found = folder.lstat()
        except OSError:
            break
        if not stat.S_ISDIR(found.st_mode):  # nothing counts that lies behind a link
            break
        device = found.st_dev
    return device


class ReusableFiles:
    """Files that are moved away and are what other paths become: undoing a move writes no content.

    Args:
        wanted: What paths become.
    """

    def __init__(self, wanted: Iterable[EntryState]) -> None:
        self._wanted = frozenset(wanted)
        self._names: dict[tuple[object, ...], list[str]] = {}

    def offer(self, path: str, state: EntryState, name: str) -> None:
        """Add what is at a path by its future name in the staging folder, if another path may become it."""
        with suppress(OSError):  # moving it away will fail, and say why
            # a file with a second name is changed with it: that must not happen to one that had none
            if state.kind == "file" and state in self._wanted and os.lstat(path).st_nlink == 1:
                self._names.setdefault(_reuse_key(state, name), []).append(name)

    def take(self, state: EntryState, name: str) -> str:
        """Return the name of a file in this state, in the same staging folder as `name`; empty if there is none.

        The one that was offered last comes first.
        """
        names = self._names.get(_reuse_key(state, name))
        return names.pop() if names else ""


def _reuse_key(state: EntryState, name: str) -> tuple[object, ...]:
    return state, state.owner, os.path.dirname(name)


def remove_staging(folders: Iterable[str]) -> None:
    """Delete staging folders with what is in them. They are renamed first: one that lost a part looks unfinished."""
    own = [folder for folder in folders if os.path.basename(folder).startswith(_PREFIX)]  # names come from a file
    for folder in own:
        with suppress(OSError):
            os.rename(folder, folder + _REMOVED)
    for folder in own:
        for name in (folder, folder + _REMOVED):
            with suppress(OSError):
                shutil.rmtree(name)


def is_removal_begun(folders: Iterable[str]) -> bool:
    """Whether a process was killed in `remove_staging`."""
    return any(os.path.lexists(folder + _REMOVED) for folder in folders)
