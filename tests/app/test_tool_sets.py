"""The tool sets of the command: small enough for small models, and named in full when a name is wrong."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from callwright import UsageError
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.permissions import load_rules
from callwright.app.run_context import COMPACT_TOOLS, RunOptions, agent_tools, choose_tools, tool_set_for
from callwright.app.settings import load_settings
from callwright.core.content import estimate_tokens
from callwright.policy import PathContext
from callwright.policy.modes import ModeSwitch
from callwright.registry.catalog import estimate_spec_tokens
from callwright.system.paths import Workspace
from callwright.testing import ScriptedProvider
from callwright.tool.base import Tool
from callwright.toolbox import Bash


@pytest.fixture
def tools(tmp_path: Path) -> list[Tool]:
    workspace = Workspace(tmp_path)
    return agent_tools(workspace, ModeSwitch("default"), bash=Bash(workspace), hidden=None)


def test_rules_know_every_name_of_every_tool(locations: Locations):
    app = assemble(ScriptedProvider(), load_settings(locations, trusted=False), locations)
    names = {name for tool in app.registry for name in (tool.spec.name, *tool.spec.aliases)} | {"run_code"}
    loaded = load_rules(load_settings(locations, trusted=False), PathContext.of(locations.cwd), deny=sorted(names))
    assert len(loaded.rules) > 60 and [str(each) for each in loaded.problems if each.kind == "unknown tool"] == []


def test_compact_set_takes_at_most_650_tokens(tools: list[Tool]):
    """Tokens are estimated as characters divided by four."""
    compact = choose_tools(tools, "compact")
    assert sorted(tool.spec.name for tool in compact) == sorted(COMPACT_TOOLS)
    assert sum(estimate_spec_tokens(tool.spec) for tool in compact) <= 650


def test_compact_set_shows_every_field_that_is_required(tools: list[Tool]):
    for tool in choose_tools(tools, "compact"):
        _, shown = COMPACT_TOOLS[tool.spec.name]
        assert set(cast("Any", tool.spec.input_schema["required"])) <= set(shown)
        assert set(cast("Any", tool.spec.input_schema["properties"])) == set(shown)


def _request_tokens(folder: Path, tools: str) -> tuple[int, int]:
    """Return the estimated tokens of the definitions and of the system prompt, as the command sends them."""
    locations = Locations.of(folder, home=folder / "home")
    settings = load_settings(locations, trusted=True)
    app = assemble(ScriptedProvider("hi"), settings, locations, RunOptions(tools=tools, keep=False))
    return app.registry.snapshot().definition_tokens, estimate_tokens(app.agent.system)


def test_requests_of_the_command_stay_small(tmp_path: Path):
    """The first edition's were 3,135 tokens; a compact one leaves room in a context of 4,096."""
    definitions, system = _request_tokens(tmp_path, "all")
    assert definitions <= 2_600
    assert definitions + system < 3_135
    definitions, system = _request_tokens(tmp_path, "compact")
    assert definitions <= 650
    assert definitions + system <= 850


def test_tools_are_chosen_by_name_or_alias(tools: list[Tool]):
    assert [tool.spec.name for tool in choose_tools(tools, "Read, grep")] == ["read", "grep"]
    assert choose_tools(tools, "all") is tools


@pytest.mark.parametrize("chosen", ["reed", "read,nothing", ","])
def test_unknown_tool_set_is_an_error(tools: list[Tool], chosen: str):
    with pytest.raises(UsageError, match="expected all, compact, none or names of tools"):
        choose_tools(tools, chosen)


def test_little_context_means_the_compact_set():
    assert [tool_set_for(context) for context in (None, 8_192, 200_000)] == ["all", "compact", "all"]


def test_unknown_tool_kept_beside_code_mode_is_reported(tmp_path: Path):
    locations = Locations.of(tmp_path, home=tmp_path / "home")
    keep = [
        "str_replace",
        "read_output",
        "skill",
        "wirte",
        "mcp__later__tool",
    ]  # an alias, tools added last, and a server
    settings = load_settings(locations, trusted=True, given=[json.dumps({"codeMode": {"keep": keep}})])
    app = assemble(ScriptedProvider("hi"), settings, locations, RunOptions(keep=False))
    assert [each for each in app.problems if "codeMode" in each] == [
        f"codeMode.keep: there is no tool 'wirte'; known tools: {', '.join(app.registry.names())}"
    ]
    shown = {spec.name for spec in app.agent.registry.snapshot().definitions}
    assert {"run_code", "edit"} <= shown and "write" not in shown
