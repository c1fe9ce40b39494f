"""`Deferred`: thousands of tools at the prompt cost of a few. What is not shown is found with `tool_search`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from threading import Lock
from typing import Protocol, cast

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, tokens_of
from callwright.registry.search.index import Hit, ToolIndex
from callwright.registry.search.search_tool import ToolSearch
from callwright.registry.visibility import DeferrableTool, Revealed, Unrevealed
from callwright.tool.base import State, Tool

_REMEMBERED_CATALOGS = 16


class Index(Protocol):
    """A way to find tools: `ToolIndex`, `SemanticIndex` or your own."""

    def add(self, spec: ToolSpec) -> None: ...

    def remove(self, name: str) -> None: ...

    def search(self, query: str, k: int = 10) -> list[Hit]: ...


class Deferred:
    """A toolset whose deferred tools are found by search. Sessions share it, and each has its own reveals.

    Without a budget the tools that say `deferred` are. With `budget_tokens` everything is shown while it fits; above,
    tools go until the rest fits: those that say `deferred`, then the least used (`calls` tells), the largest first.
    Put it around everything else: a view of it would not know one session from another.
    """

    def __init__(
        self,
        source: Toolset,
        *,
        budget_tokens: int | None = None,
        always: Collection[str] = (),
        calls: Callable[[str], int] | None = None,
        unrevealed: Unrevealed = "run",
        index: Index | None = None,
    ) -> None:
        if budget_tokens is not None and budget_tokens < 0:
            raise UsageError(f"budget_tokens must be at least 0 or None, not {budget_tokens}")
        self._source = source
        self._budget_tokens = budget_tokens
        self._always = frozenset(always)
        self._calls = calls or _never_called
        self._unrevealed: Unrevealed = unrevealed
        self._index: Index = index or ToolIndex()
        self._search = cast("Tool", ToolSearch(self))  # a Described is a spec to whoever reads it
        self._nobody = State()
        self._indexed: Mapping[str, Tool] = {}
        self._indexing = Lock()
        self._seen: Catalog | None = None
        self._costs: dict[str, int] = {}
        self._divided: dict[frozenset[str], Catalog] = {}
        self._catalogs: dict[Revealed, Catalog] = {}

    @property
    def changes(self) -> int:
        """Counts up whenever the tools change."""
        return self._source.changes

    def snapshot(self) -> Catalog:
        """The tools as a session sees them that has searched for nothing yet."""
        return self.snapshot_for(self._nobody)

    def snapshot_for(self, state: State) -> Catalog:
        """The tools as one session has them; the same object until something changes."""
        source = self._source.snapshot()
        if source is not self._seen:
            self._seen, self._costs, self._divided, self._catalogs = source, {}, {}, {}
        revealed = state.get(Revealed)
        if revealed not in self._catalogs:
            revealed, hidden = self._divide(source, revealed)
            state.put(revealed)
            if revealed not in self._catalogs:
                self._remember(revealed, self._build(source, hidden, (*source.revealed, *revealed.names)))
        return self._catalogs[revealed]

    def _remember(self, revealed: Revealed, catalog: Catalog) -> None:
        if len(self._catalogs) >= _REMEMBERED_CATALOGS:
            del self._catalogs[next(iter(self._catalogs))]
        self._catalogs[revealed] = catalog

    def find(self, query: str, count: int) -> list[Hit]:
        """The tools that fit a request best, deferred or not."""
        with self._indexing:  # searches run in threads
            self._keep_in_step(self._source.snapshot().tools)
        return self._index.search(query, count)

    def _keep_in_step(self, tools: Mapping[str, Tool]) -> None:
        before = self._indexed
        if tools is before:
            return
        for name in before.keys() - tools.keys():
            self._index.remove(name)
        for name, tool in tools.items():
            if before.get(name) is not tool:
                self._index.add(tool.spec)
        self._indexed = tools

    def _divide(self, source: Catalog, revealed: Revealed) -> tuple[Revealed, frozenset[str]]:
        """Say which tools are hidden; what a session was shown or not shown before stays that way."""
        if self._budget_tokens is None:
            return revealed, frozenset(
                name for name, tool in source.tools.items() if tool.spec.deferred and name not in self._always
            )
        hidden = revealed.hidden & source.tools.keys()
        undecided = source.tools.keys() - hidden - revealed.shown
        if undecided:
            hidden |= self._surplus(source, undecided, hidden)
            revealed = replace(revealed, shown=frozenset(source.tools.keys() - hidden), hidden=frozenset(hidden))
        return revealed, frozenset(hidden)

    def _surplus(self, source: Catalog, undecided: Collection[str], hidden: Collection[str]) -> set[str]:
        """The tools that must go so that the rest fits, in an order that depends on nothing but the tools."""
        self._costs = costs = self._costs or {name: tokens_of(tool.spec) for name, tool in source.tools.items()}
        over = sum(cost for name, cost in costs.items() if name not in hidden) - (self._budget_tokens or 0)
        if over <= 0 and not hidden:
            return set()
        surplus: set[str] = set()
        over += tokens_of(self._search.spec)
        for name in sorted(set(undecided) - self._always, key=lambda name: self._urgency(source, name, costs[name])):
            if over <= 0:
                break
            surplus.add(name)
            over -= costs[name]
        return surplus

    def _urgency(self, source: Catalog, name: str, cost: int) -> tuple[bool, int, int, str]:
        return (not source.tools[name].spec.deferred, self._calls(name), -cost, name)

    def _build(self, source: Catalog, hidden: frozenset[str], names: tuple[str, ...]) -> Catalog:
        base = self._divided.get(hidden)
        if base is None:
            tools = {name: self._placed(tool, name in hidden) for name, tool in source.tools.items()}
            if hidden:
                tools[SEARCH_NAME] = self._search
            base = self._divided[hidden] = Catalog(tools)
        asked = [name for name in dict.fromkeys(names) if name in hidden]
        return base.revealing({name: _revealed(base.tools[name]) for name in asked}) if asked else base

    def _placed(self, tool: Tool, hidden: bool) -> Tool:
        if hidden:
            return DeferrableTool(tool, deferred=True, unrevealed=self._unrevealed)
        return DeferrableTool(tool, deferred=False) if tool.spec.deferred else tool


def _revealed(tool: Tool) -> Tool:
    return tool.revealed() if isinstance(tool, DeferrableTool) else tool


def _never_called(name: str) -> int:
    return 0
