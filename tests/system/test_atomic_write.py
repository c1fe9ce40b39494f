"""Atomic replacement of files: attributes kept, other writers detected, nothing left behind."""

import ctypes
import errno
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from tests.forked import start_script
from tests.waiting import until_so

from callwright.core.errors import ToolFailed, Unsafe
from callwright.system import atomic_write
from callwright.system.atomic_write import ABSENT, Changed, replace_file
from callwright.system.files import digest


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    return Path(os.path.realpath(tmp_path)) / "work" / "file"


def _refuse(*_: object) -> int:
    ctypes.set_errno(errno.EINVAL)
    return -1


_MACHINES = (
    "everything",
    "no exchange",
    "exchange refused",
    "no leases",
    "no nameless files",
    "nameless files refused",
    "no private folder",
)


@pytest.fixture(params=_MACHINES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The calls a system may lack, one after the other."""
    if request.param == "no exchange":
        monkeypatch.setattr(atomic_write, "_renameat2", lambda: None)
    if request.param == "exchange refused":
        monkeypatch.setattr(atomic_write, "_renameat2", lambda: _refuse)
    if request.param == "no leases":
        monkeypatch.setattr(atomic_write, "fcntl", None)
    if request.param == "nameless files refused":
        monkeypatch.setattr(atomic_write, "_NAMELESS", os.O_DIRECTORY)  # so that opening fails as where it is unknown
    if request.param == "no nameless files":
        monkeypatch.setattr(atomic_write, "_NAMELESS", 0)
    if request.param == "no private folder":
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    return request.param


@pytest.mark.usefixtures("machine")
def test_content_is_replaced_and_nothing_else_appears(path: Path):
    replace_file(path, b"one", expected=ABSENT)
    replace_file(path, b"two", expected=digest(b"one"))
    opened = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names are counted
    replace_file(path, b"three")
    assert len(os.listdir("/dev/fd")) == opened  # noqa: PTH208 - names are counted
    assert path.read_bytes() == b"three"
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - names are compared


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="this system has no extended attributes")
def test_attribute_that_may_not_be_set_costs_no_other(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    setxattr, names = os.setxattr, ("user.one", "user.two", "user.three")
    try:
        for name in names:
            setxattr(path, name, b"x")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    refused = os.listxattr(path)[0]

    def refuse(target: int, name: str, value: bytes) -> None:
        if name == refused:
            raise PermissionError(1, "Operation not permitted")
        setxattr(target, name, value)

    monkeypatch.setattr(os, "setxattr", refuse)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new" and set(os.listxattr(path)) == {*names} - {refused}


@pytest.mark.usefixtures("machine")
def test_mode_and_owner_stay(path: Path):
    path.write_bytes(b"old")
    path.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    replace_file(path, b"new", expected=digest(b"old"))
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o750
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL])  # the second in a user namespace without that user
def test_file_that_cannot_be_given_away_opens_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    tried: list[tuple[int, int]] = []

    def refuse(_: int, owner: int, group: int) -> None:
        tried.append((owner, group))
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fchown", refuse)
    path.touch()
    owner, group = path.stat().st_uid, path.stat().st_gid
    with open(path, "rb") as file:  # noqa: PTH123 - a descriptor is wanted
        for wanted, mode in (((owner, group), 0o6764), ((owner + 1, group), 0o2764), ((owner + 1, group + 1), 0o744)):
            atomic_write.give_owner(file.fileno(), *wanted, 0o6764)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    assert tried[-2:] == [(-1, group + 1), (owner + 1, -1)]  # each by itself: one may be permitted


@pytest.mark.usefixtures("machine")
def test_a_new_file_obeys_the_umask(path: Path):
    before = os.umask(0o027)
    try:
        replace_file(path, b"new", expected=ABSENT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("expected", [ABSENT, digest(b"something else")])
def test_unexpected_content_is_not_replaced(path: Path, expected: str):
    path.write_bytes(b"theirs")
    with pytest.raises(Changed):
        replace_file(path, b"ours", expected=expected)
    assert path.read_bytes() == b"theirs"
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - names are compared


def test_a_file_that_vanished_is_a_change(path: Path):
    with pytest.raises(Changed):
        replace_file(path, b"ours", expected=digest(b"was here"))
    assert not path.exists()


def test_write_between_check_and_exchange_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    real = atomic_write.exchange_names
    rounds: list[int] = []

    def late(folder: int, name: str, other_folder: int, other_name: str) -> None:
        if not rounds:
            (path.parent / "rival").write_bytes(b"theirs")
            (path.parent / "rival").rename(path)
        rounds.append(1)
        real(folder, name, other_folder, other_name)

    monkeypatch.setattr(atomic_write, "exchange_names", late)
    with pytest.raises(Changed):
        replace_file(path, b"ours", expected=digest(b"old"))
    assert path.read_bytes() == b"theirs"


def test_write_to_our_version_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    real = atomic_write.exchange_names
    rivals = iter((b"theirs", b"theirs, later"))

    def busy(folder: int, name: str, other_folder: int, other_name: str) -> None:
        """Let a rival write before the exchange, and then before it is taken back."""
        for content in islice(rivals, 1):
            (path.parent / "rival").write_bytes(content)
            (path.parent / "rival").rename(path)
        real(folder, name, other_folder, other_name)

    monkeypatch.setattr(atomic_write, "exchange_names", busy)
    with pytest.raises(Changed):
        replace_file(path, b"ours", expected=digest(b"old"))
    assert path.read_bytes() == b"theirs, later"


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("content", [None, b"theirs"])
def test_change_during_the_draft_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None):
    path.write_bytes(b"old")
    real = atomic_write.write_all

    def late(draft: int, data: bytes) -> None:
        real(draft, data)
        path.unlink() if content is None else path.write_bytes(content)

    monkeypatch.setattr(atomic_write, "write_all", late)
    with pytest.raises((Changed, FileNotFoundError)):
        replace_file(path, b"ours", expected=digest(b"old"))
    assert (path.read_bytes() if path.exists() else None) == content


def test_draft_lies_in_the_private_folder(path: Path, monkeypatch: pytest.MonkeyPatch):
    drafts = path.parent.parent / "cache/callwright/drafts"
    drafts.mkdir(parents=True)
    drafts.chmod(0o777)
    path.write_bytes(b"old")
    real = atomic_write.exchange_names

    def look(folder: int, name: str, other_folder: int, other_name: str) -> None:
        assert [each.name for each in path.parent.iterdir()] == ["file"]
        assert (drafts / name).read_bytes() == b"new" and stat.S_IMODE(drafts.stat().st_mode) == 0o700
        real(folder, name, other_folder, other_name)

    monkeypatch.setattr(atomic_write, "exchange_names", look)
    replace_file(path, b"new", expected=digest(b"old"))
    assert path.read_bytes() == b"new" and not list(drafts.iterdir())


def test_private_folder_on_another_mount_is_not_needed(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    real = atomic_write.give_name
    refused: list[int] = []

    def refuse_once(draft: int, folder: int, name: str) -> None:
        if not refused:
            refused.append(folder)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(draft, folder, name)

    monkeypatch.setattr(atomic_write, "give_name", refuse_once)
    inode = path.stat().st_ino
    replace_file(path, b"new", expected=digest(b"old"))
    assert path.read_bytes() == b"new" and path.stat().st_ino != inode  # and not overwritten in place


def _fail(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("machine")
def test_failed_write_leaves_the_old_content(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    monkeypatch.setattr(atomic_write, "write_all", _fail)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new", expected=digest(b"old"))
    assert path.read_bytes() == b"old" and [each.name for each in path.parent.iterdir()] == ["file"]


def test_failed_exchange_leaves_the_old_content(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    monkeypatch.setattr(atomic_write, "exchange_names", _fail)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new", expected=digest(b"old"))
    assert path.read_bytes() == b"old" and [each.name for each in path.parent.iterdir()] == ["file"]


def _no_access(*_: object, **__: object) -> bool:
    return False


def test_read_only_file_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.geteuid() == 0:  # who may write it all the same
        monkeypatch.setattr(os, "access", _no_access)
    with pytest.raises(ToolFailed, match="read-only"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_refused_new_file_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(folder: int) -> int:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(atomic_write, "open_nameless", refused)
    with pytest.raises(PermissionError):
        replace_file(path, b"new", expected=ABSENT)
    assert not path.exists()


def test_open_writer_is_detected(path: Path):
    path.write_bytes(b"old")
    with path.open("ab") as rival:
        with pytest.raises(Changed):
            replace_file(path, b"ours", expected=digest(b"old"))
        rival.write(b" and theirs")
    assert path.read_bytes() == b"old and theirs"


def test_waiting_writer_writes_to_the_file_it_opened(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")
    real = atomic_write.exchange_names

    def append() -> None:
        with path.open("ab") as file:
            file.write(b" and theirs")

    rival = threading.Thread(target=append)

    def is_awaited() -> bool:
        """Whether the kernel lets the rival wait for our lease."""
        locks = Path("/proc/locks").read_text().splitlines()
        return any("BREAKING" in lock and f":{inode} " in lock for lock in locks)

    inode = path.stat().st_ino

    def late(folder: int, name: str, other_folder: int, other_name: str) -> None:
        if not rival.ident:
            rival.start()
            until_so(is_awaited)
        real(folder, name, other_folder, other_name)

    monkeypatch.setattr(atomic_write, "exchange_names", late)
    with pytest.raises(Changed):
        replace_file(path, b"ours", expected=digest(b"old"))
    rival.join()
    assert path.read_bytes() == b"old and theirs"


def test_pipe_and_folder_are_not_replaced(path: Path):
    os.mkfifo(path)
    with pytest.raises(ToolFailed, match="not a regular file"):
        replace_file(path, b"new")
    assert stat.S_ISFIFO(path.stat().st_mode)
    with pytest.raises(IsADirectoryError):
        replace_file(path.parent, b"new")


def test_symlink_is_not_replaced(path: Path):
    (path.parent / "target").write_bytes(b"old")
    path.symlink_to("target")
    with pytest.raises((Unsafe, ToolFailed)):
        replace_file(path, b"new")
    assert path.is_symlink()


def test_hard_link_keeps_the_old_content(path: Path):
    path.write_bytes(b"old")
    os.link(path, path.parent / "store")
    replace_file(path, b"new", expected=digest(b"old"))
    assert (path.parent / "store").read_bytes() == b"old"


@pytest.mark.file_modes
def test_read_only_folder_overwrites_in_place(path: Path):
    path.write_bytes(b"a longer old content")
    path.parent.chmod(0o555)
    try:
        replace_file(path, b"new", expected=digest(b"a longer old content"))
        assert path.read_bytes() == b"new"
    finally:
        path.parent.chmod(0o755)


def test_refused_rename_overwrites_in_place(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"a longer old content")
    inode = path.stat().st_ino

    def refused(folder: int) -> int:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(atomic_write, "open_nameless", refused)
    replace_file(path, b"new", expected=digest(b"a longer old content"))
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino == inode
    with pytest.raises(Changed):
        replace_file(path, b"newer", expected=digest(b"something else"))


def test_full_disk_leaves_the_old_content_in_place(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old content")
    monkeypatch.setattr(atomic_write, "_replace", _refuse_rename)
    write, room = os.write, 20

    def fill(descriptor: int, data: bytes) -> int:
        nonlocal room
        if room <= 0:
            room = 20  # the old blocks are there still
            _fail()
        written = write(descriptor, data[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"a new content that is longer than the room", expected=digest(b"old content"))
    assert path.read_bytes() == b"old content"


def _refuse_rename(*_: object, **__: object) -> None:
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def test_failure_after_the_exchange_is_no_success_without_a_change(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")

    def refuse(_: int) -> bool:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(atomic_write, "_no_writer_waits", refuse)
    try:
        replace_file(path, b"new", expected=digest(b"old"))
        succeeded = True
    except OSError:
        succeeded = False
    assert not succeeded or path.read_bytes() == b"new"


def test_private_folder_that_cannot_be_read_keeps_no_descriptor(path: Path, monkeypatch: pytest.MonkeyPatch):
    drafts = path.parent.parent / "cache/callwright/drafts"
    drafts.mkdir(parents=True)
    drafts.chmod(0o755)

    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "another user's folder")

    monkeypatch.setattr(Path, "chmod", refuse)
    path.write_bytes(b"old")
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names are counted
    replace_file(path, b"new")
    assert path.read_bytes() == b"new" and len(os.listdir("/dev/fd")) == before  # noqa: PTH208 - as above


def test_pipe_in_place_of_the_file_does_not_block(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.write_bytes(b"old")

    def swap(*_: object, **__: object) -> None:
        path.unlink()
        os.mkfifo(path)
        raise PermissionError(errno.EPERM, "the folder may not be changed")

    monkeypatch.setattr(atomic_write, "_replace", swap)
    with pytest.raises(OSError, match="No such device"):
        replace_file(path, b"new")


@pytest.mark.parametrize("name", [f"{10**30}-0", "\u00b2-0", "999999999-0"])
def test_entry_named_like_a_draft_does_no_harm(path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(atomic_write, "_NAMELESS", 0)
    (path.parent / f".{name}.callwright-draft").mkdir()
    os.utime(path.parent / f".{name}.callwright-draft", (0, 0))
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_drafts_of_killed_processes_are_removed(path: Path, monkeypatch: pytest.MonkeyPatch):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = path.parent / f".{int(ended.stdout)}-0.callwright-draft"
    fresh = path.parent / f".{int(ended.stdout)}-1.callwright-draft"
    ours = path.parent / f".{os.getpid()}-0.callwright-draft"
    others = [path.parent / name for name in (f".{int(ended.stdout)}-0.txt", "notes.callwright-draft")]
    for draft in (left, fresh, ours, *others):
        draft.write_bytes(b"left over")
    for draft in (left, ours, *others):
        os.utime(draft, (0, 0))
    monkeypatch.setattr(atomic_write, "_NAMELESS", 0)
    replace_file(path, b"new")
    assert not left.exists()
    assert ours.exists() and all(other.exists() for other in others)
    assert fresh.exists()  # its process may run in another container, where ids mean something else


def _kill_while_writing(path: Path, rounds: int, seed: int) -> None:
    random = Random(seed)
    path.write_bytes(b"a" * 200_000)
    for _ in range(rounds):
        process = start_script(Path(__file__).with_name("endless_writer.py"), str(path))
        time.sleep(0.005 + random.random() * 0.03)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait().returncode == -signal.SIGKILL
        assert path.read_bytes() in (b"a" * 200_000, b"b" * 200_000)
        assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - names are compared


@pytest.mark.slow
def test_kill_leaves_old_or_new_content_and_no_draft(path: Path):
    _kill_while_writing(path, 20, 1)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_kills_leave_no_mixture_and_no_draft(path: Path):
    _kill_while_writing(path, 500, 2)


def _append_for_ever(path: Path, log: Path, in_place: bool) -> None:
    """Append one line after the other until killed from outside, and log every line that was."""
    with log.open("ab", buffering=0) as done:
        for number in range(1_000_000):
            line = b"theirs %d\n" % number
            while True:
                if in_place:
                    with path.open("ab", buffering=0) as file:
                        file.write(line)
                    break
                with suppress(Changed):
                    before = path.read_bytes()
                    replace_file(path, before + line, expected=digest(before))
                    break
            done.write(line)
            time.sleep(0.0003)


def _race(path: Path, rounds: int, *, in_place: bool) -> None:
    """We and a rival process both append lines to what we read; no line of either may get lost silently."""
    path.write_bytes(b"")
    log = path.parent.parent / "log"
    rival = multiprocessing.get_context("fork").Process(target=_append_for_ever, args=(path, log, in_place))
    rival.start()
    until_so(lambda: log.exists() and log.stat().st_size)
    ours: list[bytes] = []
    noticed = 0
    for number in range(rounds):
        before = path.read_bytes()
        line = b"ours %d\n" % number
        try:
            replace_file(path, before + line, expected=digest(before))
        except Changed:
            noticed += 1
        else:
            ours.append(line)
    rival.terminate()
    rival.join()
    replace_file(path, (before := path.read_bytes()) + b"ours at last\n", expected=digest(before))
    lines = path.read_bytes().splitlines(keepends=True)
    theirs = log.read_bytes().splitlines(keepends=True)
    assert [line for line in lines if line.startswith(b"theirs")][: len(theirs)] == theirs
    assert [line for line in lines if line.startswith(b"ours")] == [*ours, b"ours at last\n"]
    assert len(ours) + noticed == rounds


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [True, False])
def test_concurrent_updates_are_not_lost(path: Path, *, in_place: bool):
    _race(path, 100, in_place=in_place)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("in_place", [True, False])
def test_long_race_loses_no_update(path: Path, *, in_place: bool):
    _race(path, 1000, in_place=in_place)
