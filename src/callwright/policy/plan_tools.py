"""Plan mode as two tools: the model may enter it by itself, and leaves it only when a person agrees."""

from dataclasses import dataclass
from typing import cast

from callwright.core.errors import ToolFailed
from callwright.core.spec import Annotations, Effect
from callwright.policy.modes import ModeSwitch
from callwright.tool.base import Tool, ToolContext
from callwright.tool.typed import TypedTool, describe


@dataclass(frozen=True, slots=True)
class EnterPlanArguments:
    """Nothing needs to be said to stop changing things."""


@dataclass(frozen=True, slots=True)
class ExitPlanArguments:
    """What the person is asked to agree to."""

    plan: str
    """The plan, in full, as the person should read it."""


class EnterPlan(TypedTool[EnterPlanArguments]):
    """Switches to plan mode; it takes permissions away, so nobody needs to be asked."""

    spec = describe(
        "enter_plan",
        "Enter plan mode: look around and plan, while nothing can be changed.",
        annotations=Annotations(Effect.READ, idempotent=True, parallel=False),
        aliases=("EnterPlanMode",),
        group="plan",
    )

    def __init__(self, switch: ModeSwitch) -> None:
        self._switch = switch

    async def run(self, arguments: EnterPlanArguments, context: ToolContext) -> str:
        self._switch.enter_plan()
        return "plan mode is on: only reading works now; call exit_plan with the plan when it is ready"


class ExitPlan(TypedTool[ExitPlanArguments]):
    """Shows the plan to a person and, when they agree, goes back to the mode before."""

    spec = describe(
        "exit_plan",
        "Leave plan mode: show the finished plan to the user and ask to carry it out.",
        annotations=Annotations(Effect.READ, parallel=False, needs_approval=True),
        aliases=("ExitPlanMode",),
        group="plan",
    )

    def __init__(self, switch: ModeSwitch) -> None:
        self._switch = switch

    async def run(self, arguments: ExitPlanArguments, context: ToolContext) -> str:
        if self._switch.mode != "plan":
            raise ToolFailed("plan mode is not on; carry on")
        return f"the user agreed to the plan; the mode is now {self._switch.exit_plan()}"


def plan_tools(switch: ModeSwitch) -> list[Tool]:
    """Return both tools over one switch, the one the mode policy holds."""
    tools = [EnterPlan(switch), ExitPlan(switch)]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say
