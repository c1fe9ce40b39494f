"""Setting and removing a member of a JSON text without changing anything else."""

import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright import UsageError
from callwright.mcp.config_edit import put_entry, remove_entry, with_member, without_member

KEYS = st.sampled_from(["a", "b", "mcpServers", 'quo"te', "ü", "}", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(OBJECTS, LAYOUTS, KEYS, VALUES)
def test_set_member_keeps_order(content: dict[str, Any], layout: Any, key: str, value: Any):
    text = json.dumps(content, indent=layout)
    expected = {**content, key: value}
    found = json.loads(with_member(text, (key,), value))
    assert found == expected
    assert list(found) == list(expected)


@given(OBJECTS, LAYOUTS, KEYS)
def test_remove_member_keeps_order(content: dict[str, Any], layout: Any, key: str):
    found = json.loads(without_member(json.dumps(content, indent=layout), (key,)))
    expected = {name: value for name, value in content.items() if name != key}
    assert found == expected
    assert list(found) == list(expected)


@given(OBJECTS, LAYOUTS, VALUES)
def test_set_then_remove_restores_text(content: dict[str, Any], layout: Any, value: Any):
    text = json.dumps({"before": 1, **content}, indent=layout)
    assert without_member(with_member(text, ("new",), value), ("new",)) == text


@given(OBJECTS, LAYOUTS, VALUES)
def test_missing_parent_objects_are_created(content: dict[str, Any], layout: Any, value: Any):
    content = {key: inner for key, inner in content.items() if key != "mcpServers"}
    made = json.loads(with_member(json.dumps(content, indent=layout), ("mcpServers", "x"), value))
    assert made == {**content, "mcpServers": {"x": value}}


TEXT = """{
    "odd"   :   [1,2,   3],
    "number": 1.50e3,
    "mcpServers": {
        "one": {"command": "a", "args": ["b"]}
    },
    "last": {}
}
"""


def test_other_text_is_unchanged():
    added = with_member(TEXT, ("mcpServers", "two"), {"command": "c", "args": ["d", "e"]})
    assert added == TEXT.replace(
        '["b"]}\n',
        '["b"]},\n        "two": {\n          "command": "c",\n          "args": ["d", "e"]\n        }\n',
    )
    assert without_member(added, ("mcpServers", "two")) == TEXT


def test_duplicate_keys_set_last_and_remove_all():
    assert with_member('{"a": 1, "a": 2}', ("a",), 3) == '{"a": 1, "a": 3}'
    assert json.loads(without_member('{"a": 1, "b": 0, "a": 2}', ("a",))) == {"b": 0}


def test_path_through_non_object_is_rejected():
    with pytest.raises(UsageError, match="by hand"):
        with_member('{"mcpServers": []}', ("mcpServers", "x"), {})
    assert without_member('{"mcpServers": []}', ("mcpServers", "x")) == '{"mcpServers": []}'


def test_byte_order_mark_is_kept(tmp_path: Path):
    file = tmp_path / ".mcp.json"
    file.write_bytes(BOM_UTF8 + TEXT.encode())
    put_entry(file, "two", {"command": "c"})
    assert file.read_bytes().startswith(BOM_UTF8 + b"{")
    assert remove_entry(file, "two")
    assert file.read_bytes() == BOM_UTF8 + TEXT.encode()


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "1" * 5_000], ids=["deep", "long number"])
def test_file_that_cannot_be_read_is_named_and_kept(tmp_path: Path, value: str):
    file = tmp_path / ".mcp.json"
    file.write_text(f'{{"other": {value}}}')
    with pytest.raises(UsageError, match=r"mcp\.json cannot be read: .*; nothing was changed"):
        put_entry(file, "two", {"command": "c"})
    assert value in file.read_text()
