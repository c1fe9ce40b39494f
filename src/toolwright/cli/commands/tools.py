"""`toolwright tools`: what the agent can call here, and what would find it."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

from toolwright.cli.commands.call import app_without_model
from toolwright.cli.options import add_common, split_rules
from toolwright.core.json import thaw
from toolwright.core.spec import ToolSpec


def run(arguments: list[str]) -> int:
    """List the tools, or those a search finds."""
    parser = argparse.ArgumentParser("toolwright tools", description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="with schemas and annotations")
    parser.add_argument("words", nargs="*", metavar="search WORDS", help="search what it is to do")
    add_common(parser)
    options = parser.parse_args(arguments)
    options.allow, options.deny = split_rules(options.allow), split_rules(options.deny)
    options.no_session_persistence = True
    asyncio.run(_list(options))
    return 0


async def _list(options: argparse.Namespace) -> None:
    async with app_without_model(options) as app:
        # every tool, deferred ones too, as far as no rule forbids it
        specs = [tool.spec for tool in app.agent.registry.snapshot().tools.values()]
        found = _searched(specs, options.words)
        if options.json:
            print(json.dumps([_fields(spec) for spec in found], indent=2, ensure_ascii=False))
            return
        width = max((len(spec.name) for spec in found), default=0)
        for spec in found:
            effect = spec.annotations.effect.name.lower()
            print(f"{spec.name:<{width}}  {effect:<7}  {spec.description.splitlines()[0][:90]}")


def _searched(specs: Sequence[ToolSpec], words: Sequence[str]) -> Sequence[ToolSpec]:
    query = " ".join(words[1:] if words[:1] == ["search"] else words)
    if not query:
        return sorted(specs, key=lambda spec: spec.name)
    from toolwright.registry import ToolIndex

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
