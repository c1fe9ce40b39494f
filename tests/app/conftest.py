"""A project and a home folder."""

from pathlib import Path

import pytest

from callwright.app.locations import Locations


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    (tmp_path / "project").mkdir()
    return Locations.of(tmp_path / "project", home=tmp_path / "home")
