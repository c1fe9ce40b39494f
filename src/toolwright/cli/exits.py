"""How the command ends: one number for each thing a script may want to know."""

from toolwright.agent.result import Done, Paused, Result

DONE, ERROR, USAGE, DENIED, PAUSED, LIMIT = 0, 1, 2, 3, 4, 5
INTERRUPTED = 130
_OF_KIND = {
    "turns": LIMIT,
    "tokens": LIMIT,
    "money": LIMIT,
    "seconds": LIMIT,
    "repeated": LIMIT,
    "halted": DENIED,
    "cancelled": INTERRUPTED,
}


def exit_code(result: Result, *, denied: bool) -> int:
    """The number for a run's end; what was denied on the way shows only where nothing worse happened."""
    if isinstance(result, Paused):
        return PAUSED
    if isinstance(result, Done):
        return DENIED if denied else DONE
    return _OF_KIND.get(result.kind, ERROR)
