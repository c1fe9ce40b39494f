"""Other operating systems: nothing fails at import, and what a system does not offer is said where it is used."""

import os
import pathlib
import re
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
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800)
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


@pytest.mark.skipif(os.name == "nt", reason="the bash on PATH may be that of another system")
@pytest.mark.parametrize("folder", ["Scripts", "bin"])
def test_scripts_find_the_programs_of_an_environment(tmp_path: Path, folder: str) -> None:
    programs = tmp_path / "an environment" / folder
    programs.mkdir(parents=True)
    line = '. "$1/scripts/environment" && find_programs "$2"'
    ran = subprocess.run(["bash", "-c", line, "", ROOT, programs.parent], capture_output=True, text=True, check=True)
    assert Path(ran.stdout.strip()) == programs


@pytest.mark.skipif(os.name == "nt", reason="the bash on PATH may be that of another system")
def test_setup_refuses_a_python_that_is_too_old(tmp_path: Path) -> None:
    for name, code in (("python3", 1), ("python", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    line = 'PATH="$2:$PATH"; . "$1/scripts/environment"; find_python'
    command = ["bash", "-c", line, "", ROOT, tmp_path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "python\n"
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "Python 3.11 or later" in refused.stderr


def test_scripts_name_no_folder_of_one_platform() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "scripts").iterdir() if path.is_file()}
    bash = {name: text for name, text in texts.items() if "bash\n" in text[:30]}
    assert {"setup", "check", "run-tests"} <= set(bash)
    assert [name for name, text in bash.items() if re.search(r"\.venv[^ ]*/bin", text)] == []


@pytest.mark.parametrize(("needed", "made", "code"), [(1, 1, 0), (3, 3, 0), (9, 4, 1)])
def test_scripts_try_again_what_fails_for_a_moment(tmp_path: Path, needed: int, made: int, code: int) -> None:
    attempt = 'attempt() { echo x >> "$1"; [ "$(wc -l < "$1")" -ge "$2" ]; }'
    line = f'set -eu; . scripts/environment; {attempt}; try_often attempt "$1" "$2"; echo done'
    command = ["bash", "-c", line, "bash", str(tmp_path / "attempts"), str(needed)]
    around = os.environ | {"TRY_OFTEN_PAUSES": "0 0 0"}
    ended = subprocess.run(command, cwd=ROOT, env=around, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (code, "" if code else "done\n")
    assert len((tmp_path / "attempts").read_text().split()) == made
