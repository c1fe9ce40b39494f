"""Settings that are not regular files: a repository is read before it is trusted and may contain any link."""

import json
import os
from pathlib import Path

import pytest

from callwright.app.claude_settings import parse_claude_layer
from callwright.app.settings_file import parse_layer, read_layer
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


@pytest.mark.parametrize(
    "variables", [{"A=B": "x"}, {"": "x"}, {"A\0": "x"}, {"A": "x\0"}, {"A": "\ud83d"}, {"\ud83d": "x"}]
)
def test_variable_that_no_process_can_have_is_a_usage_error(variables: dict[str, str]) -> None:
    text = json.dumps({"model": "x", "env": variables}, indent=1)
    for parse in (parse_layer, parse_claude_layer):
        with pytest.raises(UsageError, match=r"^s\.json:4: env.*; (rename|remove) it"):
            parse("user", "s.json", text)
    assert parse_layer("user", "s.json", '{"env": {"A": "x=\u00e9"}}').section("env") == {"A": "x=\u00e9"}


@pytest.mark.parametrize("place", ["permissions.additionalDirectories", "sandbox.writable", "sandbox.readable"])
@pytest.mark.parametrize("name", ["a\0b", "a\ud83d"])
def test_folder_that_cannot_exist_is_a_usage_error(place: str, name: str) -> None:
    section, key = place.split(".")
    with pytest.raises(
        UsageError, match=rf"^s\.json:1: {place}: '.*' has a NUL or half of a surrogate pair; remove it"
    ):
        parse_layer("user", "s.json", json.dumps({section: {key: ["fine", name]}}))


@pytest.mark.parametrize("key", ["megabytes", "largestFileMegabytes"])
def test_endless_undo_is_a_usage_error(key: str) -> None:
    with pytest.raises(UsageError, match=rf"^s\.json:1: undo\.{key}: 1e\+?308 is greater than the maximum"):
        parse_layer("user", "s.json", json.dumps({"undo": {key: 1e308}}))


def test_key_that_utf8_cannot_encode_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"^s\.json:1: the settings: a key has half of a surrogate pair"):
        parse_layer("user", "s.json", json.dumps({"hooks": {"\ud83d": []}}))
