"""`callwright tools`: lists the tools of the agent in this folder, or searches them."""

import argparse
import asyncio
import shutil
from collections.abc import Sequence
from typing import Any

from callwright.cli.commands.call import app_without_model
from callwright.cli.main import DONE, ERROR
from callwright.cli.options import add_agent_options
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import print_json, print_notice, print_text
from callwright.core.json import thaw
from callwright.core.spec import ToolSpec

_DESCRIPTION = """\
Lists the tools the agent can call in this folder, with the strongest effect of each: read, write or destroy."""
_EPILOG = """\
examples:
  callwright tools
  callwright tools search run a shell command
  callwright tools --json --mcp-config servers.json
"""


def run(arguments: list[str]) -> int:
    """List the tools, or those that a search finds."""
    usage = "callwright tools [search WORDS] [--json] [OPTIONS]"
    parser = Parser("callwright tools", usage=usage, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--json", action="store_true", help="print JSON with schemas and annotations")
    parser.add_argument("words", nargs="*", metavar="search WORDS", help="list only matching tools, best first")
    add_agent_options(parser)
    options = parser.parse_args(arguments)
    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> int:
    async with app_without_model(options) as app:
        # every tool, including deferred ones, except those denied by a rule
        specs = [tool.spec for tool in app.agent.registry.snapshot().tools.values()]
        # `tools list` lists all, as `sessions list` and `skills list` do
        words: list[str] = [] if options.words == ["list"] else options.words
        query = " ".join(words[1:] if words[:1] == ["search"] else words)
        found = _search(specs, query)
        if options.json:
            print_json([_fields(spec) for spec in found], indent=2)
            return DONE
        width = max((len(spec.name) for spec in found), default=0)
        room = max(shutil.get_terminal_size((100, 24)).columns - width - 12, 30)
        for spec in found:
            effect = spec.annotations.effect.name.lower()
            print_text(f"{spec.name:<{width}}  {effect:<7}  {one_line(spec.description.partition(chr(10))[0], room)}")
        if not found:
            print_notice(f"no tool matches {query!r}; callwright tools lists all of them")
        return DONE if found else ERROR


def _search(specs: Sequence[ToolSpec], query: str) -> Sequence[ToolSpec]:
    if not query:
        return sorted(specs, key=lambda spec: spec.name)
    # a plain list does not need the index
    from callwright.registry import ToolIndex

    by_name = {spec.name: spec for spec in specs}
    return [by_name[hit.name] for hit in ToolIndex(specs).search(query, 10)]


def _fields(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": thaw(spec.input_schema),
        "effect": spec.annotations.effect.name.lower(),
        "group": spec.group,
        "aliases": list(spec.aliases),
        "deferred": spec.deferred,
        "origin": spec.origin,
    }
