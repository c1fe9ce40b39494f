"""Rules about files, addresses and tools; rules about commands have tests of their own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Reach,
    ReadPath,
    RunCommand,
    UseTool,
    WritePath,
)
from callwright.core.errors import UsageError
from callwright.core.json import Json, JsonObject
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.policy import PathContext, Policies, Rules, parse_rule, rules_of
from callwright.policy.dry_run import DryRunCall, dry_run_line
from callwright.policy.rules.matching import Match, match
from callwright.policy.rules.rule import Rule, RuleKind
from callwright.policy.shell_line import PartOfLine
from callwright.shell import analyze


def _call(
    name: str, arguments: JsonObject | None = None, *, group: str = "", aliases: tuple[str, ...] = ()
) -> DryRunCall:
    spec = ToolSpec(
        name, "test", {"type": "object"}, annotations=Annotations(Effect.WRITE), group=group, aliases=aliases
    )
    return DryRunCall(spec, arguments or {})


def _judge(
    rules: Sequence[Rule], access: Access, cwd: Path | str = "/w", call: DryRunCall | None = None
) -> Decision | None:
    return Rules(rules, PathContext(str(cwd), "/home/ann")).judge(access, call or _call("read"))


@pytest.mark.parametrize("text", ["", "Bash(", "Bash(rm -rf /)*", "(x)", "Ba sh(x)", "Bash)"])
def test_invalid_rule_raises(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rule("deny", text)


@pytest.mark.parametrize(
    "text",
    [
        "Bash,Read",
        "Bash|Read(x)",
        "Bash:rm",
        "mcp__a__b,mcp__c",
        "Bash*,Read*",
        "Read(a),Edit(b)",
        "Bash(rm *) Bash(mv *)",
    ],
)
def test_several_rules_in_one_text_are_refused(text: str) -> None:
    for kind in ("deny", "ask"):
        with pytest.raises(UsageError, match="write one rule for each"):
            parse_rule(kind, text)


@pytest.mark.parametrize("line", ["python -c 'f(a),Read(b)'", "echo 'Read(b)'", "awk '{print(a), Bash(b)}'"])
def test_parentheses_in_a_pattern_are_text(line: str) -> None:
    assert isinstance(_judge_line(f"Bash({line})", "deny", RunCommand(line, "/w"), _call("bash")), Deny)


@pytest.mark.parametrize("text", ["deploy", "deploy()", "deploy(*)", "deploy(:*)", "deploy(**)"])
def test_rule_against_every_call_needs_no_argument(text: str) -> None:
    access, calls = UseTool("deploy", Effect.WRITE), (_call("deploy"), _call("deploy", {"to": "x"}))
    for call in calls:
        assert isinstance(_judge(rules_of(deny=[text]), access, call=call), Deny)
        if "*" in text:
            assert _judge(rules_of(allow=[text]), access, call=call) is None


def test_argument_of_another_tool_keeps_its_name() -> None:
    access, call = UseTool("deploy", Effect.WRITE), _call("deploy", {"run_in_background": True, "path": "a"})
    for text in ("deploy(run_in_background:true)", "deploy(path:a)"):
        assert isinstance(_judge(rules_of(deny=[text]), access, call=call), Deny)
    assert _judge(rules_of(deny=["deploy(path:a)"]), access, call=_call("deploy", {"to": "a"})) is None


@pytest.mark.parametrize("text", ["Bash()", "Read( )", "mcp__shop__order()"])
def test_empty_parentheses_allow_nothing_and_deny_everything(text: str) -> None:
    with pytest.raises(UsageError, match="names nothing between its parentheses; write"):
        parse_rule("allow", text)
    assert parse_rule("deny", text).specifier is None


def test_string_instead_of_a_rule_list_raises() -> None:
    with pytest.raises(UsageError, match=r"write deny=\['Bash'\]"):
        rules_of(deny="Bash")


def test_text_instead_of_a_rule_raises() -> None:
    texts: Any = ["Bash(git *)"]
    with pytest.raises(UsageError, match=r"expected Rule as a rule, got 'Bash\(git \*\)'; write rules_of\("):
        Rules(texts)


@pytest.mark.parametrize(
    ("text", "name", "arguments", "access"),
    [
        ("Bash(command:rm *)", "bash", {"command": "ls; rm x"}, RunCommand("ls; rm x", "/w")),
        ("Bash(cmd: rm *)", "bash", {"command": "rm x"}, RunCommand("rm x", "/w")),
        (
            "Bash(command:rm *,background:true)",
            "bash",
            {"command": "rm x", "background": True},
            RunCommand("rm x", "/w"),
        ),
        ("Bash(run_in_background:true)", "bash", {"command": "ls", "background": True}, RunCommand("ls", "/w")),
        (
            "Bash(command:rm *, is_background:true)",
            "bash",
            {"command": "rm x", "background": True},
            RunCommand("rm x", "/w"),
        ),
        ("Read(file_path:/etc/**)", "read", {"path": "/etc/passwd"}, ReadPath("/etc/passwd")),
        ("Read(path:secret.txt)", "read", {"path": "./secret.txt"}, ReadPath("/w/secret.txt")),
        ("Edit(path:a.txt)", "edit", {"path": "a.txt"}, WritePath("/w/a.txt")),
        ("deploy(path:/srv/*)", "deploy", {"path": "/srv/x"}, UseTool("deploy", Effect.WRITE)),
        ("deploy(command:rm *)", "deploy", {"command": "rm x"}, UseTool("deploy", Effect.WRITE)),
        ("deploy(url:https://a.example/*)", "deploy", {"url": "https://a.example/x"}, UseTool("deploy", Effect.WRITE)),
    ],
)
def test_rule_that_names_an_argument_protects(text: str, name: str, arguments: JsonObject, access: Access) -> None:
    call = _call(name, arguments)
    denied, asked = _judge_line(text, "deny", access, call), _judge_line(text, "ask", access, call)
    assert isinstance(denied, Deny) and "the rule" in denied.reason
    assert isinstance(asked, Ask) and "the rule" in asked.reason
    assert not isinstance(_judge_line(text, "allow", access, call), Allow)


def _judge_line(text: str, kind: RuleKind, access: Access, call: DryRunCall) -> Decision | None:
    rules = Rules([parse_rule(kind, text)], PathContext("/w", "/home/ann"))
    if isinstance(access, RunCommand):
        return Policies(rules).decide(access, DryRunCall(dry_run_line(access.line).spec, call.arguments))
    return rules.judge(access, call)


def test_argument_names_in_a_command_pattern_stay_text() -> None:
    line = "echo a, run_in_background:true"
    call = _call("bash", {"command": line})
    assert isinstance(_judge_line(f"Bash({line})", "deny", RunCommand(line, "/w"), call), Deny)


@pytest.mark.parametrize(
    ("text", "restricts"), [("deploy(prod)", True), ("deploy(prod *)", True), ("deploy(pro)", False)]
)
def test_rule_that_names_no_argument_is_about_all_of_them_and_allows_nothing(text: str, restricts: bool) -> None:
    call, access = _call("deploy", {"env": "prod", "count": 2}), UseTool("deploy", Effect.WRITE)
    assert isinstance(_judge_line(text, "deny", access, call), Deny) is restricts
    assert _judge_line(text, "allow", access, call) is None


@pytest.mark.parametrize("text", ["Bash(command:*)", "Bash(command:)"])
def test_rule_about_the_program_named_command_is_about_nothing_else(text: str) -> None:
    assert not isinstance(_judge_line(text, "deny", RunCommand("rm x", "/w"), _call("bash")), Deny)


def test_rule_that_allows_a_call_by_an_argument_allows_none_of_its_accesses() -> None:
    call = _call("deploy", {"env": "prod"})
    assert isinstance(_judge_line("deploy(env:prod)", "allow", UseTool("deploy", Effect.WRITE), call), Allow)
    for access in (WritePath("/w/a"), ReadPath("/w/a"), Reach("https://a.example")):
        assert _judge_line("deploy(env:prod)", "allow", access, call) is None


def test_deny_beats_ask_beats_allow() -> None:
    everything = rules_of(allow=["Read"], ask=["Read(a/**)"], deny=["Read(a/b/**)"])
    assert isinstance(_judge(everything, ReadPath("/w/x")), Allow)
    assert isinstance(_judge(everything, ReadPath("/w/a/x")), Ask)
    assert isinstance(_judge(everything, ReadPath("/w/a/b/x")), Deny)


def test_decision_names_the_rule_and_its_origin() -> None:
    rules = rules_of(deny=["Read(.env)"], written_in="settings.json")
    decision = _judge(rules, ReadPath("/w/.env"))
    assert decision is not None
    assert decision.source == "deny rule Read(.env) in settings.json"


def test_denied_read_also_denies_write_and_delete() -> None:
    rules = rules_of(deny=["Read(secrets/**)"])
    assert isinstance(_judge(rules, WritePath("/w/secrets/new")), Deny)
    assert isinstance(_judge(rules, DeletePath("/w/secrets/old")), Deny)


def test_edit_rule_does_not_decide_about_reads() -> None:
    assert _judge(rules_of(deny=["Edit(a)"], allow=["Edit"]), ReadPath("/w/a")) is None


def test_removing_a_parent_of_a_denied_path_is_denied() -> None:
    rules = rules_of(deny=["Edit(//w/a/keep/**)"])
    assert isinstance(_judge(rules, DeletePath("/w/a")), Deny)
    assert _judge(rules, DeletePath("/w/b")) is None


def test_deny_rule_matches_a_link_that_is_spelled_with_two_slashes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert isinstance(_judge(rules_of(deny=[f"Read(/{tmp_path}/link)"]), ReadPath(f"/{tmp_path}/link")), Deny)


def test_deny_rule_matches_either_end_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "innocent").symlink_to(tmp_path / "secret")
    rules = rules_of(deny=["Read(secret)"])
    assert isinstance(_judge(rules, ReadPath(str(tmp_path / "innocent")), tmp_path), Deny)
    rules = rules_of(deny=["Read(innocent)"])
    assert isinstance(_judge(rules, ReadPath(str(tmp_path / "innocent")), tmp_path), Deny)


def test_allow_rule_needs_both_ends_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    rules = rules_of(allow=["Edit(open/**)"])
    assert isinstance(_judge(rules, WritePath(str(tmp_path / "open" / "new")), tmp_path), Allow)
    assert _judge(rules, WritePath(str(tmp_path / "open" / "link" / "new")), tmp_path) is None
    assert _judge(rules, WritePath(str(tmp_path / "open" / ".." / "closed" / "x")), tmp_path) is None


def test_dots_after_a_link_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "deep").symlink_to(tmp_path / "a" / "b")
    rules = rules_of(deny=["Read(//**/a/x)"])
    assert isinstance(_judge(rules, ReadPath(f"{tmp_path}/deep/../x"), tmp_path), Deny)


def test_relative_and_home_paths_are_resolved() -> None:
    assert isinstance(_judge(rules_of(deny=["Read(//w/a)"]), ReadPath("a")), Deny)
    assert isinstance(_judge(rules_of(deny=["Read(~/.x)"]), ReadPath("~/.x")), Deny)
    assert isinstance(_judge(rules_of(deny=["Read(~/.x)"]), ReadPath("../home/ann/.x")), Deny)


@pytest.mark.parametrize("name", ["Read", "read", "READ_FILE", "view", "ReadFile", "read_file"])
def test_other_products_tool_names_match(name: str) -> None:
    assert isinstance(_judge(rules_of(deny=[f"{name}(.env)"]), ReadPath("/w/.env")), Deny)


@pytest.mark.parametrize("name", ["Edit", "Write", "write_file", "MultiEdit", "apply_patch", "WriteFileTool"])
def test_every_edit_tool_name_matches_edit(name: str) -> None:
    assert isinstance(_judge(rules_of(deny=[f"{name}(.env)"]), WritePath("/w/.env"), call=_call("write")), Deny)


def test_deny_rule_for_a_search_tool_protects_reads() -> None:
    assert isinstance(_judge(rules_of(deny=["Grep(.env)"]), ReadPath("/w/.env")), Deny)
    assert isinstance(_judge(rules_of(deny=["Grep"]), ReadPath("/w/a"), call=_call("grep")), Deny)
    assert _judge(rules_of(deny=["Grep"]), ReadPath("/w/a"), call=_call("read")) is None


def test_domain_rule_matches_the_host_only() -> None:
    rules = rules_of(allow=["WebFetch(domain:example.com)"])
    assert isinstance(_judge(rules, Reach("https://example.com/a?b")), Allow)
    for url in ("https://example.com.evil.net/", "https://evil.net/example.com", "https://example.com@evil.net/", "x"):
        assert _judge(rules, Reach(url)) is None


def test_mcp_rules_match_by_server_and_tool() -> None:
    call = _call("create_issue", group="mcp:github")
    access = UseTool("create_issue", Effect.DESTROY)
    for text in ("mcp__github", "mcp__github__*", "mcp__github__create_issue", "MCP__GitHub__create_*"):
        assert isinstance(_judge(rules_of(allow=[text]), access, call=call), Allow)
    for text in ("mcp__git", "mcp__github__create", "create_issue"):
        assert _judge(rules_of(allow=[text]), access, call=call) is None


def test_remote_tool_cannot_use_a_local_allow_rule() -> None:
    call = _call("read", group="mcp:evil")
    assert _judge(rules_of(allow=["Read"]), UseTool("read", Effect.DESTROY), call=call) is None


def test_tool_glob_allows_only_within_a_server() -> None:
    access, call = UseTool("deploy", Effect.DESTROY), _call("deploy")
    assert isinstance(_judge(rules_of(deny=["*"]), access, call=call), Deny)
    assert _judge(rules_of(allow=["*", "dep*", "mcp__*"]), access, call=call) is None


def test_group_rule_matches_all_its_tools() -> None:
    call = _call("deploy", group="ops")
    assert isinstance(_judge(rules_of(deny=["group:ops"]), UseTool("deploy", Effect.WRITE), call=call), Deny)
    assert isinstance(_judge(rules_of(deny=["group:file"]), ReadPath("/w/a"), call=_call("read")), Deny)
    assert _judge(rules_of(deny=["group:web"]), ReadPath("/w/a")) is None


def test_group_rule_denies_files_that_its_tools_touch_and_allows_none() -> None:
    call = _call("deploy", group="ops")
    for access in (ReadPath("/w/a"), WritePath("/w/a"), DeletePath("/w/a")):
        assert isinstance(_judge(rules_of(deny=["group:ops"]), access, call=call), Deny)
        assert _judge(rules_of(allow=["group:ops"]), access, call=call) is None


def test_only_deny_rules_for_reading_are_about_writing() -> None:
    assert isinstance(_judge(rules_of(deny=["Read(secret)"]), WritePath("/w/secret")), Deny)
    for rules in (rules_of(ask=["Read(secret)"]), rules_of(allow=["Read(secret)"])):
        assert _judge(rules, WritePath("/w/secret"), call=_call("write")) is None


def test_alias_does_not_evade_a_deny_rule() -> None:
    call = _call("publish", aliases=("deploy",))
    assert isinstance(_judge(rules_of(deny=["deploy"]), UseTool("publish", Effect.WRITE), call=call), Deny)


def test_rule_may_name_an_argument_value() -> None:
    call = _call("agent", {"model": "Sonnet", "background": True})
    access = UseTool("agent", Effect.WRITE)
    for text in (
        "Agent(model:sonnet)",
        "Agent(model:son*)",
        "Agent(background:true)",
        "Agent(model:s*, background:true)",
    ):
        assert isinstance(_judge(rules_of(deny=[text]), access, call=call), Deny)
    for text in ("Agent(model:opus)", "Agent(background:false)", "Agent(other:x)", "Agent(model:s*,background:false)"):
        assert _judge(rules_of(deny=[text]), access, call=call) is None


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("Agent(subagent_type:explore)", "task", {"agent": "Explore", "prompt": "x"}),
        ("Agent(subagent_type:explore)", "agent", {"agent": "plan", "subagent_type": "Explore"}),
        ("Task(model:opus, subagent_type:ex*)", "task", {"agent": "explore", "model": "opus"}),
        ("Skill(skill:deploy)", "skill", {"name": "deploy", "arguments": ""}),
        ("Skill(args:prod*)", "skill", {"name": "deploy", "arguments": "production"}),
    ],
)
def test_rule_names_an_argument_as_claude_code_does(text: str, tool: str, arguments: JsonObject) -> None:
    access, call = UseTool(tool, Effect.WRITE), _call(tool, arguments)
    assert isinstance(_judge(rules_of(deny=[text]), access, call=call), Deny)
    assert isinstance(_judge(rules_of(ask=[text]), access, call=call), Ask)
    other = _call(tool, {**arguments, "agent": "other", "subagent_type": "other", "name": "other", "arguments": ""})
    assert _judge(rules_of(deny=[text]), access, call=other) is None


def test_skill_rule_matches_the_skill_name() -> None:
    call = _call("skill", {"name": "review pr"})
    assert isinstance(_judge(rules_of(allow=["Skill(review *)"]), UseTool("skill", Effect.WRITE), call=call), Allow)
    assert _judge(rules_of(allow=["Skill(deploy *)"]), UseTool("skill", Effect.WRITE), call=call) is None


def test_denied_files_are_hidden_from_listings() -> None:
    rules = Rules(rules_of(deny=["Read(secrets/**)", "Edit(public/**)"]), PathContext("/w", "/home/ann"))
    assert rules.hides("/w/secrets/a")
    assert not rules.hides("/w/public/a")
    assert not rules.hides("/w/$PLACE/*")  # a name, not a line of a shell


def test_wholly_denied_tool_is_not_offered() -> None:
    rules = Rules(rules_of(deny=["WebFetch", "Bash(rm *)"]), PathContext("/w", "/home/ann"))
    assert rules.forbidding_rule("web_fetch") in rules.rules
    assert rules.forbidding_rule("bash") is None


_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")
_TEXTS = ("Read", "Read(a)", "Edit(a/**)", "Edit", "Read(//w/**)", "Write(b)", "*", "group:file", "Read(~/x)")
_ACCESSES = (ReadPath("/w/a"), WritePath("/w/a/b"), DeletePath("/w/b"), ReadPath("/home/ann/x"), Reach("https://x.org"))


@given(
    st.lists(st.tuples(st.sampled_from(_KINDS), st.sampled_from(_TEXTS)), max_size=8),
    st.sampled_from(_ACCESSES),
)
def test_rule_order_never_matters(given_rules: list[tuple[RuleKind, str]], access: Access) -> None:
    rules = [parse_rule(kind, text) for kind, text in given_rules]
    shuffled = list(reversed(rules))
    assert _judge(rules, access) == _judge(shuffled, access)
    assert _judge([*rules, *rules], access) == _judge(sorted(rules, key=lambda rule: rule.text[::-1]), access)


@given(st.lists(st.sampled_from(_TEXTS), max_size=5), st.lists(st.sampled_from(_TEXTS), max_size=5))
def test_allow_rules_never_lift_a_deny(denied: list[str], allowed: list[str]) -> None:
    for access in _ACCESSES:
        before = _judge(rules_of(deny=denied), access)
        after = _judge(rules_of(deny=denied, allow=allowed), access)
        assert not isinstance(before, Deny) or isinstance(after, Deny)


def _part(line: str, cwd: str = "/w") -> PartOfLine:
    plan = analyze(line, cwd)
    return PartOfLine(dry_run_line(line), RunCommand(line, cwd), plan, plan.commands[0])


def _judge_part(rules: Sequence[Rule], access: Access, part: PartOfLine) -> Decision | None:
    return Rules(rules, PathContext("/w", "/home/ann", ("/w",))).judge(access, part)


def test_command_rule_covers_what_the_command_writes_and_not_its_redirect() -> None:
    rules, part = rules_of(allow=["Bash(cp *)"]), _part("cp a b > log")
    assert isinstance(_judge_part(rules, WritePath("/w/b"), part), Allow)
    assert _judge_part(rules, WritePath("/w/log"), part) is None
    outside = _part("cp a /out/b")
    assert _judge_part(rules, WritePath("/out/b"), outside) is None
    assert _judge_part(rules, WritePath("/w/b"), replace(part, command=None)) is None
    assert _judge_part(rules_of(allow=["Bash(make *)"]), WritePath("/w/b"), part) is None
    assert _judge_part(rules_of(allow=["Bash(cp * c)"]), WritePath("/w/b"), part) is None
    assert _judge(rules, WritePath("/w/b"), call=_call("copier")) is None
    others = rules_of(allow=["Read(*)", "Read(cp *)", "WebFetch(domain:*)", "group:file(cp *)"])
    assert _judge_part(others, WritePath("/w/b"), part) is None


def test_pattern_with_a_slash_starts_where_the_rule_was_written() -> None:
    assert isinstance(_judge([parse_rule("allow", "Read(/a)", base="/x")], ReadPath("/x/a")), Allow)
    assert _judge([parse_rule("allow", "Read(/a)", base="/x")], ReadPath("/w/a")) is None
    assert isinstance(_judge([parse_rule("deny", "Read(/a)", base="/x")], ReadPath("/x/a")), Deny)
    assert _judge([parse_rule("deny", "Read(/a)", base="/x")], ReadPath("/w/a")) is None


def test_rule_that_allows_what_is_in_a_folder_does_not_allow_removing_it(tmp_path: Path) -> None:
    (tmp_path / "src/a").mkdir(parents=True)
    (tmp_path / "src/a/x.py").touch()
    for text in ("Edit(src/**)", "Edit(src/a/**)"):
        rules = rules_of(allow=[text])
        assert _judge(rules, DeletePath(f"{tmp_path}/src"), tmp_path, _call("delete")) is None
        assert _judge(rules, WritePath(f"{tmp_path}/src"), tmp_path, _call("mover")) is None


@pytest.mark.parametrize("path", ["$X/a", "~bob/a", "/w/$(x)"])
def test_path_that_is_not_known_is_not_allowed(path: str) -> None:
    assert _judge_part(rules_of(allow=["Edit(//**)"]), WritePath(path), _part("cp a b")) is None


def test_pattern_for_another_tool_is_no_path() -> None:
    assert _judge(rules_of(allow=["walker(a)"]), ReadPath("/w/a"), call=_call("walker", {"folder": "a"})) is None


def test_rule_against_every_tool_holds_for_each() -> None:
    for text in ("*", "mcp__*", "mcp__h__*"):
        call = _call("echo", group="mcp:h")
        assert isinstance(_judge(rules_of(deny=[text]), UseTool("echo", Effect.WRITE), call=call), Deny)
        allowed = _judge(rules_of(allow=[text]), UseTool("echo", Effect.WRITE), call=call)
        assert isinstance(allowed, Allow) is (text == "mcp__h__*")


def test_bare_tool_rule_allows_no_redirect() -> None:
    rules, part = rules_of(allow=["Bash"]), _part("make > log")
    assert isinstance(_judge_part(rules, part.access, part), Allow)
    assert _judge_part(rules, WritePath("/w/log"), part) is None
    assert isinstance(_judge_part(rules_of(deny=["Bash"]), WritePath("/w/log"), part), Deny)


def test_allow_rule_needs_a_known_path() -> None:
    part = _part("cat $PLACE/a")
    assert _judge_part(rules_of(allow=["Read(**)"]), ReadPath("$PLACE/a"), part) is None
    assert isinstance(_judge_part(rules_of(deny=["Read(secret/**)"]), ReadPath("$PLACE/a"), part), Ask)


def test_line_as_a_whole_is_judged_by_every_rule() -> None:
    whole = replace(_part("grep -r x ."), command=None)
    assert _judge_part(rules_of(deny=["Read(secret/**)"]), whole.access, whole) is None
    assert isinstance(_judge_part(rules_of(deny=["Bash(*)"]), whole.access, whole), Deny)
    assert _judge_part(rules_of(deny=["Bash(rm *)"]), whole.access, whole) is None


@pytest.mark.parametrize(
    ("rule", "url", "kind"),
    [
        ("WebFetch(domain:a.example)", "https://", Ask),
        ("WebFetch(domain:a.example)", "https://[", Ask),
        ("WebFetch(a.example)", "https://a.example/x", Deny),
        ("WebFetch(domain:a.example)", "https://b.example", type(None)),
        ("WebFetch(domain:**)", "https://a.example/", Deny),
        ("WebFetch(domain:**.example)", "https://a.b.example/", Deny),
        ("WebFetch(domain:ab.example)", "https://\uff41b.example/", Deny),  # names are looked up in their plain form
        ("WebFetch(domain:strasse.example)", "https://stra\u00dfe.example/", Deny),
        ("WebFetch(domain:192.0.2.1)", "http://192.0.513/", Deny),
        ("WebFetch(domain:192.0.2.1)", "http://0xc0000201/", Deny),
        ("WebFetch(domain:192.0.2.1)", "http://3221225985/", Deny),
        ("WebFetch(domain:192.0.2.1)", "http://[::ffff:c000:201]/", Deny),
        ("WebFetch(domain:[2001:db8::1]:80)", "http://[2001:db8:0::1]/", Deny),
        ("WebFetch(domain:a.example:8080)", "http://a.example/", Deny),
        ("WebFetch(domain:a.example)", "https:/a.example", Deny),
        ("WebFetch(domain:a.example)", "https://%61.example", Ask),
        ("WebFetch(domain:a.example)", f"https://{'b' * 300}.example", Ask),
        ("WebFetch(domain:a.example)", "https://{a,b}.example", Ask),
        ("WebFetch(domain:a.example)", "https://b.example\\@c.example", Ask),
        ("WebFetch(domain:c.example)", "https://b.example\\@c.example", Ask),
    ],
)
def test_deny_rule_for_a_domain_cannot_be_evaded(rule: str, url: str, kind: type) -> None:
    assert type(_judge(rules_of(deny=[rule]), Reach(url), call=_call("web_fetch"))) is kind
    allowed = _judge(rules_of(allow=[rule]), Reach(url), call=_call("web_fetch"))
    assert allowed is None  # no host, another one, or a rule without `domain:` or with `**`


@pytest.mark.parametrize(
    ("domain", "url"),
    [
        ("b\u00fccher.example", "https://B\u00fccher.example/"),
        ("b\u00fccher.example", "https://xn--bcher-kva.example/"),
        ("xn--bcher-kva.example", "https://B\u00dcCHER.example/"),
        ("192.0.2.1", "http://192.0.2.1:8080/"),
        ("*.example", "https://a.b.example./"),
        ("ab.example", "https://ab\u3002example/"),
        ("\u2603.example", "https://xn--n3h.example/"),
        ("ab.example", "ann@ab.example:/srv/x"),
        ("*", "https://a.example"),
    ],
)
def test_rule_for_a_domain_covers_its_other_spelling(domain: str, url: str) -> None:
    rule = f"WebFetch(domain:{domain})"
    assert isinstance(_judge(rules_of(allow=[rule]), Reach(url), call=_call("web_fetch")), Allow)
    assert isinstance(_judge(rules_of(deny=[rule]), Reach(url), call=_call("web_fetch")), Deny)


@pytest.mark.parametrize("key", ["command", "file_path", "path", "url"])
def test_arguments_that_accesses_judge_are_not_compared_as_text(key: str) -> None:
    rules = rules_of(allow=[f"runner({key}:x)"])
    assert _judge(rules, UseTool("runner", Effect.WRITE), call=_call("runner", {key: "x"})) is None
    named = rules_of(allow=["runner(kind:x)"])
    assert isinstance(_judge(named, UseTool("runner", Effect.WRITE), call=_call("runner", {"kind": "x"})), Allow)


@pytest.mark.parametrize("key", ["name", "skill", "command"])
def test_skill_rule_finds_the_name_in_each_argument(key: str) -> None:
    rules = rules_of(deny=["Skill(deploy)"])
    assert isinstance(_judge(rules, UseTool("skill", Effect.WRITE), call=_call("skill", {key: "deploy"})), Deny)


def test_allow_rule_for_commands_needs_a_line_that_was_analysed() -> None:
    line = RunCommand("ls src", "/w")
    assert _judge(rules_of(allow=["Bash(ls *)"]), line, call=dry_run_line("ls src")) is None
    doubtful = _judge(rules_of(deny=["Bash(ls *)"]), line, call=dry_run_line("ls src"))
    assert isinstance(doubtful, Ask) and doubtful.firm


def test_command_rule_is_not_compared_with_other_arguments() -> None:
    call = _call("bash", {"command": "ls", "description": "touch nothing"})
    assert _judge(rules_of(deny=["Bash(touch *)"]), UseTool("bash", Effect.READ), call=call) is None


@pytest.mark.parametrize("name", ["describe_file", "grep", "mcp__x__read"])
def test_deny_rule_for_a_search_tool_protects_reads_by_any_tool(name: str) -> None:
    rules = rules_of(deny=["Grep(secret/**)"])
    assert isinstance(_judge(rules, ReadPath("/w/secret/a"), call=_call(name)), Deny)
    assert _judge(rules, ReadPath("/w/other/a"), call=_call(name)) is None


def test_rule_that_is_not_about_a_call_is_no_match() -> None:
    here, call = PathContext("/w", "/home/ann"), _call("read")
    for rule in (parse_rule("deny", "mcp__x__write(a)"), parse_rule("allow", "*")):
        assert match(rule, ReadPath("/w/a"), call, here) is Match.NO


@pytest.mark.parametrize("tool", ["Glob", "Grep", "List", "Edit", "Bash"])
def test_denied_tool_hides_no_file_from_the_others(tool: str) -> None:
    here = PathContext("/w", "/home/ann")
    assert not Rules(rules_of(deny=[tool]), here).hides("/w/a")
    assert Rules(rules_of(deny=["Read"]), here).hides("/w/a")


@pytest.mark.parametrize("value", [["x"], {"x": "x"}, None])
def test_rule_for_an_argument_matches_no_list_or_object(value: Json) -> None:
    use = UseTool("runner", Effect.WRITE)
    assert _judge(rules_of(allow=["runner(kind:*)"]), use, call=_call("runner", {"kind": value})) is None
    for plain in ("x", 1, 0.5, True):
        assert isinstance(_judge(rules_of(allow=["runner(kind:*)"]), use, call=_call("runner", {"kind": plain})), Allow)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (True, "TRUE"), (7, "7")])
def test_rule_for_an_argument_is_compared_as_json_writes_it(value: Json, text: str) -> None:
    use = UseTool("runner", Effect.WRITE)
    assert isinstance(
        _judge(rules_of(allow=[f"runner(kind:{text})"]), use, call=_call("runner", {"kind": value})), Allow
    )


@pytest.mark.parametrize("rule", ["Read(**)", "Grep(**)", "Glob(**)", "List(**)"])
def test_rule_for_reading_decides_about_no_change(rule: str) -> None:
    for name in ("read", "grep", "glob", "list", "write"):
        for access in (WritePath("/w/a"), DeletePath("/w/a")):
            moved = rule == "Read(**)" and isinstance(access, DeletePath)  # in another place it would be read unasked
            assert isinstance(_judge(rules_of(allow=[rule], ask=[rule]), access, call=_call(name)), Ask) is moved
            assert _judge(rules_of(allow=[rule]), access, call=_call(name)) is None
            denied = _judge(rules_of(deny=[rule]), access, call=_call(name))
            assert isinstance(denied, Deny) is (rule == "Read(**)")  # what may not be read may not be replaced either


@pytest.mark.parametrize(
    "address", ["https://a.example/docs", "a.example/docs", "https://ann@a.example", "//a.example"]
)
def test_rule_with_an_address_denies_its_host_and_allows_nothing(address: str) -> None:
    call = _call("web_fetch")
    for rule in (f"WebFetch({address})", f"WebFetch(domain:{address})"):
        for url in ("https://a.example/docs", "https://a.example/other"):
            assert isinstance(_judge(rules_of(deny=[rule]), Reach(url), call=call), Deny)
            assert _judge(rules_of(allow=[rule]), Reach(url), call=call) is None
        assert _judge(rules_of(deny=[rule]), Reach("https://docs.example"), call=call) is None


def test_text_rule_is_compared_once_and_with_the_name_of_a_skill_always() -> None:
    by_text, by_name = rules_of(deny=["runner(x)"]), rules_of(deny=["Skill(deploy)"])
    runner, skill = _call("runner", {"kind": "x"}), _call("skill", {"name": "deploy"})
    assert isinstance(_judge(by_text, UseTool("runner", Effect.WRITE), call=runner), Deny)
    assert _judge(by_text, ReadPath("/w/a"), call=runner) is None
    assert isinstance(_judge(by_name, ReadPath("/w/a"), call=skill), Deny)


def test_only_a_rule_for_reading_looks_into_folders(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a").write_text("x")
    part, here = _part("grep -r x .", str(tmp_path)), PathContext(str(tmp_path), "/home/ann", (str(tmp_path),))
    denied = Rules(rules_of(deny=["Read(secret/**)"]), here).judge(part.access, part)
    assert isinstance(denied, Ask) and denied.firm
    asked = Rules(rules_of(ask=["Read(secret/**)"]), here).judge(part.access, part)
    assert isinstance(asked, Ask) and not asked.firm
    others = rules_of(ask=["Edit(secret/**)"], deny=["Edit(secret/**)", "WebFetch(secret/**)"])
    assert Rules(others, here).judge(part.access, part) is None


@pytest.mark.parametrize("rule", ["mcp__*", "mcp__*__look", "mcp__s*__look", "*__look", "*"])
def test_glob_over_servers_allows_nothing(rule: str) -> None:
    use = UseTool("mcp__shop__look", Effect.READ)
    assert _judge(rules_of(allow=[rule]), use, call=_call("mcp__shop__look")) is None
    assert isinstance(_judge(rules_of(allow=["mcp__shop__*"]), use, call=_call("mcp__shop__look")), Allow)


def test_rule_for_an_argument_is_about_its_own_tool() -> None:
    use, call = UseTool("runner", Effect.WRITE), _call("runner", {"kind": "x"})
    for tool in ("Read", "walker", "Edit", "Resource"):
        assert _judge(rules_of(deny=[f"{tool}(kind:x)"]), use, call=call) is None


@pytest.mark.parametrize("rule", ["Bash(**)", "WebFetch(**)", "Bash(/w/a)"])
def test_rule_for_commands_or_addresses_is_about_no_file(rule: str) -> None:
    for access in (ReadPath("/w/a"), WritePath("/w/a"), DeletePath("/w/a")):
        for name in ("read", "write", "delete", "grep"):
            assert _judge(rules_of(deny=[rule]), access, call=_call(name)) is None
