"""Ignore rules: git itself says what is right."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolwright.system.ignore import why_ignored
from toolwright.system.walk import walk_files

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
    return sorted(walk_files(root, root))


paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4).map("/".join)
pieces = st.sampled_from((*_NAMES, "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "*.c", "\\", "!", " ", "[[:alpha:]]", "***"))
lines = st.lists(pieces, min_size=1, max_size=5).map("".join)
texts = st.lists(lines, min_size=1, max_size=4).map("\n".join)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(paths, min_size=3, max_size=15),
    st.dictionaries(st.sampled_from(("", "a", "b", "a/b", "build")), texts, min_size=1, max_size=3),
)
def test_the_walk_lists_what_git_lists(files: list[str], rules: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        _make(root, files, rules)
        assert _listed(root) == _git(root, "ls-files", "-z", "-o", "--exclude-standard")
