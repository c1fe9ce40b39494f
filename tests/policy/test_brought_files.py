"""In auto mode, git calls that replace files ask where changes would be lost or the new files may be links."""

from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask, Decision
from callwright.policy import judge_command


def _judge(line: str, folder: Path) -> Decision:
    (folder / "a").touch()
    (folder / "src").mkdir()
    allow = ["Bash(git merge *)", "Bash(git pull)", "Bash(git stash *)"]
    return judge_command(line, cwd=folder, workspace=folder, mode="auto", allow=allow)


@pytest.mark.parametrize(
    "line",
    [
        "git checkout other && cat a",
        "git checkout - && cat a",
        "git switch - && touch b",
        "git checkout -b new main && cat a",
        "git merge x && cat a",
        "git pull && touch b",
        "git stash pop; touch b",
        "cat a | git merge x",
    ],
)
def test_files_that_git_may_have_brought_ask(line: str, tmp_path: Path) -> None:
    decided = _judge(line, tmp_path)
    assert isinstance(decided, Ask) and "may have brought links" in decided.reason


@pytest.mark.parametrize("line", ["git checkout a", "git checkout src", "git checkout -q a"])
def test_checkout_of_a_file_asks(line: str, tmp_path: Path) -> None:
    decided = _judge(line, tmp_path)
    assert isinstance(decided, Ask) and "would discard the changes" in decided.reason


@pytest.mark.parametrize(
    "line",
    [
        "git checkout -b new && cat a",
        "git switch -c new && cat a",
        "cat a && git merge x",
        "git diff && cat a",
        "git stash list && cat a",
        "git add a && cat a",
        "git commit -m x && touch b",
        "git checkout main",
        "git checkout -b a",
        "git switch main",
    ],
)
def test_git_call_that_brings_no_files_before_others_is_allowed(line: str, tmp_path: Path) -> None:
    assert isinstance(_judge(line, tmp_path), Allow)
