"""Lines that would do harm are never allowed by the analysis alone; `tests/shell/data` holds them by class."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from callwright import Allow
from callwright.policy import judge_command

_ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "shell" / "data" / "harmful_lines.jsonl").read_text().splitlines()
]
_SETUPS = sorted({(row["setup"], row["class"]) for row in _ROWS})


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a secret and an executable, a home with a private key, and a folder outside of both."""
    base = tmp_path.resolve()
    for folder in ("ws", "home/.ssh", "outside"):
        (base / folder).mkdir(parents=True)
    (base / "ws/.env").write_text("SECRET=hunter2\n")
    (base / "ws/notes.txt").write_text("notes\n")
    (base / "ws/README").write_text("readme\n")
    (base / "ws/evil.sh").write_text(f"#!/bin/sh\ntouch {base}/PWNED\n")
    (base / "ws/evil.sh").chmod(0o755)
    (base / "home/.ssh/id_rsa").write_text("PRIVATE KEY\n")
    (base / "outside/keep.txt").write_text("keep\n")
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("API_TOKEN", "hunter2")
    return base


@pytest.mark.parametrize(("setup", "name"), _SETUPS, ids=[f"{name}-{place}" for place, (_, name) in enumerate(_SETUPS)])
def test_no_harmful_line_is_allowed(base: Path, setup: str, name: str) -> None:
    # the setup makes files and repositories; the lines themselves are only judged
    subprocess.run(["bash", "-c", setup.replace("@B@", str(base))], cwd=base / "ws", check=False, capture_output=True)
    rows = [row for row in _ROWS if (row["setup"], row["class"]) == (setup, name)]
    allowed = [row["line"] for row in rows if _is_allowed(base, row)]
    assert not allowed


def _is_allowed(base: Path, row: dict[str, Any]) -> bool:
    line, folder = row["line"].replace("@B@", str(base)), base / "ws"
    options: dict[str, Any] = {"mode": row["mode"], "network_reads": row["network_reads"]}
    return isinstance(judge_command(line, cwd=folder, workspace=folder, **options), Allow)
