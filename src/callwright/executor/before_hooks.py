"""Asks the before-hooks about a call and applies their verdicts; a hook that fails denies."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeAlias

from callwright.core._fast import make_constructor
from callwright.core.access import Allow, Ask, Deny
from callwright.core.errors import Denied, Halted, ToolError, safe_str
from callwright.executor.admitted import Admitted
from callwright.executor.deadlines import Deadlines
from callwright.executor.driver import is_cancelling
from callwright.hooks.base import Answer, Halt, Hook, PendingCall, Proceed, Rewrite
from callwright.tool.render import render

Asking: TypeAlias = Coroutine[Any, Any, None]
"""Asks the hooks that are left. Awaiting it raises `Denied` if one denies, fails, takes too long or returns something
else than a verdict, and `Halted` if one halts the run."""
Begun: TypeAlias = tuple[Admitted, Asking]
"""A call that was bound elsewhere, where its hooks have begun to be asked."""
_pending_call = make_constructor(PendingCall)


def make_pending_call(admitted: Admitted, turn_id: str) -> PendingCall:
    """Return what hooks see of a call; the same value until its arguments change."""
    if admitted.pending is None:
        entry = admitted.require_entry()
        admitted.pending = _pending_call(
            admitted.call, entry.spec, admitted.arguments, admitted.session_id, turn_id, entry.tool
        )
    return admitted.pending


def ask_hooks(hooks: Sequence[Hook], admitted: Admitted, turn_id: str, deadlines: Deadlines) -> Asking | None:
    """Ask the hooks in order; each sees the arguments as the ones before it left them.

    Returns:
        None if all let the call go on; otherwise what must be awaited before it may.
    """
    for place, hook in enumerate(hooks):
        pending = admitted.pending or make_pending_call(admitted, turn_id)
        try:
            verdict = hook.before(pending)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - raised where the call is decided about
            return _fail(hook, error)
        if verdict is not None:
            return _ask_on(hooks[place:], verdict, admitted, turn_id, deadlines)
    return None


async def _fail(hook: Hook, error: BaseException) -> None:
    if isinstance(error, ToolError):
        raise error
    raise _explain_failure(hook, error) from error


async def _ask_on(
    hooks: Sequence[Hook], verdict: object, admitted: Admitted, turn_id: str, deadlines: Deadlines
) -> None:
    """Apply the verdict of the first hook, which may have to be waited for, and ask the others."""
    try:
        decided = await deadlines.limit(hooks[0].seconds, verdict)
    except BaseException as error:  # noqa: BLE001 - a hook that fails denies
        await _fail(hooks[0], error)
        return
    _apply_verdict(admitted, hooks[0], decided)
    asking = ask_hooks(hooks[1:], admitted, turn_id, deadlines)
    if asking is not None:
        await asking


def _explain_failure(hook: Hook, error: BaseException) -> Denied:
    """Return the error of a call whose hook failed; an interruption from outside is raised as it is."""
    match error:
        case TimeoutError():
            return Denied(f"the hook {type(hook).__name__} did not return within {hook.seconds:g} s, so nothing ran")
        case KeyboardInterrupt():
            raise error
        case asyncio.CancelledError() if is_cancelling():
            raise error
        case _:
            return Denied(f"the hook {type(hook).__name__} failed, so nothing ran: {safe_str(error)}")


def _apply_verdict(admitted: Admitted, hook: Hook, verdict: object) -> None:
    """Apply what a before-hook returned; a policy's `Allow` is accepted too and means `Proceed`."""
    match verdict:
        case None | Proceed() | Allow():
            pass
        case Rewrite(arguments):
            before = admitted.arguments
            admitted.edit(admitted.require_entry(), arguments)
            if admitted.arguments != before:
                admitted.edited_by = f"the hook {type(hook).__name__}"
                if admitted.shown is not None:  # what the user wrote would run in another form, which was not shown
                    admitted.shown = frozenset(), frozenset()
        case Deny(reason):
            raise Denied(reason)
        case Halt(reason):
            raise Halted(reason)
        case Answer(output):
            admitted.hook_output = render(output)
        case Ask():
            admitted.asks = (*admitted.asks, verdict)
        case _:
            raise Denied(
                f"the hook {type(hook).__name__} failed, so nothing ran: expected Proceed(), Rewrite(…), Deny(…),"
                f" Answer(…), Ask(…) or Halt(…), got {verdict!r}"
            )
