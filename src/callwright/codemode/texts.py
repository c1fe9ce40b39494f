"""What models and users read of a program: its result, the outputs of its calls, the line it waits at."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from callwright.codemode.engine import Finished
from callwright.codemode.sizes import MAX_CHARS, measure
from callwright.core.calls import Completed, Failed
from callwright.core.content import Output, Part, Text, text_of_file
from callwright.core.errors import join_first, shorten
from callwright.core.json import compact
from callwright.registry.catalog import SEARCH_NAME, Catalog

_encode_result = json.JSONEncoder(ensure_ascii=False).encode
_BY_THE_USER = "by the user"
"""How the note about an edit ends that the model is told about; what hooks change is theirs to tell."""
_SHOWN_LINES = 25
"""How many lines around a call the user is shown, on each side."""
_SHOWN_CHARS = 300
_MAX_LISTED = 20
"""How many functions a model is told about that used a name which does not exist."""


def write_parts(output: Output) -> str:
    """Return an output as the text that a program gets; what is not text is named, so that it is not missing."""
    if isinstance(output.content, str):
        return output.content
    return "\n".join(map(_write_part, output.content))


def _write_part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    text = text_of_file(part)
    return f"[{part.media_type}, {len(part.data)} bytes: programs get texts only]" if text is None else text


def describe_changes(outcome: Completed | Failed) -> str:
    """Return what the model is told about a call that was repaired, or edited by the user; empty for any other."""
    told = [repair.note for repair in outcome.repairs if repair.kind != "edited" or repair.note.endswith(_BY_THE_USER)]
    if not told:
        return ""
    ran = f", it ran with {compact(outcome.call.arguments)}" if told[-1].endswith(_BY_THE_USER) else ""
    return f"({outcome.call.name}(): {'; '.join(told)}{ran}.)"


def describe_missing(name: str, functions: Mapping[str, str], catalog: Catalog) -> str:
    """Return what a model is told about a name in its program that means nothing there.

    Args:
        name: The name.
        functions: The tools' names by the names of their functions, those of withheld tools included.
        catalog: The tools.
    """
    names = {tool: function for function, tool in functions.items() if tool in catalog.tools}
    near = [names[tool] for tool in catalog.nearest(name) if tool in names]
    listed = [names[spec.name] for spec in catalog.definitions if spec.name in names]
    if near:
        hint = f"; did you mean the function {' or '.join(near)}?"
    elif listed:
        hint = f"; the functions are {join_first(listed, _MAX_LISTED)}"
    else:
        hint = "; there are no functions"
    search = f"; `await {names[SEARCH_NAME]}(query=…)` finds others" if SEARCH_NAME in names else ""
    return f"name {name!r} is not defined{hint}{search}"


def mark_line(lines: Sequence[str], number: int) -> str:
    """Return the lines of a program around the one with this number, which is marked."""
    first = max(number - _SHOWN_LINES, 1)
    last = min(max(number, 1) + _SHOWN_LINES, len(lines))
    width = len(str(last))
    shown = [
        f"{'>' if index == number else ' '} {index:{width}} {_clip_line(lines[index - 1])}"
        for index in range(first, last + 1)
    ]
    above = [f"  … {first - 1} lines above"] if first > 1 else []
    below = [f"  … {len(lines) - last} lines below"] if last < len(lines) else []
    return "\n".join([*above, *shown, *below])


def _clip_line(line: str) -> str:
    return shorten(line.removesuffix("\r"), _SHOWN_CHARS)


def describe_result(printed: str, finished: Finished) -> str:
    """Return what a program printed, and the value of its last expression."""
    value = finished.value
    if value is None:
        return printed or "(the program printed and returned nothing)"
    for write in (_encode_result, repr) if measure(value) <= MAX_CHARS else ():
        with suppress(TypeError, ValueError, RecursionError):
            return f"{printed}{write(value)}"
    return f"{printed}[the value of the last expression is too deep or too long to be shown]"
