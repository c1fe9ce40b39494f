"""Shows outcomes to the after-hooks and applies what they return; a hook that fails withholds the output."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeAlias

from callwright.core._fast import replace
from callwright.core.calls import Completed, Failed, Interrupted, Outcome
from callwright.core.content import Output
from callwright.core.errors import Crashed, ToolError, describe_raised
from callwright.executor.admitted import Admitted
from callwright.executor.before_hooks import make_pending_call
from callwright.executor.deadlines import Deadlines
from callwright.executor.driver import is_cancelling
from callwright.hooks.base import Hook

Showing: TypeAlias = Coroutine[Any, Any, Outcome]
"""Shows an outcome to the hooks that are left, and returns what they make of it."""


def show_outcome(
    hooks: Sequence[Hook], admitted: Admitted, outcome: Outcome, turn_id: str, deadlines: Deadlines
) -> Outcome | Showing:
    """Show the hooks an outcome in order; each sees it as the ones before it left it.

    Returns:
        The same outcome if all hooks let it be; otherwise what must be awaited for it.
    """
    # a hook cannot be shown a call of no tool, and an interrupted call has not ended
    if admitted.entry is None or isinstance(outcome, Interrupted):
        return outcome
    pending = admitted.pending or make_pending_call(admitted, turn_id)
    for place, hook in enumerate(hooks):
        try:
            returned = hook.after(pending, outcome)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a cancellation is raised where it is awaited
            return _withhold(hook, admitted, outcome, error)
        if returned is not None:
            return _show_on(hooks[place:], returned, admitted, outcome, turn_id, deadlines)
    return outcome


async def _show_on(
    hooks: Sequence[Hook], returned: object, admitted: Admitted, outcome: Outcome, turn_id: str, deadlines: Deadlines
) -> Outcome:
    """Apply what the first hook returned, which may have to be waited for, and show the others the result."""
    try:
        outcome = _replace_outcome(outcome, await deadlines.limit(hooks[0].seconds, returned))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a hook that fails withholds the output
        return await _withhold(hooks[0], admitted, outcome, error)
    shown = show_outcome(hooks[1:], admitted, outcome, turn_id, deadlines)
    return shown if isinstance(shown, Outcome) else await shown


async def _withhold(hook: Hook, admitted: Admitted, outcome: Outcome, raised: BaseException) -> Outcome:
    if isinstance(raised, asyncio.CancelledError) and is_cancelling():
        raise raised
    reason = describe_raised(raised)
    error = Crashed(f"the output is withheld: the hook {type(hook).__name__} failed ({reason})")
    error.__cause__ = raised
    started = isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started)
    return Failed(admitted.call, error, started=started)


def _replace_outcome(outcome: Outcome, returned: object) -> Outcome:
    """Return what an after-hook made of an outcome; its call stays the one that was made."""
    match returned:
        case None:
            return outcome
        case Completed(output=Output()) | Failed(error=ToolError()):
            return returned if returned.call is outcome.call else replace(returned, call=outcome.call)
        case _:
            raise TypeError(f"expected None, Completed or Failed from after(), got {type(returned).__name__}")
