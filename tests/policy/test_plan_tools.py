"""Plan mode is a switch the mode policy reads, and two tools that turn it."""

import pytest

from callwright import Executor, Registry, ToolCall, tool
from callwright.core.access import Allow, Ask, Deny, ReadPath, RunCommand, UseTool, WritePath
from callwright.core.calls import Answers, Completed, Failed, Interrupted
from callwright.core.spec import Effect
from callwright.policy import ByMode, ModeSwitch, Policies
from callwright.policy.dry_run import DryRunCall, dry_run_call, dry_run_line
from callwright.policy.plan_tools import plan_tools


def test_exit_plan_restores_the_mode_before() -> None:
    switch = ModeSwitch("auto")
    switch.enter_plan()
    switch.enter_plan()
    assert switch.mode == "plan"
    assert switch.exit_plan() == "auto"


def test_plan_mode_that_the_user_chose_does_not_bring_back_an_older_mode() -> None:
    """With bypass from an earlier plan, agreeing to the next one would have switched off every question."""
    switch = ModeSwitch("bypass")
    switch.enter_plan()
    assert switch.exit_plan() == "bypass"
    switch.mode = "default"
    switch.mode = "plan"
    assert switch.exit_plan() == "default"
    switch.mode = "auto"
    switch.enter_plan()
    switch.enter_plan()
    assert switch.exit_plan() == "auto"


def test_switch_changes_the_decisions_of_its_policy() -> None:
    switch = ModeSwitch("auto")
    policies = Policies(ByMode(switch))
    access, call = dry_run_call("edit", "a", "/w")
    assert isinstance(policies.decide(access, call), Allow)
    switch.enter_plan()
    assert isinstance(policies.decide(access, call), Deny)
    assert isinstance(policies.decide(ReadPath("a"), call), Allow)


@pytest.mark.parametrize("count", [1, 2])
async def test_plan_mode_denies_what_was_allowed_before(count: int) -> None:
    """Whichever way a call goes: alone, alone again, or with others."""
    switch = ModeSwitch("auto")

    @tool
    async def change() -> str:
        """Change something."""
        return "changed"

    executor = Executor(Registry(change), policies=ByMode(switch))
    calls = [ToolCall(str(number), "change") for number in range(count)]
    for _ in range(3):
        assert {type(outcome) for outcome in await executor.execute(calls)} == {Completed}
    switch.enter_plan()
    assert {type(outcome) for outcome in await executor.execute(calls)} == {Failed}
    switch.exit_plan()
    assert {type(outcome) for outcome in await executor.execute(calls)} == {Completed}


@pytest.mark.parametrize(
    ("line", "expected"), [("git status", Allow), ("touch a", Deny), ("unknown", Deny), ("ls > a", Deny)]
)
def test_plan_mode_runs_only_proven_reads(line: str, expected: type) -> None:
    assert type(Policies(ByMode("plan")).decide(RunCommand(line, "/w"), dry_run_line(line))) is expected


def test_only_exit_plan_needs_approval() -> None:
    enter, leave = plan_tools(ModeSwitch())
    policies = Policies(ByMode("plan"))
    assert isinstance(policies.decide(UseTool("enter_plan", Effect.READ), DryRunCall(enter.spec)), Allow)
    decision = policies.decide(UseTool("exit_plan", Effect.READ), DryRunCall(leave.spec))
    assert isinstance(decision, Ask)
    assert decision.firm
    assert isinstance(policies.decide(WritePath("a"), DryRunCall(leave.spec)), Deny)


async def test_plan_tools_change_the_mode_through_the_executor() -> None:
    switch = ModeSwitch("auto")
    executor = Executor(Registry(*plan_tools(switch)), policies=Policies(ByMode(switch)))
    assert isinstance(await executor.run("enter_plan"), Completed)
    assert switch.mode == "plan"
    asked = await executor.run("exit_plan", {"plan": "change everything"})
    assert isinstance(asked, Interrupted)
    assert switch.mode == "plan"
    answers = Answers.approving(asked.questions)
    (left,) = await executor.execute([asked.call], answers=answers)
    assert isinstance(left, Completed)
    assert switch.mode == "auto"
