"""Commands in the background that move or close folders while the wall of the next command is built."""

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system.conftest import APPROVED, READ_ONLY, WORKSPACE, Attempt
from tests.waiting import LONG_SECONDS

from callwright.core.access import Confinement
from callwright.system.sandbox import seatbelt
from callwright.system.sandbox.sandbox import Sandbox
from callwright.system.sandbox.scan import FolderScan, is_there
from callwright.system.sandbox.wall import NamedPaths, Wall

_ROUNDS = 12
_TO_AND_FRO = """
import os, sys, time
print("ready", flush=True)
moves = {"move": [("app", "moved"), ("moved", "app")], "close": [("app", 0), ("app", 0o755)]}[sys.argv[1]]
while True:
    for path, change in moves:
        try:
            os.rename(path, change) if isinstance(change, str) else os.chmod(path, change)
        except OSError:
            pass
        time.sleep(0.002)
"""


@pytest.fixture
def secret(workspace: Path) -> Iterator[Path]:
    path = workspace / "app" / "inner" / "server.key"
    path.parent.mkdir(parents=True)
    path.write_text("PRIVATE KEY\n")
    yield path
    for name in ("app", "moved"):
        if (workspace / name).exists():
            (workspace / name).chmod(0o755)


@contextmanager
def _moving(sandbox: Sandbox, workspace: Path, scratch: Path, how: str) -> Generator[None, None, None]:
    argv = (sys.executable, "-c", _TO_AND_FRO, how)
    with (
        sandbox.confine(argv, str(workspace), WORKSPACE, scratch=scratch) as confined,
        subprocess.Popen(confined.argv, cwd=workspace, stdout=subprocess.PIPE, text=True) as job,
    ):
        try:
            assert job.stdout is not None and job.stdout.readline() == "ready\n"
            yield
        finally:
            job.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("confinement", [READ_ONLY, WORKSPACE])
@pytest.mark.parametrize("how", ["move", pytest.param("close", marks=pytest.mark.file_modes)])
def test_command_in_the_background_hides_no_secret_from_the_next_one(
    complete: Sandbox, workspace: Path, tmp_path: Path, how: str, confinement: Confinement
):
    shown = ""
    with _moving(complete, workspace, tmp_path / "mover", how):
        line = "for _ in 1 2 3 4 5 6 7 8 9; do cat */inner/server.key; sleep 0.001; done"
        for _ in range(_ROUNDS):
            try:
                with complete.confine(("bash", "-c", line), str(workspace), confinement, scratch=tmp_path) as confined:
                    ended = subprocess.run(
                        confined.argv, cwd=workspace, capture_output=True, text=True, timeout=LONG_SECONDS, check=False
                    )
            except PermissionError:
                continue  # it does not run
            shown += ended.stdout
    assert "PRIVATE" not in shown


def test_folder_with_a_secret_cannot_be_moved(complete: Sandbox, attempt: Attempt, workspace: Path, secret: Path):
    for line in ("mv app moved", "mv app/inner moved"):
        assert "busy" in attempt(complete, line, WORKSPACE).stderr
    assert secret.exists()
    ended = attempt(complete, "touch app/new app/inner/new && rm app/new && mv app/inner/new app/ && ls app", WORKSPACE)
    assert ended.stdout.split() == ["inner", "new"]


def test_line_that_names_a_folder_with_a_secret_may_move_it(
    complete: Sandbox, attempt: Attempt, workspace: Path, secret: Path
):
    named = NamedPaths(writes=(str(workspace / "app"), str(workspace / "moved")))
    assert attempt(complete, "mv app moved", APPROVED, named).returncode == 0
    assert not secret.exists() and (workspace / "moved" / "inner" / "server.key").exists()


def test_seatbelt_keeps_the_folders_around_what_it_denies(tmp_path: Path):
    wall = Wall("/w", tmp_path, ("/w",), (), ("/w/a/.git/hooks", "/w/b"), ("/w/c/d/key", "/w/b/e/key", "/h/key"))
    assert '(deny file-write-unlink (literal "/w/a") (literal "/w/a/.git") (literal "/w/c") (literal "/w/c/d"))' in (
        seatbelt.make_profile(wall).splitlines()
    )
    assert "unlink" not in seatbelt.make_profile(Wall("/w", tmp_path, ("/w",), masked=("/w/key",)))


def test_own_folder_that_is_closed_while_it_is_read_is_masked(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(workspace / "sub"):
            raise PermissionError
        return real(path)

    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    found = FolderScan(str(workspace)).find()
    assert found.complete and str(workspace / "sub") in found.closed and found.closed < found.secrets


@pytest.mark.file_modes
def test_path_in_a_closed_folder_is_not_taken_for_missing(workspace: Path):
    sub, inside = workspace / "sub", (str(workspace),)
    sub.chmod(0)
    try:
        with pytest.raises(PermissionError):
            is_there(f"{sub}/server.key", inside, frozenset())
        assert not is_there(f"{sub}/server.key", inside, frozenset((str(sub),)))  # masked as a whole
        assert not is_there(f"{sub}/server.key", (), frozenset())  # no command changes modes there
        assert is_there(str(sub), inside, frozenset((str(sub),)))
    finally:
        sub.chmod(0o755)


def test_folders_around_many_secrets_are_held_up_to_a_limit(workspace: Path, tmp_path: Path) -> None:
    masked = [str(workspace / f"package{number}" / "tests" / "server.key") for number in range(300)]
    hooks = workspace / "deep" / "er" / ".git" / "hooks"
    wall = Wall(str(workspace), tmp_path, writable=(str(workspace),), masked=tuple(masked), protected=(str(hooks),))
    held = wall.folders_around()
    assert len(held) == 200 + 3
    assert {str(hooks.parent), str(workspace / "deep")} <= set(held)
    assert all(Path(folder).parent == workspace for folder in held if "package" in folder)
