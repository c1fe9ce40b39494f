"""Settings: four places, one meaning, and complaints that point at a line."""

import json
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwright.app.layer import SCHEMA_FILE, parse_layer
from toolwright.app.places import Places
from toolwright.app.position import line_of
from toolwright.app.settings import load_settings
from toolwright.core.errors import UsageError


@pytest.fixture
def places(tmp_path: Path) -> Places:
    project = tmp_path / "project"
    (project / ".toolwright").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return Places.of(project, home=tmp_path / "home")


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content))


def test_the_last_word_counts_and_nearer_places_speak_later(places: Places) -> None:
    write(places.user_settings, {"model": "user", "sandbox": "prefer"})
    write(places.project_settings, {"model": "project", "permissions": {"defaultMode": "plan"}})
    write(places.local_settings, {"model": "local"})
    settings = load_settings(places, trusted=True)
    assert (settings.last("model"), settings.last("sandbox")) == ("local", "prefer")
    assert settings.last("permissions", "defaultMode") == "plan"
    given_too = load_settings(places, trusted=True, given=['{"model": "option"}'])
    assert given_too.last("model") == "option"


def test_servers_come_from_every_place_and_an_entry_is_replaced_whole(places: Places) -> None:
    write(places.user_settings, {"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}})
    write(places.project_servers, {"mcpServers": {"a": {"command": "z"}}})
    servers = load_settings(places, trusted=True).merged("mcpServers")
    assert servers == {"a": {"command": "z"}, "b": {"command": "y"}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{\n  "model": "x",\n}', ":3: not valid JSON"),
        ('{\n  "permissions": {\n    "allow": "Bash"\n  }\n}', ":3: permissions.allow: "),
        ('{\n  "permissions": {"deny": [\n    "Read(.env)",\n    42\n  ]}\n}', ":4: permissions.deny.1: "),
        ('{\n\n  "sandbox": "maybe"}', ":3: sandbox: "),
        ('{"hooks": {"PreToolUse": [\n {"matcher": "Bash"}]}}', ":2: hooks.PreToolUse.0: "),
        ("[]", ":1: the settings: "),
    ],
)
def test_a_complaint_names_the_file_and_the_line(places: Places, text: str, complaint: str) -> None:
    places.user_settings.write_text(text)
    with pytest.raises(UsageError) as raised:
        load_settings(places, trusted=False)
    assert str(raised.value).startswith(f"{places.user_settings}{complaint}")


def test_settings_of_the_command_line_that_are_not_there_are_named(places: Places) -> None:
    with pytest.raises(UsageError, match=r"--settings nowhere\.json"):
        load_settings(places, trusted=True, given=["nowhere.json"])


def test_a_key_nobody_reads_is_told_with_the_one_that_was_meant() -> None:
    layer = parse_layer("user", "settings.json", '{\n  "modell": "x",\n  "statusLine": {}\n}')
    assert layer.problems[0].startswith("settings.json:2: 'modell'") and "did you mean 'model'?" in layer.problems[0]
    assert layer.problems[1].startswith("settings.json:3: 'statusLine'")


def test_a_file_with_a_byte_order_mark_is_read(places: Places) -> None:
    places.user_settings.write_bytes(b'\xef\xbb\xbf{"model": "x"}')
    assert load_settings(places, trusted=False).last("model") == "x"


def test_folders_are_read_from_where_they_were_written(places: Places) -> None:
    write(places.project_settings, {"permissions": {"additionalDirectories": ["../shared", "/absolute"]}})
    assert load_settings(places, trusted=True).directories() == (
        places.project / "../shared",
        Path("/absolute"),
    )


def test_the_project_is_the_repository_wherever_inside_one_stands(places: Places) -> None:
    (places.project / ".git").mkdir()
    inner = places.project / "a" / "b"
    inner.mkdir(parents=True)
    assert Places.of(inner, home=places.home).project == places.project


def test_the_published_schema_is_a_schema() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema_rs.validator_for(schema)
    assert set(schema["properties"]) >= {"permissions", "hooks", "mcpServers", "env", "model"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.data())
def test_the_line_of_every_value_is_found(value: Any, data: st.DataObject) -> None:
    path = _some_path(value, data)
    text = json.dumps(value, indent=1, ensure_ascii=False)
    marked = json.dumps(_marked(value, path), indent=1, ensure_ascii=False)
    line = line_of(text, path)
    assert "MARK" in marked.split("\n")[line - 1] if path else line == 1


def _members(value: Any) -> dict[Any, Any]:
    if isinstance(value, list):
        return dict(enumerate(cast("list[Any]", value)))
    return cast("dict[Any, Any]", value) if isinstance(value, dict) else {}


def _some_path(value: Any, data: st.DataObject) -> list[Any]:
    members = _members(value)
    if not members:
        return []
    key = data.draw(st.sampled_from(list(members)))
    return [key, *_some_path(members[key], data)]


def _marked(value: Any, path: list[Any]) -> Any:
    if not path:
        return "MARK"
    members = {**_members(value), path[0]: _marked(_members(value)[path[0]], path[1:])}
    return list(members.values()) if isinstance(value, list) else members
