"""`tool_search`: how a model finds tools it was not shown."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from callwright.core.content import Output
from callwright.core.errors import ToolFailed
from callwright.core.messages import SEARCH_ALIASES, SEARCH_NAME
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.registry.catalog import Catalog
from callwright.registry.search.index import Hit
from callwright.registry.visibility import reveal_to
from callwright.tool.base import State, ToolContext, identify
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe

_SELECT = "select:"
_MOST = 25
_LINE_CHARS = 200
_MOST_PARAMETERS = 12
_MOST_GROUPS = 20


class Searchable(Protocol):
    """What `tool_search` looks through: tools by session, and an index of them."""

    def snapshot_for(self, state: State) -> Catalog:
        """The tools as one session has them."""
        ...

    def find(self, query: str, count: int) -> list[Hit]:
        """The tools that fit a request best, whoever has been shown them."""
        ...


class ToolSearchArguments(Arguments):
    """What `tool_search` takes."""

    query: str
    """What the tool should do, in a few words; or select:name,other_name for tools whose names are known."""
    limit: int = 5
    """How many tools to reveal at most."""


class ToolSearch(TypedTool[ToolSearchArguments]):
    """Finds deferred tools by what they do and shows them to the session that asked."""

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
        """Reveal what fits and say so, one line per tool."""
        query, count = arguments.query.strip(), min(max(arguments.limit, 1), _MOST)
        catalog = self._tools.snapshot_for(context.state)
        if query[: len(_SELECT)].lower() == _SELECT:
            found, unknown = _selected(catalog, query[len(_SELECT) :])
        else:
            found, unknown = await self._searched(catalog, query, count), []
        if not found:
            raise ToolFailed(_nothing(query, unknown, catalog))
        known = {spec.name for spec in catalog.definitions}
        fresh = [spec for spec in found if spec.name not in known]
        reveal_to(context.state, *(spec.name for spec in fresh))
        return _told(catalog, fresh, [spec for spec in found if spec.name in known], unknown)

    async def _searched(self, catalog: Catalog, query: str, count: int) -> list[ToolSpec]:
        """The best deferred tools, and of those the model has, the ones that fit as well."""
        known = {spec.name for spec in catalog.definitions}
        # in a thread: the first search reads every tool, and one by meaning runs a model
        hits = await asyncio.to_thread(self._tools.find, query, count + len(known))
        there = [hit.name for hit in hits if hit.name in catalog.tools and hit.name != SEARCH_NAME]
        fresh = [name for name in there if name not in known][:count]
        kept = {*fresh, *(name for name in there[:count] if name in known)}
        return [catalog.tools[name].spec for name in there if name in kept]


def _selected(catalog: Catalog, names: str) -> tuple[list[ToolSpec], list[str]]:
    found: dict[str, ToolSpec] = {}
    unknown: list[str] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        tool = catalog.get(name)
        if tool is None:
            unknown.append(name)
        else:
            found[identify(tool)[0]] = tool.spec
    return list(found.values())[:_MOST], unknown


def _nothing(query: str, unknown: Sequence[str], catalog: Catalog) -> str:
    if unknown:
        return _unknown(unknown, catalog)
    groups = sorted({spec.group for spec in catalog.deferred if spec.group})[:_MOST_GROUPS]
    about = f"; there are tools of these groups: {', '.join(groups)}" if groups else ""
    return f"no tool fits {query[:_LINE_CHARS]!r}; say in other words what it should do{about}"


def _unknown(names: Sequence[str], catalog: Catalog) -> str:
    said = [f"{name[:_LINE_CHARS]}{_guess(catalog, name)}" for name in names[:_MOST]]
    return f"there is no tool named {', '.join(said)}"


def _guess(catalog: Catalog, name: str) -> str:
    near = catalog.nearest(name)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _told(catalog: Catalog, fresh: Sequence[ToolSpec], known: Sequence[ToolSpec], unknown: Sequence[str]) -> Output:
    lines: list[str] = []
    if fresh:
        lines += ["these tools can be called from now on:", *(_line(spec, catalog) for spec in fresh)]
    if known:
        lines += ["these you have already:", *(_line(spec, catalog) for spec in known)]
    if unknown:
        lines.append(_unknown(unknown, catalog))
    told = {"revealed": [spec.name for spec in fresh], "known": [spec.name for spec in known]}
    return Output("\n".join(lines), {**told, "unknown": list(unknown)})


def _line(spec: ToolSpec, catalog: Catalog) -> str:
    """One line whatever others wrote in their descriptions: a second one could pass for a tool's."""
    about = " ".join(spec.description.split())
    if len(about) > _LINE_CHARS:
        about = f"{about[:_LINE_CHARS].rstrip()}…"
    return f"- {catalog.wire_names[spec.name]}({_parameters(spec)}): {about}"


def _parameters(spec: ToolSpec) -> str:
    properties, required = spec.input_schema.get("properties"), spec.input_schema.get("required")
    if not isinstance(properties, dict):
        return ""
    needed = set(required) if isinstance(required, list) else set[str]()
    named = [name if name in needed else f"{name}?" for name in sorted(properties, key=lambda name: name not in needed)]
    cut = [*named[:_MOST_PARAMETERS], "…"] if len(named) > _MOST_PARAMETERS else named
    return " ".join(", ".join(cut).split())[:_LINE_CHARS]
