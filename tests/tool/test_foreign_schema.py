"""Schemas of servers that ask for much work: refused when listed, or validated beside the event loop, within limits."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS

from callwright.core.errors import UsageError
from callwright.tool import foreign_schema
from callwright.tool.foreign_schema import ForeignSchema

Schema = dict[str, Any]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine must not reach the time limit of a validation, whose memory and steps are limited too."""
    monkeypatch.setattr(foreign_schema, "_SECONDS", LONG_SECONDS)


def chain(keyword: str, links: int, **more: object) -> Schema:
    """A schema that doubles the work with every link; 16 links have about 1.3 kB."""
    definitions: Schema = {
        f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}], **more} for n in range(links)
    }
    definitions[f"a{links}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": definitions}


def nested(keyword: str, depth: int) -> Schema:
    schema: Schema = {"type": "string"}
    for _ in range(depth):
        schema = {keyword: schema} if keyword != "properties" else {"properties": {"x": schema}}
    return {"type": "object", "properties": {"x": schema}}


def in_items(schema: Schema) -> Schema:
    return {"type": "object", "properties": {"x": {"type": "array", "items": schema}}}


LISTED: dict[str, tuple[Schema, str]] = {
    **{keyword: (chain(keyword, 16), "expands to more than") for keyword in ("anyOf", "allOf", "oneOf")},
    "mixed": ({**chain("anyOf", 12), "allOf": [{"$ref": "#/$defs/a0"}] * 9}, "expands to more than"),
    "unevaluated": (chain("allOf", 16, unevaluatedProperties=False), "expands to more than"),
    "dependent": (
        {"type": "object", "$defs": {f"d{n}": {"dependentSchemas": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}}
         for n in range(20)} | {"d20": {}}, "$ref": "#/$defs/d0"},
        "expands to more than",
    ),
    "loop": ({"type": "object", "allOf": [{"$ref": "#"}]}, "refers to itself without end"),
    "dynamic loop": (
        {"type": "object", "$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]},
        "refers to itself without end",
    ),
    "long index": (
        {"type": "object", "$defs": {"a": [{}]}, "anyOf": [{"$ref": f"#/$defs/a/{'1' * 5000}"}]},
        "is not a JSON Schema",
    ),
    "huge enum": (in_items({"enum": [f"v{n}" for n in range(300_000)]}), "characters; at most"),
    "long enum": (in_items({"enum": list(range(60_000))}), "too many parts"),
    "deep not": (nested("not", 900), "nested too deeply"),
    "deep fields": (nested("properties", 5_000), "nested too deeply"),
    "many patterns": (
        {"type": "object", "patternProperties": {f"^(a+)+b{n}$": {} for n in range(500)}},
        "more than 200 patterns",
    ),
    "large pattern": (in_items({"pattern": "((a{1,300}){1,300}){1,3}"}), "is not a JSON Schema"),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_bomb_is_refused_when_listed(name: str) -> None:
    schema, reason = LISTED[name]
    with pytest.raises(UsageError, match=reason):
        ForeignSchema(schema, about="a tool")


def _grow(depth: int) -> Schema:
    return {"c": [_grow(depth - 1) for _ in range(7)]} if depth else {"c": [1]}


# each would take seconds or minutes
VALUES: dict[str, tuple[Schema, object]] = {
    "objects in enum": (
        in_items({"enum": [{"k": n} for n in range(9_000)]}),
        {"x": [{"k": 8_999}] * 5_000},
    ),
    "long const": (in_items({"const": list(range(20_000))}), {"x": [list(range(20_000))] * 300}),
    "patterns": (
        {"type": "object", "patternProperties": {f"^(a|aa)+$(?!x{n})": {"type": "string"} for n in range(150)}},
        {"a" * 60 + f"!{n}": "v" for n in range(500)},
    ),
    "dynamic": (
        {
            "type": "object",
            "$dynamicAnchor": "n",
            "properties": {"c": {"type": "array", "items": {"anyOf": [{"$dynamicRef": "#n"}] * 3}}},
        },
        _grow(6),
    ),
}


@pytest.mark.parametrize("name", VALUES)
async def test_value_that_takes_too_long_is_refused(name: str) -> None:
    schema, value = VALUES[name]
    foreign = ForeignSchema(schema, about="a tool")
    assert not foreign.is_small(value)
    assert "too large" in await foreign.check(value)


@pytest.mark.slow
async def test_event_loop_turns_while_a_value_is_checked() -> None:
    patterns = {f"^(a|aa)+$(?!x{n})": {"type": "string"} for n in range(15)}
    foreign = ForeignSchema({"type": "object", "patternProperties": patterns}, about="a tool")
    value = {"a" * 60 + f"!{n}": "v" for n in range(40)}
    assert not foreign.is_small(value)
    checking = asyncio.create_task(foreign.check(value))
    turns = 0
    while not checking.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 20  # in this process the validator would hold Python's lock to its end
    assert "too large" not in checking.result()


@pytest.mark.parametrize("size", [1, 2_000, 20_000])
async def test_verdict_is_the_same_wherever_it_is_made(size: int) -> None:
    for items in ({"type": "integer"}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}):
        foreign = ForeignSchema(in_items(items), about="a tool")
        assert await foreign.check({"x": [1] * size}) == ""
        assert await foreign.check({"x": ["a", *([1] * size)]}) != ""


@pytest.mark.parametrize("size", [1, 2_000])
@pytest.mark.parametrize("compile_now", [True, False])
async def test_schema_without_a_draft_may_be_written_in_an_older_one(size: int, compile_now: bool) -> None:
    number: Schema = {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMinimum": True}, {"type": "null"}]}
    pair: Schema = {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "minItems": 2, "maxItems": 2}
    for items, right, wrong in ((pair, [1, "a"], ["a", 1]), (number, 1, 0)):
        foreign = ForeignSchema(in_items(items), about="a tool", compile_now=compile_now)
        assert await foreign.check({"x": [right] * size}) == ""
        assert await foreign.check({"x": [right] * size + [wrong]}) != ""


@pytest.mark.parametrize(
    ("newer", "wrong"),
    [
        ({"properties": {"action": {"const": "read"}}}, {"action": "delete"}),
        ({"properties": {"a": {"$ref": "#/$defs/Name", "maxLength": 2}}}, {"a": "long"}),
        ({"propertyNames": {"maxLength": 1}}, {"long": 1}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ],
)
def test_words_of_an_older_draft_leave_newer_keywords_checked(newer: Schema, wrong: Schema) -> None:
    older: Schema = {"n": {"minimum": 0, "exclusiveMinimum": True}, "t": {"items": [{"type": "string"}]}}
    schema: Schema = {"type": "object", "$defs": {"Name": {"type": "string"}}, **newer}
    foreign = ForeignSchema({**schema, "properties": {**older, **newer.get("properties", {})}}, about="a tool")
    assert foreign.check_small({"n": 1, "t": ["a"]}) == ""
    for value in (wrong, {"n": 0}, {"t": [1]}):
        assert foreign.check_small(value) != ""


def test_schema_of_a_named_draft_must_be_valid_in_it() -> None:
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", **in_items({"items": [{}]})}
    with pytest.raises(UsageError, match="is not a JSON Schema"):
        ForeignSchema(named, about="a tool")


async def test_schema_that_is_compiled_late_says_why_it_is_invalid() -> None:
    late = ForeignSchema({"type": "object", "properties": {"a": {"pattern": "("}}}, about="t", compile_now=False)
    with pytest.raises(UsageError, match="t is not a JSON Schema"):
        await late.check({"a": "x"})


@pytest.mark.slow
def test_refusing_every_bomb_takes_little_memory() -> None:
    """Measured in a process of its own, because the validator's memory is not Python's."""
    program = (
        "import runpy, sys, asyncio\n"
        "def peak(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024\n"
        "t = runpy.run_path(sys.argv[1])\n"
        "F, E = t['ForeignSchema'], t['UsageError']\n"
        "F({'type': 'object'}, about='warm')\n"
        "before = peak()\n"
        "for schema, _ in t['LISTED'].values():\n"
        "    try: F(schema, about='x')\n"
        "    except E: pass\n"
        "for name in t['VALUES']:\n"
        "    schema, value = t['VALUES'][name]\n"
        "    asyncio.run(F(schema, about='x').check(value))\n"
        "print(peak() - before)\n"
    )
    if not Path("/proc/self/status").exists():
        pytest.skip("no proc file system here")
    done = subprocess.run([sys.executable, "-c", program, __file__], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
