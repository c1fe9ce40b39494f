"""`Deferred`: a toolset that shows a few of its tools and lets the model find the others with `tool_search`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf
from threading import Lock, RLock
from typing import Protocol, cast

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, estimate_spec_tokens
from callwright.registry.search.index import Hit, ToolIndex
from callwright.registry.search.search_tool import ToolSearch
from callwright.registry.visibility import MOST_FOUND, DeferrableTool, RevealedTools, Unrevealed
from callwright.tool.base import State, Tool

_REMEMBERED_CATALOGS = 16  # sessions with the same reveals share one


class Index(Protocol):
    """A search index over tools: `ToolIndex`, `SemanticIndex` or your own."""

    def add(self, spec: ToolSpec) -> None: ...

    def remove(self, name: str) -> None: ...

    def search(self, query: str, k: int = 10) -> list[Hit]: ...


class Deferred:
    """A toolset whose deferred tools are found by search. Sessions share it; each has its own revealed tools.

    Without a budget, tools with `deferred=True` are deferred. With a budget, all tools are shown while they fit;
    otherwise tools are deferred until the rest fits: first those with `deferred=True`, then those of servers, then your
    own; among these the least used, the largest first. Make it the outermost toolset: views such as `filtered` do not
    tell sessions apart.

    Args:
        source: The tools.
        budget_tokens: Most tokens the shown definitions may have.
        budget_tools: Most tools that a session is shown at its start, `tool_search` included, and up to 25 that it
            found last; OpenAI refuses more than 128.
        always: Names of tools that are never deferred.
        calls: Returns how often a tool was called, by name.
        unrevealed: Whether a call to a tool the model was not shown runs or is refused.
        index: The search index; a `ToolIndex` by default.

    Raises:
        UsageError: A budget is negative.
    """

    def __init__(
        self,
        source: Toolset,
        *,
        budget_tokens: int | None = None,
        budget_tools: int | None = None,
        always: Collection[str] = (),
        calls: Callable[[str], int] | None = None,
        unrevealed: Unrevealed = "run",
        index: Index | None = None,
    ) -> None:
        for name, budget in (("budget_tokens", budget_tokens), ("budget_tools", budget_tools)):
            if budget is not None and budget < 0:
                raise UsageError(f"{name} must be at least 0 or None, not {budget}")
        self._source = source
        self._budget_tokens, self._budget_tools = budget_tokens, budget_tools
        self._always = frozenset(always)
        self._calls = calls or _never_called
        self._unrevealed: Unrevealed = unrevealed
        self._index: Index = index or ToolIndex()
        self._search = cast("Tool", ToolSearch(self))  # describe() stands for a spec, which the type checker cannot see
        self._new_session = State()
        self._indexed: Mapping[str, Tool] = {}
        self._indexing = Lock()
        self._dividing = RLock()  # agents in several threads may share it; what `calls` does may come back here
        self._seen: Catalog | None = None
        self._costs: dict[str, int] = {}
        self._divided: dict[frozenset[str], Catalog] = {}
        self._catalogs: dict[RevealedTools, Catalog] = {}

    @property
    def changes(self) -> int:
        """A counter that grows whenever the tools change."""
        return self._source.changes

    def snapshot(self) -> Catalog:
        """Return the tools of a session that has not searched yet."""
        return self.snapshot_for(self._new_session)

    def snapshot_for(self, state: State) -> Catalog:
        """Return the tools of a session; the same object until something changes."""
        with self._dividing:
            source = self._source.snapshot()
            if source is not self._seen:
                self._seen, self._costs, self._divided, self._catalogs = source, {}, {}, {}
            revealed = state.get(RevealedTools)
            if revealed not in self._catalogs:
                revealed, hidden = self._divide(source, revealed)
                state.put(revealed)
                if revealed not in self._catalogs:
                    found = revealed.names if self._budget_tools is None else revealed.names[-MOST_FOUND:]
                    self._remember(revealed, self._build(source, hidden, (*source.revealed, *found)))
            return self._catalogs[revealed]

    def _remember(self, revealed: RevealedTools, catalog: Catalog) -> None:
        if len(self._catalogs) >= _REMEMBERED_CATALOGS:
            del self._catalogs[next(iter(self._catalogs))]
        self._catalogs[revealed] = catalog

    def find(self, query: str, count: int) -> list[Hit]:
        """Return the tools that match a request best, deferred or not.

        Args:
            query: The request, in words.
            count: The most tools to return.
        """
        with self._indexing:  # searches run in threads
            self._update_index(self._source.snapshot().tools)
        return self._index.search(query, count)

    def _update_index(self, tools: Mapping[str, Tool]) -> None:
        before = self._indexed
        if tools is before:
            return
        for name in before.keys() - tools.keys():
            self._index.remove(name)
        for name, tool in tools.items():
            if before.get(name) is not tool:
                self._index.add(tool.spec)
        self._indexed = tools

    def _divide(self, source: Catalog, revealed: RevealedTools) -> tuple[RevealedTools, frozenset[str]]:
        """Return the hidden tools of a session; a decision made for it earlier stays, so that prompt caches survive."""
        if self._budget_tokens is None and self._budget_tools is None:
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
        """Choose the tools to hide so that the rest fits; the choice does not depend on the order of registration."""
        self._costs = costs = self._costs or {
            name: estimate_spec_tokens(tool.spec) for name, tool in source.tools.items()
        }
        shown = [cost for name, cost in costs.items() if name not in hidden]
        over = sum(shown) - (inf if self._budget_tokens is None else self._budget_tokens)
        many = len(shown) - (inf if self._budget_tools is None else self._budget_tools)
        if over <= 0 and many <= 0 and not hidden:
            return set()
        surplus: set[str] = set()
        over, many = over + estimate_spec_tokens(self._search.spec), many + 1  # hiding anything shows tool_search
        for name in sorted(set(undecided) - self._always, key=lambda name: self._hide_order(source, name, costs[name])):
            if over <= 0 and many <= 0:
                break
            surplus.add(name)
            over, many = over - costs[name], many - 1
        return surplus

    def _hide_order(self, source: Catalog, name: str, cost: int) -> tuple[bool, bool, int, int, str]:
        spec = source.tools[name].spec
        # a server with hundreds of tools must not take the place of what the agent works with
        return (not spec.deferred, spec.origin == "local", self._calls(name), -cost, name)

    def _build(self, source: Catalog, hidden: frozenset[str], names: tuple[str, ...]) -> Catalog:
        base = self._divided.get(hidden)
        if base is None:
            tools = {name: self._wrap(tool, name in hidden) for name, tool in source.tools.items()}
            if hidden:
                tools[SEARCH_NAME] = self._search
            base = self._divided[hidden] = Catalog(tools, withheld=source.withheld)
        found = [name for name in dict.fromkeys(names) if name in hidden]
        return base.with_revealed({name: _reveal(base.tools[name]) for name in found}) if found else base

    def _wrap(self, tool: Tool, hidden: bool) -> Tool:
        if hidden:
            return DeferrableTool(tool, deferred=True, unrevealed=self._unrevealed)
        return DeferrableTool(tool, deferred=False) if tool.spec.deferred else tool


def _reveal(tool: Tool) -> Tool:
    return tool.reveal() if isinstance(tool, DeferrableTool) else tool


def _never_called(name: str) -> int:
    return 0
