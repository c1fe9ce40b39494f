"""How many voices become one decision."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Executor, Failed, Interrupted, Policy, Registry, tool
from callwright.core.access import Access, Allow, Ask, Confinement, Decision, Deny, RunCommand, UseTool, WritePath
from callwright.core.spec import Effect
from callwright.policy import AllowEverything, ByMode, Policies, Subject, Tier, standard_policies
from callwright.policy.dry_run import dry_run_call, dry_run_line
from callwright.policy.rules.rule import rules_of
from callwright.policy.shell_line import PartOfLine


class Guard(Policy):
    tier = Tier.GUARD

    def __init__(self, said: Decision | None) -> None:
        self.said = said

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return self.said


class Rule(Guard):
    tier = Tier.RULE


class Mode(Guard):
    tier = Tier.MODE


def decide(*policies: Policy) -> Decision:
    access, call = dry_run_call("edit", "a", "/w")
    return Policies(*policies).decide(access, call)


@pytest.mark.parametrize("policies", [(), (Policy(),), (Mode(None),), (Rule(None), Mode(None))], ids=len)
async def test_asks_when_no_policy_decides(policies: tuple[Policy, ...]) -> None:
    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look at something."""
        return "seen"

    assert isinstance(await Executor(Registry(look), Policies(*policies)).run("look"), Interrupted)


@pytest.mark.parametrize(
    ("guard", "rule", "mode", "expected"),
    [
        (None, None, Allow(), Allow),
        (None, Ask(), Allow(), Ask),
        (None, Allow(), Ask(), Allow),
        (None, Allow(), Deny(), Deny),
        (None, Deny(), Allow(), Deny),
        (Ask(), Allow(), Allow(), Ask),
        (Ask(), Deny(), Allow(), Deny),
        (Ask(), Allow(), Deny(), Deny),
        (Deny(), Allow(), Allow(), Deny),
        (Allow(), Ask(), Allow(), Ask),
        (Allow(), None, None, Allow),
        (Allow(), None, Ask(), Ask),
    ],
    ids=repr,
)
def test_guards_precede_rules_and_rules_precede_modes(
    guard: Decision | None, rule: Decision | None, mode: Decision | None, expected: type[Decision]
) -> None:
    """And a deny is heard from anyone."""
    for order in itertools.permutations([Guard(guard), Rule(rule), Mode(mode)]):
        assert type(decide(*order)) is expected


def test_strictest_decision_of_a_tier_wins_in_any_order() -> None:
    soft, firm = Ask("soft"), Ask("firm", firm=True)
    for order in itertools.permutations([Allow(), soft, firm]):
        assert decide(*map(Rule, order)) == firm
    for order in itertools.permutations([Allow(), soft, firm, Deny("no")]):
        assert decide(*map(Rule, order)) == Deny("no")


@pytest.mark.parametrize(("ask", "expected"), [(Ask("soft"), Allow), (Ask("firm", firm=True), Ask)], ids=repr)
def test_bypass_settles_asks_that_are_not_firm(ask: Ask, expected: type[Decision]) -> None:
    for asking in (Rule(ask), Guard(ask)):
        assert type(decide(asking, ByMode("bypass"))) is expected
        assert type(decide(asking, ByMode("dontAsk"))) is Deny


def test_firm_ask_is_not_hidden_by_a_soft_one() -> None:
    soft, firm = Ask("soft"), Ask("firm", firm=True)
    for asking in ((Guard(soft), Rule(firm)), (Guard(soft), Mode(firm)), (Rule(soft), Mode(firm))):
        decision = decide(*asking, ByMode("bypass"))
        assert isinstance(decision, Ask) and decision.firm and decision.reason == "firm; soft"
        assert type(decide(*asking, ByMode("dontAsk"))) is Deny


def test_bypass_asks_where_a_deny_rule_may_match_a_protected_file(tmp_path: Path) -> None:
    policies = standard_policies(tmp_path, mode="bypass", rules=rules_of(deny=["Edit(.vscode/tasks.json)"]))
    for line in ("echo x > $F", "echo x > .vscode/$F"):
        decision = policies.decide(RunCommand(line, str(tmp_path)), dry_run_line(line))
        assert isinstance(decision, Ask) and decision.firm, line


def test_one_firm_part_makes_the_line_firm(tmp_path: Path) -> None:
    policies = standard_policies(tmp_path)
    for line, firm in (("touch a && mkdir b", False), ("touch a && cat .env", True), ("cat .env && touch a", True)):
        decision = policies.decide(RunCommand(line, str(tmp_path)), dry_run_line(line))
        assert isinstance(decision, Ask) and decision.firm is firm, line


def test_tool_without_accesses_is_judged_by_effect() -> None:
    _, call = dry_run_call("deploy", "x", "/w")
    policies = Policies(ByMode("default"))
    assert isinstance(policies.decide(UseTool("deploy", Effect.READ), call), Allow)
    assert isinstance(policies.decide(UseTool("deploy", Effect.DESTROY), call), Ask)


class Picky(ByMode):
    """Says nothing about its standing, so it inherits one that does not know how it judges."""

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return Deny("not that one") if subject.arguments.get("word") == "bad" else super().judge(access, subject)


async def test_overridden_judge_runs_for_every_call() -> None:
    @tool(effect=Effect.READ)
    async def say(word: str) -> str:
        """Say a word."""
        return word

    executor = Executor(Registry(say), Picky("default"))
    outcomes = [await executor.run("say", {"word": word}) for word in ("good", "good", "bad")]
    assert [type(outcome) for outcome in outcomes] == [Completed, Completed, Failed]


class Severe(ByMode):
    def settle(self, ask: Ask) -> Decision:
        return Deny("too often") if ask.reason == "again" else super().settle(ask)


def test_inherited_cache_key_is_not_used() -> None:
    assert Policies(ByMode("auto")).cache_key == "auto"
    assert Policies(AllowEverything()).cache_key == "always"
    assert Policies(Picky("auto")).cache_key is None
    assert Policies(Severe("auto")).cache_key is None


@pytest.mark.parametrize("turned", [False, True])
def test_narrower_of_two_permissions_counts(turned: bool) -> None:
    wide, narrow = Rule(Allow(confinement=Confinement.RULE)), Rule(Allow(confinement=Confinement.READ_ONLY))
    access, call = dry_run_call("bash", "ls", "/w")
    decision = Policies(*((narrow, wide) if turned else (wide, narrow)), Mode(Ask())).decide(access, call)
    assert isinstance(decision, Allow) and decision.confinement == Confinement.READ_ONLY


class ByKind(Policy):
    """Allows each kind of access with a confinement of its own."""

    def __init__(self, **confinements: Confinement) -> None:
        self.confinements = confinements

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return Allow(confinement=self.confinements.get(type(access).__name__, Confinement.READ_ONLY))


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({}, Confinement.READ_ONLY),
        ({"Reach": Confinement.APPROVED}, Confinement.NETWORK),
        ({"WritePath": Confinement.RULE}, Confinement.WORKSPACE | Confinement.NAMED),
        ({"ReadPath": Confinement.APPROVED}, Confinement.NAMED),
        ({"RunCommand": Confinement.NETWORK}, Confinement.NETWORK | Confinement.NAMED),
    ],
)
def test_line_may_use_what_its_parts_were_allowed(given: dict[str, Confinement], needed: Confinement) -> None:
    access, call = dry_run_call("bash", "curl -o a.txt https://example.org; cat b", "/w")
    decision = Policies(ByKind(**given), Mode(None)).decide(access, call)
    # a rule that allows a path names it
    assert isinstance(decision, Allow) and decision.confinement | Confinement.NAMED == needed | Confinement.NAMED
    assert isinstance(Policies(ByKind(**given)).decide(access, call), Allow)


class Numbered(Policy):
    """Asks about every command for a reason of its own, firmly about the last."""

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        if not isinstance(access, RunCommand) or not isinstance(subject, PartOfLine) or subject.command is None:
            return Allow()
        word = subject.command.words[1]
        return Ask(f"reason {word}", f"source {word}", firm=word == "9")


def test_firm_reasons_are_shown_first_and_the_rest_is_counted() -> None:
    access, call = dry_run_call("bash", "; ".join(f"echo {number}" for number in range(10)), "/w")
    decision = Policies(Numbered()).decide(access, call)
    assert isinstance(decision, Ask) and decision.firm
    reasons = decision.reason.split("; ")
    assert reasons[0] == "reason 9" and reasons[-1] == f"and {10 - (len(reasons) - 1)} more"
    few, call = dry_run_call("bash", "echo 1; echo 2; echo 1", "/w")
    assert Policies(Numbered()).decide(few, call).reason == "reason 1; reason 2"


def test_access_of_a_known_kind_is_judged_and_anything_else_denied() -> None:
    class Labelled(WritePath):
        """A path with a name for the user."""

    _, call = dry_run_call("edit", "a", "/w")
    stranger: Any = object()
    assert isinstance(Policies(AllowEverything()).decide(Labelled("/w/a"), call), Allow)
    assert isinstance(Policies(AllowEverything()).decide(stranger, call), Deny)
