"""`callwright stats`: prints the tool calls, tokens and costs of the sessions of this project."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from callwright.app.costs import CopiedRecords, Cost, cost_of_records, price_lookup
from callwright.app.locations import Locations
from callwright.cli.parsing import Parser, positive_int
from callwright.cli.render.text import cut, print_json, print_notice, print_text, visible_line
from callwright.core.messages import ToolMessage, Usage
from callwright.sessions import SqliteStore
from callwright.sessions.base import read_readable
from callwright.sessions.records import Said, sum_usage
from callwright.stats import Stats

_DESCRIPTION = """\
Prints the tokens and costs (where prices are known) of the sessions of this project, and for each tool the number of
calls and failures and their duration (median p50 and 95th percentile p95)."""


@dataclass(slots=True)
class _Figures:
    sessions: int = 0
    usage: Usage = Usage()
    cost: Cost = field(default_factory=Cost)
    tools: Stats = field(default_factory=Stats)


def run(arguments: list[str]) -> int:
    """Sum up the records and print the statistics."""
    parser = Parser("callwright stats", description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--limit",
        type=positive_int,
        default=1000,
        metavar="N",
        help="number of most recent sessions to read; default: 1000",
    )
    options = parser.parse_args(arguments)
    locations = Locations.of()
    figures = asyncio.run(_figures(locations, options.limit)) if locations.sessions.exists() else _Figures()
    if options.json:
        print_json(_fields(figures), indent=2)
    else:
        print_text(_table(figures))
    return 0


async def _figures(locations: Locations, limit: int) -> _Figures:
    figures = _Figures()
    prices_of = price_lookup(locations)
    async with SqliteStore(locations.sessions) as store:
        copied = CopiedRecords()
        for entry in sorted(await store.list(limit=limit), key=lambda each: each.created_at):
            stored = await read_readable(store, entry.session_id, report=print_notice)
            records = [each.record for each in copied.leave_out(entry, stored)]
            figures.sessions += 1
            figures.usage += sum_usage(records)
            figures.cost += cost_of_records(records, prices_of)
            for record in records:
                if isinstance(record, Said) and isinstance(record.message, ToolMessage):
                    for outcome in record.message.outcomes:
                        figures.tools.record(outcome.call.name, outcome)
    return figures


def _fields(figures: _Figures) -> dict[str, Any]:
    usage = figures.usage
    tokens = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    cost = {"cost_usd": round(figures.cost.usd, 6), "unpriced_tokens": figures.cost.unpriced_tokens}
    return {"sessions": figures.sessions, "tokens": tokens, **cost, "tools": figures.tools.to_json()}


def _table(figures: _Figures) -> str:
    if not figures.sessions:
        return "No sessions in this project. Run callwright to start one."
    usage, plural = figures.usage, "" if figures.sessions == 1 else "s"
    lines = [
        f"{figures.sessions} session{plural}, {usage.input_tokens} tokens in, {usage.output_tokens} out,"
        f" {usage.cache_read_tokens} from the cache; {figures.cost}",
        f"{'tool':<24} {'calls':>6} {'failed':>6} {'p50 s':>8} {'p95 s':>8} {'tokens out':>10}",
    ]
    for tool in figures.tools:
        failed = tool.calls - tool.outcomes.get("completed", 0)
        name = cut(visible_line(tool.name), 40)
        lines.append(
            f"{name:<24} {tool.calls:>6} {failed:>6} {tool.seconds_p50:>8.3f} {tool.seconds_p95:>8.3f}"
            f" {tool.tokens_out:>10}"
        )
    repaired = {kind for tool in figures.tools for kind in tool.repairs}
    if repaired:
        counts = {kind: sum(tool.repairs.get(kind, 0) for tool in figures.tools) for kind in sorted(repaired)}
        lines.append(f"repaired calls: {', '.join(f'{visible_line(kind)} {count}' for kind, count in counts.items())}")
    return "\n".join(lines)
