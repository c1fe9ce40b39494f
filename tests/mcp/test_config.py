"""Reading `.mcp.json`."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from callwright import Registry, UsageError
from callwright.mcp import LoadedServers, McpServers, ServerConfig, load_servers, servers_of


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
    assert read({"command": "x", "timeout": 10**400}).servers[0].seconds == 1e12


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"type": "sse", "url": "http://h"},
        {"type": ["http"], "url": "http://h"},
        {"command": 5},
        {"command": "x", "args": "y"},
        {"url": "ftp://h"},
    ],
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
    assert loaded.problems == (f"{tmp_path / 'missing'}: no such file or directory",)


def test_entry_with_two_targets_says_which_is_used():
    loaded = servers_of({"mcpServers": {"x": {"command": "x", "url": "http://x/"}}})
    assert loaded.servers[0].url and loaded.problems == (
        "mcpServers: x: it has a command and a url, and the url is used; remove the command",
    )
    loaded = servers_of({"mcpServers": {"x": {"type": "stdio", "command": "x", "url": "http://x/"}}})
    assert loaded.servers[0].command and "the command is used; remove the url" in loaded.problems[0]


def test_servers_of_another_kind_are_refused():
    wrong: Any = {"x": {"command": "x"}}
    with pytest.raises(
        UsageError, match=r"expected ServerConfig as a server, got 'x'; pass load_servers\(file\).servers"
    ):
        McpServers(wrong, Registry())


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


@pytest.mark.parametrize(
    ("entry", "servers", "told"),
    [
        ({"url": "http://h", "headers": {"A": "Bearer ${input:token}"}}, 0, "${input:token} is asked for by an editor"),
        ({"command": "c", "env": {"A": "${input:key}"}}, 0, "${input:key}"),
        ({"command": "c", "args": ["${workspaceFolder}/x"]}, 1, "$workspaceFolder is not set"),
        ({"command": "c", "args": ["${command:pick}"]}, 1, "${command:pick} is not replaced"),
        ({"command": "c", "disabled": True}, 0, "it is disabled"),
        ({"command": "c", "autoApprove": ["x"], "oauth": {}}, 1, "not used: autoApprove, oauth"),
        ({"type": "sse", "url": "http://h"}, 0, "type 'sse' is not supported"),
    ],
)
def test_fields_that_are_not_honoured_are_named(entry: dict[str, object], servers: int, told: str) -> None:
    loaded = servers_of({"mcpServers": {"x": entry}}, environment={})
    assert len(loaded.servers) == servers
    assert any(told in problem for problem in loaded.problems)
    assert all(problem.rpartition("mcpServers: ")[0] == "" for problem in loaded.problems)  # named once


def test_variables_of_editors_are_read() -> None:
    loaded = servers_of({"mcpServers": {"x": {"command": "${env:TOOL}"}}}, environment={"TOOL": "tool"})
    assert loaded.servers[0].command == "tool" and loaded.problems == ()


@pytest.mark.parametrize(
    ("helper", "sent", "told"),
    [
        ("""printf '{"X-Key": "%s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" """, "keyed", ""),
        ("echo nonsense", None, "headersHelper printed no JSON"),
        ("exit 3", None, "headersHelper printed no JSON"),
        ("""echo '{"X-Key": 5}'""", None, "printed no object of texts"),
        ("""echo '{"X-Key": "a"}'; exit 1""", None, "ended with code 1"),
    ],
)
async def test_helper_gives_headers_or_the_server_is_not_reached(helper: str, sent: str | None, told: str) -> None:
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.headers["X-Key"])
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        config = ServerConfig("keyed", url=f"http://127.0.0.1:{server.server_address[1]}/mcp", headers_helper=helper)
        async with McpServers([config], Registry()) as servers:
            (status,) = servers.status()
        server.shutdown()
    assert got[:1] == ([] if sent is None else [sent]) and told in status.reason
