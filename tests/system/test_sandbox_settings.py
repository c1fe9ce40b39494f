"""What a sandbox is told to open, protect, show and search, tried from the inside."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.system.conftest import APPROVED, READ_ONLY, WORKSPACE, Attempt
from tests.waiting import LONG_SECONDS

from callwright.core.access import Confinement, is_below
from callwright.system.sandbox.bubblewrap import find_program
from callwright.system.sandbox.sandbox import Sandbox, find_sandbox
from callwright.system.sandbox.wall import NamedPaths


def test_further_folders_are_protected_and_opened(complete: Sandbox, attempt: Attempt, workspace: Path, tmp_path: Path):
    protected, opened = workspace / "deploy", tmp_path / "cache"
    for folder in (protected, opened):
        folder.mkdir()
    sandbox = find_sandbox("require", roots=[workspace], protected=["deploy", "absent"], writable=[opened])
    line = f"echo x > deploy/run; echo x > {opened}/made; echo x > ../file"
    attempt(sandbox, line, READ_ONLY)
    assert [*protected.iterdir(), *opened.iterdir()] == []
    attempt(sandbox, line, WORKSPACE)
    assert [*protected.iterdir(), *opened.iterdir()] == [opened / "made"]
    assert (tmp_path / "file").read_text() == "as it was"


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [("server.key", True), ("*.key", True), ("*/sub/server.key", True), ("sub/server.key", False), ("*.pem", False)],
)
def test_only_secrets_of_a_pattern_are_shown(
    complete: Sandbox, attempt: Attempt, workspace: Path, pattern: str, shown: bool
):
    sandbox = find_sandbox("require", roots=[workspace], readable=[pattern])
    text = attempt(sandbox, "cat sub/server.key .env").stdout
    assert ("PRIVATE KEY" in text) is shown and "hunter2" not in text


@pytest.mark.parametrize("confinement", [READ_ONLY, WORKSPACE, APPROVED])
def test_secrets_in_a_named_folder_are_masked(
    complete: Sandbox, attempt: Attempt, tmp_path: Path, confinement: Confinement
):
    folder = tmp_path / "other" / "deep"
    folder.mkdir(parents=True)
    (folder / ".env").write_text("SECRET=hunter2\n")
    (folder / "notes").write_text("shown\n")
    text = attempt(complete, f"grep -rh . {folder}", confinement, NamedPaths(reads=(str(folder.parent),))).stdout
    assert "shown\n" in text and "hunter2" not in text


def test_only_folders_that_were_searched_count_as_searched(workspace: Path, tmp_path: Path):
    other, large = tmp_path / "other", tmp_path / "large"
    other.mkdir()
    for number in range(301):
        (large / str(number)).mkdir(parents=True)
    file = tmp_path / "file"
    named = NamedPaths(reads=tuple(map(str, (workspace / "sub", other, large, file, tmp_path / "absent", "/"))))
    sandbox = Sandbox("bubblewrap", (str(workspace),))
    wall, _ = sandbox.wall(READ_ONLY, str(workspace), tmp_path / "scratch", named)
    assert wall.searched == (str(workspace), str(other))
    assert wall.unsearched == (str(large), "/")


def test_secret_behind_a_link_is_shown_if_its_target_is_named(complete: Sandbox, attempt: Attempt, workspace: Path):
    (workspace / "settings.txt").write_text("SECRET=hunter3\n")
    (workspace / ".env.local").symlink_to("settings.txt")
    assert "hunter3" not in attempt(complete, "cat settings.txt .env.local", APPROVED).stdout
    for name in ("settings.txt", ".env.local"):
        named = NamedPaths(reads=(str(workspace / name),))
        assert attempt(complete, "cat settings.txt .env", APPROVED, named).stdout.startswith("SECRET=hunter3\n")
        assert "hunter" not in attempt(complete, "cat settings.txt .env", WORKSPACE, named).stdout


def test_workspace_is_searched_again_only_where_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    real, later = os.scandir, time.time_ns() + 10**12

    def scandir(path: str) -> object:
        read.append(str(path))
        return real(path)

    roots = tuple(str(tmp_path / name) for name in ("one", "two"))
    for root in roots:
        Path(root).mkdir()
    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: later)
    sandbox = Sandbox("bubblewrap", roots)
    assert sandbox.scanned is False and Sandbox("none", roots).scanned is True
    sandbox.scan()
    assert sandbox.scanned is True and read == [*roots]
    sandbox.scan()
    assert read == [*roots]


def test_link_that_cannot_be_put_back_is_not_reported_as_such(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: str) -> bool:
        return False

    link = workspace / "CLAUDE.md"
    link.symlink_to("AGENTS.md")
    monkeypatch.setattr("callwright.system.sandbox.wall.move_away", fail)
    sandbox = Sandbox("landlock", (str(workspace),))
    with sandbox.confine(("true",), str(workspace), WORKSPACE, scratch=tmp_path / "scratch") as confined:
        link.unlink()
        link.write_text("changed")
    assert confined.removed == [] and link.read_text() == "changed"


@pytest.mark.parametrize(("place", "secrets", "whole"), [("", 450, False), ("keys", 450, True), ("keys", 300, False)])
def test_folder_is_hidden_whole_only_if_it_has_too_many_secrets(
    workspace: Path, tmp_path: Path, place: str, secrets: int, whole: bool
):
    folder = workspace / place
    folder.mkdir(exist_ok=True)
    keys = [folder / f"{number}.key" for number in range(secrets)]
    for key in keys:
        key.touch()
    wall, _ = Sandbox("bubblewrap", (str(workspace),)).wall(READ_ONLY, str(workspace), tmp_path / "scratch")
    assert all(is_below(str(key), wall.masked) for key in (*keys, workspace / ".env"))
    assert (str(folder) in wall.masked) is whole
    assert len(wall.masked) < 400 or not place


@pytest.mark.slow
@pytest.mark.parametrize("place", [".", "keys"])
def test_many_secrets_in_one_folder_stay_hidden(complete: Sandbox, attempt: Attempt, workspace: Path, place: str):
    (workspace / place).mkdir(exist_ok=True)
    for number in range(450):
        (workspace / place / f"{number}.key").write_text("PRIVATE KEY\n")
    assert attempt(complete, f"cat {place}/*.key | grep -c PRIVATE; echo ran").stdout == "0\nran\n"


_INSIDE = """
import subprocess, sys
from pathlib import Path
from callwright.core.access import Confinement
from callwright.system.sandbox.sandbox import find_sandbox
root = sys.argv[1]
for path in (f"{root}/mount/.vscode", f"{root}/sub/mount/.vscode"):
    Path(path).mkdir()
Path(root, "mount", ".env").write_text("SECRET=hunter2")
sandbox = find_sandbox("require", roots=[root])
line = "cat mount/.env; touch plain/made mount/made sub/mount/made && echo; touch sub/mount/.vscode/made"
argv = ("bash", "-c", line)
with sandbox.confine(argv, root, Confinement.WORKSPACE, scratch=Path(root, "..", "scratch")) as confined:
    subprocess.run(confined.argv, stderr=subprocess.STDOUT)
"""


def test_file_systems_mounted_in_the_workspace_stop_no_command(complete: Sandbox, workspace: Path):
    assert complete.kind == "bubblewrap"
    places = [workspace / name for name in ("plain", "mount", "sub/mount")]
    for place in places:
        place.mkdir()
    mounts = [option for place in places for option in ("--tmpfs", str(place))]
    argv = [find_program(), "--dev-bind", "/", "/", *mounts, "--", sys.executable, "-c", _INSIDE, str(workspace)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=LONG_SECONDS, check=False)
    if ended.returncode:
        pytest.skip(f"no sandbox works in another one here: {ended.stderr}")
    masked, refused = ended.stdout.splitlines()
    assert masked == "# masked: this" and "Read-only file system" in refused


def test_own_folder_in_the_workspace_stops_no_command(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    (workspace / "tmp").mkdir()
    monkeypatch.setattr("callwright.system.sandbox.wall.output_folder", lambda: workspace / "tmp")
    assert attempt(complete, "cat .env", WORKSPACE).stdout == "# masked: this "
