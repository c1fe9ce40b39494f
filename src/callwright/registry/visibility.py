"""Which tools a session is shown: the wrapper that marks a tool as deferred, and the reveals of a session."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, cast

from callwright.core.calls import Outcome, find_revealed
from callwright.core.errors import InvalidArguments, UnknownTool
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec
from callwright.registry.catalog import SEARCH_NAME
from callwright.tool.base import Invocation, SessionTool, State, Tool, WrapperTool, identify

Unrevealed: TypeAlias = Literal["run", "refuse"]
"""What happens to a call of a tool the model was not shown: it runs, or the model must search first."""

MOST_FOUND = 25
"""How many of the tools that a session found are shown if there is a budget: the last ones."""


class DeferrableTool(WrapperTool):
    """A tool with its own `deferred` flag; everything else is the inner tool's."""

    def __init__(self, inner: Tool, *, deferred: bool, unrevealed: Unrevealed | None = None) -> None:
        self.inner = inner
        self.name, self.aliases = identify(inner)
        self._deferred = deferred
        self._unrevealed = unrevealed
        self._spec: ToolSpec | None = None

    @property
    def spec(self) -> ToolSpec:
        """The inner tool's spec with this wrapper's `deferred` flag."""
        if self._spec is None:
            inner = self.inner.spec
            self._spec = inner if inner.deferred == self._deferred else replace(inner, deferred=self._deferred)
        return self._spec

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Bind to the inner tool; errors tell a model that was not shown the tool how to see it."""
        return self._bind_shown(partial(self.inner.bind, arguments))

    @property
    def bind_in(self) -> "Callable[[JsonObject | str | bytes, State, str], Invocation]":
        """Bind as `bind` does, for a session; missing where the inner tool has none."""
        inner = cast(SessionTool, self.inner).bind_in
        return lambda arguments, state, session_id: self._bind_shown(partial(inner, arguments, state, session_id))

    def _bind_shown(self, bind: Callable[[], Invocation]) -> Invocation:
        if self._unrevealed is None:
            return bind()
        advice = f'call {SEARCH_NAME}(query="select:{self.name}") to see its parameters'
        if self._unrevealed == "refuse":
            raise UnknownTool(
                self.name, advice=f"it exists, but its definition was not shown to you; {advice} and then call it"
            )
        try:
            return bind()
        except InvalidArguments as error:
            raise InvalidArguments(f"{error.detail}; {advice}") from error

    def reveal(self) -> Tool:
        """Return the tool for a session that found it, still marked as deferred: it is listed after the others."""
        return self.inner if self.inner.spec.deferred else DeferrableTool(self.inner, deferred=True)


@dataclass(frozen=True, slots=True)
class RevealedTools:
    """The tools one session has been shown, kept in its state. Immutable, so that copied states stay independent."""

    names: tuple[str, ...] = ()
    """Deferred tools the session found, in that order."""
    shown: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """How a budget divided the tools; a session keeps the division, so that prompt caches survive."""

    def with_names(self, names: Iterable[str]) -> "RevealedTools":
        """Return a copy with more tools found; one found long before counts as found last, others keep their place."""
        found = tuple(dict.fromkeys(name for name in names if name not in self.names[-MOST_FOUND:]))
        return replace(self, names=(*(name for name in self.names if name not in found), *found))


def reveal_to(state: State, *names: str) -> None:
    """Show deferred tools to one session from now on, after those it has.

    Args:
        state: The state of the session.
        names: The names of the tools.
    """
    state.put(state.get(RevealedTools).with_names(names))


def recall_reveals(state: State, outcomes: Iterable[Outcome]) -> None:
    """Show a session the tools that its earlier searches revealed, as after a restart.

    Args:
        state: The state of the session.
        outcomes: The outcomes of its calls so far.
    """
    for outcome in outcomes:
        if names := find_revealed(outcome):
            reveal_to(state, *names)
