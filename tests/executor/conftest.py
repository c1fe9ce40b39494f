"""What several tests of the executor share."""

import asyncio

from callwright import Outcome, TurnCancelled


def outcomes_behind(error: BaseException) -> list[Outcome]:
    """Return the outcomes that the cancellation of a turn carries."""
    cancelled = TurnCancelled.find(error)
    assert cancelled is not None and type(error) is asyncio.CancelledError
    return cancelled.outcomes
