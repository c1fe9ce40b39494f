"""Ends a run so that another process can continue it."""

from callwright.core.errors import UsageError


class Handover:
    """Lets another process continue a run: ends it between two turns, with `Stopped` of kind `"handover"`.

    What was done is on record, so `resume` continues where the run ended, with the same limits. `request` may be called
    from any thread, for example when the process is asked to end.

    Args:
        turns: End after so many turns; None for no limit.
        owner: Who runs it. A later holder of the same owner takes the session over, also from a process that is stuck.

    Raises:
        UsageError: `turns` is below 1.
    """

    def __init__(self, turns: int | None = None, *, owner: str = "") -> None:
        if turns is not None and turns < 1:
            raise UsageError(f"Handover.turns must be at least 1, got {turns!r}")
        self.turns = turns
        self.owner = owner
        self.requested = False
        self.given_up = False

    def request(self) -> None:
        """End the run after the turn that is running."""
        self.requested = True

    def give_up(self) -> None:
        """Store nothing more of the run: another process continues from what is on record, as after a crash.

        Cancel the task of the run after this. A call that it stops is repeated by the next process if it may be.
        """
        self.given_up = True

    def find_reason(self, turns: int) -> str | None:
        """Return why the run is to end now, after so many turns; None if it goes on."""
        if self.requested:
            return "the run was asked to stop after its turn; resume it to continue"
        if self.turns is not None and turns >= self.turns:
            return f"{turns} turn{'' if turns == 1 else 's'} are done; resume it to continue"
        return None
