"""Guards and rules that are written a little wrong: none of them fails open."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.app.claude_settings import parse_claude_layer
from callwright.app.settings_file import parse_layer
from callwright.core.errors import UsageError
from callwright.hooks.shell.config import ShellHook, parse_shell_hooks
from callwright.hooks.shell.process import HookRun
from callwright.hooks.shell.reply import read_reply
from callwright.policy.rules.patterns import path_pattern
from callwright.policy.rules.rule import parse_rule
from callwright.policy.tool_names import names_tool

GUARD = ShellHook("PreToolUse", "guard")
BASH = ("bash", "Bash")


@pytest.mark.parametrize(
    "output",
    [
        '{"block": true}',
        '{"deny": "no"}',
        '{"error": "it broke"}',
        '{"ok": false}',
        '{"allowed": 0}',
        '{"updatedInput": {"command": "ls"}}',
        '{"interrupt": true}',
        '{"stopReason": "no"}',
        "not allowed",
    ],
)
def test_reply_that_may_refuse_is_no_permission(output: str):
    assert read_reply(GUARD, HookRun(0, output, "")).decision == "deny"


@pytest.mark.parametrize("output", ['{"ok": true}', '{"success": true}', '{"error": null}', '{"status": "ok"}', "done"])
def test_log_line_of_a_guard_does_not_deny(output: str):
    assert read_reply(GUARD, HookRun(0, output, "")).decision == ""


@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_guard_that_wrote_more_than_is_read_denies(exit_code: int):
    assert read_reply(GUARD, HookRun(exit_code, "checked", cut=True)).decision == "deny"


def _matches(matcher: str, event: str = "PreToolUse") -> bool:
    hooks, _ = parse_shell_hooks({event: [{"matcher": matcher, "hooks": [{"command": "guard"}]}]})
    return any(hook.matches(BASH) for hook in hooks)


@pytest.mark.parametrize(
    "matcher",
    ["Bash(git *)", "Bash(rm:*)", "!Write", "Bash;Write", "Bash Write", "Bash/Write", "'Bash'", "/Bash/", "Bash\n",
     "tool:Bash", "functions.Bash"],
)  # fmt: skip
def test_guard_runs_for_the_tools_its_matcher_names(matcher: str):
    assert _matches(matcher)


@pytest.mark.parametrize("matcher", ["Write", "^Write$", "(?!Bash)Write", "mcp__bash__.*", "Edit|Write", "Bashful"])
def test_guard_does_not_run_for_other_tools(matcher: str):
    assert not _matches(matcher)


def test_matcher_of_a_rule_is_reported():
    _, problems = parse_shell_hooks({"PreToolUse": [{"matcher": "Bash(git *)", "hooks": [{"command": "guard"}]}]})
    assert 'a rule goes into "if"' in problems[0]


@pytest.mark.parametrize("group", [{"command": "guard"}, {"matcher": "Bash", "hook": [{"command": "guard"}]}])
def test_group_without_hooks_denies_what_it_may_guard(group: dict[str, Any]):
    hooks, problems = parse_shell_hooks({"PreToolUse": [group]})
    assert [bool(hook.broken) for hook in hooks] == [True]
    assert problems


@pytest.mark.parametrize("pattern", ["mcp__*", "mcp__f*", "mcp__fs", "mcp__fs__*"])
def test_pattern_of_servers_names_their_tools(pattern: str):
    assert names_tool(pattern, ["mcp__fs__read"], "")


@pytest.mark.parametrize("text", ["mcp__fs__read(*)", "mcp__fs(*)", "Task(*)"])
def test_deny_of_every_argument_denies_the_tool(text: str):
    assert parse_rule("deny", text).specifier is None
    assert parse_rule("allow", text).specifier == "*"


@pytest.mark.parametrize("text", ["Bash,Read", "Bash|Read", "!Bash(ls)", "Bash:ls", "Bash[ls]"])
def test_deny_of_several_names_stops_the_start(text: str):
    with pytest.raises(UsageError, match="one rule for each"):
        parse_rule("deny", text)


def test_deny_with_one_slash_means_the_absolute_path_too(tmp_path: Path):
    pattern = path_pattern("/etc/passwd", base=str(tmp_path), cwd=str(tmp_path), home="/root", wide=True)
    assert pattern.matches("/etc/passwd")
    assert pattern.matches(f"{tmp_path}/etc/passwd")
    narrow = path_pattern("/etc/passwd", base=str(tmp_path), cwd=str(tmp_path), home="/root", wide=False)
    assert not narrow.matches("/etc/passwd")


@pytest.mark.parametrize(
    "content",
    [
        {"Permissions": {"deny": ["Bash"]}},
        {"permission": {"deny": ["Bash"]}},
        {"Hooks": {}},
        {"permissions": {"Deny": ["Bash"]}},
        {"permissions": {"denied": ["Bash"]}},
        {"permissions": {"denyList": ["Bash"]}},
        {"permissions": {"disallow": ["Bash"]}},
        {"permissions": {"Ask": ["Bash"]}},
    ],
)
def test_misspelt_section_with_rules_stops_the_start(content: dict[str, Any]):
    with pytest.raises(UsageError, match=r"settings\.json:1:"):
        parse_claude_layer("project", "settings.json", json.dumps(content))
    with pytest.raises(UsageError, match=r"settings\.json:1: .* write "):
        parse_layer("user", "settings.json", json.dumps(content))
