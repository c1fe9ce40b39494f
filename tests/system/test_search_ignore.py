"""Ignore rules, compared with git itself."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from callwright.system.search.gitignore import (
    IgnoreRules,
    IgnoreScope,
    find_global_excludes,
    find_ignore_reason,
    parse_rules,
)
from callwright.system.search.ripgrep import find_ripgrep
from callwright.system.search.walk import Walk, walk_files

_NAMES = ("a", "b", "ab", "a.c", "b.c", "x y", "#n", "!n", "[q]", "build", ".d", "a.b.c", "\\z", "zz")
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CEILING_DIRECTORIES": tempfile.gettempdir(),
}


def _git(root: Path, *arguments: str) -> list[str]:
    command = ["git", "-c", "core.quotepath=false", *arguments]
    done = subprocess.run(command, cwd=root, env=_ENVIRONMENT, stdout=subprocess.PIPE, check=True)
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


def _make(root: Path, files: Sequence[str], rules: dict[str, str]) -> None:
    _git(root, "init", "-q")
    for name in files:
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    for folder, text in rules.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text(text)


def _listed(root: Path) -> list[str]:
    return sorted(walk_files(Walk(root, root)))


paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4).map("/".join)
pieces = st.sampled_from(
    (*_NAMES, "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "*.c", "\\", "!", " ", "[[:alpha:]]", "***")
)
lines = st.lists(pieces, min_size=1, max_size=5).map("".join)
texts = st.lists(lines, min_size=1, max_size=4).map("\n".join)


@example(["a", "ab/c"], {"": "a**/*"})
@example(["a/b/c", "ab/c"], {"": "/a**"})
@example(["build/a", "a/build/b"], {"": "build/\n!build/a"})
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(paths, min_size=3, max_size=15),
    st.dictionaries(st.sampled_from(("", "a", "b", "a/b", "build")), texts, min_size=1, max_size=3),
)
def test_the_walk_lists_what_git_lists(files: list[str], rules: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        _make(root, files, rules)
        assert _listed(root) == _git(root, "ls-files", "-z", "-o", "--exclude-standard")


def test_ignore_files_have_ripgrep_precedence(tmp_path: Path) -> None:
    _make(tmp_path, ["a.log", "b.tmp", "keep.log", "sub/c.log", "sub/d.txt"], {"": "*.log\n*.tmp\n", "sub": "!c.log\n"})
    (tmp_path / ".ignore").write_text("!keep.log\nd.txt\n")
    (tmp_path / ".rgignore").write_text("!b.tmp\n")
    assert _listed(tmp_path) == sorted(
        [".gitignore", ".ignore", ".rgignore", "b.tmp", "keep.log", "sub/.gitignore", "sub/c.log"]
    )
    program = find_ripgrep()
    if program is not None:
        command = [program, "--files", "--hidden", "--null", "--glob=!.git"]
        done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True)
        assert _listed(tmp_path) == sorted(done.stdout.decode().split("\0")[:-1])


def test_outer_repository_rules_stop_at_an_inner_one(tmp_path: Path) -> None:
    _make(tmp_path, ["a.log", "inner/b.log"], {"": "*.log\n"})
    _git(tmp_path / "inner", "init", "-q")
    assert _listed(tmp_path) == [".gitignore", "inner/b.log"]


def test_rules_apply_from_the_top_without_repository(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    root = tmp_path / "workspace"
    (root / "sub").mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\n")
    (root / "sub" / "a.log").write_text("x")
    (root / "sub" / "b.txt").write_text("x")
    assert list(walk_files(Walk(root / "sub", root))) == ["b.txt"]


def test_a_symlink_is_neither_listed_nor_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "up").symlink_to("..")
    assert _listed(tmp_path) == ["real/a"]


def test_the_reason_names_file_line_and_rule(tmp_path: Path) -> None:
    _make(tmp_path, ["build/out/a.txt"], {"": "# made\nbuild/\n"})
    reason = find_ignore_reason(tmp_path / "build" / "out" / "a.txt", tmp_path)
    assert reason is not None
    assert reason.path == str(tmp_path / "build")
    assert str(reason) == f"{tmp_path}/.gitignore:2 (build/)"
    assert find_ignore_reason(tmp_path / "src", tmp_path) is None


def test_edited_ignore_file_applies_at_once(tmp_path: Path) -> None:
    _make(tmp_path, ["a.log"], {"": "*.log\n"})
    assert _listed(tmp_path) == [".gitignore"]
    (tmp_path / ".gitignore").write_text("*.txt\n")
    assert _listed(tmp_path) == [".gitignore", "a.log"]


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore"])
def test_a_pipe_or_device_in_place_of_an_ignore_file_has_no_rules(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).symlink_to("/dev/zero")
    (tmp_path / "sub" / "a").write_text("x")
    assert _listed(tmp_path) == ["sub/a"]


def test_of_an_endless_ignore_file_whole_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    (tmp_path / ".gitignore").write_text("b\n" + "#" * (1 << 20) + "\na\n")
    assert _listed(tmp_path) == [".gitignore", "a"]
    (tmp_path / ".gitignore").write_text("b\n" + "*" * (1 << 20) + "x\n")  # cut, it would hide everything
    assert _listed(tmp_path) == [".gitignore", "a"]


def test_a_pipe_in_place_of_the_settings_of_git_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "excludes").write_text("a\n")
    (tmp_path / ".gitconfig").write_text(f"[core]\n excludesFile = {tmp_path}/excludes\n")
    assert find_global_excludes() == tmp_path / "excludes"
    (tmp_path / ".gitconfig").unlink()
    os.mkfifo(tmp_path / ".gitconfig")
    assert find_global_excludes() is None


def test_the_external_cases_get_the_same_answer() -> None:
    folder = os.environ.get("CALLWRIGHT_CASES")
    if folder is None:
        pytest.skip("CALLWRIGHT_CASES names no folder of external cases")
    rows = [json.loads(line) for line in (Path(folder) / "grepglob" / "gitignore_crate.jsonl").read_text().splitlines()]
    wrong = [row["name"] for row in rows if _ignored(row["gitignore"], row["path"], row["is_dir"]) != row["ignored"]]
    assert wrong == []


def _ignored(text: str, path: str, folder: bool) -> bool:
    rule = IgnoreRules(parse_rules(text)).verdict(path, path.rpartition("/")[2], folder=folder)
    return rule is not None and rule.hides


def test_excludes_of_the_repository_apply_in_a_linked_worktree(tmp_path: Path):
    main, side = tmp_path / "main", tmp_path / "side"
    main.mkdir()
    _make(main, ["a.log", "b"], {})
    (main / ".git" / "info").mkdir(exist_ok=True)
    (main / ".git" / "info" / "exclude").write_text("*.log\n")
    _git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    _git(main, "worktree", "add", "-q", str(side))
    (side / "a.log").write_text("x")
    (side / "b").write_text("x")
    for root in (main, side):
        assert _listed(root) == _git(root, "ls-files", "-z", "-o", "--exclude-standard") == ["b"]
    (side / ".git").write_bytes(b"gitdir: a\0b\n")
    assert _listed(side) == ["a.log", "b"]


def test_work_grows_with_the_names_of_a_folder_not_with_their_square(tmp_path: Path):
    class Name(str):
        """A name that counts how often it is looked up."""

        __slots__ = ()
        looked_up = 0

        def __hash__(self) -> int:
            Name.looked_up += 1
            return super().__hash__()

    (tmp_path / ".gitignore").write_text("*.log\n")
    names: list[str] = [Name(f"{number}.{'log' if number % 2 else 'txt'}") for number in range(300)]
    scope = IgnoreScope.of(tmp_path, tmp_path)
    shown, hidden = scope.part(f"{tmp_path}/", names, folders=False)
    assert (len(shown), len(hidden)) == (150, 150)
    assert Name.looked_up <= 4 * len(names)
