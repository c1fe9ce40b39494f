"""`callwright mcp`: add, list, test and remove servers, with real server processes."""

import json
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from callwright.mcp.config import token_path

ROUGH = str(Path(__file__).parents[1] / "mcp" / "servers" / "rough.py")
SERVER = (sys.executable, "-S", ROUGH)


def servers_in(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())["mcpServers"]


def test_add_test_list_and_remove_a_server(machine: Any) -> None:
    added = machine("mcp", "add", "rough", "--scope", "project", "-e", "A=${HOME}", "--", *SERVER)
    assert added.code == 0 and "next: callwright mcp test rough" in added.out, added
    entry = {"command": sys.executable, "args": ["-S", ROUGH], "env": {"A": "${HOME}"}}
    assert servers_in(machine.project / ".mcp.json") == {"rough": entry}
    tested = machine("mcp", "test", "rough")
    assert tested.code == 0 and "rough: ready in" in tested.out and "MCP 20" in tested.out, tested
    assert "mcp__rough__look" in tested.out and "destroy (claims read)" in tested.out
    assert "__answer" not in tested.out
    listed = machine("mcp", "list")
    assert listed.code == 0 and "rough  ready" in listed.out, listed
    removed = machine("mcp", "remove", "rough")
    assert removed.code == 0 and str(machine.project / ".mcp.json") in removed.out
    assert servers_in(machine.project / ".mcp.json") == {}
    assert "No MCP servers configured" in machine("mcp", "list").out


@pytest.mark.parametrize(
    ("scope", "file"),
    [
        ("user", "home/settings.json"),
        ("project", "project/.mcp.json"),
        ("local", "project/.callwright/settings.local.json"),
    ],
)
def test_each_scope_has_its_file(machine: Any, scope: str, file: str) -> None:
    assert machine("mcp", "add", "--scope", scope, "time", "uvx", "mcp-server-time").code == 0
    expected = {"time": {"command": "uvx", "args": ["mcp-server-time"]}}
    assert servers_in(machine.project.parent / file) == expected


def test_server_is_added_by_its_entry(machine: Any) -> None:
    entry = {"type": "stdio", "command": sys.executable, "args": ["-S", ROUGH], "env": {"A": "b"}}
    added = machine("mcp", "add-json", "rough", json.dumps(entry), "-s", "user")
    assert added.code == 0 and servers_in(machine.home / "settings.json") == {"rough": entry}, added
    assert "rough: ready in" in machine("mcp", "get", "rough").out
    for wrong in ("{", "[]", '{"mcpServers": {}}', '{"args": []}'):
        refused = machine("mcp", "add-json", "other", wrong)
        assert refused.code == 2 and not (machine.project / ".callwright").exists(), refused


@pytest.mark.parametrize(
    "rest",
    [
        *('"headers": ["x"]', '"timeout": -1', '"disabled": "no"', '"foo": NaN', '"foo": 1e999'),
        *('"command": "false"', '"args": ["\\ud800"]', '"foo": ' + "[" * 100_000, f'"foo": {"[" * 900}{"]" * 900}'),
    ],
    ids=lambda rest: rest[:20],
)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_entry_that_could_not_be_read_is_not_added(machine: Any, scope: str, rest: str) -> None:
    assert machine("mcp", "add-json", "good", '{"command": "true"}', "-s", scope).code == 0
    file = machine.home / "settings.json" if scope == "user" else machine.project / ".mcp.json"
    before = file.read_bytes()
    refused = machine("mcp", "add-json", "bad", f'{{"command": "true", {rest}}}', "-s", scope)
    assert refused.code == 2 and "the entry:" in refused.err and file.read_bytes() == before, refused
    assert machine("mcp", "remove", "good").code == 0


def test_servers_of_claude_code_that_are_not_used_are_named(machine: Any) -> None:
    claude = machine.project.parent / "claude"
    claude.mkdir()
    machine.patch.setenv("CLAUDE_CONFIG_DIR", str(claude))
    project = {str(machine.project): {"mcpServers": {"db": 1}}}
    (claude / ".claude.json").write_text(json.dumps({"mcpServers": {"mail": 1, "rough": 1}, "projects": project}))
    machine("mcp", "add", "rough", "-s", "user", "--", *SERVER)
    told = f"{claude / '.claude.json'} are not used here: mail, db; callwright mcp add-json adds one"
    assert told in machine("mcp", "list").err
    assert "not used here: mail, db" in machine("doctor").out
    (claude / ".claude.json").write_text("[")
    assert machine("mcp", "list").err == ""


def test_default_scope_is_local(machine: Any) -> None:
    machine("mcp", "add", "time", "uvx", "mcp-server-time")
    assert "time" in servers_in(machine.project / ".callwright" / "settings.local.json")


def test_url_and_command_are_distinguished(machine: Any) -> None:
    ended = machine("mcp", "add", "web", "-s", "user", "https://example.com/mcp", "-H", "Authorization: Bearer ${T}")
    assert ended.code == 0
    headers = {"Authorization": "Bearer ${T}"}
    web = {"type": "http", "url": "https://example.com/mcp", "headers": headers}
    assert servers_in(machine.home / "settings.json") == {"web": web}


def test_add_keeps_the_rest_of_the_file(machine: Any) -> None:
    before = '{\n    "z": {"unknown": [1,2]},\n    "permissions": {"deny": ["Bash(rm *)"]},\n    "a": 1.50\n}\n'
    (machine.home / "settings.json").write_text(before)
    (machine.home / "settings.json").chmod(0o600)
    machine("mcp", "add", "x", "-s", "user", "--", "run")
    text = (machine.home / "settings.json").read_text()
    assert text.startswith(before.removesuffix("\n}\n"))
    assert machine("mcp", "remove", "x").code == 0
    left = (machine.home / "settings.json").read_text()
    assert left.startswith(before.removesuffix("\n}\n")) and json.loads(left)["mcpServers"] == {}
    assert stat.S_IMODE((machine.home / "settings.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  // mine\n  "mcpServers": {}\n}', ".mcp.json:2: not valid JSON"),
        ('{"mcpServers": {},}', ".mcp.json:1: not valid JSON"),
        ("[]", ".mcp.json"),
        ('{"mcpServers": []}', "mcpServers"),
    ],
)
def test_invalid_file_is_not_changed(machine: Any, text: str, said: str) -> None:
    file = machine.project / ".mcp.json"
    file.write_text(text)
    ended = machine("mcp", "add", "x", "-s", "project", "--", "run")
    assert ended.code == 2 and said in ended.err, ended
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a__b", "run"), "invalid server name 'a__b'"),
        (("_a", "run"), "invalid server name"),
        (("", "run"), "invalid server name"),
        (("a" * 65, "run"), "invalid server name"),
        (("x",), "x has no target"),
        (("x", "run", "--flag"), "after --"),
        (("x", "https://example.com", "more"), "takes no arguments"),
        (("x", "https://example.com", "-e", "A=1"), "use --header"),
        (("x", "-H", "A: 1", "--", "run"), "-e KEY=VALUE"),
        (("x", "-e", "A", "--", "run"), "expected -e KEY=VALUE, got 'A'"),
        (("x", "https://example.com", "-H", "A"), "expected --header"),
        (("x", "-t", "http", "run"), "expected an http or https url, got 'run'"),
        (("x", "ftp://example.com"), "expected an http or https url, got 'ftp://example.com'"),
        (("x", "https://"), "expected an http or https url, got 'https://'"),
        (("x", "-t", "sse", "https://example.com"), "invalid value 'sse'"),
    ],
)
def test_invalid_arguments_write_nothing(machine: Any, arguments: tuple[str, ...], said: str) -> None:
    ended = machine("mcp", "add", "-s", "project", *arguments)
    assert ended.code == 2 and said in ended.err, ended
    assert not (machine.project / ".mcp.json").exists()


def test_existing_name_needs_force(machine: Any) -> None:
    machine("mcp", "add", "x", "--", "one")
    again = machine("mcp", "add", "x", "--", "two")
    assert again.code == 2 and "--force" in again.err
    assert machine("mcp", "add", "x", "--force", "--", "two").code == 0
    assert servers_in(machine.project / ".callwright" / "settings.local.json")["x"]["command"] == "two"


def test_duplicate_entries_are_reported_and_need_a_scope(machine: Any) -> None:
    machine("mcp", "add", "x", "-s", "local", "--", "mine")
    hidden = machine("mcp", "add", "x", "-s", "user", "--", "everywhere")
    assert "settings.local.json (local) overrides this one" in hidden.err
    ended = machine("mcp", "remove", "x")
    assert ended.code == 2 and "choose one with --scope" in ended.err
    gone = machine("mcp", "remove", "x", "--scope", "local")
    assert gone.code == 0 and "settings.json (user) is used now" in gone.out


def test_remove_unknown_server_lists_known_ones(machine: Any) -> None:
    machine("mcp", "add", "weather", "--", "run")
    ended = machine("mcp", "remove", "wether")
    assert ended.code == 2 and "did you mean weather?" in ended.err
    assert machine("mcp", "test", "wether").code == 2
    assert "in scope user" in machine("mcp", "remove", "weather", "-s", "user").err


def test_project_file_linked_outside_is_not_written(machine: Any) -> None:
    victim = machine.home / "victim.json"
    victim.write_text("{}")
    (machine.project / ".mcp.json").symlink_to(victim)
    ended = machine("mcp", "add", "x", "-s", "project", "--", "run")
    assert ended.code == 2 and "leads out of the project" in ended.err
    assert victim.read_text() == "{}"


def test_secret_in_a_shared_file_gives_a_warning(machine: Any) -> None:
    plain = machine("mcp", "add", "x", "-s", "project", "-e", "TOKEN=abc", "--", "run")
    assert "shared with others" in plain.err
    assert "shared" not in machine("mcp", "add", "y", "-s", "project", "-e", "TOKEN=${T:-}", "--", "run").err
    assert "shared" not in machine("mcp", "add", "z", "-s", "user", "-e", "TOKEN=abc", "--", "run").err


def test_servers_of_an_untrusted_folder_are_not_started(machine: Any) -> None:
    mark = machine.project / "pwned"
    entry = {"command": sys.executable, "args": ["-c", f"open({str(mark)!r}, 'w')"]}
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": entry}}))
    listed = machine("mcp", "list")
    assert listed.code == 3 and "not trusted" in listed.out and "callwright trust" in listed.out
    tested = machine("mcp", "test", "evil")
    assert tested.code == 3 and "evil is not trusted" in tested.err
    added = machine("mcp", "add", "mine", "--", *SERVER)
    assert "callwright trust give" in added.out
    assert machine("mcp", "test", "mine").code == 3
    assert not mark.exists()
    assert machine("trust").code == 3


def test_adding_a_server_keeps_the_trust(machine: Any) -> None:
    machine("mcp", "add", "one", "-s", "project", "--", "run")
    assert machine("trust").code == 0
    machine("mcp", "remove", "one")
    machine.settings({"permissions": {"allow": ["Bash(make)"]}})
    machine("mcp", "add", "two", "-s", "project", "--", "run")
    assert machine("trust").code == 3


def probed(machine: Any, *command: str, seconds: str = "20") -> Any:
    machine("mcp", "add", "it", "--force", "-s", "user", *command)
    return machine("mcp", "test", "it", "--seconds", seconds)


def test_missing_program_is_named(machine: Any) -> None:
    ended = probed(machine, "--", "no-such-program")
    assert ended.code == 1 and "no-such-program was not found; install it" in ended.err


def test_log_of_an_exiting_program_is_shown(machine: Any) -> None:
    code = "import sys; print('one\\ntwo\\x1b[2K', file=sys.stderr); sys.exit(7)"
    ended = probed(machine, "--", sys.executable, "-c", code)
    assert ended.code == 1 and "it ended with exit code 7; its last output: two\\x1b[2K" in ended.err
    assert "    one\n    two" in ended.err
    silent = probed(machine, "--", sys.executable, "-c", "")
    assert silent.code == 1 and "it ended with exit code 0" in silent.err


@pytest.mark.slow
def test_hanging_program_times_out(machine: Any) -> None:
    ended = probed(machine, "--", sys.executable, "-c", "input(); input(); input()", seconds="0.5")
    assert ended.code == 1 and "did not connect and list its tools" in ended.err and "0.5 s" in ended.err


@pytest.mark.slow
def test_output_of_a_non_mcp_program_is_shown(machine: Any) -> None:
    ended = probed(machine, "--", sys.executable, "-uc", "print('usage: x'); input()")
    assert ended.code == 1 and "not a message: b'usage: x" in ended.err


def test_unreachable_url_is_named(machine: Any) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        ended = probed(machine, f"http://127.0.0.1:{door.getsockname()[1]}/mcp")
    assert ended.code == 1 and "no response from http://127.0.0.1:" in ended.err


class Site(BaseHTTPRequestHandler):
    """Answers with the status its path names."""

    def do_POST(self) -> None:
        status = int(self.path.rpartition("/")[2])
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it that
        return None


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "HTTP status 404: there is no MCP server at this path"),
        (403, "HTTP status 403: the server does not accept these credentials"),
        (405, "HTTP status 405: method not allowed"),
        (500, "HTTP status 500: internal server error"),
        (200, "it responds with text/html, so it is not an MCP server"),
    ],
)
def test_url_of_another_service_is_described(machine: Any, site: str, status: int, said: str) -> None:
    ended = probed(machine, f"{site}/{status}")
    assert ended.code == 1 and said in ended.err, ended


def test_rejected_credentials_differ_from_missing_sign_in(machine: Any, site: str) -> None:
    ended = probed(machine, f"{site}/401", "-H", "Authorization: Bearer wrong")
    assert ended.code == 1 and "does not accept these credentials" in ended.err


def test_changed_tool_is_shown_and_accepted(machine: Any) -> None:
    machine("mcp", "add", "rough", "-s", "user", "--", *SERVER)
    assert machine("mcp", "test", "rough").code == 0
    seen = next((machine.home / "projects").glob("*/mcp-tools.json"))
    known = json.loads(seen.read_text())
    known["rough"]["echo"] = "0" * 64
    seen.write_text(json.dumps(known))
    held = machine("mcp", "test", "rough")
    assert "mcp__rough__echo changed since it was accepted" in held.out
    schema = 'inputSchema: {"type":"object","properties":{"text":{"type":"string"}}}'
    assert f"mcp__rough__echo is now: {schema}" in held.out  # all of the definition, not only how it begins
    assert schema in machine("mcp", "test", "rough", "--json").document["review"]["mcp__rough__echo"]
    unseen = machine("mcp", "test", "rough", "--accept")
    assert unseen.code == 1 and "needs their digest" in unseen.err and "changed since" in unseen.out
    shown = machine("mcp", "test", "rough", "--json").document["accept"]
    assert f"--accept {shown}" in held.out
    known["rough"]["look"] = "0" * 64  # as if the server had changed one more since
    seen.write_text(json.dumps(known))
    late = machine("mcp", "test", "rough", "--accept", shown)
    assert late.code == 1 and "changed again since they were shown" in late.err
    assert json.loads(seen.read_text()) == known
    shown = machine("mcp", "test", "rough", "--json").document["accept"]
    accepted = machine("mcp", "test", "rough", "--accept", shown)
    assert accepted.code == 0 and "mcp__rough__echo is accepted as it was shown" in accepted.out
    assert "changed since" not in accepted.out + machine("mcp", "test", "rough").out
    machine("mcp", "remove", "rough")
    assert "rough" not in json.loads(seen.read_text())


def test_changed_resources_are_accepted_together(machine: Any, tmp_path: Path) -> None:
    switch = tmp_path / "changed"
    hostile = Path(__file__).parents[1] / "mcp" / "servers" / "hostile.py"
    machine("mcp", "add", "h", "-s", "user", "--", sys.executable, "-S", str(hostile), "resources", str(switch))
    assert machine("mcp", "test", "h").code == 0
    switch.touch()
    document = machine("mcp", "test", "h", "--json").document
    assert document["held"] == ["mcp__h__list_resources", "mcp__h__read_resource"]
    assert machine("mcp", "test", "h", "--accept", document["accept"]).code == 0
    assert machine("mcp", "test", "h", "--json").document["held"] == []


def test_json_output_is_complete(machine: Any) -> None:
    machine("mcp", "add", "rough", "-s", "user", "--", *SERVER)
    [entry] = machine("mcp", "list", "--json").document
    assert entry["condition"] == "ready" and entry["scope"] == "user" and entry["seconds"] > 0
    assert "mcp__rough__echo" in entry["tools"]
    document = machine("mcp", "test", "rough", "--json").document
    look = next(tool for tool in document["tools"] if tool["name"] == "mcp__rough__look")
    assert (look["effect"], look["says"]) == ("destroy", "read")
    machine("mcp", "remove", "rough")
    assert machine("mcp", "list", "--json").document == []


def test_invalid_entry_is_reported(machine: Any) -> None:
    machine.user_settings({"mcpServers": {"empty": {}}})
    ended = machine("mcp", "test", "empty")
    assert ended.code == 1 and "needs either a command or a url" in ended.err


def test_config_option_replaces_the_files(machine: Any) -> None:
    file = machine.home / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"rough": {"command": SERVER[0], "args": list(SERVER[1:])}}}))
    assert "rough  ready" in machine("mcp", "list", "--config", str(file)).out
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # as editors on Windows write it
    for listed in (machine("mcp", "list", "--config", str(file)), machine("tools", "list", "--mcp-config", str(file))):
        assert listed.code == 0 and "rough" in listed.out
    deep = machine.home / "deep.json"
    deep.write_text('{"mcpServers": ' + "[" * 100_000 + "]" * 100_000 + "}")
    for refused in (machine("mcp", "list", "--config", str(deep)), machine("tools", "list", "--mcp-config", str(deep))):
        assert refused.code == 2 and "deep.json" in refused.err
    missing = machine("mcp", "list", "--config", str(machine.home / "none.json"))
    assert missing.code == 2 and "none.json" in missing.err


@pytest.mark.parametrize("action", ["", "list", "add", "remove", "test", "logout"])
def test_every_action_has_help(machine: Any, action: str) -> None:
    ended = machine("mcp", *([action] if action else []), "--help")
    assert ended.code == 0 and len(ended.out.splitlines()) > 8
    assert all(len(line) <= 120 for line in ended.out.splitlines())


def store_sign_in(machine: Any, url: str) -> Path:
    file = token_path(machine.home / "mcp-tokens", url)
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    return file


def test_logout_removes_the_stored_sign_in(machine: Any) -> None:
    machine("mcp", "add", "docs", "--scope", "user", "https://${DOCS:-docs.example}/mcp")
    machine("mcp", "add", "other", "--scope", "user", "https://other.example/mcp")
    file, other = (store_sign_in(machine, f"https://{name}.example/mcp") for name in ("docs", "other"))
    ended = machine("mcp", "logout", "docs")
    assert ended.code == 0 and "signed out of docs" in ended.out, ended
    assert not file.exists() and other.exists()
    assert "no sign-in to docs is stored" in machine("mcp", "logout", "docs").out
    unknown = machine("mcp", "logout", "dcs")
    assert unknown.code == 2 and "did you mean docs?" in unknown.err


def test_remove_keeps_the_sign_in_for_other_projects(machine: Any) -> None:
    file = store_sign_in(machine, "https://docs.example/mcp")
    machine("mcp", "add", "docs", "--scope", "project", "https://docs.example/mcp")
    assert machine("mcp", "remove", "docs").code == 0
    assert file.exists()


def test_unknown_action_is_an_error(machine: Any) -> None:
    assert machine("mcp").code == 2
    assert machine("mcp", "lst").code == 2


def test_list_and_doctor_name_a_server_that_replaces_the_users(machine: Any) -> None:
    machine("mcp", "add", "rough", "--scope", "user", "--", *SERVER)
    assert "REPLACES" not in machine("mcp", "list").out and "mcp " not in machine("doctor").out
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"rough": {"command": "other"}}}))
    for shown in (machine("mcp", "list").out, machine("doctor").out):  # before and after the folder is trusted
        assert "REPLACES your own server of this name; your allow rules do not apply to it" in shown
    assert machine("mcp", "list", "--json").document[0]["conflict"].startswith("REPLACES")
    machine("trust", "give")
    assert "REPLACES your own server" in machine("mcp", "list").out
    assert "REPLACES your own server" in machine("doctor").out


def test_list_shows_no_passwords(machine: Any) -> None:
    servers = {
        "web": {"url": "http://me:hunter2@127.0.0.1:9/mcp?api_key=hunter2hunter2"},
        "own": {"command": "no/where", "args": ["--token", "hunter2hunter2"]},
    }
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    for form in ((), ("--json",)):
        listed = machine("mcp", "list", *form).out
        assert "http://me:[redacted]@127.0.0.1:9/mcp" in listed and "--token [redacted]" in listed
        assert "hunter2" not in listed


def test_removing_a_projects_server_keeps_the_pins_of_the_users(machine: Any) -> None:
    machine("mcp", "add", "rough", "--scope", "user", "--", *SERVER)
    machine("mcp", "test", "rough")
    machine("mcp", "add", "rough", "--scope", "local", "--", *SERVER)
    machine("mcp", "test", "rough")
    (pins,) = machine.home.glob("projects/*/mcp-tools.json")
    own = json.loads(pins.read_text())["rough"]
    assert len({key.partition("\n#")[0] for key in json.loads(pins.read_text())}) == 2
    machine("mcp", "remove", "rough", "--scope", "local")
    assert json.loads(pins.read_text())["rough"] == own
    assert not any("\n/" in key for key in json.loads(pins.read_text()))
