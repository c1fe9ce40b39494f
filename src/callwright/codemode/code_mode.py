"""`CodeMode`: a toolset that puts tools behind `run_code`, which runs programs that call them."""

from collections.abc import Collection, Iterable
from typing import Any, cast

from callwright.codemode.engine import CodeLimits
from callwright.codemode.program import Program
from callwright.codemode.stubs import name_functions, write_stub
from callwright.core.errors import InvalidArguments, UsageError, check_kind
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, Effect, Limits, ToolSpec
from callwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, require_toolset, session_catalog
from callwright.registry.visibility import DeferrableTool
from callwright.tool.base import State, Tool, ToolContext
from callwright.tool.schema_tool import SchemaTool

NAME = "run_code"
_OUTPUT_CHARS = 30_000
_LIMITS = CodeLimits()
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "A Python program, with `await` before every call."}},
    "required": ["code"],
    "additionalProperties": False,
}
_DESCRIPTION = """\
Runs a short Python program that calls the functions below. Use it for several calls: loops, conditions, filtering, \
`await asyncio.gather(…)` for calls that do not depend on each other. Only what the program prints, and the value of \
its last expression, is shown to you. A call that fails raises an exception with the reason. There are no files, no \
network and no other modules except through these functions; asyncio, json, math, re, datetime and random are there. \
`gather` takes no `return_exceptions`; there is no `create_task`, `async with`, `yield`, `del` or class inheritance. \
The clock stands still while a program runs; `await asyncio.sleep(…)` waits, 60 seconds in all."""
_SEARCH = "More functions exist: `await tool_search(query=…)` describes them, and then they can be called by name."


class CodeMode:
    """A toolset whose tools are called from programs; every call is judged, asked about and recorded by itself.

    Args:
        source: The tools.
        keep: Names of tools that the model can also call directly.
        limits: The limits of one program.

    Raises:
        UsageError: An argument is not of its kind, or `source` has a tool with the name `run_code`.
    """

    def __init__(self, source: Toolset, *, keep: Collection[str] = (), limits: CodeLimits = _LIMITS) -> None:
        check_kind("the limits", limits, CodeLimits, "write limits=CodeLimits(calls=100)")
        self._source = require_toolset(source)
        self._keep = _check_names(keep)
        self._limits = limits
        self._seen: tuple[Catalog, Catalog] | None = None

    @property
    def changes(self) -> int:
        """A counter that grows whenever the tools change."""
        return self._source.changes

    def snapshot(self) -> Catalog:
        """Return the tools; the same object until something changes."""
        return self._wrap(self._source.snapshot())

    def snapshot_for(self, state: State) -> Catalog:
        """Return the tools of a session."""
        return self._wrap(session_catalog(self._source, state))

    def _wrap(self, inner: Catalog) -> Catalog:
        if self._seen is None or self._seen[0] is not inner:
            if NAME in inner.tools:
                raise UsageError(f"there is already a tool named {NAME}; rename it or leave it out")
            tools: dict[str, Tool] = {
                name: tool if name in self._keep else cast("Tool", DeferrableTool(tool, deferred=True))
                for name, tool in inner.tools.items()
            }
            run_code = _make_tool(inner, self._keep, self._limits)
            self._seen = inner, Catalog({NAME: run_code, **tools}, (), inner.withheld)
        return self._seen[1]


def _check_names(keep: object) -> frozenset[str]:
    if isinstance(keep, str):
        raise UsageError(f"expected the names of tools, got {keep!r}; write keep=[{keep!r}]")
    names = list(cast("Iterable[object]", keep)) if isinstance(keep, Iterable) else [keep]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise UsageError(f'expected the names of tools, got {wrong[0]!r}; write keep=["name"]')
    return frozenset(cast("list[str]", names))


class _RunCode(SchemaTool):
    """The tool that runs programs; one in a code fence is refused, so that the repairs take it out."""

    line_fields = ("code",)

    def validate(self, arguments: dict[str, Any]) -> None:
        super().validate(arguments)
        if str(arguments["code"]).lstrip().startswith(("```", "~~~")):
            raise InvalidArguments("code: the program stands in a code fence; send the program alone")


def _make_tool(catalog: Catalog, keep: Collection[str], limits: CodeLimits) -> SchemaTool:
    """Return the tool that runs programs over the tools of a catalog."""
    functions = name_functions(catalog.tools)
    # A tool that is withheld can be called too: the executor refuses the call, and says why.
    called = {**name_functions(catalog.withheld), **functions}
    shown = {spec.name for spec in catalog.definitions} - set(keep)
    stubs = [write_stub(function, catalog.tools[name].spec) for function, name in functions.items() if name in shown]
    parts = [_DESCRIPTION, *([_SEARCH] if SEARCH_NAME in catalog.tools else [])]
    if stubs:
        parts.append("```python\n" + "\n\n".join(stubs) + "\n```")

    async def run(arguments: JsonObject, context: ToolContext) -> str:
        return await Program(str(arguments["code"]), context, catalog, called, limits).run()

    # Repeating it is safe: calls that have ended are on its record. Beside it no call of the same message runs, because
    # what its program will call is not known before.
    annotations = Annotations(Effect.READ, idempotent=True, delegates=True, parallel=False)
    # Without a limit of its own: it would count the time that the user takes to answer.
    tool_limits = Limits(seconds=float("inf"), output_chars=_OUTPUT_CHARS)
    return _RunCode(ToolSpec(NAME, "\n\n".join(parts), _SCHEMA, annotations=annotations, limits=tool_limits), run)
