"""What a session has been shown beyond the tools everybody is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from callwright.core.call import Outcome
from callwright.core.reveal import revealed_by
from callwright.tool.base import State


@dataclass(frozen=True, slots=True)
class Revealed:
    """What one session has been shown, kept in its state. A value: a copied state cannot change the original's."""

    names: tuple[str, ...] = ()
    """Deferred tools that were searched for, in that order."""
    shown: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """How a budget divided the tools; a session keeps to it, so that prompt caches survive."""

    def plus(self, names: Iterable[str]) -> "Revealed":
        """The same with more tools searched for."""
        return replace(self, names=tuple(dict.fromkeys((*self.names, *names))))


def reveal_to(state: State, *names: str) -> None:
    """Show deferred tools to one session from now on, after the ones it knows."""
    state.put(state.get(Revealed).plus(names))


def recall_reveals(state: State, outcomes: Iterable[Outcome]) -> None:
    """Show a session again what its earlier searches revealed, as when it is taken up after a restart."""
    reveal_to(state, *(name for outcome in outcomes for name in revealed_by(outcome)))
