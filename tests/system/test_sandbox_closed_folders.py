"""Folders that their owner cannot search, which a command could make to hide what is in them."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.conftest import READ_ONLY, WORKSPACE, Attempt

from callwright.system.output_capture import output_folder
from callwright.system.sandbox import wall as walls
from callwright.system.sandbox.sandbox import Sandbox


@pytest.fixture
def submodule(workspace: Path) -> Iterator[None]:
    (workspace / ".git/modules/one/hooks").mkdir(parents=True)
    (workspace / ".git/modules/one/config").write_text("[core]\n")
    yield
    for path in (workspace, workspace / "sub"):
        path.chmod(0o700)  # or nobody could remove them


@pytest.mark.file_modes
@pytest.mark.usefixtures("submodule")
@pytest.mark.parametrize(
    ("closing", "line"),
    [
        ("chmod 311 sub", "cat sub/server.key"),
        ("chmod 400 sub", "chmod 700 sub; cat sub/server.key"),
        ("chmod 311 .", "cat .env sub/server.key"),
        ("chmod 311 .", "echo evil > .git/hooks/pre-commit"),
        ("chmod 311 .git/modules", "echo evil > .git/modules/one/config"),
        ("chmod 400 .git/modules/one", "chmod 700 .git/modules/one; echo evil > .git/modules/one/config"),
        ("mkdir -p new/.git/hooks; echo evil > new/.git/hooks/pre-commit; chmod 311 new", "true"),
        ("mkdir -p new/.git/hooks; echo evil > new/.git/hooks/pre-commit; chmod 500 new/.git/hooks new/.git", "true"),
    ],
)
def test_command_cannot_hide_a_folder_from_the_search(
    complete: Sandbox, attempt: Attempt, workspace: Path, closing: str, line: str
):
    attempt(complete, closing, WORKSPACE)
    ended = attempt(complete, line, WORKSPACE)
    assert "hunter2" not in ended.stdout and "PRIVATE" not in ended.stdout
    written = [workspace / name for name in (".git/hooks", "new/.git/hooks", ".git/modules/one")]  # may be unlisted
    assert not any((path / "pre-commit").exists() for path in written)
    assert "evil" not in (workspace / ".git/modules/one/config").read_text()
    assert (workspace / ".env").exists() and (workspace / ".git/modules/one/config").exists()


@pytest.mark.file_modes
@pytest.mark.usefixtures("submodule")
def test_folder_that_was_closed_before_is_masked_and_stays(complete: Sandbox, attempt: Attempt, workspace: Path):
    (workspace / "sub").chmod(0o311)
    for confinement in (READ_ONLY, WORKSPACE):
        ended = attempt(complete, "chmod 755 sub; cat sub/server.key", confinement)
        assert "PRIVATE" not in ended.stdout and "Read-only file system" in ended.stderr
    assert stat.S_IMODE((workspace / "sub").stat().st_mode) == 0o311


@pytest.mark.file_modes
@pytest.mark.usefixtures("submodule")
def test_nothing_runs_where_the_search_cannot_begin(complete: Sandbox, attempt: Attempt, workspace: Path):
    workspace.chmod(0o311)
    with pytest.raises(PermissionError, match="chmod u"):
        attempt(complete, "cat .env")


@pytest.mark.file_modes
@pytest.mark.usefixtures("submodule")
def test_nothing_is_moved_out_of_a_folder_that_was_closed(workspace: Path, tmp_path: Path):
    (workspace / "sub").chmod(0o311)
    unmasked = Sandbox("landlock", (str(workspace),))
    with unmasked.confine(("true",), str(workspace), WORKSPACE, scratch=tmp_path / "scratch") as confined:
        (workspace / "sub").chmod(0o755)
    assert confined.removed == [] and (workspace / "sub/.vscode").exists()


@pytest.mark.parametrize("content", ["pipe", "large", "plain", "link", "nothing"])
def test_new_protected_path_is_moved_away_from_another_file_system(
    complete: Sandbox, attempt: Attempt, workspace: Path, monkeypatch: pytest.MonkeyPatch, content: str
):
    rename, private = os.rename, str(output_folder())

    def rename_in_one(source: str, target: str, **folders: int) -> None:
        if str(target).startswith(private):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target, **folders)

    monkeypatch.setattr("callwright.system.sandbox.wall.os.rename", rename_in_one)
    odd = {"pipe": "mkfifo x", "large": "truncate -s 2T x", "plain": "echo x > x", "link": "ln -s ../../.. x"}.get(
        content
    )
    attempt(complete, f"mkdir -p new/.git/hooks; cd new/.git/hooks; echo evil > pre-commit; {odd or ':'}", WORKSPACE)
    left = {path.name for path in (workspace / "new/.git").iterdir()}
    assert "hooks" not in left and len(left) == (content in ("pipe", "large"))


def test_long_name_is_moved_away(tmp_path: Path):
    (tmp_path / ("x" * 255)).symlink_to("somewhere")
    assert walls.move_away(str(tmp_path / ("x" * 255))) and not [*tmp_path.iterdir()]
