"""In auto mode, lines that discard changes, write protected files or give a secret another name ask."""

import subprocess
from pathlib import Path

import pytest

from callwright.core.access import Allow
from callwright.policy import judge_command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, folder = tmp_path / "home", tmp_path / "ws"
    monkeypatch.setenv("HOME", str(home))
    files = ("home/.config/gh/hosts.yml", "home/.ssh/id_rsa", "ws/app.py", "ws/src/a.py", "ws/certs/server.key")
    for name in (*files, "ws/x/.vscode/tasks.json", "ws/list"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (folder / "links").mkdir()
    (folder / "links/notes.txt").symlink_to(home / ".ssh/id_rsa")
    subprocess.run(["git", "-C", str(folder), "init", "-q"], check=True)
    return folder


def _is_allowed(line: str, folder: Path) -> bool:
    return isinstance(judge_command(line, cwd=folder, workspace=folder, mode="auto"), Allow)


@pytest.mark.parametrize(
    "line",
    [
        "git checkout app.py",
        "git checkout src",
        "git -C src checkout a.py",
        "cd src && git checkout a.py",
        "git checkout HEAD app.py",
        "git checkout main gone.py",
        "git checkout '*.py'",
        "git checkout ./gone.py",
        "git checkout :/",
        "git checkout --orphan=new app.py",
        "git checkout -p",
        "git checkout evil .envrc CLAUDE.md .mcp.json",
        "git checkout CLAUDE.md",
        "git submodule deinit -f .",
        "git submodule set-url a https://example.com/b",
        "git submodule set-branch -b main a",
        "git mv certs/server.key notes.txt",
        "git mv ~/.config/gh y",
        "cp -r ~/.config/gh y",
        "rsync -a ~/.config/gh/ y",
        "cp -rL links y",
        "rsync -aL links y",
        "scp -r links y",
        "zip -r0 y.zip links",
        "tar chf y.tar links",
        "cd x && cp --parents .vscode/tasks.json ..",
        "cd x && cp --par .vscode/tasks.json ..",
        "cd x && rsync -R .vscode/tasks.json ..",
        "rsync -aR x/./.vscode/tasks.json .",
        "rsync -a --relative x/./.vscode/tasks.json .",
        "tar cf y.tar -T list",
        "tar cf y.tar --files-from=list",
        "tar -cT list -f y.tar",
        "rm app.py > log",
        "unlink app.py 2> log",
        "rmdir src >> log",
        "git commit --allow-empty -qF server.key",
        "git commit --allow-empty -qFserver.key",
        "git commit --fil server.key",
        "git add --pathspec-from server.key",
        "git tag -aF server.key v1",
        "git tag v1 HEAD:server.key",
        "git tag v1 HEAD:.config/gh",
        "git tag v1 -mm HEAD:server.key",
        "git tag v1 --message=x HEAD:server.key",
        "git tag v1 -Fm HEAD:server.key",
        "git tag -um HEAD:server.key v1",
        "git notes add -C HEAD:server.key",
        "git notes add -CHEAD:server.key",
    ],
)
def test_loss_and_disguise_ask(project: Path, line: str) -> None:
    assert not _is_allowed(line, project)


@pytest.mark.parametrize(
    "line",
    [
        "git checkout main",
        "git checkout feature/foo",
        "git checkout -b src",
        "git checkout -qb new origin/main",
        "git checkout --orphan new",
        "git checkout --orphan=new main",
        "git checkout -",
        "git checkout HEAD~1",
        "git checkout --conflict merge main",
        "git mv src/a.py src/b.py",
        "cp -r src copy",
        "cp -r certs copy",
        "cp -r links copy",
        "rsync -a src/ copy/",
        "tar czf y.tgz src",
        "zip -r y.zip src",
        "mv app.py new.py > log",
        "git commit -qF list",
        "git tag -a v1 -m 'fix: all'",
        "git tag -am 'fix: all' v1",
        "git tag v1 HEAD~1",
        "git notes add -m 'fix: all'",
    ],
)
def test_ordinary_changes_are_free(project: Path, line: str) -> None:
    assert _is_allowed(line, project)


@pytest.mark.parametrize(
    "line",
    [
        "cp -r links new && cat new/notes.txt",
        "cp -r links new && echo x > new/notes.txt",
        "cp -a leads new; echo x > new/a",
        "cp -P leads new && echo x > new/a",
        "cp --no-deref leads new && echo x > new/a",
        "mv links new && cat new/notes.txt",
        "rsync -a links/ new/ && cat new/notes.txt",
        "git mv links new && cat new/notes.txt",
        "git checkout other && cat notes.txt",
        "git checkout other && cd notes && echo x > a",
        "git checkout -b new other && cat notes.txt",
        "git checkout -bnew other && cat notes.txt",
        "git checkout -b new - && cat notes.txt",
        "while true; do cat notes.txt; git checkout other; done",
        "(sleep 1; cat notes.txt) & git checkout other",
        "(sleep 1; cat notes.txt) | git checkout other",
        "true <(sleep 1; cat notes.txt); git checkout other",
        r"sh -c 'sleep 1; cat notes.txt' \&& git checkout other",
        "git switch other && cp app.py notes/a",
        "git merge other && cat notes.txt",
        "git stash pop; cat notes.txt",
        "git worktree add new other && cat new/notes.txt",
        "for x in 1 2; do cat notes.txt; git checkout other; done",
    ],
)
def test_paths_through_links_that_the_line_makes_ask(project: Path, line: str) -> None:
    (project / "leads").symlink_to(project.parent / "home")
    assert not _is_allowed(line, project)


@pytest.mark.parametrize(
    "line",
    [
        "cp -r src new && cat new/a.py",
        "cp -r src new && echo x > new/a.py",
        "cp -r links new",
        "cat app.py && git checkout other",
        "git checkout other && git status && git add .",
        "git checkout -b new && echo x > app.py",
        "git switch -c new && sed -i s/a/b/ app.py",
        "git stash list && cat app.py",
        "git add . && git commit -m x && cat app.py",
        "git checkout other && ls",
    ],
)
def test_other_paths_are_used_after_changes(project: Path, line: str) -> None:
    (project / "src/b.py").symlink_to("a.py")
    (project / "src/python").symlink_to("/usr/bin/python3")
    assert _is_allowed(line, project)
