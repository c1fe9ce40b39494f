"""Rules, modes and grants for things that are not files."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from callwright import (
    Approve,
    Completed,
    DeleteResource,
    Effect,
    Executor,
    Failed,
    Interrupted,
    ReadResource,
    Registry,
    ToolCall,
    WriteResource,
    tool,
)
from callwright.core.access import Access, Allow, Ask, Decision, Deny, UseTool, WritePath
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, ToolSpec
from callwright.policy import (
    AllowEverything,
    ByMode,
    Grants,
    Guards,
    PathContext,
    Policies,
    Rule,
    Rules,
    check_rules,
    load_rules,
    propose,
    rules_of,
)
from callwright.policy.dry_run import DryRunCall, dry_run_call
from callwright.policy.rules.resource_patterns import resource_pattern
from callwright.sessions.record_encoding import decode_access, encode_access

HERE = PathContext("/w", "/home/ann")
SPELLINGS = [
    "DB://Prod/users/1",
    "db://prod/%75sers/1",
    "db://prod/%55sers/1",
    "db://prod/x/../users/1",
    "db://prod/x/%2e%2e/users/1",
    "db://prod/x/..%2fusers/1",
    "db://prod/x/%252e%252e%252fusers/1",
    "db://prod/./users//1",
    "db://prod//users/1",
    "db://prod\\users\\1",
    "db://prod/us\ters/1",
    " db://prod/users/1",
    "db://prod/USERS/1",
    "db://prod/users/1/",
    "db://prod/users/1?force=/yes",
    "db://prod/users/1#top",
    "db://prod:5432/users/1",
    "db://ann:pw@prod/users/1",
    "db://prod./users/1",
    "db://prod/ｕsers/1",
    "db://prod/users/1/../1",
]


def _judge(access: Access, *, name: str = "update_row", group: str = "", **kinds: list[str]) -> Decision | None:
    spec = ToolSpec(name, "test", {"type": "object"}, annotations=Annotations(Effect.WRITE), group=group)
    rules = rules_of(allow=kinds.get("allow", ()), ask=kinds.get("ask", ()), deny=kinds.get("deny", ()))
    return Rules(rules, HERE).judge(access, DryRunCall(spec))


def test_deny_rule_for_every_resource_may_be_made_by_hand() -> None:
    call = DryRunCall(ToolSpec("update_row", "test", {"type": "object"}))
    rules = Rules([Rule("deny", "ReadResource(*)", "readresource", "*")], HERE)
    assert isinstance(rules.judge(ReadResource("file:///a/b"), call), Deny)


@pytest.mark.parametrize("kind", [ReadResource, WriteResource, DeleteResource])
def test_resource_rules_cover_every_kind_of_access(kind: type[ReadResource | WriteResource | DeleteResource]) -> None:
    access = kind("db://prod/users/1")
    assert isinstance(_judge(access, allow=["Resource(db://prod/users/*)"]), Allow)
    assert isinstance(_judge(access, ask=["Resource(db://prod/users/*)"]), Ask)
    assert isinstance(_judge(access, deny=["Resource(db://prod/users/*)"]), Deny)
    assert isinstance(_judge(access, deny=["Resource"]), Deny)
    assert _judge(access, allow=["Resource(db://test/**)"], deny=["Resource(db://other/**)"]) is None


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("db://prod/users/*", False),
        ("db://prod/users/**", True),
        ("db://*/users/*/mail", True),
        ("**/mail", True),
        ("db://prod/users", False),
    ],
)
def test_one_star_stays_within_a_segment(pattern: str, matches: bool) -> None:
    nested = WriteResource("db://prod/users/1/mail")
    assert isinstance(_judge(nested, allow=[f"Resource({pattern})"]), Allow) is matches
    assert isinstance(_judge(nested, deny=[f"Resource({pattern})"]), Deny) is matches


@pytest.mark.parametrize(
    ("rule", "uri", "denied"),
    [
        ("https://x:443/a", "https://x/a", True),
        ("https://x/a", "https://x:443/a", True),
        ("https://x:443/**", "https://me@x/a/b", True),
        ("https://x:443/a", "https://x:0443/a", True),
        ("http://x:80/a", "http://x./a", True),
        ("postgres://x:5432/db/*", "postgres://u:pw@x/db/t", True),
        ("https://x:443/a", "https://x:8443/a", False),
        ("https://x:8443/a", "https://x/a", False),
        ("https://x:80/a", "https://x/a", False),
    ],
)
def test_default_port_may_be_written_or_not(rule: str, uri: str, denied: bool) -> None:
    assert isinstance(_judge(WriteResource(uri), deny=[f"Resource({rule})"]), Deny) is denied


@pytest.mark.parametrize("uri", SPELLINGS)
def test_spelling_does_not_evade_a_deny(uri: str) -> None:
    for rule in ("Resource(db://prod/users/*)", "Resource(DB://PROD/%75sers/*)", "Resource(**/users/1)"):
        assert isinstance(_judge(WriteResource(uri), deny=[rule]), Deny)
        assert isinstance(_judge(WriteResource(uri), ask=[rule]), Ask)


@pytest.mark.parametrize(
    "uri",
    [
        "db://prod/users/../secrets",
        "db://prod/users/%2e%2e/secrets",
        "db://prod/users/..%2fsecrets",
        "db://prod/users/..%252fsecrets",
        "db://prod/users/..\\secrets",
        "db://prod/users/.\t./secrets",
        "db://prod/users/1?drop=all",
        "db://prod/users/1%3Fdrop=all",
        "db://prod/users/1#x",
        "db://prod:1/users/1",
        "db://evil@prod/users/1",
        "db://prod/Users/1",
        "db://prod/users/%ff",
        "db://prod/users/1/",
        "db://prod/users",
    ],
)
def test_allow_matches_the_normal_form_only(uri: str) -> None:
    assert _judge(WriteResource(uri), allow=["Resource(db://prod/users/*)"]) is None


@pytest.mark.parametrize("uri", ["DB://Prod/users/1", "db://prod/users/%31", "db://prod/users/a%20b"])
def test_allow_ignores_differences_without_meaning(uri: str) -> None:
    assert isinstance(_judge(WriteResource(uri), allow=["Resource(db://prod/users/*)"]), Allow)


@pytest.mark.parametrize("uri", ["https://evil.org/a.example.org/x", "https://evil.org#.example.org/x"])
def test_a_star_in_the_host_stays_in_the_host(uri: str) -> None:
    rules = ["Resource(https://*.example.org/**)"]
    assert _judge(ReadResource(uri), allow=rules) is None
    assert _judge(ReadResource("https://evil.org\\.example.org/x"), allow=rules) is None
    assert _judge(ReadResource("https://evil.org@a.example.org/x"), allow=rules) is None
    assert isinstance(_judge(ReadResource("https://a.example.org/x"), allow=rules), Allow)


def test_an_unreadable_uri_asks_where_a_deny_might_apply() -> None:
    decision = _judge(WriteResource("db://prod/%ff/users"), deny=["Resource(db://prod/secrets/*)"])
    assert isinstance(decision, Ask)
    assert decision.firm


def test_deleting_a_container_deletes_what_is_denied_in_it() -> None:
    deny = ["Resource(db://prod/*/salaries/**)"]
    for uri in ("db://prod", "DB://PROD/", "db://prod/hr", "db://prod/hr/salaries"):
        assert isinstance(_judge(DeleteResource(uri), deny=deny), Deny)
    assert _judge(DeleteResource("db://prod/hr/holidays"), deny=deny) is None
    for pattern in ("db://prod/a/b/c", "db://prod/*/b", "db://prod/*/b/**"):
        assert _judge(DeleteResource("db://prod/a"), deny=[f"Resource({pattern})"]) is not None, pattern
        assert _judge(DeleteResource("db://other/a"), deny=[f"Resource({pattern})"]) is None, pattern
        assert _judge(WriteResource("db://prod/a"), deny=[f"Resource({pattern})"]) is None, pattern
    assert _judge(WriteResource("db://prod/hr"), deny=deny) is None


def test_rules_may_name_one_kind_of_access() -> None:
    allow = ["ReadResource(db://prod/**)"]
    assert isinstance(_judge(ReadResource("db://prod/users/1"), allow=allow), Allow)
    assert _judge(WriteResource("db://prod/users/1"), allow=allow) is None
    assert _judge(DeleteResource("db://prod/users/1"), allow=["WriteResource(db://prod/**)"]) is None
    assert isinstance(_judge(DeleteResource("db://prod/users/1"), deny=["DeleteResource"]), Deny)


def test_stars_and_backslashes_can_be_escaped() -> None:
    assert isinstance(_judge(ReadResource("db://x/a*b"), allow=[r"Resource(db://x/a\*b)"]), Allow)
    assert _judge(ReadResource("db://x/aXb"), allow=[r"Resource(db://x/a\*b)"]) is None
    assert isinstance(_judge(ReadResource("db://x/[1]?a"), allow=["Resource(db://x/[1]?a)"]), Allow)
    assert _judge(ReadResource("db://x/1"), allow=["Resource(db://x/[1])"], deny=["Resource(db://x/?)"]) is None


def test_a_rule_for_the_tool_covers_its_resources() -> None:
    access = WriteResource("db://prod/users/1")
    assert isinstance(_judge(access, allow=["update_row"]), Allow)
    assert isinstance(_judge(access, allow=["group:database"], group="database"), Allow)
    assert isinstance(_judge(access, deny=["update_row"]), Deny)
    assert _judge(access, allow=["Edit", "Write(**)", "Bash", "WebFetch(domain:prod)"]) is None


def test_a_resource_rule_allows_no_tool_by_its_name() -> None:
    use = UseTool("resource", Effect.WRITE)
    spec = ToolSpec("resource", "test", {"type": "object"})
    call = DryRunCall(spec, {"db": "//x/1"})
    assert Rules(rules_of(allow=["Resource(db://x/*)"]), HERE).judge(use, call) is None


def test_a_hostile_pattern_costs_little() -> None:
    pattern = resource_pattern("db://x/" + "**a*" * 40 + "b")
    assert not pattern.catches("db://x/" + "a" * 5_000)  # by trying every way to divide it, this would never end


@given(st.lists(st.sampled_from(["a", "b", "/", "ab", "*", "**"]), max_size=7), st.text("ab/", max_size=10))
def test_globs_match_as_a_regular_expression_would(pieces: list[str], text: str) -> None:
    import re

    glob = "".join(pieces)
    expression = re.sub(r"\*\*+|\*|[^*]+", lambda found: _regex(found[0]), glob)
    expected = re.fullmatch(expression, text.replace("//", "/")) is not None
    if "//" not in text and "//" not in glob and not text.startswith("/") and not glob.startswith("/"):
        assert resource_pattern(f"db://x/{glob}").normal.matches(f"db://x/{text}", narrow=False) == expected


def _regex(piece: str) -> str:
    return ".*" if piece.startswith("**") else "[^/]*" if piece == "*" else piece


@pytest.mark.parametrize(
    ("mode", "read", "write", "delete"),
    [
        ("plan", Allow, Deny, Deny),
        ("default", Allow, Ask, Ask),
        ("auto", Allow, Allow, Ask),
        ("dontAsk", Allow, Deny, Deny),
        ("bypass", Allow, Allow, Allow),
    ],
)
def test_modes_judge_resources_like_paths(mode: str, read: type, write: type, delete: type) -> None:
    policies = Policies(ByMode(mode))
    spec = ToolSpec("update_row", "test", {"type": "object"}, annotations=Annotations(Effect.DESTROY))
    found = [
        type(policies.decide(kind("db://prod/users/1"), DryRunCall(spec)))
        for kind in (ReadResource, WriteResource, DeleteResource)
    ]
    assert found == [read, write, delete]


def test_the_question_names_the_resource() -> None:
    call = dry_run_call("DeleteResource", "db://prod/users/1", "/w")
    decision = Policies(ByMode("default")).decide(*call)
    assert decision == Ask("would delete db://prod/users/1", "mode default")


@pytest.mark.parametrize("uri", ["file:///home/ann/.ssh/id_rsa", "FILE:/etc/passwd", "f%69le:///x", " file:x"])
def test_a_file_named_as_a_resource_is_asked_about(uri: str) -> None:
    decision = Policies(Guards(HERE), ByMode("bypass")).decide(
        ReadResource(uri), dry_run_call("Resource", uri, "/w")[1]
    )
    assert isinstance(decision, Ask)


def test_an_unknown_kind_of_access_is_denied() -> None:
    unknown: object = "db://prod/users/1"
    decision = Policies(AllowEverything()).decide(unknown, dry_run_call("Resource", "x:y", "/w")[1])  # type: ignore[arg-type] # wrong on purpose
    assert isinstance(decision, Deny)


@pytest.mark.parametrize(
    "uri", ["db://prod/users/1", "db://x/a*b", r"db://x/\*", "db://x/(1)", "ticket:A-1?x=1", "db://x/a%2Fb", "db://x/é"]
)
def test_a_proposed_rule_allows_that_resource_and_no_other(uri: str) -> None:
    rules = list(propose([WriteResource(uri)]).rules)
    assert isinstance(_judge(WriteResource(uri), allow=rules), Allow)
    for other in (WriteResource(uri + "x"), WriteResource(uri + "/x"), DeleteResource(uri), ReadResource(uri)):
        assert _judge(other, allow=rules) is None


@pytest.mark.parametrize("uri", ["", "db://x/a\nb", "db://x/a ", "db://x/\x1b"])
def test_no_rule_is_proposed_for_a_uri_that_hides_something(uri: str) -> None:
    proposal = propose([WriteResource(uri)])
    assert not proposal.rules
    assert "cannot be written as a rule" in proposal.refusal


def test_a_session_grant_holds_for_the_exact_access() -> None:
    grants = Grants(HERE)
    grants.grant([WriteResource("db://prod/users/1")], session="s")
    call = DryRunCall(ToolSpec("update_row", "test", {"type": "object"}), session_id="s")
    assert isinstance(grants.judge(WriteResource("db://prod/users/1"), call), Allow)
    assert grants.judge(DeleteResource("db://prod/users/1"), call) is None
    assert grants.judge(WriteResource("db://prod/users/2"), call) is None


def test_loading_reports_useless_and_broad_resource_rules() -> None:
    rules = rules_of(
        deny=["Resource(prod/users)", "Resource(!db://x)", "Resource(db://x/**)"],
        allow=[
            "Resource",
            "Resource(**)",
            "Resource(*:**)",
            "ReadResource",
            "WriteResource(db://y/**)",
            "Resource(db://x/**)",
        ],
    )
    found = {(problem.kind, problem.rule.kind, problem.rule.text) for problem in check_rules(rules)}
    assert found == {
        ("never matches", "deny", "Resource(prod/users)"),
        ("never matches", "deny", "Resource(!db://x)"),
        ("too broad", "allow", "Resource"),
        ("too broad", "allow", "Resource(**)"),
        ("too broad", "allow", "Resource(*:**)"),
        ("unreachable", "allow", "Resource(db://x/**)"),
    }


def test_rule_examples_work_for_resources(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(
        '{"deny": [{"rule": "Resource(db://x/**)", "match": ["db://X/1"], "not_match": ["db://y/1", "db://x/2"]}]}'
    )
    assert [str(problem.text) for problem in load_rules(file).problems] == ["it matches 'db://x/2'"]


@pytest.mark.parametrize("kind", [ReadResource, WriteResource, DeleteResource])
def test_resources_survive_a_session_record(kind: type[ReadResource | WriteResource | DeleteResource]) -> None:
    assert decode_access(encode_access(kind("db://prod/users/1"))) == kind("db://prod/users/1")


class Rows:
    """A database of one table, and a tool for its rows."""

    def __init__(self) -> None:
        self.names = {1: "Ann", 2: "Ben"}

    def registry(self) -> Registry:
        def touched(arguments: JsonObject) -> list[Access]:
            uri = f"db://prod/users/{arguments['row']}"
            return [WriteResource(uri) if arguments.get("name") else DeleteResource(uri)]

        @tool(effect=Effect.DESTROY, accesses=touched)
        async def update_row(row: int, name: str = "") -> str:
            """Change the name in a row; without a name the row is deleted."""
            if name:
                self.names[row] = name
            else:
                del self.names[row]
            return "done"

        return Registry(update_row)


def _call(row: int, name: str = "") -> ToolCall:
    return ToolCall(f"c{row}{name}", "update_row", {"row": row, "name": name})


async def test_a_row_is_written_only_after_approval() -> None:
    rows = Rows()
    executor = Executor(rows.registry(), Policies(ByMode("default")))
    (asked,) = await executor.execute([_call(1, "Eve")])
    assert isinstance(asked, Interrupted)
    (question,) = asked.questions
    assert question.summary == "Allow update_row: db://prod/users/1 (row=1, name='Eve')?"
    assert question.reason == "would write to db://prod/users/1"
    assert rows.names == {1: "Ann", 2: "Ben"}


async def test_rules_decide_about_rows() -> None:
    rows = Rows()
    rules = Rules(rules_of(allow=["Resource(db://prod/users/*)"], deny=["Resource(db://prod/users/2)"]), HERE)
    executor = Executor(rows.registry(), Policies(rules, ByMode("default")))
    written, denied = await executor.execute([_call(1, "Eve"), _call(2)])
    assert isinstance(written, Completed)
    assert isinstance(denied, Failed)
    assert "Resource(db://prod/users/2)" in denied.text
    assert rows.names == {1: "Eve", 2: "Ben"}


async def test_an_approval_for_always_holds_for_the_row_and_the_kind() -> None:
    rows = Rows()
    policies = Policies(ByMode("default"))
    executor = Executor(rows.registry(), policies)
    (asked,) = await executor.execute([_call(1, "Eve")])
    assert isinstance(asked, Interrupted)
    policies.remember(asked.questions[0], Approve(scope="always"))
    (again,) = await executor.execute([_call(1, "Zoe")])
    (other,) = await executor.execute([_call(2, "Zoe")])
    (deleted,) = await executor.execute([_call(1)])
    assert isinstance(again, Completed)
    assert isinstance(other, Interrupted)
    assert isinstance(deleted, Interrupted)
    assert rows.names == {1: "Zoe", 2: "Ben"}


def test_a_path_rule_does_not_name_a_resource() -> None:
    assert isinstance(_judge(WritePath("/w/a"), allow=["Edit(a)"]), Allow)
    assert _judge(WritePath("/w/a"), allow=["Resource(**)"]) is None
