"""A project and a home folder."""

from pathlib import Path

import pytest

from callwright.app.locations import Locations


@pytest.fixture(autouse=True)
def no_claude_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the files of Claude Code of the user who runs the tests out of them."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    (tmp_path / "project").mkdir()
    return Locations.of(tmp_path / "project", home=tmp_path / "home")
