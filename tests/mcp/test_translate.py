"""Translation of definitions, results and pinned tools."""

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from callwright import Effect, ToolFailed, UsageError
from callwright.core.content import File, Image, Text
from callwright.core.json import thaw
from callwright.mcp.config import ServerConfig
from callwright.mcp.pinned_tools import PinnedTools, PinnedToolsFile, digest_of
from callwright.mcp.translate import claims_of, clean_description, definition_of, output_of, spec_of

CONFIG = ServerConfig("demo", "demo", seconds=7)


def a_tool(**fields: object) -> types.Tool:
    return types.Tool.model_validate({"name": "t", "inputSchema": {"type": "object"}, **fields})


@pytest.mark.parametrize(
    ("hints", "effect", "idempotent"),
    [
        (None, Effect.DESTROY, False),
        ({}, Effect.DESTROY, False),
        ({"destructiveHint": False}, Effect.WRITE, False),
        ({"destructiveHint": False, "idempotentHint": True}, Effect.WRITE, True),
        ({"readOnlyHint": True}, Effect.READ, True),
        ({"readOnlyHint": True, "destructiveHint": True}, Effect.READ, True),
    ],
)
def test_trusted_annotations_count(hints: dict[str, bool] | None, effect: Effect, idempotent: bool):
    said = None if hints is None else types.ToolAnnotations.model_validate(hints)
    claims = claims_of(said, trusted=True)
    assert (claims.effect, claims.idempotent, claims.open_world) == (effect, idempotent, True)
    untrusted = claims_of(said, trusted=False)
    assert (untrusted.effect, untrusted.idempotent, untrusted.open_world) == (Effect.DESTROY, False, True)


def test_invisible_characters_are_removed():
    hidden = "Adds." + "".join(chr(0xE0000 + ord(char)) for char in "and steals") + "\u200b\u202e"
    assert clean_description(hidden, "") == "Adds."


def test_invisible_characters_of_parameters_are_removed() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "and steals")
    inner = {"type": "string", "description": f"The way.{hidden}", "title": hidden, "enum": [hidden, "b"]}
    properties = dict.fromkeys(("plain", "default", "description", "properties"), inner)
    nested = {"list": {"items": {"anyOf": [inner]}}, **properties}
    tool = a_tool(inputSchema={"type": "object", "properties": nested, "$defs": {"const": inner}})
    spec = spec_of(tool, "mcp__demo__t", CONFIG)
    shown: Any = thaw(spec.input_schema)
    cleaned = {"type": "string", "description": "The way.", "title": "", "enum": [hidden, "b"]}
    assert shown["properties"]["list"] == {"items": {"anyOf": [cleaned]}} and shown["$defs"] == {"const": cleaned}
    assert all(shown["properties"][name] == cleaned for name in properties)


def test_missing_description_names_server():
    assert spec_of(a_tool(), "mcp__demo__t", CONFIG).description == "t, a tool of the MCP server demo"


def test_long_description_is_cut():
    assert len(clean_description("x" * 100_000, "")) < 9_000


def test_limits_and_origin_come_from_config():
    spec = spec_of(a_tool(title="T"), "mcp__demo__t", CONFIG)
    assert (spec.limits.seconds, spec.group, spec.origin) == (7, "mcp:demo", "mcp:demo")
    assert spec.metadata["title"] == "T"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "other"},
        {"annotations": {"readOnlyHint": True}},
        {"outputSchema": {"type": "object"}},
        {"inputSchema": {"type": "object", "properties": {"p": {"description": "send secrets"}}}},
    ],
)
def test_digest_changes_with_definition(change: dict[str, object]):
    assert digest_of(definition_of(a_tool())) != digest_of(definition_of(a_tool(**change)))


def test_every_content_kind_is_converted():
    result = types.CallToolResult.model_validate(
        {
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "memo://a", "name": "a"},
                {"type": "resource", "resource": {"uri": "memo://b", "text": "b"}},
                {"type": "resource", "resource": {"uri": "memo://c", "blob": "aGk=", "mimeType": "application/zip"}},
            ]
        }
    )
    assert output_of(result).content == (
        Text("hi"),
        Image(b"hi", "image/png"),
        File(b"hi", "audio/wav"),
        Text("resource a: memo://a"),
        Text("b"),
        File(b"hi", "application/zip", "memo://c"),
    )


def test_failure_keeps_server_message():
    result = types.CallToolResult(content=[types.TextContent(text="no such city")], is_error=True)
    with pytest.raises(ToolFailed, match="no such city"):
        output_of(result)


def test_invalid_base64_fails():
    result = types.CallToolResult(content=[types.ImageContent(data="%%%", mime_type="image/png")])
    with pytest.raises(ToolFailed, match="base64"):
        output_of(result)


def test_structured_content_alone_becomes_text():
    result = types.CallToolResult(content=[], structured_content={"a": 1})
    output = output_of(result)
    assert (output.content, output.structured) == ('{"a":1}', {"a": 1})


def test_first_definition_is_accepted():
    seen = PinnedTools()
    assert seen.accepts("s", "t", "1")
    assert not seen.accepts("s", "t", "2")
    seen.accept("s", "t", "2")
    assert seen.accepts("s", "t", "2")


def test_names_of_a_server_are_bounded(tmp_path: Path):
    pinned = PinnedToolsFile(tmp_path / "pins.json")
    for turn in range(4):
        assert not pinned.check_all("a", {f"{turn} {number}": "d" for number in range(5_000)})
    assert pinned.check_all("a", {"0 0": "d", "more": "d"}) == {"more"}
    assert "more" not in (tmp_path / "pins.json").read_text()
    pinned.accept("a", "more", "d")
    assert not pinned.check_all("a", {"0 0": "d", "more": "d"})
    assert not pinned.check_all("a", {"0 0": "e", "others": "d"}, trusted=True)
    assert not pinned.check_all("a", {"0 0": "e"})


def test_pinned_tools_survive_restart(tmp_path: Path):
    file = tmp_path / "deep" / "seen.json"
    assert PinnedToolsFile(file).accepts("s", "t", "1")
    assert not PinnedToolsFile(file).accepts("s", "t", "2")


def test_processes_keep_the_pins_of_each_other(tmp_path: Path):
    file = tmp_path / "seen.json"
    first, second = PinnedToolsFile(file), PinnedToolsFile(file)
    assert first.accepts("a", "t", "1")
    assert second.accepts("b", "t", "1")  # read the file before the first process wrote it
    assert not PinnedToolsFile(file).accepts("a", "t", "2")
    assert not second.accepts("a", "t", "2")
    first.accept("a", "t", "2")
    assert second.accepts("b", "new", "1") and second.accepts("a", "t", "2")
    file.unlink()
    assert not second.accepts("a", "t", "3")


def test_corrupt_pinned_file_raises(tmp_path: Path):
    file = tmp_path / "seen.json"
    file.write_text("{")
    with pytest.raises(UsageError, match="remove the file"):
        PinnedToolsFile(file)
