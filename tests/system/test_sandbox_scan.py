"""The search for secrets and protected paths, and the masks that hide them."""

import os
import time
from pathlib import Path

import pytest

from callwright.system.sandbox import wall as walls
from callwright.system.sandbox.scan import FolderScan, has_more_folders


def test_scan_sees_every_change(workspace: Path):
    scan = FolderScan(str(workspace))
    for place in ("sub/.env", "sub/deep/.env.local", "sub/deep/id_rsa"):
        assert str(workspace / place) not in scan.find().secrets
        (workspace / place).parent.mkdir(exist_ok=True)
        (workspace / place).write_text("x")
        assert str(workspace / place) in scan.find().secrets
        (workspace / place).unlink()
        assert str(workspace / place) not in scan.find().secrets


def test_large_folder_is_scanned_in_part(tmp_path: Path):
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    assert FolderScan(str(tmp_path)).find().complete
    assert not FolderScan(str(tmp_path), max_folders=5).find().complete


@pytest.mark.parametrize(("most", "found"), [(22, False), (21, True), (5, True)])
def test_too_many_folders_are_noticed(tmp_path: Path, most: int, found: bool):
    for number in range(20):
        (tmp_path / "one" / str(number)).mkdir(parents=True)
        for name in ("node_modules", ".git"):  # not searched, so not counted
            (tmp_path / name / str(number)).mkdir(parents=True)
    assert has_more_folders(str(tmp_path), most) is found
    assert FolderScan(str(tmp_path), max_folders=most).find().complete is not found


def test_secrets_of_the_user_are_looked_for_every_few_seconds(home: Path, monkeypatch: pytest.MonkeyPatch):
    now = [time.monotonic() + 1000]
    monkeypatch.setattr(walls.time, "monotonic", lambda: now[0])
    assert str(home / ".netrc") not in walls.user_secrets()
    (home / ".netrc").write_text("machine a password b\n")
    now[0] += 4
    assert str(home / ".netrc") not in walls.user_secrets()
    now[0] += 4
    assert str(home / ".netrc") in walls.user_secrets()
    other = home.parent / "other"
    other.mkdir()
    (other / ".netrc").write_text("machine a password b\n")
    monkeypatch.setenv("HOME", str(other))
    assert str(other / ".netrc") in walls.user_secrets()
    monkeypatch.setattr(walls, "_user_secrets", type(walls._user_secrets)())  # pyright: ignore[reportPrivateUsage]


def test_mask_is_made_again_when_it_is_gone(tmp_path: Path):
    (tmp_path / "key").write_text("PRIVATE KEY\n" * 9)
    mask = Path(walls.mask_file(str(tmp_path / "key")))
    mask.unlink()
    assert walls.mask_file(str(tmp_path / "key")) == str(mask)
    assert b"PRIVATE" not in mask.read_bytes()
    kept, masked = (tmp_path / "key").stat(), mask.stat()
    assert (kept.st_size, kept.st_mtime_ns) == (masked.st_size, masked.st_mtime_ns)


def test_mask_that_is_there_is_used_again(tmp_path: Path):
    (tmp_path / "key").write_text("PRIVATE KEY\n")
    mask = Path(walls.mask_file(str(tmp_path / "key")))
    with mask.open("rb") as first:
        assert walls.mask_file(str(tmp_path / "key")) == str(mask)
        assert os.fstat(first.fileno()).st_nlink == 1


def test_attributes_that_hide_committed_secrets_are_made_when_missing():
    file = Path(walls.git_attributes_file())
    file.unlink()
    assert walls.git_attributes_file() == str(file) and ".[eE][nN][vV] -diff\n" in file.read_text()
    with file.open("rb") as first:
        assert walls.git_attributes_file() == str(file)
        assert os.fstat(first.fileno()).st_nlink == 1


def test_forgotten_mask_is_made_again_by_a_user_who_may_not_write_it(tmp_path: Path):
    (tmp_path / "key").write_text("PRIVATE KEY\n")
    with Path(walls.mask_file(str(tmp_path / "key"))).open("rb") as first:
        walls._mask_file.cache_clear()  # pyright: ignore[reportPrivateUsage]
        assert walls.mask_file(str(tmp_path / "key")) == first.name
        assert os.fstat(first.fileno()).st_nlink == 0  # a new file, not the old one written again


def test_path_that_cannot_be_moved_away_is_not_reported_as_gone(tmp_path: Path):
    assert not walls.move_away(str(tmp_path / "absent"))
    (tmp_path / "made").write_text("x")
    assert walls.move_away(str(tmp_path / "made")) and not (tmp_path / "made").exists()


def test_paths_in_another_path_are_left_out():
    assert walls.outermost(["/w/a/b", "/w/a-b", "/w/a", "/w/ab/c"]) == ["/w/a", "/w/a-b", "/w/ab/c"]


def test_nothing_behind_a_link_is_moved_away(tmp_path: Path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/file").touch()
    (tmp_path / "link").symlink_to("theirs")
    assert not walls.move_away(str(tmp_path / "link/file")) and (tmp_path / "theirs/file").exists()
    assert walls.move_away(str(tmp_path / "link")) and (tmp_path / "theirs").exists()


def test_scan_reads_only_folders_that_changed(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    real = os.scandir

    def scandir(path: str) -> object:
        read.append(str(path))
        return real(path)

    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    later = time.time_ns() + 10**12
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: later)
    scan = FolderScan(str(workspace))
    assert str(workspace / ".env") in scan.find().secrets and str(workspace / "sub") in read
    read.clear()
    assert str(workspace / ".env") in scan.find().secrets
    assert [path for path in read if ".git" not in path] == []
    (workspace / "sub" / "id_rsa").write_text("x")
    assert str(workspace / "sub" / "id_rsa") in scan.find().secrets and str(workspace / "sub") in read


def test_scan_goes_on_past_a_folder_that_is_gone_or_closed(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(workspace / "closed"):
            raise PermissionError
        if str(path) == str(workspace):
            (workspace / "gone").mkdir(exist_ok=True)
        found = real(path)
        if str(path) == str(workspace / "sub"):
            (workspace / "gone").rmdir()
        return found

    (workspace / "closed").mkdir()
    monkeypatch.setattr("callwright.system.sandbox.scan.os.scandir", scandir)
    found = FolderScan(str(workspace)).find()
    closed = str(workspace / "closed")
    assert found.complete and found.closed == {closed}
    assert {str(workspace / ".env"), str(workspace / "sub" / "server.key"), closed} == found.secrets


@pytest.mark.parametrize("ago_ms", [1, -1])
def test_scan_does_not_trust_a_folder_that_changed_a_moment_ago(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, ago_ms: int
):
    now = 1_700_000_000_000_000_000
    monkeypatch.setattr("callwright.system.sandbox.scan.time.time_ns", lambda: now)
    scan = FolderScan(str(workspace))
    for name in ("id_rsa", "id_ed25519"):
        # as on a disk whose clock is too coarse to tell the changes apart
        os.utime(workspace / "sub", ns=(now, now - ago_ms * 1_000_000))
        assert str(workspace / "sub" / name) not in scan.find().secrets
        (workspace / "sub" / name).write_text("x")
        os.utime(workspace / "sub", ns=(now, now - ago_ms * 1_000_000))
        assert str(workspace / "sub" / name) in scan.find().secrets


def test_parts_of_repositories_that_run_programs_are_protected(workspace: Path):
    git = workspace / ".git"
    made = (
        "modules/a/objects/x modules/a/config modules/b/c/hooks/pre-commit modules/b/c/config"
        " modules/b/c/modules/d/config worktrees/w/config.worktree info/attributes commondir description"
    )
    for name in made.split():
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).touch()
    for name in (".GIT", ".gıt"):
        (workspace / "other" / name / "hooks").mkdir(parents=True)
    found = {path.removeprefix(f"{workspace}/") for path in FolderScan(str(workspace)).find().protected}
    inside = {path for path in found if path.casefold().startswith((".git", "other"))}
    names = "hooks config modules/a/config modules/b/c/hooks modules/b/c/config worktrees/w/config.worktree"
    assert inside == {f".git/{name}" for name in f"{names} info/attributes commondir".split()} | {"other/.GIT/hooks"}


@pytest.mark.parametrize("name", ["modules", "worktrees"])
def test_link_in_a_repository_is_protected_and_not_searched(workspace: Path, tmp_path: Path, name: str):
    (tmp_path / "outside/app/hooks").mkdir(parents=True)
    (workspace / ".git" / name).symlink_to(tmp_path / "outside")
    found = FolderScan(str(workspace)).find().protected
    assert str(workspace / ".git" / name) in found and not any("app" in path for path in found)


def test_scan_follows_no_link(workspace: Path):
    (workspace / "up").symlink_to("..")
    found = FolderScan(str(workspace), max_folders=30).find()
    assert found.complete and not has_more_folders(str(workspace), 30)
    assert not any("/up/" in path for path in found.secrets | found.protected)
