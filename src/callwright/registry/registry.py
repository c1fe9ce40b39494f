"""`Registry`: the living collection of tools."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from callwright.core.errors import UsageError
from callwright.core.events import ToolsChanged
from callwright.core.spec import ToolSpec, check_name
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import Tool, identify

Listener = Callable[[ToolsChanged], None]


class Registry:
    """Tools by name. May be changed while turns are running: each turn keeps the snapshot it began with."""

    def __init__(self, *tools: Tool, strict: bool = False) -> None:
        self.changes = 0
        self.strict = strict
        """Adding a name that is there already raises instead of replacing."""
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, str] = {}
        self._revealed: dict[str, None] = {}
        self._snapshot: tuple[int, Catalog] | None = None
        self._listeners: list[Listener] = []
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> "Registry":
        """Add a tool, or replace the one of the same name in place; returns itself to be chained."""
        name, aliases = self._checked(tool)
        known = name in self._tools
        if known and self.strict:
            raise UsageError(f"there is a tool {name!r} already; remove it first, or use a registry that is not strict")
        self._refuse_clashes(name, aliases)
        self._forget_aliases(name)
        self._aliases.update(dict.fromkeys(aliases, name))
        self._tools[name] = tool
        self._changed(ToolsChanged(replaced=(name,)) if known else ToolsChanged(added=(name,)))
        return self

    def _checked(self, tool: Tool) -> tuple[str, tuple[str, ...]]:
        if isinstance(tool, type) or not (hasattr(tool, "bind") and hasattr(type(tool), "bind")):
            raise UsageError(f"{tool!r} is not a tool; {_fix(tool)}")
        name, aliases = identify(tool)
        return check_name(name), tuple(check_name(alias) for alias in aliases)

    def _refuse_clashes(self, name: str, aliases: tuple[str, ...]) -> None:
        """Whatever the order of registration, a word means one tool."""
        if self._aliases.get(name, name) != name:
            raise UsageError(f"{name!r} is an alias of {self._aliases[name]}; choose a different name")
        for alias in aliases:
            if alias in self._tools and alias != name:
                raise UsageError(f"{name}: alias {alias!r} is another tool's name; choose a different alias")
            if self._aliases.get(alias, name) != name:
                raise UsageError(f"{name}: alias {alias!r} is taken by {self._aliases[alias]}; choose a different one")

    def _forget_aliases(self, name: str) -> None:
        if name in self._tools:
            for alias in identify(self._tools[name])[1]:
                self._aliases.pop(alias, None)

    def remove(self, name: str) -> Tool:
        """Take a tool out and return it; turns that have begun keep it."""
        if name not in self._tools:
            raise UsageError(f"there is no tool {name!r} to remove; there are {', '.join(self.names()) or 'none'}")
        self._forget_aliases(name)
        tool = self._tools.pop(name)
        self._revealed.pop(name, None)
        self._changed(ToolsChanged(removed=(name,)))
        return tool

    def merge(self, other: Toolset) -> "Registry":
        """Add every tool of another toolset; returns itself to be chained."""
        for tool in other.snapshot():
            self.add(tool)
        return self

    def reveal(self, *names: str) -> None:
        """Show deferred tools to the model from now on, after the ones it knows, so that prompt caches survive."""
        fresh = [name for name in names if name in self._tools and name not in self._revealed]
        if fresh:
            self._revealed.update(dict.fromkeys(fresh))
            self._changed(ToolsChanged())

    def get(self, name: str) -> Tool | None:
        """Find a tool by name, alias or wire name."""
        return self.snapshot().get(name)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._tools)

    def definitions(self) -> tuple[ToolSpec, ...]:
        """What the model is shown; the same immutable value until something changes."""
        return self.snapshot().definitions

    def snapshot(self) -> Catalog:
        """One turn's frozen view."""
        kept = self._snapshot
        if kept is None or kept[0] != self.changes:
            # counted before it is taken: a change made meanwhile by another thread must not be lost
            kept = self._snapshot = (self.changes, Catalog(self._tools, tuple(self._revealed)))
        return kept[1]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told of every change; returns the way to stop listening."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def _changed(self, event: ToolsChanged) -> None:
        self.changes += 1
        for listener in tuple(self._listeners):
            listener(event)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self.snapshot()

    def __iter__(self) -> Iterator[Tool]:
        return iter(list(self._tools.values()))

    def __getitem__(self, name: str) -> Tool:
        tool = self.get(name)
        if tool is None:
            raise KeyError(name)
        return tool


def _fix(mistaken: object) -> str:
    if isinstance(mistaken, (list, tuple, set)):
        return "write Registry(*tools)"
    return "make an instance of it" if isinstance(mistaken, type) else "decorate the function with @tool"
