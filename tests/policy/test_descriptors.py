"""Redirects that copy descriptors, and folders that are copied into others: ordinary ones are not asked about."""

from pathlib import Path

import pytest

from callwright import Allow, Ask
from callwright.policy import judge_command


@pytest.mark.parametrize(
    "line",
    [
        "ls 2>&1",
        "ls >&2",
        "ls > /dev/stderr 2>&1",
        "ls 2> /dev/stdout",
        "ls >&- 2>&-",
        "ls 3>&1 1>&2 2>&3",
        "cat 0< notes.txt 2>&1",
        "cat < notes.txt > /dev/stdout",
        "cat <&0",
        "cat 3< notes.txt 0<&3",
        "while read -r -u 3 x; do echo $x; done 3< notes.txt",
        "while read -r x; do echo $x >&2; done < notes.txt",
        "cat notes.txt | tee /dev/stderr",
    ],
)
def test_ordinary_redirect_runs(line: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)


@pytest.mark.parametrize("line", ["cp -r new old", "cp -r new .", "cp -r new/. old", "cp -rT new old", "cp -r new x"])
def test_copy_into_a_folder_asks_only_if_a_link_there_leads_out(line: str, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    for folder in ("new", "old/new", "elsewhere"):
        (workspace / folder).mkdir(parents=True)
    (workspace / "new/a").write_text("x")
    (workspace / "elsewhere/a").symlink_to(tmp_path / "a")  # where nothing is written
    (workspace / "old/b").symlink_to(workspace / "new/a")
    (workspace / "new/link").symlink_to("a")
    assert isinstance(judge_command(line, cwd=workspace, workspace=workspace, mode="auto"), Allow)
    if line.endswith((".", "x")):
        return
    (workspace / "old/new/a").symlink_to(tmp_path / "a")
    decided = judge_command(line, cwd=workspace, workspace=workspace, mode="auto")
    assert isinstance(decided, Ask) and f"leads to {tmp_path / 'a'}" in decided.reason


def test_copy_into_a_folder_that_cannot_be_searched_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("new", "old/new/a", "old/new/b"):
        (tmp_path / name).mkdir(parents=True)
    assert isinstance(judge_command("cp -r new old", cwd=tmp_path, workspace=tmp_path, mode="auto"), Allow)
    monkeypatch.setattr("callwright.policy.trees._MAX_ENTRIES", 1)
    decided = judge_command("cp -r new old", cwd=tmp_path, workspace=tmp_path, mode="auto")
    assert isinstance(decided, Ask) and "too large to check" in decided.reason


@pytest.mark.parametrize(
    "line",
    [
        "mknod x p",
        "split notes.txt",
        "split -l 9 notes.txt zz",
        "git symbolic-ref HEAD refs/heads/a-b/c.d",
        "mknod --help",
    ],
)
def test_ordinary_writer_runs_in_auto_mode(line: str, tmp_path: Path) -> None:
    (tmp_path / "xab").symlink_to("zzaa")
    (tmp_path / "zzaa").write_text("x")
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto"), Allow)
