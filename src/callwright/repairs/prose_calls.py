"""Calls among other text, and attempts at a call that cannot be read: a message with one is no answer.

Nothing that is found here runs. The model is told, and asked to make the call or to answer in words.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from callwright.repairs.lenient_json import NotJson, TwoValues, read_beginning, read_first, try_read
from callwright.repairs.markup_calls import LABELLED, find_markup
from callwright.repairs.names import ARGUMENT_KEYS, NAME_KEYS, SURE_ARGUMENT_KEYS, SURE_NAME_KEYS, repair_name
from callwright.repairs.text_calls import (
    FENCED,
    FUNCTION,
    HARMONY,
    TAGGED,
    THINKING,
    read_python,
    read_text_calls,
    to_call,
)

_OBJECT = re.compile(r"\{(?=\s*[\"'“]?\w)")
_LINE = re.compile(r"^[ \t>*-]*`?(?P<call>[\w.]+\(.*\))`?[ \t]*$", re.MULTILINE)
_ATTEMPTS = (
    # {"name": "read", "arguments": … with an end missing, or with two readings
    re.compile(
        rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"'](?P<name>[\w.:-]+)[\"']"
        rf"[^{{}}]{{0,80}}[\"'](?:{'|'.join(ARGUMENT_KEYS)})[\"']\s*:"
    ),
    re.compile(r"<(?:function=|[\w:]*invoke\s+name=\"|(?:tool|use_tool|tool_call)\s+name=\")(?P<name>[\w.:-]+)"),
    re.compile(r"<(?:tool_calls?|toolcall|tool_use|tool_code|function_calls?)>\s*(?P<name>[\w.:-]+)\s*[<({\n]"),
    re.compile(r"<(?P<name>[A-Za-z][\w-]*)\s+\w+=[\"'][^<>]*>"),
    re.compile(r"<(?P<name>[A-Za-z][\w-]*)>[^<]{1,2000}</(?P=name)>"),
    re.compile(r"<\|(?:tool_call[\w ]*|python_tag)\|>\s*(?:functions\.)?(?P<name>[\w.:-]+)"),
    re.compile(r"\bto=(?P<name>functions\.[\w.:-]+)"),
    re.compile(r"\[TOOL_CALLS\]\s*(?:\[?\{[\s\S]{0,20}[\"']name[\"']\s*:\s*[\"'])?(?P<name>[\w.:-]+)"),
    re.compile(
        r"^[ \t`*]*(?:Action|Tool|Function)(?: name)?:[ \t`*]*(?P<name>[\w.:-]+)[`*]*\s*"
        r"(?:\[|\n+[ \t`*]*(?:Action Input|Arguments|Parameters|Args|Input)[`*]*:)",
        re.MULTILINE,
    ),
    re.compile(LABELLED),
    re.compile(r"^[ \t`*]*(?:[Cc]all(?:ing)?[ ])?(?P<name>[\w.:-]{1,256}+)[ :]*\{\s*[\"']\w+[\"']\s*:", re.MULTILINE),
)
"""Beginnings of calls, each with the name of a tool: found only if the tool is known."""
_WHOLE = re.compile(r"(?:```\w*\s*)?(?:await\s+|\w+\s*=\s*)?(?:print\()?(?P<name>[\w.]+)\(.*\)\s*(?:```)?", re.DOTALL)
_BLANK = re.compile(r"\s{20,}")
_NAME = re.compile(r"[\w.:-]{1,64}")
_MOST_PARTS = 20
_MOST_CHARS = 100_000


def find_call_in_prose(text: str, spellings: Mapping[str, str]) -> str | None:
    """Return the tool of a call that stands among other text, or that cannot be read; None if there is none.

    Args:
        text: The whole message.
        spellings: Every name and alias that can be called, with the name of its tool.
    """
    body = _BLANK.sub("\n\n", THINKING.sub("", text)[:_MOST_CHARS])  # patterns try each start in a run of blanks
    for part in _find_parts(body, spellings):
        calls = read_text_calls(part, spellings)
        if calls:
            return calls[0].name
    for start in islice(_OBJECT.finditer(body), _MOST_PARTS):
        call = to_call(read_first(body[start.start() :]), spellings, tagged=False)
        if call:
            return call.name
    for line in islice(_LINE.finditer(body), _MOST_PARTS):
        calls = read_python(line["call"], spellings)
        if calls:
            return calls[0].name
    return _find_attempt(body, spellings)


def find_repeated_key(text: str) -> str:
    """Return what is wrong with an object in a text in which one key has two values; empty if there is none."""
    for start in islice(_OBJECT.finditer(text[:_MOST_CHARS]), _MOST_PARTS):
        try:
            read_beginning(text[start.start() :])
        except TwoValues as error:
            return str(error)
        except NotJson:
            continue
    return ""


def find_unknown_call(text: str) -> str | None:
    """Return the name in a message that is nothing but an object with a name and arguments; None for any other.

    Only for messages in which no known tool was found.
    """
    body = THINKING.sub("", text).strip()
    fenced = FENCED.fullmatch(body)
    value = try_read(fenced["body"].strip() if fenced else body)
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, Any]", value)
    label = next((key for key in ("name", *SURE_NAME_KEYS) if isinstance(given.get(key), str)), None)
    holder = next((key for key in SURE_ARGUMENT_KEYS if isinstance(given.get(key), dict)), None)
    if label is None or holder is None or set(given) - {label, holder, "id", "type"}:
        return None
    # a name with spaces is none of a tool, unless nothing else is said: no answer has empty arguments
    return given[label] if _NAME.fullmatch(given[label]) or not given[holder] else None


def _find_parts(body: str, spellings: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a text that may be calls; a bounded number, because each is read on its own."""
    for pattern in (TAGGED, FUNCTION, FENCED, HARMONY):
        yield from (found[0] for found in islice(pattern.finditer(body), _MOST_PARTS))
    yield from find_markup(body, spellings)


def _find_attempt(body: str, spellings: Mapping[str, str]) -> str | None:
    whole = _WHOLE.fullmatch(body.strip())
    found = [whole] if whole else []
    for pattern in _ATTEMPTS:
        found += islice(pattern.finditer(body), _MOST_PARTS)
    return next((name for match in found if (name := repair_name(match["name"], spellings))), None)
