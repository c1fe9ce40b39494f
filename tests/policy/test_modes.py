"""What each mode says where no rule speaks."""

from dataclasses import replace
from pathlib import Path

import pytest

from callwright import Annotations, Completed, Effect, Executor, Failed, Interrupted, Registry, tool
from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Confinement,
    Decision,
    DeletePath,
    DeleteResource,
    Deny,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.errors import UsageError
from callwright.core.spec import UNCONFINED, ToolSpec
from callwright.policy import ByMode, ExcludedCommands, Policies
from callwright.policy.dry_run import DryRunCall, dry_run_line
from callwright.policy.modes import ModeSwitch, effect_of
from callwright.policy.shell_line import PartOfLine
from callwright.shell import analyze
from callwright.tool.function import FunctionTool
from callwright.toolbox import Bash

TABLE = {
    "plan": (Completed, Failed, Failed),
    "default": (Completed, Interrupted, Interrupted),
    "auto": (Completed, Completed, Interrupted),
    "dontAsk": (Completed, Failed, Failed),
    "bypass": (Completed, Completed, Completed),
}
OLDER_NAMES = {"acceptEdits": "auto", "bypassPermissions": "bypass", "manual": "default"}


def acting(annotations: Annotations) -> FunctionTool:
    @tool(annotations=annotations)
    async def act() -> str:
        """Act in some way."""
        return "done"

    return act


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("mode", [*TABLE, *OLDER_NAMES])
async def test_modes_decide_by_effect(mode: str, effect: Effect) -> None:
    outcome = await Executor(Registry(acting(Annotations(effect))), ByMode(mode)).run("act")
    assert type(outcome) is TABLE[OLDER_NAMES.get(mode, mode)][effect]
    assert not isinstance(outcome, Failed) or (outcome.error.code == "denied" and mode in outcome.text)


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("mode", TABLE)
async def test_needs_approval_asks_in_every_mode(mode: str, effect: Effect) -> None:
    guarded = acting(Annotations(effect, needs_approval=True))
    outcome = await Executor(Registry(guarded), ByMode(mode)).run("act")
    denied = mode == "dontAsk" or (mode == "plan" and effect > Effect.READ)
    assert type(outcome) is (Failed if denied else Interrupted)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("touch new", Completed),
        ("mkdir -p a/b && echo x > a/b/c", Completed),
        ("touch ../other", Interrupted),
        ("echo x > {outside}/new", Interrupted),
        ("cp new link/new", Interrupted),
        ("cd {outside} && touch new", Interrupted),
        ("touch $SOMEWHERE/new", Interrupted),
    ],
)
async def test_auto_mode_without_fence_confines_shell_writes(tmp_path: Path, line: str, expected: type) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    executor = Executor(Registry(Bash(inside)), ByMode("auto"))
    assert type(await executor.run("bash", {"command": line.format(outside=outside)})) is expected
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    ("mode", "effect", "reads", "expected"),
    [
        ("auto", Effect.READ, "ask", Ask),
        ("auto", Effect.READ, "allow", Allow),
        ("plan", Effect.READ, "allow", Allow),
        ("auto", Effect.WRITE, "allow", Ask),
        ("plan", Effect.WRITE, "allow", Deny),
        ("dontAsk", Effect.READ, "ask", Deny),
        ("bypass", Effect.WRITE, "ask", Allow),
    ],
)
def test_network_access_is_judged_by_direction(mode: str, effect: Effect, reads: str, expected: type[Decision]) -> None:
    """What was sent cannot be taken back: sending is never an edit that auto mode allows."""
    spec = ToolSpec("fetch", "Fetch a page.", {"type": "object"}, annotations=Annotations(Effect.READ))
    policies = Policies(ByMode(mode, network_reads="allow" if reads == "allow" else "ask"))
    assert type(policies.decide(Reach("https://example.com/", effect), DryRunCall(spec))) is expected


def part_of(line: str, cwd: str = "/w") -> PartOfLine:
    """Return the first command of a line as policies see it."""
    plan = analyze(line, cwd)
    return PartOfLine(dry_run_line(line), RunCommand(line, cwd), plan, plan.commands[0])


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no mode .yolo.; use one of plan, default, .*, acceptEdits, "):
        ByMode("yolo")


def test_switch_takes_no_mode_that_does_not_exist() -> None:
    switch = ModeSwitch("auto")
    with pytest.raises(UsageError, match="there is no mode 'reckless'"):
        setattr(switch, "mode", "reckless")  # noqa: B010 - what a program without a type checker may write
    assert switch.mode == "auto"


def test_switch_refuses_barred_modes_and_leaves_plan_mode_once() -> None:
    switch = ModeSwitch("auto", barred=["bypass"])
    with pytest.raises(UsageError, match="bypass is switched off"):
        switch.mode = "bypass"
    assert switch.exit_plan() == "auto"  # it was not in plan mode
    switch.enter_plan()
    switch.enter_plan()
    assert switch.exit_plan() == "auto"


@pytest.mark.parametrize(
    ("access", "effect"),
    [
        (ReadPath("a"), Effect.READ),
        (ReadResource("db:a"), Effect.READ),
        (WritePath("a"), Effect.WRITE),
        (WriteResource("db:a"), Effect.WRITE),
        (DeletePath("a"), Effect.DESTROY),
        (DeleteResource("db:a"), Effect.DESTROY),
        (RunCommand("ls", "/"), Effect.DESTROY),
        (UseTool("x", Effect.WRITE), Effect.WRITE),
        (Reach("https://a"), Effect.READ),
        (Reach("https://a", Effect.WRITE), Effect.DESTROY),
    ],
)
def test_kind_of_access_decides_its_effect(access: Access, effect: Effect) -> None:
    assert effect_of(access) is effect


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        (Reach("https://a.example/x"), "reads over the network: https://a.example/x"),
        (Reach("https://a.example", Effect.WRITE), "it may destroy something"),
        (WritePath("/w/a"), "would write to /w/a"),
        (WriteResource("db:a"), "would write to db:a"),
        (DeletePath("/w/a"), "would remove /w/a"),
        (DeleteResource("db:a"), "would delete db:a"),
        (RunCommand("ls", "/"), "it may destroy something"),
    ],
)
def test_question_names_what_would_happen(access: Access, reason: str) -> None:
    asked = ByMode().judge(access, dry_run_line("x"))
    assert isinstance(asked, Ask) and asked.reason == reason


def test_question_about_a_network_read_names_the_command() -> None:
    part = part_of("curl -s https://a.example")
    asked = ByMode().judge(part.access, part)
    assert isinstance(asked, Ask) and asked.reason == "reads over the network: curl -s https://a.example"
    whole = replace(part, command=None)
    assert ByMode().judge(whole.access, whole) == Ask("reads over the network: ", "mode default")
    unknown = part_of("frobnicate")
    assert "frobnicate" in str(ByMode().judge(unknown.access, unknown))


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
def test_sandbox_alone_allows_commands_in_auto_mode_only(mode: str) -> None:
    part = part_of("make all")
    assert not isinstance(ByMode(mode, sandboxed=True).judge(part.access, part), Allow)
    assert isinstance(ByMode("auto", sandboxed=True).judge(part.access, part), Allow)
    assert not isinstance(ByMode("auto").judge(part.access, part), Allow)
    removes = part_of("rm -rf a")
    assert not isinstance(ByMode("auto", sandboxed=True).judge(removes.access, removes), Allow)


@pytest.mark.parametrize("access", [DeletePath("/w/a"), DeleteResource("db:a"), UseTool("x", Effect.DESTROY)])
def test_sandbox_of_commands_allows_nothing_else(access: Access) -> None:
    by_mode = ByMode("auto", sandboxed=True, auto_allow="walled")
    part = part_of("rm -rf a")
    assert isinstance(by_mode.judge(access, dry_run_line("x")), Ask)
    assert isinstance(by_mode.judge(access, part), Ask)
    assert isinstance(by_mode.judge(access, part_of("make all")), Ask)
    assert isinstance(by_mode.judge(RunCommand("make", "/w"), dry_run_line("make")), Ask)  # not analysed


@pytest.mark.parametrize(
    ("mode", "sandboxed", "confinement"),
    [
        ("auto", True, Confinement.WORKSPACE),
        ("auto", False, Confinement.READ_ONLY),
        ("default", True, Confinement.READ_ONLY),
        ("plan", True, Confinement.READ_ONLY),
    ],
)
def test_wall_of_a_checker_follows_the_mode(mode: str, sandboxed: bool, confinement: Confinement) -> None:
    part = part_of("pytest -q")
    found = ByMode(mode, sandboxed=sandboxed, auto_allow="walled").judge(part.access, part)
    assert isinstance(found, Allow) and found.confinement == confinement


@pytest.mark.parametrize("by_mode", [ByMode("auto", sandboxed=True), ByMode(auto_allow="walled")])
def test_sandbox_does_not_count_for_tools_that_run_outside_it(by_mode: ByMode) -> None:
    part = part_of("pytest -q")
    spec = replace(part.spec, metadata={UNCONFINED: True})
    assert isinstance(by_mode.judge(part.access, part), Allow)
    assert isinstance(by_mode.judge(part.access, replace(part, call=DryRunCall(spec))), Ask)


def test_wall_does_not_replace_approval_that_is_always_needed() -> None:
    part = part_of("pytest -q")
    spec = replace(part.spec, annotations=Annotations(Effect.DESTROY, needs_approval=True))
    guarded = replace(part, call=DryRunCall(spec))
    asked = ByMode(auto_allow="walled").judge(part.access, guarded)
    assert isinstance(asked, Ask) and asked.firm
    assert isinstance(ByMode(auto_allow="walled").judge(ReadPath("/w/a"), DryRunCall(spec)), Ask)


@pytest.mark.parametrize(
    ("accesses", "kind"),
    [
        ((), Ask),
        ((WritePath("/w/a"),), Allow),
        ((DeletePath("/w/a"),), Allow),
        ((WritePath("/w/a"), Reach("https://a")), Ask),
        ((ReadPath("/w/a"),), Ask),
    ],
)
def test_auto_mode_runs_writers_whose_targets_are_all_known(accesses: tuple[Access, ...], kind: type[Decision]) -> None:
    """A command that writes to unlisted places, or sends something out, is not confined by its paths."""
    part = part_of("touch a")
    assert part.command is not None
    command = replace(part.command, accesses=accesses)
    assert type(ByMode("auto").judge(part.access, replace(part, command=command))) is kind
    whole = replace(part, command=None, plan=replace(part.plan, accesses=accesses, commands=()))
    assert type(ByMode("auto").judge(part.access, whole)) is kind


def test_excluded_command_is_about_commands_only() -> None:
    excluded, part = ExcludedCommands(["docker"]), part_of("docker ps")
    assert isinstance(excluded.judge(part.access, part), Ask)
    assert excluded.judge(ReadPath("/w/a"), part) is None
    assert excluded.judge(part.access, dry_run_line("docker ps")) is None
    assert excluded.judge(part.access, replace(part, command=None)) is None


def test_auto_mode_moves_files_and_removes_none() -> None:
    by_mode, moves, removes = ByMode("auto"), part_of("mv a b"), part_of("rm a")
    assert isinstance(by_mode.judge(DeletePath("/w/a"), moves), Allow)
    assert isinstance(by_mode.judge(DeletePath("/w/a"), removes), Ask)
    assert isinstance(by_mode.judge(DeletePath("/w/a"), replace(moves, command=None)), Ask)
    assert isinstance(by_mode.judge(DeletePath("/w/a"), dry_run_line("mv a b")), Ask)
