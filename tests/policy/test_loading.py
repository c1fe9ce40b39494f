"""Rules are checked when they are loaded, not when they fail to protect."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from callwright.core.errors import UsageError
from callwright.policy import check_rules, load_rules, rules_of, save_rules
from callwright.policy.rules import loading
from callwright.policy.rules.rule import RuleKind, parse_rule
from callwright.policy.tool_names import names_tool


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


def test_unknown_tool_in_an_allow_rule_is_reported() -> None:
    assert _problems(allow=["Baash(git *)", "WebFech", "deplyo"], tools=("deploy",)) == dict.fromkeys(
        ("Baash(git *)", "WebFech", "deplyo"), "unknown tool"
    )
    # tools of other programs in their settings, and servers that are not connected yet
    assert _problems(allow=["LSP", "SlashCommand", "mcp__x__y", "mcp__x", "group:shop", "deploy"]) == {}
    others = ["CronDelete", "TeamDelete", "TaskList", "ReadMcpResourceTool", "ListMcpResourcesTool", "REPL"]
    assert _problems(allow=others, tools=("delete", "TaskStop")) == {}


def test_unknown_tool_that_was_typed_is_always_reported() -> None:
    typed = rules_of(allow=["LSP", "group:shop", "mcp__x__y", "Bash(ls)"], scope="command line")
    assert [problem.rule.text for problem in check_rules(typed)] == ["LSP", "group:shop"]
    assert check_rules(typed)[0].text == "there is no tool LSP, so it allows nothing"


@pytest.mark.parametrize(
    ("text", "near"),
    [("Bsh(ls)", "Bash"), ("wrte", "Edit"), ("web_fetsh", "WebFetch"), ("bash_outptu", "bash_output"), ("zebra", "")],
)
def test_unknown_tool_is_reported_with_the_nearest_name(text: str, near: str) -> None:
    (problem,) = check_rules(rules_of(deny=[text]), ("bash_output",))
    assert problem.text.endswith(f"so it protects nothing; did you mean {near}?" if near else "so it protects nothing")


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
        "Read({a,b})",
        "Read(a, b)",
        "WebFetch(domain:a.example, domain:b.example)",
        "Resource(orders/*)",
    ],
)
def test_rule_that_never_matches_is_reported(text: str) -> None:
    assert _problems(deny=[text]) == {text: "never matches"}


@pytest.mark.parametrize(
    "text",
    [
        "mcp*",
        "*",
        "WebFetch(https://example.com/*)",
        "Bash(env *)",
        "Bash(command:rm *)",
        "Bash(CI=1 npm test)",
        "Bash(find . -exec wc {} +)",
    ],
)
def test_allow_rule_that_never_matches_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "never matches"}


@pytest.mark.parametrize(
    ("kind", "text", "example"),
    [
        ("deny", "Bash(echo 'a && b')", "echo 'a && b'"),
        ("deny", "Bash(env *)", "env rm a"),
        ("deny", "Bash(CI=1 npm test)", "CI=1 npm test"),
        ("allow", "Bash(npm test)", "CI=1 npm test"),
        ("allow", "Bash(env make)", "env make"),
        ("deny", "WebFetch(https://example.com/*)", "https://example.com/a"),
        ("allow", "WebFetch(domain:example.com)", "https://example.com/a"),
        ("deny", "WebFetch(domain:**)", "https://example.com/a"),
        ("deny", "WebFetch(domain:**.example.com)", "https://a.b.example.com/"),
        ("deny", "mcp__x__y(path:a)", "path=a"),
        ("deny", "mcp__x__y({a,b})", "{a,b}"),
        ("deny", "mcp__x__y(to:a, from:b)", "to=a from=b"),
        ("deny", "mcp__x__y(!a)", "!a"),
        ("deny", "mcp__x__y($a)", "$a"),
        ("allow", "mcp__x__*", "a"),
    ],
)
def test_rule_that_matches_is_not_reported(tmp_path: Path, kind: RuleKind, text: str, example: str) -> None:
    (tmp_path / "rules.json").write_text(json.dumps({kind: [{"rule": text, "match": [example]}]}))
    assert load_rules(tmp_path / "rules.json").problems == ()


def test_rule_about_resources_names_a_scheme_or_begins_with_a_wildcard() -> None:
    assert _problems(deny=["Resource(db://orders/*)", "ReadResource(*/orders)"]) == {}


def test_unreachable_rule_is_reported() -> None:
    assert _problems(deny=["Bash(git *)"], allow=["Bash(git log *)"]) == {"Bash(git log *)": "unreachable"}
    assert _problems(deny=["Read"], ask=["Read(a)"]) == {"Read(a)": "unreachable"}
    assert _problems(deny=["Bash(git push *)"], allow=["Bash(git log *)"]) == {}
    assert _problems(ask=["Bash(git push)"], allow=["Bash(git push)"]) == {"Bash(git push)": "unreachable"}
    assert _problems(ask=["Bash(git log)"], allow=["Bash(git log *)"]) == {}
    assert _problems(deny=["Bash(git *)"], allow=["Bash"]) == {"Bash": "too broad"}
    assert _problems(deny=["Read(//**)"], ask=["Read(a)"]) == {"Read(a)": "unreachable"}
    assert _problems(deny=["mcp__x"], allow=["mcp__x__*"]) == {"mcp__x__*": "unreachable"}
    assert _problems(deny=["mcp__x__a*"], allow=["mcp__x__*"]) == {}


def test_many_rules_look_at_the_names_of_tools_once_per_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def count(pattern: str, names: Iterable[str], group: str) -> bool:
        nonlocal looks
        looks += 1
        return names_tool(pattern, names, group)

    monkeypatch.setattr(loading, "names_tool", count)
    denied = [f"Bash(a{number} *)" for number in range(200)]
    assert _problems(deny=denied, allow=[f"Bash(b{number} *)" for number in range(200)]) == {}
    assert looks == len(denied)  # each pair of rules: 80,000


def test_rule_for_another_place_or_session_makes_none_unreachable() -> None:
    here = rules_of(allow=["Read(/a)"], base="/x")
    assert check_rules((*here, *rules_of(deny=["Read(/a)"], base="/y"))) == ()
    assert check_rules((*here, parse_rule("deny", "Read", session="s"))) == ()


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
        "Bash(unshare *)",
        "Bash(entr *)",
        "Bash(watchexec -e py *)",
        "Bash(git *)",
        "Bash(* --version)",
        "Bash(ssh host -- *)",
        "Edit(//**)",
        "Edit(//*)",
        "Edit(//)",
        "Edit(~/**)",
        "Edit(~/*)",
        "Edit(~)",
        "WebFetch",
        "WebFetch(domain:*)",
        "WebFetch(domain:*.*)",
    ],
)
def test_broad_allow_rule_is_reported(text: str) -> None:
    assert _problems(allow=[text]) == {text: "too broad"}


@pytest.mark.parametrize(
    "text",
    [
        "Bash(python run.py)",
        "Bash(npm run build *)",
        "Bash(git log *)",
        "Bash(ls *)",
        "Bash(frob*)",
        "Bash(pyth *)",
        "Edit(src/**)",
        "Edit(~/x/**)",
        "Read(//**)",
        "WebFetch(domain:*.example)",
    ],
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
    plain = settings.rename(tmp_path / "rules.json")
    assert load_rules(plain).rules[0].base == str(tmp_path)


def test_rules_beside_permissions_count(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text('{"deny": ["Bash(rm *)"]}')
    save_rules(file, ["Bash(make)"])
    assert [rule.text for rule in load_rules(file).rules] == ["Bash(rm *)", "Bash(make)"]


def test_allow_rules_beside_permissions_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text('{"permissions": {"allow": ["Bash(make)"]}, "allow": ["Bash(rm *)"], "ask": ["Read(a)"]}')
    assert [rule.text for rule in load_rules(file).rules] == ["Read(a)", "Bash(make)"]


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
        '{"deny": [{"rule": "Bash(ls)", "match": "ls"}]}',
        '{"deny": [{"rule": "Bash(ls)", "not_match": [1]}]}',
        '{"deny": ["Bash(rm *)"], "deny": []}',
        '{"Deny": ["Bash(rm *)"]}',
        '{"permissions": {"denied": ["Bash(rm *)"]}}',
        '{"permission": {"deny": ["Bash(rm *)"]}}',
        '{"permission": {"deny": ["Bash(rm *)"], "deny": []}}',
        '{"permissions": {"deny": ["Bash(rm *)"], "deny": []}}',
        '{"deny": [{"rule": "Bash(rm *)", "rule": "Bash(ls)"}]}',
        '{"permissions": {}, "Deny": ["Bash(rm *)"]}',
        '{"permissions": {}, "disallowedTools": ["Bash"]}',
        '{"permissions": {}, "denied": [{"rule": "Bash(rm *)"}]}',
        '{"deny": ["Bash(rm *)"], "weight": NaN}',
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


def test_paths_of_examples_start_from_the_working_folder(tmp_path: Path) -> None:
    entry = {"rule": f"Read(/{tmp_path}/there/a)", "match": ["a"]}
    (tmp_path / "rules.json").write_text(json.dumps({"deny": [entry]}))
    assert load_rules(tmp_path / "rules.json", cwd=tmp_path / "there").problems == ()
    assert [problem.text for problem in load_rules(tmp_path / "rules.json").problems] == ["it does not match 'a'"]


@pytest.mark.parametrize(
    "other",
    [
        '"permissions": {}, "deniedMcpServers": [{"serverName": "fs"}]',
        '"blockedMarketplaces": [{"source": "github", "repo": "x/y"}]',
        '"permissions": {}, "allow": true',
        '"permissionMode": "plan"',
        '"permissionsDir": "x"',
        '"task": ["a"], "mask": ["a"]',
        '"env": {"A": "1", "A": "2"}',
    ],
)
def test_keys_of_other_programs_do_not_hinder_rules(tmp_path: Path, other: str) -> None:
    (tmp_path / "rules.json").write_text(f'{{"deny": ["Bash(rm *)"], {other}}}')
    assert [rule.text for rule in load_rules(tmp_path / "rules.json").rules] == ["Bash(rm *)"]


def test_files_of_other_settings_load(tmp_path: Path) -> None:
    settings = {
        "model": "m",
        "blocked": True,
        "permissions": {"additionalDirectories": ["../a"], "defaultMode": "plan"},
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    assert load_rules(tmp_path / "settings.json").rules == ()
