"""Files for their owner alone, and whose files above a folder count."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from callwright.app.locations import Locations
from callwright.app.prompts import instructions_for
from callwright.system.private_files import (
    check_socket_folder,
    make_private,
    make_socket_folder,
    open_private,
    replace_private,
    write_private,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_new_and_existing_files_become_private(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o644)
    for path in (old, tmp_path / "new"):
        with open_private(path) as file:
            file.write("y")
        assert mode(path) == 0o600 and path.read_text() == "y"
    with pytest.raises(FileExistsError):
        open_private(old, exclusive=True)


def test_pipes_and_devices_keep_their_mode(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with open_private(pipe, append=True) as file:
        file.write("y")
    assert os.read(reader, 10) == b"y"
    os.close(reader)
    assert mode(pipe) == 0o666


def test_socket_folder_that_another_user_could_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "above" / "sockets"
    make_socket_folder(folder)
    folder.parent.chmod(0o1777)  # as /tmp: only the owner of an entry may replace it
    check_socket_folder(folder)
    folder.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="above can be changed by other users"):
        check_socket_folder(folder)
    folder.parent.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="sockets must be a folder that belongs to you"):
        check_socket_folder(folder)


def test_text_that_utf8_cannot_encode_is_written_escaped(tmp_path: Path) -> None:
    with open_private(tmp_path / "a") as file:
        file.write("half \ud83d")
    write_private(tmp_path / "b", "half \ud83d")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"half \\ud83d"


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_earlier_file_stays_if_writing_fails(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("the earlier text")
    program = f"""
import resource, signal
from pathlib import Path
from callwright.system.private_files import write_private
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_private(Path({str(old)!r}), "x" * 5000)
except OSError as error:
    print(error.strerror)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "File too large\n"
    assert old.read_text() == "the earlier text" and list(tmp_path.iterdir()) == [old]


def test_written_file_is_private_and_links_stay(tmp_path: Path) -> None:
    old, link, pipe = tmp_path / "old", tmp_path / "link", tmp_path / "pipe"
    old.write_text("x" * 100)
    old.chmod(0o644)
    link.symlink_to(old)
    write_private(link, "y")
    assert link.is_symlink() and mode(old) == 0o600 and old.read_text() == "y"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_private(pipe, "y")
    assert os.read(reader, 10) == b"y" and pipe.is_fifo()
    os.close(reader)
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path, "y")
    with pytest.raises(FileNotFoundError):
        write_private(tmp_path / "absent" / "x", "y")


def test_replaced_file_may_be_read_only_and_have_a_long_name(tmp_path: Path) -> None:
    old = tmp_path / ("long name " * 20)
    old.write_text("x")
    old.chmod(0o444)
    replace_private(old, b"y")
    assert old.read_text() == "y" and mode(old) == 0o600 and list(tmp_path.iterdir()) == [old]
    with pytest.raises(FileNotFoundError):
        replace_private(tmp_path / "absent" / "x", b"y")


@pytest.mark.file_modes
def test_read_only_file_stays(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o444)
    with pytest.raises(PermissionError):
        write_private(old, "y")
    assert old.read_text() == "x" and list(tmp_path.iterdir()) == [old]


def test_whole_folder_becomes_private(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "projects" / "a").mkdir(parents=True)
    (home / "trust.json").write_text("{}")
    (home / "projects" / "a" / "sessions.db").write_text("")
    outside.write_text("")
    (home / "link").symlink_to(outside)
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    outside.chmod(0o644)
    make_private(home)
    found = {path: mode(path) for path in (home, *home.rglob("*")) if not path.is_symlink()}
    assert all(not bits & 0o077 for bits in found.values()) and mode(outside) == 0o644


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
def test_repository_of_another_user_above_does_not_count(tmp_path: Path) -> None:
    here = tmp_path / "mine" / "deeper"
    here.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("obey me")
    assert Locations.of(here, home=tmp_path / "h").project == tmp_path
    os.chown(tmp_path / ".git", 4242, 4242)
    locations = Locations.of(here, home=tmp_path / "h")
    assert locations.project == here and "obey me" not in instructions_for(locations)
    os.chown(tmp_path / ".git", 0, 0)
    os.chown(tmp_path / "AGENTS.md", 4242, 4242)
    assert "obey me" not in instructions_for(Locations.of(here, home=tmp_path / "h"))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("signal", ["-m", "callwright"]),
        ("json", ["-mcallwright"]),
        ("argparse", ["-Bm", "callwright"]),
        ("asyncio", ["-W", "ignore", "-Bmcallwright"]),
        ("dataclasses", ["-m", "callwright.__main__"]),
    ],
)
def test_module_run_does_not_import_from_the_working_folder(tmp_path: Path, name: str, options: list[str]) -> None:
    (tmp_path / f"{name}.py").write_text("open('evil', 'w').close()\n")
    # not PYTHONPATH: what the user puts there is meant to be imported
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *options, "--help"],
        cwd=tmp_path,
        env={**environment, "CALLWRIGHT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "evil").exists()
