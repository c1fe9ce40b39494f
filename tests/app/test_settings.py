"""Settings: sources, precedence, and errors with line numbers."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jsonschema_rs
import pytest
from hypothesis import example, given, settings as settings_of_hypothesis, strategies as st

from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.permissions import load_rules
from callwright.app.run_context import RunOptions
from callwright.app.settings import Settings, load_settings
from callwright.app.settings_file import SCHEMA_FILE, is_known, line_of, parse_layer
from callwright.core.errors import UsageError
from callwright.hooks.shell.config import EVENTS, UNSUPPORTED_EVENTS
from callwright.policy.paths import PathContext
from callwright.testing.fakes import ScriptedProvider


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    project = tmp_path / "project"
    (project / ".callwright").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return Locations.of(project, home=tmp_path / "home")


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content))


def test_later_sources_override_earlier_ones(locations: Locations) -> None:
    write(locations.user_settings, {"model": "user", "sandbox": "prefer"})
    write(locations.project_settings, {"model": "project", "permissions": {"defaultMode": "plan"}})
    write(locations.local_settings, {"model": "local"})
    settings = load_settings(locations, trusted=True)
    assert (settings.last("model"), settings.last("sandbox")) == ("local", "prefer")
    assert settings.last("permissions", "defaultMode") == "plan"
    given_too = load_settings(locations, trusted=True, given=['{"model": "option"}'])
    assert given_too.last("model") == "option"


def test_servers_are_merged_by_whole_entries(locations: Locations) -> None:
    write(locations.user_settings, {"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "y"}}})
    write(locations.project_servers, {"mcpServers": {"a": {"command": "z"}}})
    servers = load_settings(locations, trusted=True).merged("mcpServers")
    assert servers == {"a": {"command": "z"}, "b": {"command": "y"}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{\n  // mine\n  "model": "x"\n}', ":2: not valid JSON"),
        ("", ":1: not valid JSON: Expecting value at column 1; it is empty, write {}"),
        ('{\n  "permissions": {\n    "allow": "Bash"\n  }\n}', ":3: permissions.allow: "),
        (
            '{\n  "permissions": {"deny": [\n    "Read(.env)",\n    42\n  ]}\n}',
            ':4: permissions.deny.1: 42 is not of type "string"',
        ),
        ('{\n\n  "sandbox": "maybe"}', ':3: sandbox: "maybe" is not one of "off", "prefer", "require"'),
        (
            '{"permissions": {"defaultMode": "edits"}}',
            ':1: permissions.defaultMode: "edits" is not one of "plan", "default", "auto", "dontAsk", "bypass", "accep',
        ),
        ('{"hooks": {"PreToolUse": [\n {"matcher": "Bash"}]}}', ":2: hooks.PreToolUse.0: "),
        ("[]", ":1: the settings: "),
    ],
)
def test_error_names_the_file_and_line(locations: Locations, text: str, complaint: str) -> None:
    locations.user_settings.write_text(text)
    with pytest.raises(UsageError) as raised:
        load_settings(locations, trusted=False)
    assert str(raised.value).startswith(f"{locations.user_settings}{complaint}")


def test_error_in_json_says_what_to_do(locations: Locations) -> None:
    for text, advice in (
        ('{"model": "x" // mine\n}', "; JSON has no comments, remove it"),
        ('{"stop": ["x",]}', "; remove the last comma"),
        ('{"model": "x",\n}', "; remove the last comma"),
        ('{"model": x}', " at column 11"),
    ):
        locations.user_settings.write_text(text)
        with pytest.raises(UsageError) as raised:
            load_settings(locations, trusted=False)
        assert str(raised.value).endswith(advice)
    locations.user_settings.write_bytes('{"model": "é"}'.encode("latin-1"))
    with pytest.raises(UsageError, match=r"settings\.json: .* can't decode byte 0xe9 .*; save it as UTF-8"):
        load_settings(locations, trusted=False)


def test_missing_settings_file_is_named(locations: Locations) -> None:
    with pytest.raises(UsageError, match=r"--settings nowhere\.json"):
        load_settings(locations, trusted=True, given=["nowhere.json"])


def test_unknown_key_is_reported_with_a_suggestion() -> None:
    layer = parse_layer("user", "settings.json", '{\n  "modell": "x",\n  "statusLine": {}\n}')
    assert layer.problems[0].startswith("settings.json:2: 'modell'") and "did you mean 'model'?" in layer.problems[0]
    assert layer.problems[1].startswith("settings.json:3: 'statusLine'")


def test_byte_order_mark_is_accepted(locations: Locations) -> None:
    locations.user_settings.write_bytes(b'\xef\xbb\xbf{"model": "x"}')
    assert load_settings(locations, trusted=False).last("model") == "x"


def test_relative_folders_start_at_their_settings_file(locations: Locations) -> None:
    write(locations.project_settings, {"permissions": {"additionalDirectories": ["../shared", "/absolute"]}})
    assert load_settings(locations, trusted=True).directories() == (
        locations.project / "../shared",
        Path("/absolute"),
    )


def test_additional_folder_that_does_not_exist_is_reported(locations: Locations) -> None:
    (locations.project.parent / "shared").mkdir()
    folders = ["../shared", "../shred", "~/none"]
    write(locations.project_settings, {"permissions": {"additionalDirectories": folders}})
    shred, none = load_settings(locations, trusted=True).problems
    assert shred.startswith(f"{locations.project_settings}:") and shred.endswith("/../shred")
    assert "additionalDirectories: there is no folder" in none
    assert "no folder" not in str(load_settings(locations, trusted=False).problems)


def test_project_is_the_root_of_the_repository(locations: Locations) -> None:
    (locations.project / ".git").mkdir()
    inner = locations.project / "a" / "b"
    inner.mkdir(parents=True)
    assert Locations.of(inner, home=locations.home).project == locations.project


def test_managed_settings_override_all_others(locations: Locations, tmp_path: Path) -> None:
    managed = Locations(locations.home, locations.project, locations.cwd, tmp_path / "managed.json")
    write(managed.managed, {"sandbox": "require", "permissions": {"deny": ["Bash(curl *)"]}})
    settings = load_settings(managed, trusted=True, given=['{"sandbox": "off", "permissions": {"deny": []}}'])
    assert settings.last("sandbox") == "require" and settings.place("sandbox") == f"{managed.managed}:1"
    rules = load_rules(settings, PathContext.of(locations.cwd)).rules
    assert [(rule.text, rule.written_in) for rule in rules] == [("Bash(curl *)", f"{managed.managed}:1")]
    managed.managed.write_text("{")
    with pytest.raises(UsageError, match=r"managed\.json:1: not valid JSON"):
        load_settings(managed, trusted=True)


def test_duplicate_key_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"x: duplicate key 'permissions'"):
        parse_layer("user", "x", '{"permissions": {"deny": ["Bash"]}, "permissions": {}}')


@pytest.mark.parametrize(
    ("section", "key", "meant"),
    [
        ("permissions", "alow", "allow"),
        ("limits", "turn", "turns"),
        ("sandbox", "readble", "readable"),
        ("undo", "megabyte", "megabytes"),
    ],
)
def test_unknown_keys_inside_sections_are_reported(section: str, key: str, meant: str) -> None:
    (problem,) = parse_layer("user", "x", f'{{\n "{section}": {{\n  "{key}": []\n }}\n}}').problems
    assert problem.startswith(f"x:3: '{section}.{key}'") and f"did you mean '{meant}'?" in problem
    assert not is_known(section, key) and is_known(section, meant)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"permissions": {"denny": ["Bash"]}}', "deny"),
        ('{"deny": ["Bash"]}', "permissions.deny"),
        ('{"ask": ["Bash"]}', "permissions.ask"),
        ('{"sandbox": {"mod": "require"}}', "mode"),
        ('{"sandbox": {"Mode": "require"}}', "mode"),
        ('{"sandbox": {"excludeCommands": ["docker"]}}', "excludedCommands"),
    ],
)
def test_misspelt_protection_stops_the_start(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"would be lost; write '{re.escape(meant)}'"):
        parse_layer("user", "x", text)


def test_key_outside_its_section_is_placed() -> None:
    (problem,) = parse_layer("user", "x", '{"allow": ["Bash(make *)"]}').problems
    assert problem.endswith("did you mean 'permissions.allow'?")


def test_sandbox_of_other_agents_is_read() -> None:
    layer = parse_layer("user", "x", '{"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true, "network": {}}}')
    assert layer.section("sandbox")["mode"] == "prefer" and len(layer.problems) == 2


def test_invalid_rule_is_reported_with_its_line() -> None:
    layer = parse_layer("user", "/x", '{"permissions": {"deny": [\n"Read(a)",\n"Bash(rm"]}}')
    with pytest.raises(UsageError, match=r"/x:3: the deny rule 'Bash\(rm'"):
        load_rules(Settings((layer,)), PathContext.of("/"))


def test_misspelt_rule_example_is_reported() -> None:
    layer = parse_layer("user", "/x", '{"permissions": {"deny": [{"rule": "Bash(rm *)", "matches": ["ls"]}]}}')
    (problem,) = load_rules(Settings((layer,)), PathContext.of("/")).problems
    assert "unknown field 'matches'" in str(problem) and "in /x:1" in str(problem)


COPIED = {
    "$schema": "https://example.com/settings.json",
    "model": "opus",
    "apiKeyHelper": "/bin/key",
    "cleanupPeriodDays": 20,
    "includeCoAuthoredBy": False,
    "env": {"NODE_ENV": "test"},
    "permissions": {
        "allow": ["Bash(npm run lint)", "Bash(npm run test:*)", "Read(~/.zshrc)", "mcp__github__get_issue"],
        "ask": ["Bash(git push:*)"],
        "deny": ["WebFetch", "Bash(curl:*)", "Read(./.env)", "Read(./secrets/**)"],
        "additionalDirectories": ["../docs/"],
        "defaultMode": "acceptEdits",
        "disableBypassPermissionsMode": "disable",
    },
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.hooks/check.sh', "timeout": 30},
                    {"type": "command", "command": "audit", "async": True, "if": "Bash(git *)", "statusMessage": "…"},
                ],
            },
            {"matcher": "mcp__.*", "hooks": [{"type": "http", "url": "http://localhost/hook"}]},
        ],
        "Stop": [{"hooks": [{"type": "prompt", "prompt": "Is all of it done?"}]}],
        "FileChanged": [{"matcher": ".env", "hooks": [{"type": "command", "command": "direnv allow"}]}],
    },
    "mcpServers": {
        "github": {"type": "sse", "url": "https://example.com/sse"},
        "files": {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "${TOKEN:-x}"}},
    },
    "statusLine": {"type": "command", "command": "status.sh"},
    "sandbox": {"enabled": True, "excludedCommands": ["docker"]},
}


def test_settings_of_another_agent_load(locations: Locations) -> None:
    locations.user_settings.write_text(json.dumps(COPIED, indent=2))
    settings = load_settings(locations, trusted=False)
    app = assemble(ScriptedProvider(), settings, locations, RunOptions(keep=False))
    assert [hook.command for hook in app.hooks.hooks if not hook.broken] == [
        '"$CLAUDE_PROJECT_DIR"/.hooks/check.sh',
        "audit",
        "http://localhost/hook",
        "Is all of it done?",
    ]
    assert app.hooks.hooks[1].background and app.hooks.hooks[1].condition == "Bash(git *)"
    assert len(app.rules.rules) == 9 and app.switch.mode == "auto" and app.switch.barred == {"bypass"}
    assert settings.last("sandbox")["mode"] == "prefer"
    told = "\n".join(app.problems)
    for word in ("apiKeyHelper", "statusLine", "FileChanged"):
        assert word in told, word
    assert all(f"{locations.user_settings}:" in problem for problem in app.problems)


def test_published_schema_is_valid() -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema_rs.validator_for(schema)
    assert set(schema["properties"]) >= {"permissions", "hooks", "mcpServers", "env", "model"}


RULES = st.lists(st.sampled_from(["Bash(ls *)", "Read(.env)", "mcp__x", "WebFetch(domain:a.example)"]), max_size=3)
HOOK = st.fixed_dictionaries(
    {"command": st.sampled_from(["true", "echo x"])},
    optional={
        "type": st.just("command"),
        "timeout": st.floats(0.1, 99),
        "if": st.just("Bash(ls *)"),
        "async": st.booleans(),
        "onError": st.sampled_from(["proceed", "block"]),
    },
)
FITTING: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("a:b"),
        "baseUrl": st.just("https://x.example"),
        "instructions": st.text(max_size=5),
        "disableAllHooks": st.booleans(),
        "env": st.dictionaries(st.just("A"), st.just("b")),
        "sandbox": st.sampled_from(["off", "prefer", {"enabled": False}]),
        "limits": st.fixed_dictionaries({}, optional={"turns": st.integers(1, 9), "seconds": st.floats(0.1, 9)}),
        "permissions": st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(("allow", "ask", "deny"), RULES),
                "defaultMode": st.sampled_from(
                    ["plan", "default", "auto", "dontAsk", "bypass", "acceptEdits", "manual"]
                ),
            },
        ),
        "hooks": st.dictionaries(
            st.sampled_from([*EVENTS, *UNSUPPORTED_EVENTS]),
            st.lists(st.fixed_dictionaries({"hooks": st.lists(HOOK, max_size=2)}), max_size=2),
            max_size=2,
        ),
    },
)


@settings_of_hypothesis(max_examples=40, deadline=None)
@given(FITTING)
def test_valid_settings_load_and_build_an_agent(content: Any) -> None:
    jsonschema_rs.validate(json.loads(SCHEMA_FILE.read_text()), content)
    layer = parse_layer("command line", "--settings", json.dumps(content))
    assert layer.problems == ()
    with TemporaryDirectory() as folder:
        locations = Locations.of(folder, home=Path(folder, "home"))
        app = assemble(ScriptedProvider(), Settings((layer,)), locations, RunOptions(keep=False))
    counted = [entry for groups in content.get("hooks", {}).values() for group in groups for entry in group["hooks"]]
    assert len(app.hooks.hooks) <= len(counted)
    written = content.get("permissions", {})
    rules = {(kind, text) for kind in ("allow", "ask", "deny") for text in written.get(kind, ())}
    assert {(rule.kind, rule.text) for rule in app.rules.rules} == rules


KEYS = ["model", "permissions", "hooks", "env", "sandbox", "limits", "mcpServers", "prices", "disableAllHooks"]


@given(st.dictionaries(st.sampled_from(KEYS), st.deferred(lambda: JSON), min_size=1, max_size=3))
@example({"env": {"": ""}})
@example({"env": {"A=B": "x"}})
@example({"env": {"A": "\0"}})
def test_only_settings_that_violate_the_schema_fail(content: Any) -> None:
    fits = jsonschema_rs.is_valid(json.loads(SCHEMA_FILE.read_text()), content)
    try:
        parse_layer("user", "x", json.dumps(content))
        assert fits
    except UsageError as error:
        # the only rule that the schema leaves out: what no process can be given as its environment
        assert not fits or any(_is_refused_by_the_system(*variable) for variable in content["env"].items())
        assert str(error).startswith("x:1: ")


def _is_refused_by_the_system(name: str, value: object) -> bool:
    return not name or "=" in name or "\0" in f"{name}{value}"


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_FLAT = st.lists(_SCALARS, max_size=4) | st.dictionaries(st.text(max_size=4), _SCALARS, max_size=4)
JSON = (
    _SCALARS | _FLAT | st.lists(_FLAT, max_size=3) | st.dictionaries(st.text(max_size=4), _FLAT | _SCALARS, max_size=4)
)


@given(JSON, st.data())
def test_line_of_every_value_is_found(value: Any, data: st.DataObject) -> None:
    path = _some_path(value, data)
    text = json.dumps(value, indent=1, ensure_ascii=False)
    marked = json.dumps(_marked(value, path), indent=1, ensure_ascii=False)
    line = line_of(text, path)
    assert "MARK" in marked.split("\n")[line - 1] if path else line == 1


def _members(value: Any) -> dict[Any, Any]:
    if isinstance(value, list):
        return dict(enumerate(cast("list[Any]", value)))
    return cast("dict[Any, Any]", value) if isinstance(value, dict) else {}


def _some_path(value: Any, data: st.DataObject) -> list[Any]:
    members = _members(value)
    if not members:
        return []
    key = data.draw(st.sampled_from(list(members)))
    return [key, *_some_path(members[key], data)]


def _marked(value: Any, path: list[Any]) -> Any:
    if not path:
        return "MARK"
    members = {**_members(value), path[0]: _marked(_members(value)[path[0]], path[1:])}
    return list(members.values()) if isinstance(value, list) else members
