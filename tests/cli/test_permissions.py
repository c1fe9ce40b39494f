"""`callwright permissions` makes the same decisions as the agent and reports their sources."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

LINES = (
    "make all",
    "git status",
    "rm -rf build",
    "git push -f",
    "curl https://x.example",
    "touch a",
    "cat ~/.ssh/id_rsa",
)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["bash", "git status"], 0),
        (["bash", "git status && rm -rf build"], 4),
        (["bash", "rm -rf /"], 3),
        (["bash", "touch a", "--mode", "plan"], 3),
        (["bash", "touch a", "--permission-mode", "acceptEdits"], 0),
        (["bash", "npm test", "--allow", "Bash(npm test)"], 0),
        (["bash", "npm test", "--allow", "Bash(npm *)", "--ask", "Bash(npm test)"], 4),
        (["bash", "npm test", "--allow", "Bash(npm *)", "--deny", "Bash(npm test)"], 3),
        (["read", "/etc/hosts"], 0),
        (["read", "~/.ssh/id_rsa"], 4),
        (["edit", "a.txt"], 4),
        (["write", '{"path": "a.txt", "content": "x"}', "--mode", "auto"], 0),
        (["delete", "a.txt", "--mode", "auto"], 4),
        (["web_fetch", "https://example.com/"], 4),
        (["web_fetch", "https://example.com/", "--allow", "WebFetch(domain:example.com)"], 0),
        (["deploy", "env=prod", "--deny", "deploy(env:prod)"], 3),
        (["deploy", '{"env": "prod"}', "--deny", "deploy(env:prod)"], 3),
        (["bash", "ls", "--mode", "nonsense"], 2),
        (["bash", "ls", "--deny", "Bash("], 2),
        (["bash", "ls", "--cwd", "nowhere"], 2),
        (["bash", '{"command": '], 2),
        (["write", '{"pth": "a.txt"}'], 2),
    ],
)
def test_exit_code_is_the_decision(machine: Any, arguments: list[str], code: int) -> None:
    assert machine("permissions", "test", *arguments).code == code


def test_unknown_tool_name_is_reported(machine: Any) -> None:
    assert "unknown  no tool 'bsh' here; did you mean bash?" in machine("permissions", "test", "bsh", "ls").out
    for name in ("bash", "run_shell_command", "mcp__time__now"):
        assert "unknown  " not in machine("permissions", "test", name, "ls").out


def test_tool_without_accesses_is_judged_by_its_own_effect(machine: Any) -> None:
    given = machine("permissions", "test", "enter_plan", "now")  # it takes no such argument, and it only reads
    assert (given.code, given.out.splitlines()[0]) == (0, "allow: enter_plan")


def test_each_part_has_its_own_decision(machine: Any) -> None:
    ended = machine("permissions", "test", "bash", "git status && rm -rf build", "--json")
    report = ended.document
    assert (ended.code, report["decision"], report["tool"], report["mode"]) == (4, "ask", "bash", "default")
    assert [(part.get("runs"), part["decision"]) for part in report["parts"] if "runs" in part] == [
        ("git status", "allow"),
        ("rm -rf build", "ask"),
    ]
    assert f"delete {machine.project}/build" in [part.get("touches") for part in report["parts"]]


def test_deciding_rule_is_shown_with_file_and_line(machine: Any) -> None:
    file = machine.settings('{\n "permissions": {\n  "deny": [\n   "Read(x)",\n   "Bash(rm *)"\n  ]}}')
    ended = machine("permissions", "test", "bash", "sudo rm x")
    assert ended.code == 3 and "decided  deny rule Bash(rm *) in .callwright/settings.json:5" in ended.out
    elsewhere = machine("permissions", "test", "bash", "rm x", "--cwd", str(machine.project), "--json")
    assert elsewhere.document["source"] == f"deny rule Bash(rm *) in {file}:5"


def test_rules_come_from_user_project_and_command_line(machine: Any) -> None:
    machine.user_settings({"permissions": {"deny": ["Bash(make *)"]}})
    machine.settings({"permissions": {"ask": ["Bash(git status)"]}})
    (machine.project / ".git").mkdir()
    inner = machine.project / "a" / "b"
    inner.mkdir(parents=True)
    machine.patch.chdir(inner)
    assert machine("permissions", "test", "bash", "make all").code == 3
    assert machine("permissions", "test", "bash", "git status").code == 4
    given = json.dumps({"permissions": {"defaultMode": "bypass", "deny": ["Bash(ls *)"]}})
    assert machine("permissions", "test", "bash", "ls", "--settings", given).code == 3
    assert machine("permissions", "test", "bash", "touch a", "--settings", given).code == 0


def test_allow_rule_of_an_untrusted_folder_is_ignored(machine: Any) -> None:
    file = machine.settings('{"permissions": {\n "allow": ["Bash(make *)"], "defaultMode": "bypassPermissions"}}')
    ended = machine("permissions", "test", "bash", "make all")
    assert ended.code == 4
    assert "ignored  allow Bash(make *) in .callwright/settings.json:2" in ended.out and "not trusted" in ended.out
    report = machine("permissions", "test", "bash", "make all", "--json").document
    assert report["trusted"] is False and report["mode"] == "default"
    assert report["ignored"] == [
        {"rule": "allow Bash(make *)", "written_in": f"{file}:2", "why": "the folder is not trusted"}
    ]
    assert machine("permissions", "test", "bash", "make all", "--trust").code == 0
    machine("trust", "give")
    assert machine("permissions", "test", "bash", "make all").code == 0


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("line", LINES)
def test_agent_makes_the_same_decision(machine: Any, calls: Any, line: str, trusted: bool) -> None:
    machine.user_settings({"permissions": {"ask": ["Bash(touch *)"]}})
    machine.settings({"permissions": {"allow": ["Bash(make *)"], "deny": ["Bash(git push *)"], "defaultMode": "auto"}})
    if trusted:
        machine("trust", "give")
    told = machine("permissions", "test", "bash", line).code
    script = machine.says(calls("bash", command=line), "done")
    done = machine("-p", "go", script, "--output-format", "json", "--no-session-persistence")
    assert told == done.code


def test_hooks_are_listed_but_not_run(machine: Any) -> None:
    hook = {"type": "command", "command": "touch hooked; exit 2", "if": "Bash(git *)"}
    machine.user_settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    ended = machine("permissions", "test", "bash", "git status")
    assert ended.code == 0 and "touch hooked" in ended.out
    assert not (machine.project / "hooked").exists()
    for other in (["read", "a.txt"], ["bash", "ls"]):
        assert "touch hooked" not in machine("permissions", "test", *other).out


def test_explain_lists_mode_trust_rules_and_problems(machine: Any) -> None:
    machine.user_settings({"permissions": {"allow": ["Bash(python *)"], "defaultMode": "auto"}})
    machine.settings({"permissions": {"deny": [{"rule": "Read(.env)", "match": ["a.txt"]}], "allow": ["Bash(make *)"]}})
    ended = machine("permissions", "explain")
    assert ended.code == 2
    assert f"mode   auto  [{machine.home}/settings.json:1]" in ended.out
    assert "deny   Read(.env)  [.callwright/settings.json:1]" in ended.out
    assert "ignored: allow Bash(make *)  [.callwright/settings.json:1]" in ended.out
    assert "too broad" in ended.out and "it does not match 'a.txt'" in ended.out
    report = machine("permissions", "explain", "--json", "--mode", "plan").document
    assert (report["mode"], report["mode_from"], report["trusted"]) == ("plan", "the command line", False)
    assert [rule["rule"] for rule in report["rules"]] == ["Bash(python *)", "Read(.env)"]
    assert report["withheld"] == ["allow Bash(make *)"]


def test_own_settings_of_claude_code_wait_for_trust(machine: Any, tmp_path: Path) -> None:
    machine.patch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    (tmp_path / "claude").mkdir()
    (tmp_path / "claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash(make)"]}}')
    shown = machine("permissions", "explain").out
    assert "[not trusted: callwright trust shows what it requests]" in shown and "(see callwright trust)" in shown
    assert "is not trusted" in machine("doctor").out
    machine("trust", "give")
    assert "[trusted]" in machine("permissions", "explain").out and "is not trusted" not in machine("doctor").out


def test_explain_without_rules(machine: Any) -> None:
    ended = machine("permissions", "explain")
    assert ended.code == 0 and "no rules" in ended.out


def test_invalid_settings_are_reported_with_a_line(machine: Any) -> None:
    file = machine.settings('{\n "permissions": {"deny": [\n  "Bash(git push *)",\n  "Bash(rm"\n ]}}')
    for action in (["test", "bash", "ls"], ["explain"]):
        ended = machine("permissions", *action)
        assert ended.code == 2 and f"{file}:4: the deny rule 'Bash(rm'" in ended.err


def test_schema_prints_the_settings_schema(machine: Any) -> None:
    schema = machine("permissions", "schema").document
    assert {"permissions", "hooks", "mcpServers"} <= set(schema["properties"])


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "permissions.md"


def test_commands_on_the_docs_page_match_their_output(machine: Any) -> None:
    text = PAGE.read_text(encoding="utf-8")
    machine.settings(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    machine("trust", "give")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for command in block.split("$ callwright ")[1:]:
            line, _, shown = command.partition("\n")
            said = machine(*shlex.split(line)).out.replace(str(machine.project), "/home/ann/shop")
            assert said.replace(str(machine.project.parent), "/home/ann").strip() == shown.strip()
