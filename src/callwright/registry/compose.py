"""Toolsets made of toolsets: prefixed, renamed, filtered, combined. Each stays as alive as its sources."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec, check_name
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import Invocation, LazyTool, Tool, identify

_LONGEST_NAME = 128


class Renamed(LazyTool):
    """A tool under another name; everything else is the inner tool's."""

    def __init__(self, inner: Tool, name: str, aliases: tuple[str, ...] = ()) -> None:
        self.inner = inner
        self.name = name  # perhaps somebody else's: what a programmer chose was checked where it was written
        self.aliases = aliases
        self._spec: ToolSpec | None = None

    @property
    def spec(self) -> ToolSpec:
        if self._spec is None:
            self._spec = replace(self.inner.spec, name=self.name, aliases=self.aliases)
        return self._spec

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        return self.inner.bind(arguments)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as while being copied
            raise AttributeError(name)
        return getattr(self.inner, name)


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
    check_name(f"{prefix}x")
    return _rename(source, lambda name: prefix + name)


def renamed(source: Toolset, names: Mapping[str, str]) -> Toolset:
    """Some tools under other names; those not mentioned keep theirs, also against a tool that is given the same."""
    for name in names.values():
        check_name(name)
    return _rename(source, lambda name: names.get(name, name))


def _rename(source: Toolset, new: Callable[[str], str]) -> Toolset:
    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        tools: dict[str, Tool] = {name: tool for name, tool in catalogs[0].tools.items() if new(name) == name}
        for old, tool in catalogs[0].tools.items():
            name, aliases = _fitting(new(old)), tuple(_fitting(new(alias)) for alias in identify(tool)[1])
            if (name, aliases) != identify(tool) and tools.get(name, tool) is tool:
                tools[name] = Renamed(tool, name, aliases)
        return Catalog(tools, [_fitting(new(name)) for name in catalogs[0].revealed])

    return _View((source,), build)


def _fitting(name: str) -> str:
    """A name that a prefix has made too long is cut; one tool's long name must not cost the others their turn."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 8]}_{sha256(name.encode()).hexdigest()[:7]}"


def filtered(source: Toolset, keep: Callable[[ToolSpec], bool]) -> Toolset:
    """Only the tools whose spec the predicate accepts."""

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        kept = {name: tool for name, tool in catalogs[0].tools.items() if keep(tool.spec)}
        return Catalog(kept, catalogs[0].revealed)

    return _View((source,), build)


def combined(*sources: Toolset) -> Toolset:
    """All tools of all sources; where names or aliases meet, the first source wins: a later one cannot shadow it."""

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        tools: dict[str, Tool] = {}
        claimed: set[str] = set()
        for catalog in catalogs:
            fresh = {name: tool for name, tool in catalog.tools.items() if name not in claimed}
            tools |= fresh
            claimed |= fresh.keys() | {alias for tool in fresh.values() for alias in identify(tool)[1]}
        return Catalog(tools, [name for catalog in catalogs for name in catalog.revealed])

    return _View(sources, build)
