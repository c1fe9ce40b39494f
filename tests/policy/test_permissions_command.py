"""`toolwright permissions` shows what would be decided, and its exit code says it to programs."""

import json
from pathlib import Path

import pytest

from toolwright.cli.commands.permissions import run


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["test", "bash", "git status"], 0),
        (["test", "bash", "git status && rm -rf build"], 3),
        (["test", "bash", "rm -rf /"], 4),
        (["test", "bash", "touch a", "--mode", "plan"], 4),
        (["test", "bash", "touch a", "--mode", "auto"], 0),
        (["test", "bash", "npm test", "--allow", "Bash(npm test)"], 0),
        (["test", "bash", "npm test", "--allow", "Bash(npm *)", "--ask", "Bash(npm test)"], 3),
        (["test", "bash", "npm test", "--allow", "Bash(npm *)", "--deny", "Bash(npm test)"], 4),
        (["test", "read", "/etc/hosts"], 0),
        (["test", "read", "/etc/hosts", "--reads", "inside"], 3),
        (["test", "read", "~/.ssh/id_rsa"], 3),
        (["test", "edit", "a.txt"], 3),
        (["test", "web_fetch", "https://example.com/"], 3),
        (["test", "web_fetch", "https://example.com/", "--allow", "WebFetch(domain:example.com)"], 0),
        (["test", "deploy", "env=prod", "--deny", "deploy(env:prod)"], 4),
        (["test", "bash", "ls", "--mode", "nonsense"], 2),
        (["test", "bash", "ls", "--deny", "Bash("], 2),
    ],
)
def test_the_exit_code_is_the_decision(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code


def test_each_part_is_shown_with_its_own_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["test", "bash", "git status && rm -rf build", "--cwd", str(tmp_path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (code, report["decision"], report["tool"]) == (3, "ask", "bash")
    assert [(part.get("runs"), part["decision"]) for part in report["parts"] if "runs" in part] == [
        ("git status", "allow"),
        ("rm -rf build", "ask"),
    ]
    assert f"delete {tmp_path}/build" in [part.get("touches") for part in report["parts"]]


def test_the_deciding_rule_is_shown_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"]}}))
    assert run(["test", "bash", "sudo rm x", "--cwd", str(tmp_path), "--rules", str(rules)]) == 4
    assert f"deny rule Bash(rm *) in {rules}" in capsys.readouterr().out


def test_explain_lists_rules_where_they_come_from_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"allow": ["Bash(python *)"], "deny": [{"rule": "Read(.env)", "match": ["a.txt"]}]}))
    assert run(["explain", "--rules", str(rules)]) == 2
    shown = capsys.readouterr().out
    assert f"deny   Read(.env)  [{rules}]" in shown
    assert "too broad" in shown
    assert "it does not match 'a.txt'" in shown


def test_without_rules_explain_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["explain"]) == 0
    assert "no rules" in capsys.readouterr().out
