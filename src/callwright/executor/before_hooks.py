"""Asks the before-hooks about a call and applies their verdicts; a hook that fails denies."""

import asyncio
from collections.abc import Sequence

from callwright.core.access import Allow, Ask, Deny
from callwright.core.errors import Denied, Halted, ToolError, safe_str
from callwright.executor.admitted import Admitted, make_pending_call
from callwright.executor.deadlines import Deadlines
from callwright.executor.driver import is_cancelling
from callwright.hooks.base import Answer, Halt, Hook, Proceed, Rewrite
from callwright.tool.render import render


async def ask_hooks(hooks: Sequence[Hook], admitted: Admitted, turn_id: str, deadlines: Deadlines) -> None:
    """Ask the hooks in order; each sees the arguments as the ones before it left them.

    Raises:
        Denied: A hook denies, fails, takes too long or returns something else than a verdict.
        Halted: A hook halts the run.
    """
    for hook in hooks:
        pending = admitted.pending or make_pending_call(admitted, turn_id)
        try:
            verdict = hook.before(pending)
            if verdict is None:
                continue
            decided = await deadlines.limit(hook.seconds, verdict)
        except ToolError:
            raise
        except BaseException as error:
            raise _explain_failure(hook, error) from error
        _apply_verdict(admitted, hook, decided)


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
            admitted.bind(admitted.require_entry(), arguments)
            if admitted.arguments != before:
                admitted.edited_by = f"the hook {type(hook).__name__}"
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
