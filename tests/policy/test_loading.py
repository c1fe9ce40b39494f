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


def test_unknown_tool_in_a_deny_rule_is_reported() -> None:
    assert _problems(deny=["Baash(rm *)"]) == {"Baash(rm *)": "unknown tool"}
    assert _problems(deny=["deploy"], tools=("deploy",)) == {}
    assert _problems(deny=["Bash(rm *)", "mcp__x__y", "group:shell", "*", "WriteFileTool(a)"]) == {}


def test_unknown_group_in_a_deny_rule_is_reported() -> None:
    assert _problems(deny=["group:files"], ask=["group:"]) == {"group:files": "unknown tool", "group:": "unknown tool"}
    assert _problems(deny=["group:shop"], tools=("group:shop",)) == {}
    assert _problems(deny=["group:File", "group:web", "group:agent", "group:mcp:github"], allow=["group:shop"]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Bash(ls && rm *)",
        "Bash(cat a | sh)",
        "Bash(git:* push)",
        "Bash(echo x > y)",
        "Read(!a)",
        "Read($HOME/a)",
        "Edit(~ann/a)",
        "Read(a, b)",
        "WebFetch(domain:a.example, domain:b.example)",
    ],
)
def test_rule_that_never_matches_is_reported(text: str) -> None:
    assert _problems(deny=[text]) == {text: "never matches"}


@pytest.mark.parametrize("text", ["mcp*", "*", "WebFetch(https://example.com/*)", "Bash(env *)", "Bash(command:rm *)"])
def test_allow_rule_that_never_matches_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "never matches"}


def test_quoted_separators_are_text() -> None:
    assert _problems(deny=["Bash(echo 'a && b')"]) == {}


def test_unreachable_rule_is_reported() -> None:
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
def test_broad_allow_rule_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "too broad"}


@pytest.mark.parametrize(
    "text",
    ["Bash(python run.py)", "Bash(npm run build *)", "Bash(git log *)", "Bash(ls *)", "Bash(frob*)", "Bash(pyth *)"],
)
def test_narrow_allow_rule_is_not_reported(text: str) -> None:
    assert _problems(allow=[text]) == {}


def test_rules_name_their_file(tmp_path: Path) -> None:
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
def test_unreadable_rule_file_raises(tmp_path: Path, text: str) -> None:
    (tmp_path / "rules.json").write_text(text)
    with pytest.raises(UsageError):
        load_rules(tmp_path / "rules.json")


def test_examples_are_tried_on_loading(tmp_path: Path) -> None:
    entry = {"rule": "Bash(git push *)", "match": ["git push", "env git push -f"], "not_match": ["git pull"]}
    wrong = {"rule": "Read(*.pem)", "match": ["a.txt"], "not_match": ["b/c.pem"]}
    (tmp_path / "rules.json").write_text(json.dumps({"deny": [entry, wrong]}))
    loaded = load_rules(tmp_path / "rules.json")
    assert [(p.rule.text, p.text) for p in loaded.problems if p.kind == "example fails"] == [
        ("Read(*.pem)", "it does not match 'a.txt'"),
        ("Read(*.pem)", "it matches 'b/c.pem'"),
    ]
