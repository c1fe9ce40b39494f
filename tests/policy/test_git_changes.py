"""Changes that git makes in a workspace: which run unasked in auto mode."""

from pathlib import Path

import pytest

from callwright import Allow, Ask
from callwright.policy import judge_command

_MESSAGES = [
    'git commit -m"fix"',
    'git commit -am"fix io"',
    "git commit -m'docs: exec' -a",
    "git commit -mverify -m'-x -i -o'",
    'git tag -m"added" v1',
    "git tag -am'deleted files' v1",
    "git merge -m'fix tests' topic",
    "git cherry-pick -x abc",
    "git cherry-pick -nx abc",
]
_OTHERS = [
    "git commit -ifix",
    "git commit -oma",
    "git commit -mfix --amend",
    "git commit -mfix -o a",
    "git tag -dm v1",
    "git tag -fmx v1",
    "git tag -mfixed -d v1",
    "git merge -m x -s ours topic",
    "git merge -smine topic",
    "git cherry-pick -xi abc",
    "git cherry-pick -x --strategy=a abc",
    "git stash push -mfix",  # of `stash show`, -m is another option
    "git pull -x",
]
_REDIRECTS = [
    "git remote add a https://a.example/x",
    "git remote -v add a ../b",
    "git remote set-url origin https://a.example/x",
    "git remote set-url --push origin https://a.example/x",
    "git remote set-url --add origin https://a.example/x",
    "git remote rename a origin",
    "git -C sub remote add a ../b",
    "git submodule init",
    "git submodule --quiet sync --recursive",
]


@pytest.mark.parametrize("line", _MESSAGES)
def test_message_that_is_joined_to_its_option_is_not_read_as_options(line: str, tmp_path: Path) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto"), Allow)


@pytest.mark.parametrize("line", _OTHERS)
def test_joined_options_that_do_more_than_commit_ask(line: str, tmp_path: Path) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto"), Ask)


@pytest.mark.parametrize("line", _REDIRECTS)
def test_change_of_where_git_connects_to_asks(line: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    decided = judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto", network_reads="allow")
    assert isinstance(decided, Ask) and ".git/config" in decided.reason
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="bypass"), Allow)


@pytest.mark.parametrize("line", ["git remote", "git remote -v", "git remote get-url origin", "git submodule status"])
def test_listing_of_remotes_runs(line: str, tmp_path: Path) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)


@pytest.mark.parametrize("line", ["git remote set-branches origin main", "git submodule absorbgitdirs"])
def test_other_changes_of_remotes_run_in_auto_mode(line: str, tmp_path: Path) -> None:
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto"), Allow)
