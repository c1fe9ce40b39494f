"""The modes of everything the command writes to the user's folder, with the most generous umask."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """Return the entries that other users could read or write."""
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*")) if not path.is_symlink()}
    return {str(path.relative_to(folder)): oct(mode) for path, mode in modes.items() if mode & 0o077}


@pytest.mark.usefixtures("generous_umask")
def test_everything_in_the_home_folder_is_private(
    machine: Any, calls: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "fresh"
    script = machine.says(calls("bash", command="echo hello"), "done")
    monkeypatch.setenv("CALLWRIGHT_HOME", str(home))
    log, export = home / "log.jsonl", home / "export.jsonl"
    assert machine("-p", "go", script, "--session-id", "s1", "--log", str(log)).code == 0
    machine.settings({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}})
    assert machine("trust", "give").code == 0
    assert machine("mcp", "add", "x", "-s", "user", "--", "run").code == 0
    assert machine("sessions", "export", "s1", "--output", str(export)).code == 0
    assert {"trust.json", "settings.json", "log.jsonl", "export.jsonl", "projects"} <= {p.name for p in home.iterdir()}
    assert open_to_others(home) == {}
