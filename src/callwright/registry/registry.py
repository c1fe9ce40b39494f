"""`Registry`: a collection of tools that may change while turns run."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from callwright.core.errors import UsageError
from callwright.core.events import ToolsChanged
from callwright.core.spec import ToolSpec, check_name
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import LazyTool, Tool, identify

Listener = Callable[[ToolsChanged], None]


class Registry:
    """Tools by name. It may change while turns run: each turn keeps the snapshot it started with.

    Args:
        tools: Tools to add.
        strict: Raise instead of replacing when a name is added twice.
    """

    def __init__(self, *tools: Tool, strict: bool = False) -> None:
        self.changes = 0
        self.strict = strict
        """Adding a known name raises instead of replacing the tool."""
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, str] = {}
        self._revealed: dict[str, None] = {}
        self._snapshot: tuple[int, Catalog] | None = None
        self._listeners: list[Listener] = []
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> "Registry":
        """Add a tool or replace the one of the same name; return the registry.

        Raises:
            UsageError: It is not a tool, or a method without its instance; a name is not allowed or taken; or the
                registry is strict and has the name.
        """
        name, aliases = self._check(tool)
        known = name in self._tools
        if known and self.strict:
            raise UsageError(f"the tool {name!r} exists already; remove it first, or use a registry that is not strict")
        self._refuse_clashes(name, aliases)
        self._forget_aliases(name)
        self._aliases.update(dict.fromkeys(aliases, name))
        self._tools[name] = tool
        self._notify(ToolsChanged(replaced=(name,)) if known else ToolsChanged(added=(name,)))
        return self

    def _check(self, tool: Tool) -> tuple[str, tuple[str, ...]]:
        if isinstance(tool, type) or not (hasattr(tool, "bind") and hasattr(type(tool), "bind")):
            raise UsageError(f"expected a tool, got {tool!r}; {_suggest_fix(tool)}")
        if isinstance(tool, LazyTool):
            tool.require_bound()
        elif not hasattr(type(tool), "spec") and not hasattr(tool, "spec"):
            raise UsageError(f'{tool!r} has no spec; write spec = describe("name", "what it is for") in its class')
        name, aliases = identify(tool)
        return check_name(name), tuple(check_name(alias) for alias in aliases)

    def _refuse_clashes(self, name: str, aliases: tuple[str, ...]) -> None:
        """Raise if a name or alias belongs to another tool, whichever was added first."""
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
        """Remove a tool and return it; turns that are running keep it.

        Raises:
            UsageError: There is no tool of this name.
        """
        if name not in self._tools:
            raise UsageError(f"there is no tool {name!r} to remove; known tools: {', '.join(self.names()) or 'none'}")
        self._forget_aliases(name)
        tool = self._tools.pop(name)
        self._revealed.pop(name, None)
        self._notify(ToolsChanged(removed=(name,)))
        return tool

    def merge(self, other: Toolset) -> "Registry":
        """Add every tool of another toolset, or none if one is refused; return the registry.

        Raises:
            UsageError: `add` refuses one of the tools.
        """
        tools = tuple(other.snapshot())
        trial = Registry(strict=self.strict)
        trial._tools, trial._aliases = self._tools.copy(), self._aliases.copy()
        for tool in tools:
            trial.add(tool)
        for tool in tools:
            self.add(tool)
        return self

    def reveal(self, *names: str) -> None:
        """Show deferred tools to the model from now on, after the others, so that prompt caches survive."""
        fresh = [name for name in names if name in self._tools and name not in self._revealed]
        if fresh:
            self._revealed.update(dict.fromkeys(fresh))
            self._notify(ToolsChanged())

    def get(self, name: str) -> Tool | None:
        """Return a tool by name, alias or wire name."""
        return self.snapshot().get(name)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._tools)

    def definitions(self) -> tuple[ToolSpec, ...]:
        """Return the definitions the model is shown; the same object until something changes."""
        return self.snapshot().definitions

    def snapshot(self) -> Catalog:
        """Return the immutable view for one turn."""
        kept = self._snapshot
        if kept is None or kept[0] != self.changes:
            # the counter is read before the tools: a change by another thread in between must not be lost
            kept = self._snapshot = (self.changes, Catalog(self._tools, tuple(self._revealed)))
        return kept[1]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener on every change; return a function that removes it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def _notify(self, event: ToolsChanged) -> None:
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


def _suggest_fix(mistaken: object) -> str:
    if isinstance(mistaken, (list, tuple, set)):
        return "write Registry(*tools)"
    return "make an instance of it" if isinstance(mistaken, type) else "decorate the function with @tool"
