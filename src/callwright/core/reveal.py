"""What a search for tools revealed, as its outcome tells sessions and providers."""

from typing import Final

from callwright.core.call import Completed, Outcome

SEARCH_NAME: Final = "tool_search"
SEARCH_ALIASES: Final = ("ToolSearch", "search_tools")
_SPELLINGS = frozenset((SEARCH_NAME, *SEARCH_ALIASES))


def revealed_by(outcome: Outcome) -> tuple[str, ...]:
    """The tools a call revealed, in that order; none if it was no search."""
    if not isinstance(outcome, Completed) or outcome.call.name not in _SPELLINGS:
        return ()
    found = outcome.output.structured
    names = found.get("revealed") if isinstance(found, dict) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
