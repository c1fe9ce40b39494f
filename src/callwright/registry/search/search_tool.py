"""The `tool_search` tool, with which a model finds tools it was not shown."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from callwright.core.calls import SEARCH_ALIASES, SEARCH_NAME
from callwright.core.content import Output
from callwright.core.errors import ToolFailed
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.registry.catalog import Catalog
from callwright.registry.search.index import Hit
from callwright.registry.visibility import reveal_to
from callwright.tool.base import State, ToolContext, identify
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe

_SELECT = "select:"
_MAX_TOOLS = 25
_LINE_CHARS = 200
_MAX_PARAMETERS = 12
_MAX_GROUPS = 20


class Searchable(Protocol):
    """What `tool_search` searches: the tools of each session, and an index of them."""

    def snapshot_for(self, state: State) -> Catalog:
        """Return the tools of a session."""
        ...

    def find(self, query: str, count: int) -> list[Hit]:
        """Return the tools that match a request best, shown or not."""
        ...


class ToolSearchArguments(Arguments):
    """What `tool_search` takes."""

    query: str
    """What the tool should do, in a few words; or select:name,other_name for tools whose names are known."""
    limit: int = 5
    """How many tools to reveal at most."""


class ToolSearch(TypedTool[ToolSearchArguments]):
    """Finds deferred tools by what they do and reveals them to the session that searched."""

    spec = describe(
        SEARCH_NAME,
        "Find more tools. Many tools are not listed here; search for them by what they do before concluding that"
        " something cannot be done. The tools found are added to your list and stay there.",
        annotations=Annotations(Effect.READ, idempotent=True),
        aliases=SEARCH_ALIASES,
        search_hint="find discover more tools capabilities",
    )

    def __init__(self, tools: Searchable) -> None:
        self._tools = tools

    async def run(self, arguments: ToolSearchArguments, context: ToolContext) -> Output:
        """Reveal the tools that match and list them, one line per tool."""
        query, count = arguments.query.strip(), min(max(arguments.limit, 1), _MAX_TOOLS)
        catalog = self._tools.snapshot_for(context.state)
        if query[: len(_SELECT)].lower() == _SELECT:
            found, unknown = _select(catalog, query[len(_SELECT) :])
        else:
            found, unknown = await self._search(catalog, query, count), []
        if not found:
            raise ToolFailed(_explain_no_match(query, unknown, catalog))
        known = {spec.name for spec in catalog.definitions}
        fresh = [spec for spec in found if spec.name not in known]
        reveal_to(context.state, *(spec.name for spec in fresh))
        return _format_result(catalog, fresh, [spec for spec in found if spec.name in known], unknown)

    async def _search(self, catalog: Catalog, query: str, count: int) -> list[ToolSpec]:
        """Return the best deferred tools, and the tools the model has already that rank among them."""
        known = {spec.name for spec in catalog.definitions}
        # in a thread: the first search indexes every tool, and a semantic one runs a model
        hits = await asyncio.to_thread(self._tools.find, query, count + len(known))
        there = [hit.name for hit in hits if hit.name in catalog.tools and hit.name != SEARCH_NAME]
        fresh = [name for name in there if name not in known][:count]
        kept = {*fresh, *(name for name in there[:count] if name in known)}
        return [catalog.tools[name].spec for name in there if name in kept]


def _select(catalog: Catalog, names: str) -> tuple[list[ToolSpec], list[str]]:
    found: dict[str, ToolSpec] = {}
    unknown: list[str] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        tool = catalog.get(name)
        if tool is None:
            unknown.append(name)
        else:
            found[identify(tool)[0]] = tool.spec
    return list(found.values())[:_MAX_TOOLS], unknown


def _explain_no_match(query: str, unknown: Sequence[str], catalog: Catalog) -> str:
    if unknown:
        return _explain_unknown(unknown, catalog)
    groups = sorted({spec.group for spec in catalog.deferred if spec.group})[:_MAX_GROUPS]
    about = f"; there are tools of these groups: {', '.join(groups)}" if groups else ""
    return f"no tool matches {query[:_LINE_CHARS]!r}; describe in other words what it should do{about}"


def _explain_unknown(names: Sequence[str], catalog: Catalog) -> str:
    described = [f"{name[:_LINE_CHARS]}{_suggest(catalog, name)}" for name in names[:_MAX_TOOLS]]
    return f"there is no tool named {', '.join(described)}"


def _suggest(catalog: Catalog, name: str) -> str:
    near = catalog.nearest(name)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _format_result(
    catalog: Catalog, fresh: Sequence[ToolSpec], known: Sequence[ToolSpec], unknown: Sequence[str]
) -> Output:
    lines: list[str] = []
    if fresh:
        lines += ["these tools can be called from now on:", *(_format_line(spec, catalog) for spec in fresh)]
    if known:
        lines += ["you have these tools already:", *(_format_line(spec, catalog) for spec in known)]
    if unknown:
        lines.append(_explain_unknown(unknown, catalog))
    found = {"revealed": [spec.name for spec in fresh], "known": [spec.name for spec in known]}
    return Output("\n".join(lines), {**found, "unknown": list(unknown)})


def _format_line(spec: ToolSpec, catalog: Catalog) -> str:
    """Format one line per tool: a line break in a foreign description could fake another tool."""
    about = " ".join(spec.description.split())
    if len(about) > _LINE_CHARS:
        about = f"{about[:_LINE_CHARS].rstrip()}…"
    return f"- {catalog.wire_names[spec.name]}({_format_parameters(spec)}): {about}"


def _format_parameters(spec: ToolSpec) -> str:
    properties, required = spec.input_schema.get("properties"), spec.input_schema.get("required")
    if not isinstance(properties, dict):
        return ""
    needed = set(required) if isinstance(required, list) else set[str]()
    named = [name if name in needed else f"{name}?" for name in sorted(properties, key=lambda name: name not in needed)]
    cut = [*named[:_MAX_PARAMETERS], "…"] if len(named) > _MAX_PARAMETERS else named
    return " ".join(", ".join(cut).split())[:_LINE_CHARS]
