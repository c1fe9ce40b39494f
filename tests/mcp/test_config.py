"""Reading `.mcp.json`."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright import UsageError
from callwright.mcp import LoadedServers, ServerConfig, load_servers, servers_of


def read(entry: Any, **environment: str) -> LoadedServers:
    return servers_of({"mcpServers": {"x": entry}}, environment=environment)


def test_command_variables_are_expanded():
    loaded = read({"command": "${BIN}/run", "args": ["--key=${KEY:-none}"], "env": {"A": "${B}"}}, BIN="/opt", B="b")
    [server] = loaded.servers
    assert (server.command, server.args, dict(server.env)) == ("/opt/run", ("--key=none",), {"A": "b"})
    assert loaded.problems == ()


def test_unset_variable_is_reported_and_kept():
    loaded = read({"url": "https://h.example/${PATH_PART}", "headers": {"Authorization": "Bearer ${TOKEN:-}"}})
    assert loaded.servers[0].url == "https://h.example/${PATH_PART}"
    assert loaded.servers[0].headers["Authorization"] == "Bearer "
    assert loaded.problems == ("mcpServers: x: $PATH_PART is not set",)


def test_empty_variable_uses_default():
    assert read({"command": "${C:-cat}"}, C="").servers[0].command == "cat"


@pytest.mark.parametrize("type_", ["http", "streamable-http", None])
def test_http_type_has_several_spellings(type_: str | None):
    entry = {"url": "http://127.0.0.1:1/mcp"} | ({"type": type_} if type_ else {})
    assert read(entry).servers[0].url == "http://127.0.0.1:1/mcp"


def test_timeout_is_in_milliseconds():
    assert read({"command": "x", "timeout": 1500}).servers[0].seconds == 1.5
    assert "milliseconds" in read({"command": "x", "timeout": "soon"}).problems[0]


@pytest.mark.parametrize(
    "entry", [{}, {"type": "sse", "url": "http://h"}, {"command": 5}, {"command": "x", "args": "y"}, {"url": "ftp://h"}]
)
def test_invalid_entry_is_left_out_and_reported(entry: dict[str, Any]):
    loaded = servers_of({"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    assert [server.name for server in loaded.servers] == ["good"]
    assert "bad" in loaded.problems[0]


def test_file_cannot_claim_trust(tmp_path: Path):
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"x": {"command": "x", "trusted": True, "trust": True}}}))
    assert not load_servers(file).servers[0].trusted
    assert load_servers(file, trusted=["x"]).servers[0].trusted


def test_later_file_replaces_whole_entry(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(json.dumps({"mcpServers": {"x": {"command": "old", "args": ["1"]}, "y": {"command": "y"}}}))
    second.write_text(json.dumps({"mcpServers": {"x": {"command": "new"}}}))
    loaded = load_servers(first, second, tmp_path / "missing")
    assert {server.name: (server.command, server.args) for server in loaded.servers} == {
        "x": ("new", ()),
        "y": ("y", ()),
    }
    assert len(loaded.problems) == 1


def test_changed_entry_has_another_digest():
    one = ServerConfig("x", "npx", ("server",))
    assert one.digest == ServerConfig("x", "npx", ("server",)).digest
    assert one.digest != ServerConfig("x", "npx", ("server", "--evil")).digest
    assert one.digest != ServerConfig("x", "npx", ("server",), env={"LD_PRELOAD": "x"}).digest


def test_server_needs_command_or_url():
    with pytest.raises(UsageError, match="either"):
        ServerConfig("x")
    with pytest.raises(UsageError, match="either"):
        ServerConfig("x", "a", url="http://h")
