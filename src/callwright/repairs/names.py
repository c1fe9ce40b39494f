"""Tool names with the marks of chat templates and of other vendors' APIs around them."""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"<\|.*", re.DOTALL)
_PREFIX = re.compile(r"\A(?:functions?|tools?|default_api|multi_tool_use|builtin|repo_browser|tool_call)[.:/]|\Ato=")
_SUFFIX = re.compile(r"(?::\d+|\(\)|\[\d+\])\Z")
_MOST_CHARS = 256
_REPEATED = re.compile(r"(?P<name>.+?)(?P=name)+")
_QUOTED = " \t\r\n\"'`“”‘’<>[]{},;:"


def clean_name(name: str) -> str:
    """Return a name without white space, quotes, `functions.`, `:0`, `()` and `<|…|>`."""
    before = None
    name = name if len(name) <= _MOST_CHARS else ""  # no name of a tool; marks are taken off one by one
    while name != before:
        before = name
        name = _TOKEN.sub("", name).strip(_QUOTED)
        name = _SUFFIX.sub("", _PREFIX.sub("", name))
    return name


def repair_name(name: str, spellings: Mapping[str, str]) -> str | None:
    """Return the tool that a name means but for marks, letter case and hyphens; None unless there is exactly one.

    Args:
        name: The name the model wrote.
        spellings: Every name and alias that can be called, with the name of its tool.
    """
    cleaned = clean_name(name)
    if not cleaned:
        return None
    if cleaned in spellings:
        return spellings[cleaned]
    repeated = _REPEATED.fullmatch(cleaned)  # a server that joined the pieces of a stream twice
    if repeated and repeated["name"] in spellings:
        return spellings[repeated["name"]]
    folded = _fold(cleaned)
    meant = {tool for spelling, tool in spellings.items() if _fold(spelling) == folded}
    return meant.pop() if len(meant) == 1 else None


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")
