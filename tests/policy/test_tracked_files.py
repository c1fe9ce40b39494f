"""A rule against reading a file also holds for git calls that print tracked files without naming any."""

import os
import subprocess
from pathlib import Path

import pytest

from callwright import Allow
from callwright.core.access import Decision
from callwright.policy import judge_command

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True)


def _make(folder: Path, *options: str) -> Path:
    _git(folder, "init", "--quiet", *options, "ws")
    for name in ("secret/a.txt", "other/b.py", "README", "3"):
        file = folder / "ws" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x\n")
    _git(folder / "ws", "add", ".")
    _git(folder / "ws", "commit", "--quiet", "-m", "x")
    (folder / "ws/.env").write_text("x\n")
    return folder / "ws"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make(tmp_path_factory.mktemp("tracked"))


def _judge(line: str, folder: Path, *deny: str, workspace: Path | None = None, allow: tuple[str, ...] = ()) -> Decision:
    return judge_command(line, cwd=folder, workspace=workspace or folder, deny=deny, allow=allow)


SHOWN = [
    "git grep x",
    "git grep -n -e x",
    "git grep -A 3 README",
    "git grep x HEAD",
    "git grep x HEAD:secret",
    "git grep x HEAD:",
    "git grep --cached x",
    "git grep x -- ':!other'",
    "git diff",
    "git diff --cached",
    "git diff HEAD~1 HEAD",
    "git diff HEAD:secret HEAD~1:secret",
    "git diff --stat -p",
    "git diff --check",
    "git show",
    "git show HEAD",
    "git show -s --patch",
    "git show 'HEAD^{/fix*}'",
    "git show --format=%s HEAD",
    "git log -p",
    "git log -wp",
    "git log -U5",
    "git log --cc",
    "git log --remerge-diff",
    "git log -p -S README",
    "git log -p --author README",
    "git log -p HEAD:README HEAD",
    "git whatchanged -p",
    "git reflog -p",
    "git stash show",
    "git stash list -p",
    "git status -v",
    "git diff-tree -p HEAD",
    "git diff-index -p HEAD",
    "git diff-files -p",
    "git range-diff HEAD~1 HEAD HEAD",
    "git format-patch --stdout --no-binary HEAD~1",
    "cd other && git show",
    "git -C other diff",
]
NOT_SHOWN = [
    "git grep x other",
    "git grep -n x other",
    "git grep -e x other",
    "git grep x HEAD:other",
    "git grep x -- other",
    "git grep x -- '*.py'",
    "cd other && git grep x",
    "git diff other",
    "git diff -w other README",
    "git diff HEAD -- other",
    "git diff --stat",
    "git diff --name-only HEAD~1",
    "git diff HEAD:README HEAD~1:README",
    "git show HEAD:README",
    "git show --stat",
    "git show -s --format=%H",
    "git log",
    "git log --oneline -5",
    "git log -p other",
    "git log -p -- other",
    "git log -Sprint --until=today",
    "git log --stat --remotes --cherry",
    "git blame README",
    "git status -s -uno",
    "git stash list",
    "git reflog",
    "git diff-tree --name-only HEAD",
    "git archive --list",
]


@pytest.mark.parametrize("line", SHOWN)
def test_deny_rule_holds_for_tracked_files_that_are_not_named(repository: Path, line: str) -> None:
    assert isinstance(_judge(line, repository), Allow)
    for rule in ("Read(secret/**)", "Read(/secret/a.txt)"):
        assert not isinstance(_judge(line, repository, rule), Allow)


@pytest.mark.parametrize("line", NOT_SHOWN)
def test_git_call_that_does_not_show_the_denied_file_is_allowed(repository: Path, line: str) -> None:
    assert isinstance(_judge(line, repository, "Read(secret/**)"), Allow)


@pytest.mark.parametrize("line", ["git grep x", "git diff", "git show", "git log -p"])
def test_file_that_git_does_not_track_does_not_count(repository: Path, line: str) -> None:
    assert isinstance(_judge(line, repository, "Read(.env)", "Read(gone/**)"), Allow)


@pytest.mark.parametrize(
    "line",
    ["git archive HEAD", "git archive HEAD secret", "git archive HEAD -o 3", "git add -p", "git --git-dir .git grep x"],
)
def test_allow_rule_does_not_lift_the_deny_rule(repository: Path, line: str) -> None:
    assert isinstance(_judge(line, repository, allow=("Bash", "Edit")), Allow)
    assert not isinstance(_judge(line, repository, "Read(secret/**)", allow=("Bash", "Edit")), Allow)


@pytest.mark.parametrize("form", ["--index-version=3", "--index-version=4", "--split-index"])
def test_every_form_of_the_index_is_read(tmp_path: Path, form: str) -> None:
    folder = _make(tmp_path)
    for name in ("n" * 200, *(f"deep-{number}" for number in range(40))):
        (folder / f"other/{name}").mkdir()
        (folder / f"other/{name}/file").write_text("x\n")
    _git(folder, "add", "other")
    _git(folder, "update-index", *form.split("="))
    (folder / "README").write_text("y\n")
    (folder / "other/later").write_text("x\n")
    _git(folder, "add", "README")  # whose entry in a split index has no path
    _git(folder, "add", "-N", "other/later")  # which needs the longer entries of the third version
    index = (folder / ".git/index").read_bytes()
    assert index[7] == (4 if form.endswith("4") else 3)
    assert any(folder.glob(".git/sharedindex.*")) is (form == "--split-index")
    for rule in ("Read(secret/**)", "Read(deep-39/**)", "Read(later)"):
        assert not isinstance(_judge("git grep x", folder, rule), Allow)
    assert isinstance(_judge("git grep x", folder, "Read(.env)"), Allow)


def test_long_ids_and_linked_work_trees_are_read(tmp_path: Path) -> None:
    folder = _make(tmp_path, "--object-format=sha256")
    _git(folder, "worktree", "add", "--quiet", "../linked")
    for place in (folder, tmp_path / "linked"):
        assert isinstance(_judge("git show HEAD", place, "Read(gone/**)", workspace=tmp_path), Allow)
        assert not isinstance(_judge("git show HEAD", place, "Read(secret/**)", workspace=tmp_path), Allow)


def test_submodules_count(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    _make(tmp_path / "origin")
    _git(tmp_path, "init", "--quiet", "outer")
    _git(tmp_path / "outer", "submodule", "--quiet", "add", "../origin/ws", "part")
    (tmp_path / "outer/private").write_text("x\n")
    _git(tmp_path / "outer", "add", "private")
    line = "git grep --recurse-submodules x"
    assert isinstance(_judge(line, tmp_path / "outer", "Read(gone/**)"), Allow)
    assert not isinstance(_judge(line, tmp_path / "outer", "Read(secret/**)"), Allow)
    assert not isinstance(_judge(line, tmp_path / "outer", "Read(private)"), Allow)


def test_folder_that_git_passes_over_hides_no_repository(tmp_path: Path) -> None:
    folder = _make(tmp_path)
    _git(tmp_path, "init", "--quiet", "decoy")
    (tmp_path / "decoy/b.py").write_text("x\n")
    _git(tmp_path / "decoy", "add", "b.py")
    (folder / "other/.git").mkdir()
    (tmp_path / "decoy/.git/index").rename(folder / "other/.git/index")
    assert not isinstance(_judge("cd other && git show", folder, "Read(secret/**)"), Allow)
    assert isinstance(_judge("cd other && git show", folder, "Read(gone/**)"), Allow)


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\1", b"DIRC\0\0\0\x09" + bytes(60), None])
def test_index_that_cannot_be_read_asks(tmp_path: Path, content: bytes | None) -> None:
    folder = _make(tmp_path)
    (folder / ".git/index").unlink()
    if content is not None:
        (folder / ".git/index").write_bytes(content)
    assert not isinstance(_judge("git log -p", folder, "Read(gone/**)"), Allow)


def test_pipe_in_place_of_the_index_is_not_waited_for(tmp_path: Path) -> None:
    folder = _make(tmp_path)
    (folder / ".git/index").unlink()
    os.mkfifo(folder / ".git/index")
    assert not isinstance(_judge("git log -p", folder, "Read(gone/**)"), Allow)


def test_sparse_folder_in_the_index_asks(tmp_path: Path) -> None:
    folder = _make(tmp_path)
    _git(folder, "sparse-checkout", "init", "--cone", "--sparse-index")
    _git(folder, "sparse-checkout", "set", "other")
    for name in ("core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse"):
        subprocess.run(["git", "config", "--unset", name], cwd=folder, check=False)
    assert not isinstance(_judge("git log -p", folder, "Read(secret/**)"), Allow)


def test_repository_behind_a_link_is_compared_by_both_names(tmp_path: Path) -> None:
    _make(tmp_path)
    (tmp_path / "link").symlink_to("ws")
    for rule in (f"Read(/{tmp_path}/ws/secret/**)", f"Read(/{tmp_path}/link/secret/**)", "Read(link/secret/**)"):
        for line in ("cd link && git show", "cd link/other && git show"):
            assert not isinstance(_judge(line, tmp_path, rule), Allow)
