"""Other operating systems: nothing fails at import, and what a system does not offer is said where it is used."""

import os
import pathlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

from callwright import UsageError
from callwright.cli.main import COMMANDS, run
from callwright.mcp import PinnedToolsFile
from callwright.system import platforms
from callwright.system.private_files import make_private, open_private
from callwright.toolbox import coding_tools

ROOT = Path(__file__).parents[1]
_IMPORT_ALL = """
import importlib, os, pathlib, sys
import acp, asyncpg, mcp.client.stdio, openai, rich.console, starlette.applications, temporalio.worker, uvicorn
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_TMPFILE", "fork", "geteuid", "getuid",
             "killpg", "memfd_create", "mkfifo", "pidfd_open", "register_at_fork", "sched_getaffinity", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
source = pathlib.Path(sys.argv[1])
for file in sorted(source.glob("callwright/**/*.py")):
    name = ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except (ImportError, AttributeError) as error:
            print(f"{name}: {error}")
"""


@pytest.mark.slow
def test_every_module_imports_without_posix_modules() -> None:
    command = [sys.executable, "-c", _IMPORT_ALL, str(ROOT / "src")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stdout + ran.stderr


def test_tools_that_need_posix_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        with pytest.raises(UsageError, match=r"Linux or macOS.*WSL"):
            coding_tools(folder)


def test_commands_that_need_posix_say_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    anywhere = ["completion", "runs", "worker"]
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        for line in [["-p", "hello"], *([name] for name in COMMANDS if name not in anywhere)]:
            assert run(line) == 2, line
            assert "need Linux or macOS" in capsys.readouterr().err, line
        assert run(["completion", "bash"]) == 0


def test_private_files_without_modes_and_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fchmod", "getuid", "geteuid"):
        monkeypatch.delattr(os, name)
    make_private(tmp_path / "folder")
    with open_private(tmp_path / "folder" / "file") as file:
        file.write("text")
    assert (tmp_path / "folder" / "file").read_text() == "text"


def test_files_that_need_posix_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = PinnedToolsFile(tmp_path / "pinned.json")
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        patched.setattr(pathlib, "WindowsPath", pathlib.PosixPath)
        with pytest.raises(UsageError, match="need Linux or macOS"):
            pinned.accept_all("shop", {"pay": "digest"})


def test_lock_of_windows_reports_a_taken_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[int] = set()

    def locking(descriptor: int, mode: int, length: int) -> None:
        if taken:
            raise PermissionError(13, "Permission denied")
        taken.add(descriptor)

    windows = types.ModuleType("msvcrt")
    vars(windows).update(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(platforms, "fcntl", None)
    with (tmp_path / "lock").open("wb") as file:
        platforms.lock_file(file.fileno())
        assert taken == {file.fileno()}
        with pytest.raises(BlockingIOError):
            platforms.lock_file(file.fileno())
