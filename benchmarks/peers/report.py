"""The figures of all packages as tables: the same text in the terminal and on the documentation page."""

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

Measured = Mapping[str, Any] | str
"""Figures, or the reason why there are none."""
_NONE = "–"
_CHARS = 90


def report(packages: Mapping[str, Measured]) -> str:
    """Return the tables of all figures, and of what could not be measured."""
    figures = {name: found for name, found in packages.items() if not isinstance(found, str)}
    sections = {
        "What was measured": versions(figures),
        "Processor time": costs(figures),
        "The list of 1,000 tools, on a later turn": payloads(figures),
        "Calls of 50 ms in one turn: milliseconds by the clock (and of the processor)": wide_turns(figures),
        "When something is wrong": behaviour(figures),
        "Approvals: a call of `pay` with amount 10 was shown": approvals(figures),
    }
    parts = [machine(), *(f"### {title}\n\n{text}" for title, text in sections.items()), *failures(packages)]
    return "\n\n".join(parts)


def machine() -> str:
    """Describe where the figures come from."""
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        f"{date.today().isoformat()}, {platform.platform()}, {os.cpu_count()} processors, "
        f"Python {platform.python_version()}, load average at the end {load}."
    )


def versions(figures: Mapping[str, Any]) -> str:
    """Return the table of measured functions."""
    rows = [
        [name, f["version"], _code(f["call"]), _code(f["turn"]), f["tuning"] or _NONE] for name, f in figures.items()
    ]
    return table(["package", "version", "one call", "a turn", "tuned, where so marked"], rows)


def costs(figures: Mapping[str, Any]) -> str:
    """Return the table of import, definition and calls, each with its baseline."""
    header = ["package", "`import` ms", "x python", "with the names used, x python", "define, µs per tool", "x floor"]
    header += ["and listed once, x floor", "one call, µs", "x floor", "each further call of a turn, µs", "x floor"]
    rows: list[list[str]] = []
    for name, f in figures.items():
        row = [_number(f, "import_ms", 0), _number(f, "import_ratio"), _number(f, "names_ratio")]
        row += [_number(f, "define_us", 0), _number(f, "define_ratio", 2), _number(f, "first_ratio", 2)]
        row += [
            _number(f, "call_us"),
            _number(f, "call_ratio"),
            _number(f, "further_us", 0),
            _number(f, "further_ratio"),
        ]
        rows.append([name, *row])
        if f.get("bare_ratio"):
            bare = [f"{f['bare_ratio'] * f['floor_us']:.1f}", f"{f['bare_ratio']:.1f}"]
            rows.append([f"{name}, no policy, no deadline", *[""] * 6, *bare, "", ""])
    return table(header, rows)


def payloads(figures: Mapping[str, Any]) -> str:
    """Return the table of the work that is repeated every turn to list tools."""
    rows = [
        [name, what, f"{milliseconds:.2g}" if milliseconds < 1 else f"{milliseconds:.1f}"]
        for name, f in figures.items()
        for what, milliseconds in f.get("payload_ms", {}).items()
    ]
    return table(["package", "what", "ms"], rows)


def wide_turns(figures: Mapping[str, Any]) -> str:
    """Return the table of wide turns, with defaults and tuned."""
    rows: list[list[str]] = []
    for name, f in figures.items():
        rows.append([name, *_widths(f, "")])
        if "tuned_sync_100" in f:
            rows.append([f"{name}, {f['tuning']}", *_widths(f, "tuned_")])
    return table(["package", "100 async", "1,000 async", "100 sync", "1,000 sync"], rows)


def _widths(f: Mapping[str, Any], prefix: str) -> list[str]:
    cells: list[str] = []
    for kind in ("async", "sync"):
        few, many = (f.get(f"{prefix}{kind}_{size}") for size in (100, 1_000))
        cells += [_clocks(few), "serial" if few and not many else _clocks(many)]
    return cells


def _clocks(pair: Sequence[float] | None) -> str:
    return f"{pair[0]:.0f} ({pair[1]:.0f})" if pair else _NONE


def behaviour(figures: Mapping[str, Any]) -> str:
    """Return the table of turns with errors."""
    header = ["package", 'a tool raises `ValueError("kaboom")`', "the tool does not exist", '`limit` is "many"']
    header += ["one of three raises", "most of 200 naps at once"]
    keys = ("raises", "unknown", "wrong", "siblings", "peak")
    return table(header, [[name, *(_short(str(f.get(key, _NONE))) for key in keys)] for name, f in figures.items()])


def approvals(figures: Mapping[str, Any]) -> str:
    """Return the table of approvals, of the packages that have them here."""
    header = ["package", "the saved call changed to 999, then approved", "one approval used twice"]
    keys = ("edited", "twice")
    return table(
        header, [[name, *(_short(str(f[key])) for key in keys)] for name, f in figures.items() if "edited" in f]
    )


def failures(packages: Mapping[str, Measured]) -> list[str]:
    """Return the list of what could not be measured, with reasons."""
    lines = [f"- {name}: {found}" for name, found in packages.items() if isinstance(found, str)]
    for name, found in packages.items():
        if not isinstance(found, str):
            lines += [f"- {name}, {workload}: {_short(reason)}" for workload, reason in found["failed"].items()]
    return ["### Not measured\n\n" + "\n".join(lines)] if lines else []


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])])


def _number(f: Mapping[str, Any], key: str, places: int = 1) -> str:
    return f"{f[key]:.{places}f}" if key in f else _NONE


def _code(text: str) -> str:
    return f"`{text}`" if " " not in text else text


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= _CHARS else flat[: _CHARS - 1] + "…"
