"""How many voices become one decision."""

import itertools
from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Interrupted, Policy, Registry, tool
from callwright.core.access import Access, Allow, Ask, Decision, Deny, RunCommand, UseTool
from callwright.core.spec import Effect
from callwright.policy import AllowEverything, ByMode, Policies, Subject, Tier, standard_policies
from callwright.policy.dry_run import dry_run_call, dry_run_line


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


@pytest.mark.parametrize("policies", [(), (Policy(),), (Rule(None), Mode(None))], ids=len)
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
