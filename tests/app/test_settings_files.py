"""Settings that are not regular files: a repository is read before it is trusted and may contain any link."""

import json
import os
from pathlib import Path

import pytest

from callwright.app.settings_file import read_layer
from callwright.core.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/stdin"])
def test_settings_linked_to_a_device_are_rejected(file: Path, device: str) -> None:
    if device == "/dev/stdin":  # whatever it leads to in a test run, a pipe is what it would wait for
        os.mkfifo(file)
    else:
        file.symlink_to(device)
    with pytest.raises(UsageError, match=r"cannot read the settings in .*: .* is a (device|named pipe)"):
        read_layer("project", file)


def test_folder_in_place_of_settings_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(UsageError, match=r"cannot read the settings in .*settings\.json: is a directory$"):
        read_layer("project", file)


def test_oversized_settings_file_is_rejected(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(UsageError, match="more than 1048576 bytes"):
        read_layer("project", file)


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_deeply_nested_settings_load_or_fail_cleanly(file: Path, depth: int) -> None:
    file.write_text('{"x": ' + "[" * depth + "]" * depth + "}")
    try:
        layer = read_layer("project", file)
    except UsageError as error:
        assert "too deeply" in str(error)
    else:
        assert layer is not None and "x" in layer.content


def test_settings_links_load_or_fail_cleanly(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    file.symlink_to(other)
    assert read_layer("project", file) is None
    other.write_text(json.dumps({"model": "x:y"}))
    layer = read_layer("project", file)
    assert layer is not None and layer.content["model"] == "x:y"
    other.unlink()
    other.symlink_to(file)
    with pytest.raises(UsageError, match="cannot read"):
        read_layer("project", file)
