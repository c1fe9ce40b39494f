"""What each mode says where no rule speaks."""

from pathlib import Path

import pytest

from callwright import Annotations, Completed, Effect, Executor, Failed, Interrupted, Registry, tool
from callwright.core.access import Allow, Ask, Decision, Deny, Reach
from callwright.core.spec import ToolSpec
from callwright.policy import ByMode, Policies
from callwright.policy.dry_run import DryRunCall
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
