"""`.claude` settings: deny and ask rules count at once, the rest once trusted; broken files stop the start."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from callwright.app.locations import Locations
from callwright.app.permissions import load_rules
from callwright.app.prompts import instruction_files
from callwright.app.settings import Settings, SettingsWatch
from callwright.app.trust import Trust, load_trusted_settings
from callwright.core.errors import UsageError
from callwright.policy.paths import PathContext
from callwright.skills import Skills
from callwright.system.paths import Workspace

FULL = {
    "permissions": {
        "allow": ["Bash(npm test)"],
        "ask": ["Bash(git push *)"],
        "deny": ["Read(secret/**)"],
        "defaultMode": "bypassPermissions",
        "additionalDirectories": ["/tmp"],
    },
    "env": {"FOO": "1", "PORT": 80},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard"}]}]},
    "model": "opus",
    "statusLine": {"type": "command", "command": "date"},
}


@pytest.fixture
def locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    return Locations.of(tmp_path / "project", home=tmp_path / "home" / ".callwright")


def write(folder: Path, content: object, name: str = "settings.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return file


def rules(settings: Settings, locations: Locations) -> list[tuple[str, str]]:
    here = PathContext.within(Workspace(locations.cwd), locations.cwd)
    return [(rule.kind, rule.text) for rule in load_rules(settings, here).rules]


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_untrusted_project_only_takes_away(locations: Locations, name: str) -> None:
    write(locations.project / ".claude", FULL, name)
    settings = load_trusted_settings(locations)
    assert rules(settings, locations) == [("deny", "Read(secret/**)"), ("ask", "Bash(git push *)")]
    assert settings.last("permissions", "defaultMode") is None and not settings.merged("env")
    assert not settings.merged("hooks") and not settings.directories()
    assert any("hook on PreToolUse Bash: ./guard" in text for text in settings.withheld)
    assert any("not used here: model, statusLine" in text for text in settings.problems)


def test_trusted_project_counts_in_full_and_ours_win(locations: Locations) -> None:
    write(locations.project / ".claude", FULL)
    write(locations.home, {"permissions": {"defaultMode": "plan"}, "env": {"FOO": "ours"}})
    Trust(locations).give()
    settings = load_trusted_settings(locations)
    assert ("allow", "Bash(npm test)") in rules(settings, locations)
    assert settings.last("permissions", "defaultMode") == "plan"
    assert settings.merged("env") == {"FOO": "ours", "PORT": "80"}
    assert list(settings.merged("hooks")) == ["PreToolUse"]


def test_a_change_needs_trust_again(locations: Locations) -> None:
    file = write(locations.project / ".claude", FULL)
    Trust(locations).give()
    file.write_text(json.dumps({**FULL, "env": {"FOO": "2"}}))
    assert not load_trusted_settings(locations).merged("env")


def test_user_settings_are_trusted_once_for_all_projects(locations: Locations, tmp_path: Path) -> None:
    write(tmp_path / "home" / ".claude", FULL)
    assert rules(load_trusted_settings(locations), locations) == [
        ("deny", "Read(secret/**)"),
        ("ask", "Bash(git push *)"),
    ]
    Trust(locations).give()
    other = tmp_path / "other"
    other.mkdir()
    second = Locations.of(other, home=locations.home)
    assert ("allow", "Bash(npm test)") in rules(load_trusted_settings(second), second)
    Trust(second).take()
    assert ("allow", "Bash(npm test)") not in rules(load_trusted_settings(second), second)


def test_settings_of_the_working_folder_count_too(locations: Locations) -> None:
    (locations.project / ".git").mkdir()
    write(locations.project / "web" / ".claude", {"permissions": {"deny": ["Bash(curl *)"]}})
    inner = Locations.of(locations.project / "web", home=locations.home)
    assert rules(load_trusted_settings(inner), inner) == [("deny", "Bash(curl *)")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"permissions": {"deny": ["Bash(rm *)",]}}', "settings.json:1: not valid JSON"),
        ('{\n "permissions": {\n  "deny": "Bash"}}', r"settings.json:3: permissions.deny: .*\(column 3\)"),
        ('{\n "permissions": {"deny": [3]}}', r"settings.json:2: permissions.deny.0: .*\(column 27\)"),
        ('{\n "permissions": []}', r"settings.json:2:2: permissions: expected an object"),
        ('{"hooks": 5}', "settings.json:1:2: hooks: expected an object"),
        ('{"permissions": {"deny": ["a"]}, "permissions": {}}', "duplicate key 'permissions'"),
        ("[]", "expected an object"),
        ('{"env": {"A": ["x"]}}', "env.A"),
        ("[" * 100_000, "nested too deeply"),
        ('{"hooks": {"Stop": [{"timeout": NaN}]}}', "not valid JSON: NaN"),
        ('{"hooks": {"Stop": [{"timeout": 1e999}]}}', "number 1e999 is too large"),
        ('{"hooks": {"Stop": [{"timeout": ' + "9" * 5_000 + "}]}}", "not valid JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "not valid JSON"),
    ],
)
def test_malformed_settings_stop_the_start(locations: Locations, text: str, told: str) -> None:
    write(locations.project / ".claude", text)
    with pytest.raises(UsageError, match=told):
        load_trusted_settings(locations)


def test_a_rule_that_cannot_be_parsed_names_line_and_column(locations: Locations) -> None:
    write(locations.project / ".claude", '{"permissions": {\n  "deny": ["Bash(rm"]}}')
    with pytest.raises(UsageError, match=r"settings.json:2: .*Bash\(rm.*\(column 12\)"):
        rules(load_trusted_settings(locations), locations)


def test_unreadable_files_stop_the_start(locations: Locations) -> None:
    folder = locations.project / ".claude"
    folder.mkdir()
    (folder / "settings.json").mkdir()
    with pytest.raises(UsageError, match="cannot read the settings"):
        load_trusted_settings(locations)
    (folder / "settings.json").rmdir()
    os.mkfifo(folder / "settings.json")
    with pytest.raises(UsageError, match="cannot read the settings"):
        load_trusted_settings(locations)


def test_unknown_mode_is_named_and_gives_nothing(locations: Locations) -> None:
    write(locations.project / ".claude", {"permissions": {"defaultMode": "delegate", "newKey": 1}})
    settings = load_trusted_settings(locations)
    assert settings.last("permissions", "defaultMode") is None
    assert any("defaultMode is not used" in text for text in settings.problems)
    assert any("permissions.newKey is not used here" in text for text in settings.problems)


def test_disabled_servers_are_left_out_untrusted_or_not(locations: Locations) -> None:
    from callwright.app.mcp_servers import load_servers

    (locations.project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}})
    )
    write(locations.project / ".claude", {"disabledMcpjsonServers": ["a"]})
    Trust(locations).give()
    found = load_servers(load_trusted_settings(locations), (), [], locations)
    assert [server.name for server in found] == ["b"]


def test_claude_instructions_are_read(locations: Locations, tmp_path: Path) -> None:
    write(tmp_path / "home" / ".claude", "user", "CLAUDE.md")
    write(locations.project / ".claude", "project", "CLAUDE.md")
    write(locations.project, "local", "CLAUDE.local.md")
    found = [(file.read_text(), kind) for file, kind, _ in instruction_files(locations)]
    assert found == [("user", "User"), ("project", "Project"), ("local", "Project")]


def test_plugins_bring_skills_and_commands(tmp_path: Path) -> None:
    plugin = tmp_path / "tidy"
    write(plugin / "skills" / "sweep", "---\nname: sweep\ndescription: Sweeps.\n---\nSweep.", "SKILL.md")
    write(plugin / "commands", "Dust it.", "dust.md")
    assert [skill.name for skill in Skills(tmp_path, home=tmp_path, plugins={"tidy": plugin})] == [
        "tidy:dust",
        "tidy:sweep",
    ]


def test_enabled_plugins_are_found_once_trusted(machine_locations: Any) -> None:
    locations, plugin = machine_locations
    from callwright.app.claude_settings import plugin_folders

    assert plugin_folders(load_trusted_settings(locations).layers, locations) == ({}, ())
    Trust(locations).give()
    found, problems = plugin_folders(load_trusted_settings(locations).layers, locations)
    assert found == {"tidy": plugin}
    assert "not its hooks" in problems[0] and "gone@shop is enabled and not installed" in problems[1]


@pytest.fixture
def machine_locations(locations: Locations, tmp_path: Path) -> tuple[Locations, Path]:
    plugin = tmp_path / "tidy-1.0"
    write(plugin / "hooks", "{}", "hooks.json")
    write(
        locations.claude / "plugins",
        {"version": 2, "plugins": {"tidy@shop": [{"installPath": str(plugin)}]}},
        "installed_plugins.json",
    )
    write(locations.claude, {"enabledPlugins": {"tidy@shop": True, "gone@shop": True, "off@shop": False}})
    return locations, plugin


def test_changes_of_the_files_in_the_working_folder_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    inner = tmp_path / "project" / "inner"
    (inner / ".claude").mkdir(parents=True)
    watch = SettingsWatch(Locations.of(inner, home=tmp_path / "home"))
    (inner / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    assert watch.changes() == [("project_settings", str(inner / ".claude" / "settings.json"))]
    assert watch.changes() == []
