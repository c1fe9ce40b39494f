"""Views of toolsets: prefixed, renamed, filtered and combined. Each follows the changes of its sources."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from callwright.core.errors import UsageError
from callwright.core.json import JsonObject, freeze, hash_text
from callwright.core.spec import ToolSpec, check_name
from callwright.registry.catalog import Catalog, Toolset, require_toolset
from callwright.tool.base import Invocation, Tool, WrapperTool, identify

_MAX_NAME_CHARS = 128


class RenamedTool(WrapperTool):
    """A tool under another name; everything else is the inner tool's."""

    def __init__(self, inner: Tool, name: str, aliases: tuple[str, ...] = ()) -> None:
        self.inner = inner
        self.name = name  # not checked: it may come from a server, and a chosen prefix or name was checked below
        self.aliases = aliases
        self._spec: ToolSpec | None = None

    @property
    def spec(self) -> ToolSpec:
        if self._spec is None:
            self._spec = replace(self.inner.spec, name=self.name, aliases=self.aliases)
        return self._spec

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        return self.inner.bind(arguments)


class SlimTool(RenamedTool):
    """A tool whose definition shows only some of its fields; the others are accepted, and have defaults.

    A field that may be null is shown as required and never null, because small models send null for what they could
    leave out.

    Args:
        inner: The tool.
        fields: The names of the fields to show.
        description: Shown instead of the tool's own, which may speak of other fields.
    """

    def __init__(self, inner: Tool, fields: tuple[str, ...], description: str = "") -> None:
        super().__init__(inner, inner.spec.name, inner.spec.aliases)
        schema = inner.spec.input_schema
        properties = cast("Mapping[str, JsonObject]", schema["properties"])
        shown = {name: _without_null(properties[name]) for name in fields}
        needed = cast("Sequence[str]", schema.get("required", ()))
        required = [name for name in fields if name in needed or shown[name] is not properties[name]]
        slim = freeze({**schema, "properties": shown, "required": required})
        self._spec = replace(inner.spec, input_schema=slim, description=description or inner.spec.description)


def _without_null(field: JsonObject) -> JsonObject:
    """Return the schema of a field without the choice of null; the same object if it has none."""
    choices = cast("Sequence[JsonObject]", field.get("anyOf", ()))
    kept = [choice for choice in choices if choice.get("type") != "null"]
    if len(kept) == len(choices) or len(kept) != 1:
        return field
    return {**{key: value for key, value in field.items() if key not in ("anyOf", "default")}, **kept[0]}


class _View:
    """A toolset computed from others, and computed again only after a source has changed."""

    def __init__(self, sources: tuple[Toolset, ...], build: Callable[[tuple[Catalog, ...]], Catalog]) -> None:
        self._sources = tuple(require_toolset(source, "pass a Registry or another toolset") for source in sources)
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
    """Return a toolset whose names and aliases start with a prefix, so that they clash with no others.

    Args:
        source: The tools.
        prefix: What every name starts with, such as `github.`.

    Raises:
        UsageError: No name may start with this prefix.
    """
    try:
        check_name(f"{prefix}x")
    except UsageError as error:
        raise UsageError(f"the prefix {prefix!r} cannot start the name of a tool: {error}") from None
    return _rename(source, lambda name: prefix + name)


def renamed(source: Toolset, names: Mapping[str, str]) -> Toolset:
    """Return a toolset with some tools renamed.

    Args:
        source: The tools.
        names: New names by old name. A tool that is not mentioned keeps its name, even if another one is given it.

    Raises:
        UsageError: A new name is not allowed, or given to two tools of the source.
    """
    for name in names.values():
        check_name(name)
    if len(set(names.values())) < len(names):
        _check_clashes(names, source.snapshot())
    return _rename(source, lambda name: names.get(name, name))


def _check_clashes(names: Mapping[str, str], catalog: Catalog) -> None:
    """Refuse one new name for two tools that exist: a mapping may also mention former names of a tool."""
    taken: dict[str, str] = {}
    for old, name in names.items():
        first = taken.setdefault(name, old) if old in catalog.tools else old
        if first != old:
            raise UsageError(f"{first!r} and {old!r} would both be renamed to {name!r}; give each its own name")


def _rename(source: Toolset, new: Callable[[str], str]) -> Toolset:
    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        # first the tools that keep their name, so that none of them is displaced
        tools: dict[str, Tool] = {name: tool for name, tool in catalogs[0].tools.items() if new(name) == name}
        for old, tool in catalogs[0].tools.items():
            name, aliases = _fit_length(new(old)), tuple(_fit_length(new(alias)) for alias in identify(tool)[1])
            if (name, aliases) != identify(tool) and tools.get(name, tool) is tool:
                tools[name] = RenamedTool(tool, name, aliases)
        withheld = {_fit_length(new(name)): reason for name, reason in catalogs[0].withheld.items()}
        return Catalog(tools, [_fit_length(new(name)) for name in catalogs[0].revealed], withheld)

    return _View((source,), build)


def _fit_length(name: str) -> str:
    """Cut a name that a prefix has made too long: an error here would make all tools of the source unusable."""
    if len(name) <= _MAX_NAME_CHARS:
        return name
    return f"{name[: _MAX_NAME_CHARS - 8]}_{hash_text(name)[:7]}"


def withheld(source: Toolset, reason: Callable[[ToolSpec], str]) -> Toolset:
    """Return a toolset without some tools, whose calls are denied and not reported as unknown.

    Args:
        source: The tools.
        reason: Called with the spec of each tool; returns why it is withheld, or an empty text.
    """

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        catalog = catalogs[0]
        reasons = {name: reason(tool.spec) for name, tool in catalog.tools.items()}
        denied = {
            known: reasons[name]
            for name, tool in catalog.tools.items()
            if reasons[name]
            for known in (name, catalog.wire_names[name], *identify(tool)[1])
        }
        kept = {name: tool for name, tool in catalog.tools.items() if not reasons[name]}
        return Catalog(kept, catalog.revealed, {**catalog.withheld, **denied})

    return _View((source,), build)


def filtered(source: Toolset, keep: Callable[[ToolSpec], bool]) -> Toolset:
    """Return a toolset of the tools that a predicate accepts.

    Args:
        source: The tools.
        keep: Called with the spec of each tool.
    """

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        kept = {name: tool for name, tool in catalogs[0].tools.items() if keep(tool.spec)}
        return Catalog(kept, catalogs[0].revealed, catalogs[0].withheld)

    return _View((source,), build)


def combined(*sources: Toolset) -> Toolset:
    """Return a toolset of all tools of all sources; the first source wins a clash of names or aliases.

    A tool that it withholds has its names too: a call of it is denied and does not run another tool.
    """

    def build(catalogs: tuple[Catalog, ...]) -> Catalog:
        tools: dict[str, Tool] = {}
        claimed: set[str] = set()
        withheld: dict[str, str] = {}
        for catalog in catalogs:
            fresh = {name: tool for name, tool in catalog.tools.items() if name not in claimed}
            tools |= fresh
            withheld = {**catalog.withheld, **withheld}
            claimed |= fresh.keys() | {alias for tool in fresh.values() for alias in identify(tool)[1]}
            claimed |= catalog.withheld.keys()
        return Catalog(tools, [name for catalog in catalogs for name in catalog.revealed], withheld)

    return _View(sources, build)
