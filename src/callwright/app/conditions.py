"""Whether a hook's condition, written like a permission rule, is about a call."""

from dataclasses import dataclass
from functools import cache

from callwright.core.errors import CallwrightError, UsageError
from callwright.hooks.base import PendingCall
from callwright.hooks.shell_config import ShellHook
from callwright.policy.judged import JudgedCall, judged_by
from callwright.policy.load import concerns
from callwright.policy.places import Surroundings
from callwright.policy.rule import Rule, parse_rule
from callwright.registry import Toolset


@dataclass(frozen=True, slots=True)
class Conditions:
    """Matches the way deny rules do, through quotes, wrappers and links: in doubt the hook runs, because it guards."""

    toolset: Toolset
    here: Surroundings

    def __call__(self, condition: str, pending: PendingCall) -> bool:
        rule = _rule(condition)
        if rule is None:
            return True
        tool = self.toolset.snapshot().get(pending.call.name)
        try:
            accesses = () if tool is None else tool.bind(pending.arguments).accesses()
        except (CallwrightError, ValueError, LookupError):
            return True  # what it would touch cannot be told
        call = JudgedCall(pending.spec, pending.arguments, pending.session_id)
        return concerns(rule, judged_by(pending.spec, accesses), call, self.here)


def faulty_condition(hook: ShellHook) -> str:
    """What is wrong with a hook's condition, in words for a person; empty where nothing is."""
    if not hook.condition or _rule(hook.condition) is not None:
        return ""
    return f"{hook}: the condition {hook.condition!r} is not a rule such as Bash(git *), so it runs every time"


@cache
def _rule(condition: str) -> Rule | None:
    try:
        return parse_rule("deny", condition, written_in="a condition")
    except UsageError:
        return None
