"""The table of repairs: every row has an example that is repaired and a reverse that is not."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.repairs.lenient_json import CutOff, NotJson, read_lenient
from callwright.repairs.names import repair_name
from callwright.repairs.schemas import Target
from callwright.repairs.table import EXAMPLE_SCHEMA, TABLE, Row, repair_arguments

FIND = Target("find", EXAMPLE_SCHEMA, aliases=("search",), field_aliases={"file_path": "path"}, lines=("command",))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
def test_example_is_repaired_and_reverse_is_not(row: Row):
    given, wanted = row.example
    found = repair_arguments(given, FIND)
    assert found is not None
    assert found[0] == wanted
    assert row.kind in [repair.kind for repair in found[1]]
    assert repair_arguments(row.reverse, FIND) is None
    assert repair_arguments(wanted, FIND) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('```json\n{"path": "a"}\n```', {"path": "a"}),
        ('```\n{"path": "a"}```', {"path": "a"}),
        ('{"path": "a",}', {"path": "a"}),
        ("{'path': 'a', 'limit': 5}", {"path": "a", "limit": 5}),
        ("{'path': \"it's\"}", {"path": "it's"}),
        ('{"path": "a\nb\tc"}', {"path": "a\nb\tc"}),
        ('{"path": "\\d+\\.py"}', {"path": "\\d+\\.py"}),
        ('{"path": "it\\\'s"}', {"path": "it's"}),
        ('{"path": "\\ud83d\\ude00 \\u00e9"}', {"path": "😀 é"}),
        ('{path: "a"}', {"path": "a"}),
        ("{“path”: “a”}", {"path": "a"}),
        ('{"path": "a"}}', {"path": "a"}),
        ('{"path": "a"}\n{"path": "a"}', {"path": "a"}),
        ("{path: <escape>a<escape>}", {"path": "a"}),
        ('{"path": "a" /* here */, // so\n "limit": 5 // lines\n}', {"path": "a", "limit": 5}),
        ('{"path": """a "quoted" word"""}', {"path": 'a "quoted" word'}),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}),
        ("\ufeff{}", {}),
    ],
)
def test_lenient_json_reads(text: str, wanted: object):
    assert read_lenient(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a", "content": "def f():',
        '{"path": "a"',
        '{"path": "a", ',
        '{"path": ',
        '[{"path": "a"}',
        "{'path': 'a",
        '{"path": "a\\',
        '```json\n{"path": "a"\n```',
        '{"content": """a',
    ],
)
def test_text_that_was_cut_is_never_completed(text: str):
    with pytest.raises(CutOff):
        read_lenient(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"content": "print("hi")"}',
        '{"a": 1 "b": 2}',
        '{"a": 1, "a": 2}',
        '{"a": 1} {"a": 2}',
        'Here: {"a": 1}',
        '{"a": 1} and so on',
        "{'a': 'it's'}",
        '{"a": 01}',
        '{"a": 1_000}',
        '{"a": NaN}',
        '{"a": `x${y}`}',
        '{"a": """b\\n"""}',
        '{"a": "b "# c"\n}',
        '{"a": "b "// c" d"\n}',
        '{"a": "b "/* c" */}',
        '{"a": "b "}# c"}',
        r'{"a": "b \` c"}',
        r"""{"a": "'it'\''s'"}""",
        r"""{"a": "say \'it\'"}""",
        r"""{"a": "'it\'s'"}""",
        r"""{"command": "echo it\'s"}""",
        '{"a": "\\ud83d",}',
        '{"a": 1} {"a": true}',
        '{"a": 1} {"a": 1.0}',
        '{"a": 100 // 7\n}',
        "100 // 7",
        "",
    ],
)
def test_text_with_no_reading_or_two_is_refused(text: str):
    with pytest.raises(NotJson):
        read_lenient(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_valid_json_reads_as_it_is(value: Any):
    assert read_lenient(json.dumps(value, ensure_ascii=False)) == value


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=3), st.integers(1, 60))
def test_no_start_of_an_object_is_read(value: dict[str, str], cut: int):
    text = json.dumps(value)
    with pytest.raises(NotJson):
        read_lenient(text[: max(1, len(text) - cut)])


NAMES = {"read": "read", "Read": "read", "bash": "bash", "get-user": "get-user", "List": "a", "LIST": "b"}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("functions.read", "read"),
        (" bash", "bash"),
        ("bash\n", "bash"),
        ("bash:0", "bash"),
        ("functions.bash:12", "bash"),
        ("read<|channel|>commentary", "read"),
        ("`read`", "read"),
        ('"read"', "read"),
        ("read()", "read"),
        ("READ", "read"),
        ("get_user", "get-user"),
        ("default_api:read", "read"),
        ("reed", None),
        ("other.read", None),
        ("list", None),
        ("", None),
        ("functions.", None),
    ],
)
def test_name_is_repaired_to_one_known_tool(name: str, wanted: str | None):
    assert repair_name(name, NAMES) == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"arguments": {"path": "a"}}, {"path": "a"}),
        ({"parameters": '{"path": "a"}'}, {"path": "a"}),
        ({"name": "functions.find", "args": {"path": "a"}}, {"path": "a"}),
        ({"name": "search", "path": "a"}, {"path": "a"}),
        ({"type": "function", "function": {"name": "find", "arguments": '{"path": "a"}'}}, {"path": "a"}),
        ({"find": {"path": "a"}}, {"path": "a"}),
        ({"arguments": {"path": "a", "limit": None}}, {"path": "a"}),
        ({"file_path": ["a"]}, {"path": "a"}),
        ({"path": "a", "since": "1d"}, {"path": "a", "filter": {"since": "1d"}}),
        ({"path": "a", "": {}}, {"path": "a"}),
        ({"path": "a", "limit": "None"}, {"path": "a"}),
        ({"path": "a", "tags": "['x', 'y']"}, {"path": "a", "tags": ["x", "y"]}),
        ({"path": "a", "filter": "{'since': '1d'}"}, {"path": "a", "filter": {"since": "1d"}}),
        ({"path": "a", "command": ["bash", "-c", "ls | wc"]}, {"path": "a", "command": "bash -c 'ls | wc'"}),
        ({"path": "a", "command": ["ls -la | wc"]}, {"path": "a", "command": "ls -la | wc"}),
        ({"path": "a", "mode": " LINES "}, {"path": "a", "mode": "lines"}),
        ('"a"', {"path": "a"}),
        ('[{"path": "a"}]', {"path": "a"}),
        ("\"{'path': 'a'}\"", {"path": "a"}),
    ],
)
def test_one_reading_is_taken(given: Any, wanted: object):
    found = repair_arguments(given, FIND)
    assert found is not None
    assert found[0] == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"name": "delete", "arguments": {"path": "a"}},
        {"path": "a", "tags": "x, y"},
        {"path": ["a", "b"]},
        {"path": "a", "command": ["echo", "$HOME"]},
        {"path": "a", "command": ["rm", "*.py"]},
        {"path": "a", "limit": "many"},
        {"path": "a", "limit": 5.5},
        {"path": "a", "limit": "9007199254740993.0"},
        {"path": "a", "limit": "100 // 7"},
        {"Path": "a", "PATH": "b"},
        {"path": "a", "limit": 1, "Limit": True},
        b'{"Path": "a\xff"}',
        {"path": 7},
        {"path": {"a": 1}},
        {"path": "a", "note": "for you"},
        {"path": "a", "mode": "line"},
    ],
)
def test_two_readings_are_left(given: Any):
    assert repair_arguments(given, FIND) is None


def test_field_called_arguments_is_not_unwrapped():
    schema = {"type": "object", "properties": {"arguments": {"type": "object"}, "path": {"type": "string"}}}
    assert repair_arguments({"arguments": {"path": "a"}}, Target("find", schema)) is None


@pytest.mark.parametrize("text", ['path": "a"}', "'path': 'a", 'path: "a', '\\"path\\": \\"a\\"}"', "limit: 5"])
def test_part_of_an_object_is_no_value(text: str):
    assert repair_arguments(json.dumps(text), FIND) is None


@pytest.mark.parametrize("text", ["a", "note: b.txt", "c:\\d", "12:30"])
def test_other_texts_are_the_value_of_the_only_field(text: str):
    found = repair_arguments(json.dumps(text), FIND)
    assert found is not None and found[0] == {"path": text}
