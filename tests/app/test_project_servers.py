"""MCP servers that a project's files configure: they say whose name they take, and inherit no allow rules."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Interrupted, Registry, ToolSpec
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.mcp_servers import load_servers
from callwright.app.permissions import HookAllows
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.core.access import Allow, Decision, Deny, UseTool
from callwright.core.calls import digest_of
from callwright.core.spec import REPOSITORY, SHADOWS
from callwright.hooks.shell.hooks import ShellHooks
from callwright.mcp import McpServers, ServerConfig
from callwright.policy import Policies, Rules, rules_of
from callwright.policy.dry_run import DryRunCall
from callwright.policy.rules.rule import Rule
from callwright.testing.fakes import ScriptedProvider

HOSTILE = str(Path(__file__).parents[1] / "mcp" / "servers" / "hostile.py")
SERVER = {"command": sys.executable, "args": ["-S", HOSTILE, "plain"]}
ALLOW = {"permissions": {"allow": ["mcp__h__echo", "mcp__h", "mcp__h__*"]}}


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    (tmp_path / "project" / ".callwright").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return Locations.of(tmp_path / "project", home=tmp_path / "home")


def build(locations: Locations, files: Mapping[str, Mapping[str, Any]], **options: Any) -> App:
    for name, content in files.items():
        getattr(locations, name).write_text(json.dumps(content))
    settings = load_settings(locations, trusted=True)
    return assemble(ScriptedProvider(), settings, locations, RunOptions(keep=False, **options))


async def echo(app: App) -> type:
    async with app:
        return type(await app.executor.run("mcp__h__echo", {"text": "x"}))


async def test_users_rule_allows_the_users_server(locations: Locations) -> None:
    app = build(locations, {"user_settings": {"mcpServers": {"h": SERVER}, **ALLOW}})
    assert await echo(app) is Completed and not app.problems


@pytest.mark.parametrize("file", ["project_servers", "project_settings", "local_settings"])
@pytest.mark.parametrize("own", [True, False])
async def test_users_rule_does_not_allow_a_projects_server(locations: Locations, file: str, own: bool) -> None:
    user = {"mcpServers": {"h": SERVER}, **ALLOW} if own else ALLOW
    app = build(locations, {"user_settings": user, file: {"mcpServers": {"h": SERVER}}})
    assert await echo(app) is Interrupted
    assert any("REPLACES your own server" in problem for problem in app.problems) is own


async def test_projects_own_rule_allows_its_server(locations: Locations) -> None:
    app = build(locations, {"project_servers": {"mcpServers": {"h": SERVER}}, "local_settings": ALLOW})
    assert await echo(app) is Completed


@pytest.mark.parametrize(("own", "expected"), [(False, Completed), (True, Interrupted)])
async def test_command_line_allows_a_projects_server_that_replaces_none(
    locations: Locations, own: bool, expected: type
) -> None:
    files: dict[str, Any] = {"project_servers": {"mcpServers": {"h": SERVER}}}
    files |= {"user_settings": {"mcpServers": {"h": SERVER}}} if own else {}
    assert await echo(build(locations, files, allow=("mcp__h__echo",))) is expected


async def test_users_deny_rule_applies_to_a_projects_server(locations: Locations) -> None:
    user = {"permissions": {"deny": ["mcp__h__echo"]}}
    app = build(locations, {"user_settings": user, "project_servers": {"mcpServers": {"h": SERVER}}})
    async with app:
        assert "mcp__h__echo" not in app.agent.registry.snapshot()


@pytest.mark.parametrize("name", ["G-H", "g_h", "\u0261h", "GH"])
def test_look_alike_of_a_users_server_is_named(locations: Locations, name: str) -> None:
    app = build(
        locations, {"user_settings": {"mcpServers": {"gh": SERVER}}, "project_servers": {"mcpServers": {name: SERVER}}}
    )
    problems: list[str] = []
    servers = {server.name: server for server in load_servers(app.settings, (), problems, locations)}
    assert servers[name].shadows == "gh" and servers["gh"].shadows == servers["gh"].repository == ""
    assert problems == [
        f"MCP server {name} of this project looks like your own server gh; your allow rules do not apply to it"
    ]


def test_server_on_the_command_line_is_the_users(locations: Locations) -> None:
    app = build(locations, {"project_servers": {"mcpServers": {"h": SERVER}}})
    (server,) = load_servers(app.settings, [json.dumps({"mcpServers": {"h": SERVER}})], [], locations)
    assert server.repository == "" and server.shadows == ""


def test_disabled_server_of_the_driving_program_stops_nothing(locations: Locations) -> None:
    async def relay(message: dict[str, Any]) -> dict[str, Any]:
        return message

    entry = {"type": "sdk", "name": "h", "disabled": True}
    sources, problems = [json.dumps({"mcpServers": {"h": entry}})], list[str]()
    (server,) = load_servers(build(locations, {}).settings, sources, problems, locations, relay=lambda _: relay)
    assert server.relay is relay and not problems


def _decide(rules: Sequence[Rule], metadata: dict[str, Any]) -> Decision:
    spec = ToolSpec("mcp__h__echo", "Echoes.", {"type": "object"}, group="mcp:h", metadata=metadata)
    call = DryRunCall(spec, {"text": "x"}, "")
    return Policies(Rules(rules)).decide(UseTool("mcp__h__echo", spec.annotations.effect), call)


@pytest.mark.parametrize("scope", ["user", "managed", "unknown"])
@pytest.mark.parametrize("rule", ["mcp__h", "mcp__h__*", "mcp__h__echo", "group:mcp:h", "mcp__h__echo(text:*)"])
def test_no_form_of_a_users_rule_covers_a_projects_server(scope: str, rule: str) -> None:
    project = {REPOSITORY: "/project"}
    assert isinstance(_decide(rules_of(allow=[rule], scope=scope), {}), Allow)
    for metadata in (project, project | {SHADOWS: "h"}):
        assert not isinstance(_decide(rules_of(allow=[rule], scope=scope), metadata), Allow)
        assert isinstance(_decide(rules_of(deny=[rule], scope=scope), metadata), Deny)


@pytest.mark.parametrize("scope", ["", "project", "local"])
def test_answers_and_rules_of_the_project_cover_its_server(scope: str) -> None:
    assert isinstance(_decide(rules_of(allow=["mcp__h"], scope=scope), {REPOSITORY: "/project"}), Allow)


@pytest.mark.parametrize("shadows", ["", "gh"])
def test_hook_allows_no_tool_of_a_server_that_looks_like_another(shadows: str) -> None:
    spec = ToolSpec("mcp__gh__echo", "Echoes.", {"type": "object"}, group="mcp:gh", metadata={SHADOWS: shadows})
    hooks = ShellHooks(())
    hooks.allowed_calls.add(digest_of(spec.name, {"text": "x"}, (), session_id=""))
    decision = HookAllows(hooks).judge(UseTool(spec.name, spec.annotations.effect), DryRunCall(spec, {"text": "x"}, ""))
    assert isinstance(decision, Allow) is (not shadows)


async def test_every_tool_of_a_projects_server_is_marked(tmp_path: Path) -> None:
    registry = Registry()
    base = ServerConfig("h", sys.executable, ("-S", HOSTILE, "resources", str(tmp_path / "x")), repository="/project")
    async with McpServers([base], registry):
        specs = [tool.spec for tool in registry.snapshot()]
        names = {spec.name.removeprefix("mcp__h__") for spec in specs}
        assert names == {"echo", "answer", "list_resources", "read_resource"}
        assert all(spec.metadata[REPOSITORY] == "/project" for spec in specs)
