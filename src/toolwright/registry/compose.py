"""Toolsets made of toolsets: prefixed, renamed, filtered, combined. Each stays as alive as its sources."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from toolwright.core.json import JsonObject
from toolwright.core.spec import ToolSpec, check_name
from toolwright.registry.catalog import Catalog, Toolset
from toolwright.tool.base import Invocation, LazyTool, Tool, identify


class Renamed(LazyTool):
    """A tool under another name; everything else is the inner tool's."""

    def __init__(self, inner: Tool, name: str, aliases: tuple[str, ...] = ()) -> None:
        self.inner = inner
        self.name = check_name(name)
        self.aliases = aliases

    @cached_property
    def spec(self) -> ToolSpec:
        return replace(self.inner.spec, name=self.name, aliases=self.aliases)

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        return self.inner.bind(arguments)


class _View:
    """Rebuilt only when a source has changed."""

    def __init__(self, sources: tuple[Toolset, ...], build: Callable[[tuple[Catalog, ...]], Catalog]) -> None:
        self._sources = sources
        self._build = build
        self._seen: tuple[Catalog, ...] = ()
        self._catalog: Catalog | None = None

    @property
    def changes(self) -> int:
        return sum(source.changes for source in self._sources)

    def snapshot(self) -> Catalog:
        now = tuple(source.snapshot() for source in self._sources)
        if self._catalog is None or any(a is not b for a, b in zip(now, self._seen, strict=True)):
            self._seen, self._catalog = now, self._build(now)
        return self._catalog


def prefixed(source: Toolset, prefix: str) -> Toolset:
    """Every name and alias with a prefix: a server's tools cannot meet ours."""
    return _rename(source, lambda name: prefix + name)


def renamed(source: Toolset, names: Mapping[str, str]) -> Toolset:
    """Some tools under other names; those not mentioned keep theirs."""
    return _rename(source, lambda name: names.get(name, name))


def _rename(source: Toolset, new: Callable[[str], str]) -> Toolset:
    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        tools: dict[str, Tool] = {}
        for tool in catalogs[0]:
            name, aliases = identify(tool)
            if new(name) == name and all(new(alias) == alias for alias in aliases):
                tools.setdefault(name, tool)
            else:
                tools.setdefault(new(name), Renamed(tool, new(name), tuple(new(alias) for alias in aliases)))
        return Catalog(tools, [new(name) for name in catalogs[0].revealed])

    return _View((source,), build)


def filtered(source: Toolset, keep: Callable[[ToolSpec], bool]) -> Toolset:
    """Only the tools whose spec the predicate accepts."""

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        kept = {name: tool for name, tool in catalogs[0].tools.items() if keep(tool.spec)}
        return Catalog(kept, catalogs[0].revealed)

    return _View((source,), build)


def combined(*sources: Toolset) -> Toolset:
    """All tools of all sources; where names meet, the first source wins, so a later one cannot shadow it."""

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        tools: dict[str, Tool] = {}
        for catalog in catalogs:
            for name, tool in catalog.tools.items():
                tools.setdefault(name, tool)
        return Catalog(tools, [name for catalog in catalogs for name in catalog.revealed])

    return _View(sources, build)
