"""What tests of skills share: a project and a home on disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without anything in it."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def write(project: Path) -> Write:
    """Write a skill below a folder and return its folder."""

    def write_skill(name: str, body: str = "Do it.", *fields: str, base: Path | None = None) -> Path:
        folder = (base or project / ".callwright" / "skills") / name
        folder.mkdir(parents=True, exist_ok=True)
        front = "\n".join([f"name: {name}", f"description: What {name} is for.", *fields])
        (folder / "SKILL.md").write_text(f"---\n{front}\n---\n{body}\n", encoding="utf-8")
        return folder

    return write_skill
