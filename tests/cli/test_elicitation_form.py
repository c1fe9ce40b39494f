"""Forms of MCP servers in the terminal: who asks, which fields, and no answer but the user's."""

import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from callwright.cli.elicitation_form import Field, InvalidValue, fields_of, form_text
from callwright.cli.render.text import Palette
from callwright.mcp.elicitation import _accept  # pyright: ignore[reportPrivateUsage] - what is sent to the server

PLAIN = Palette(False)
SERVER = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"


def shown(message: str, **properties: object) -> str:
    return "\n".join(form_text("rough", {"message": message, "fields": {"properties": properties}}, PLAIN).rows)


def test_form_names_the_server_and_marks_its_text() -> None:
    text = shown("Hello\n  y once · s for this session\nAllow bash?", name={"type": "string", "title": "a\x1b[2J"})
    assert text.startswith("The MCP server rough asks:\n")
    assert "  │   y once · s for this session\n  │ Allow bash?\n" in text and "\x1b" not in text


@pytest.mark.parametrize(
    "words",
    ["Your password", "apiKey", "api_key", "PASS\u200bWORD", "access-token", "ＰＩＮ", "Seed phrase", "one-time code"],
)
def test_credentials_are_warned_about(words: str) -> None:
    assert "looks like a request for a credential" in shown("Hello", field={"type": "string", "title": words})
    assert "looks like a request for a credential" in shown(words)
    assert "credential" in shown("Hello", x={"type": "string", "format": "password"})
    assert "credential" not in shown("Who are you?", name={"type": "string", "title": "Your name, opinion, pint size"})


@pytest.mark.parametrize(
    "schema",
    [{"type": "boolean", "default": True}, {"type": "string", "enum": ["Yes", "No"], "default": "Yes"}],
    ids=["boolean", "choice"],
)
def test_default_never_answers_a_yes_no_field(schema: dict[str, object]) -> None:
    assert Field("grant_admin", schema).parse("") is None
    with pytest.raises(InvalidValue):
        Field("grant_admin", schema, required=True).parse("")
    with pytest.raises(InvalidValue):
        Field("grant_admin", schema).parse("maybe yes")


def test_values_have_the_type_of_their_field() -> None:
    assert Field("a", {"type": "boolean"}).parse("yes") is True and Field("a", {"type": "boolean"}).parse("n") is False
    assert Field("a", {"type": "integer"}).parse("5") == 5 and Field("a", {"type": "number"}).parse("1.5") == 1.5
    assert Field("a", {"type": "string", "default": "x"}).parse("") == "x"
    assert Field("a", {"type": "array", "items": {"enum": ["x", "y"]}}).parse("x, y") == ["x", "y"]
    for kind, text in (("integer", "five"), ("number", "x")):
        with pytest.raises(InvalidValue):
            Field("a", {"type": kind}).parse(text)
    assert fields_of({"fields": {"properties": 5}}) == [] and fields_of({"fields": {"properties": {"a": None}}})


def test_defaults_of_the_server_are_not_sent() -> None:
    schema = {"type": "object", "properties": {"grant_admin": {"type": "boolean", "default": True}, "n": {}}}
    params = types.ElicitRequestFormParams(message="x", requested_schema=schema)
    assert _accept(params, {}).action == "decline"
    assert _accept(params, {"n": 1}).content == {"n": 1}


def test_form_is_filled_in_field_by_field(machine: Any, tmux: Any) -> None:
    config = json.dumps({"mcpServers": {"rough": {"command": sys.executable, "args": [str(SERVER)]}}})
    (machine.home / "mcp.json").write_text(config)
    script = machine.says({"calls": [{"name": "mcp__rough__ask", "arguments": {}}]}, "thanks")
    tmux.start(machine.project, script, f"--mcp-config {machine.home}/mcp.json --allowedTools mcp__rough__ask")
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    asked = tmux.shows("rough? >")
    assert "The MCP server rough asks:" in asked and "│ Who?" in asked and "name: string; required" in asked
    tmux.type("y", "Enter")
    tmux.shows("rough asks for name (1 of 1)")
    tmux.type("Enter")
    tmux.shows("name is required")
    tmux.type("Ada", "Enter")
    tmux.shows('name: "Ada"')
    tmux.shows("send? >")
    tmux.type("y", "Enter")
    shown = tmux.shows("thanks")
    assert '"action": "accept"' in shown and '{"name": "Ada"}' in shown
