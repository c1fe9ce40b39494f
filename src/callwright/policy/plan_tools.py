"""Tools that enter and leave plan mode; leaving it needs the user's approval of the plan."""

from dataclasses import dataclass
from typing import cast

from callwright.core.errors import ToolFailed
from callwright.core.spec import Annotations, Effect
from callwright.policy.modes import ModeSwitch
from callwright.tool.base import Tool, ToolContext
from callwright.tool.typed import TypedTool, describe


@dataclass(frozen=True, slots=True)
class EnterPlanArguments:
    """Entering plan mode takes no arguments."""


@dataclass(frozen=True, slots=True)
class ExitPlanArguments:
    """The plan to approve."""

    plan: str
    """The full plan, as the user should read it."""


class EnterPlan(TypedTool[EnterPlanArguments]):
    """Switches to plan mode. It only takes permissions away, so it needs no approval."""

    spec = describe(
        "enter_plan",
        "Enter plan mode: read and plan, while nothing can be changed.",
        annotations=Annotations(Effect.READ, idempotent=True, parallel=False),
        aliases=("EnterPlanMode",),
        group="plan",
    )

    def __init__(self, switch: ModeSwitch) -> None:
        self._switch = switch

    async def run(self, arguments: EnterPlanArguments, context: ToolContext) -> str:
        self._switch.enter_plan()
        return "plan mode is on: only reading is allowed now; call exit_plan with the plan when it is ready"


class ExitPlan(TypedTool[ExitPlanArguments]):
    """Shows the plan to the user and, when they approve it, returns to the mode before."""

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
            raise ToolFailed("plan mode is not on; continue without exit_plan")
        return f"the user agreed to the plan; the mode is now {self._switch.exit_plan()}"


def plan_tools(switch: ModeSwitch) -> list[Tool]:
    """Return both tools. Pass the switch that `ByMode` uses, so that they change the mode it decides by."""
    tools = [EnterPlan(switch), ExitPlan(switch)]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say
