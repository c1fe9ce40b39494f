"""Tool names with the marks of chat templates and vendors' APIs around them, and the keys of calls written as JSON."""

import re
from collections.abc import Mapping

SURE_NAME_KEYS = ("tool", "tool_name", "function", "function_name")
"""Keys under which a call has its tool, and an object of another kind hardly anything."""
NAME_KEYS = ("name", *SURE_NAME_KEYS, "action", "recipient_name")
SURE_ARGUMENT_KEYS = ("arguments", "parameters")
ARGUMENT_KEYS = (*SURE_ARGUMENT_KEYS, "args", "params", "input", "kwargs", "tool_input", "action_input")

_BEGINNING = re.compile(r"\A(?:<\|[^|]*\|>)+")
_TOKEN = re.compile(r"<\|.*", re.DOTALL)
_PREFIX = re.compile(
    r"\A(?:functions?|tools?|default_api|multi_tool_use|builtin|repo_browser|tool_call)(?:[.:/]|__)|\Ato=",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\s*(?:[:#]\d+|\((?:\{\})?\)|\[\d+\])\Z")
_MOST_CHARS = 256
_SEPARATORS = re.compile(r"[\s_.-]+")
_REPEATED = re.compile(r"(?P<name>.+?)(?P=name)+")
_QUOTED = " \t\r\n\0\u00a0\u200b\ufeff\"'`“”‘’<>[]{},;:.!/$@#|*"


def clean_name(name: str) -> str:
    """Return a name without white space, quotes, `functions.`, `:0`, `()` and `<|…|>`."""
    before = None
    name = name if len(name) <= _MOST_CHARS else ""  # no name of a tool; marks are taken off one by one
    while name != before:
        before = name
        name = _TOKEN.sub("", _BEGINNING.sub("", name)).strip(_QUOTED)
        name = _SUFFIX.sub("", _PREFIX.sub("", name))
    return name


def repair_name(name: str, spellings: Mapping[str, str]) -> str | None:
    """Return the tool that a name means but for marks, letter case and separators; None unless there is exactly one.

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
    folded = fold_name(cleaned)
    meant = {tool for spelling, tool in spellings.items() if fold_name(spelling) == folded}
    return meant.pop() if len(meant) == 1 else None


def fold_name(name: str) -> str:
    """Return a name without letter case and separators: `readFile`, `read-file` and `read_file` are one."""
    return _SEPARATORS.sub("", name.casefold())
