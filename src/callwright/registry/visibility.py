"""A tool with its place decided: in the prompt from the start, or behind the search.

What a session has been shown beyond the tools everybody is shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from callwright.core.calls import Outcome
from callwright.core.errors import InvalidArguments, UnknownTool
from callwright.core.json import JsonObject
from callwright.core.messages import revealed_by
from callwright.core.spec import ToolSpec
from callwright.registry.catalog import SEARCH_NAME
from callwright.tool.base import Invocation, LazyTool, State, Tool, identify

Unrevealed: TypeAlias = Literal["run", "refuse"]
"""What becomes of a call to a tool the model was not shown: it is tried, or the model is told to search first."""


class DeferrableTool(LazyTool):
    """A tool whose place, in the prompt or behind the search, the view decides; everything else is the inner tool's."""

    def __init__(self, inner: Tool, *, deferred: bool, unrevealed: Unrevealed | None = None) -> None:
        self.inner = inner
        self.name, self.aliases = identify(inner)
        self._deferred = deferred
        self._unrevealed = unrevealed
        self._spec: ToolSpec | None = None

    @property
    def spec(self) -> ToolSpec:
        """The inner tool's, with the view's decision."""
        if self._spec is None:
            inner = self.inner.spec
            self._spec = inner if inner.deferred == self._deferred else replace(inner, deferred=self._deferred)
        return self._spec

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Bind to the inner tool; a model that has not seen the tool is told how to."""
        if self._unrevealed is None:
            return self.inner.bind(arguments)
        advice = f'call {SEARCH_NAME}(query="select:{self.name}") to see what it takes'
        if self._unrevealed == "refuse":
            raise UnknownTool(self.name, advice=f"it exists, but you have not been shown it; {advice} and then call it")
        try:
            return self.inner.bind(arguments)
        except InvalidArguments as error:
            raise InvalidArguments(f"{error.detail}; {advice}") from error

    def revealed(self) -> Tool:
        """The tool as a session has it that searched for it; still marked, so that it stands after the others."""
        return self.inner if self.inner.spec.deferred else DeferrableTool(self.inner, deferred=True)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as while being copied
            raise AttributeError(name)
        return getattr(self.inner, name)


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
