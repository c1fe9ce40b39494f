"""A repository that names programs in its own settings is not looked at without asking."""

import subprocess
from pathlib import Path

import pytest

from callwright import Allow, Ask
from callwright.core.access import Decision
from callwright.policy import judge_command
from callwright.policy.guards import find_repository_program


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def judged(line: str, folder: Path, **options: str) -> Decision:
    return judge_command(line, cwd=folder, workspace=folder, **options)  # type: ignore[arg-type] - modes only


def test_ordinary_repository_is_read_unasked(repository: Path) -> None:
    for line in ("git status", "git diff", "git log -p | head", "git show HEAD"):
        assert isinstance(judged(line, repository), Allow), line


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("diff.external", "touch pwned"),
        ("diff.pdf.textconv", "sh -c x"),
        ("diff.pdf.command", "evil"),
        ("filter.x.clean", "evil"),
        ("filter.x.process", "evil"),
        ("include.path", "../evil"),
        ("includeIf.gitdir:/.path", "../evil"),
    ],
)
def test_program_in_git_settings_makes_reading_ask(repository: Path, setting: str, value: str) -> None:
    subprocess.run(["git", "-C", str(repository), "config", "--local", setting, value], check=True)
    below = repository / "src"
    below.mkdir()
    for folder in (repository, below):
        for mode in ("default", "auto", "bypass"):
            decision = judged("git diff", folder, mode=mode)
            assert isinstance(decision, Ask), (setting, mode)
            assert decision.source == "guard repository"


def test_linked_work_tree_uses_its_repository_settings(repository: Path, tmp_path: Path) -> None:
    run = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*run, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
    tree = tmp_path.parent / f"{tmp_path.name}-tree"
    subprocess.run([*run, "worktree", "add", "--quiet", str(tree)], check=True)
    assert find_repository_program(str(tree)) == ""
    subprocess.run([*run, "config", "diff.external", "evil"], check=True)
    assert "external = evil" in find_repository_program(str(tree))


def test_bare_repository_is_checked(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "config", "diff.external", "evil"], check=True)
    assert isinstance(judged("git log", tmp_path), Ask)


def test_no_program_outside_a_repository(tmp_path: Path) -> None:
    assert find_repository_program(str(tmp_path)) == ""
