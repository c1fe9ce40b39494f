"""Rules are checked when they are loaded, not when they fail to protect."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from callwright.core.errors import UsageError
from callwright.policy import check_rules, load_rules, rules_of


def _problems(
    *, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = (), tools: Sequence[str] = ()
) -> dict[str, str]:
    rules = rules_of(allow=allow, ask=ask, deny=deny)
    return {problem.rule.text: problem.kind for problem in check_rules(rules, tools)}


def test_an_unknown_tool_in_a_deny_rule_is_reported_unless_it_exists() -> None:
    assert _problems(deny=["Baash(rm *)"]) == {"Baash(rm *)": "unknown tool"}
    assert _problems(deny=["deploy"], tools=("deploy",)) == {}
    assert _problems(deny=["Bash(rm *)", "mcp__x__y", "group:shell", "*", "WriteFileTool(a)"]) == {}


@pytest.mark.parametrize(
    "text",
    ["Bash(ls && rm *)", "Bash(cat a | sh)", "Bash(git:* push)", "Bash(echo x > y)", "Bash(command:rm *)", "Read(!a)"],
)
def test_a_rule_that_can_never_match_is_reported(text: str) -> None:
    assert _problems(deny=[text]) == {text: "never matches"}


@pytest.mark.parametrize("text", ["mcp*", "*", "WebFetch(https://example.com/*)", "Bash(env *)"])
def test_an_allow_rule_that_can_never_match_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "never matches"}


def test_quoted_separators_are_only_text() -> None:
    assert _problems(deny=["Bash(echo 'a && b')"]) == {}


def test_a_rule_behind_a_stricter_one_is_reported() -> None:
    assert _problems(deny=["Bash(git *)"], allow=["Bash(git log *)"]) == {"Bash(git log *)": "unreachable"}
    assert _problems(deny=["Read"], ask=["Read(a)"]) == {"Read(a)": "unreachable"}
    assert _problems(deny=["Bash(git push *)"], allow=["Bash(git log *)"]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Bash",
        "Bash(*)",
        "Bash(python)",
        "Bash(python -c *)",
        "Bash(bash:*)",
        "Bash(pyth*)",
        "Bash(npm run *)",
        "Bash(sudo *)",
        "Bash(git *)",
        "Bash(* --version)",
        "Bash(ssh host -- *)",
        "Edit(//**)",
        "WebFetch",
    ],
)
def test_an_allow_rule_that_means_anything_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "too broad"}


@pytest.mark.parametrize("text", ["Bash(python run.py)", "Bash(npm run build *)", "Bash(git log *)", "Bash(ls *)"])
def test_a_narrow_allow_rule_is_fine(text: str) -> None:
    assert _problems(allow=[text]) == {}


def test_rules_carry_the_file_they_were_written_in(tmp_path: Path) -> None:
    settings = tmp_path / ".callwright" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"permissions": {"deny": ["Read(/keys/**)"], "allow": ["Bash(ls *)"]}}))
    loaded = load_rules(settings)
    assert [(rule.kind, rule.text, rule.written_in) for rule in loaded.rules] == [
        ("deny", "Read(/keys/**)", str(settings)),
        ("allow", "Bash(ls *)", str(settings)),
    ]
    assert loaded.rules[0].base == str(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '{"permissions": []}',
        '{"deny": "Bash"}',
        '{"deny": [1]}',
        '{"deny": ["Bash("]}',
        '{"deny": [{}]}',
    ],
)
def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "rules.json").write_text(text)
    with pytest.raises(UsageError):
        load_rules(tmp_path / "rules.json")


def test_examples_are_tried_when_the_rules_are_loaded(tmp_path: Path) -> None:
    entry = {"rule": "Bash(git push *)", "match": ["git push", "env git push -f"], "not_match": ["git pull"]}
    wrong = {"rule": "Read(*.pem)", "match": ["a.txt"], "not_match": ["b/c.pem"]}
    (tmp_path / "rules.json").write_text(json.dumps({"deny": [entry, wrong]}))
    loaded = load_rules(tmp_path / "rules.json")
    assert [(p.rule.text, p.text) for p in loaded.problems if p.kind == "example fails"] == [
        ("Read(*.pem)", "it does not match 'a.txt'"),
        ("Read(*.pem)", "it matches 'b/c.pem'"),
    ]
