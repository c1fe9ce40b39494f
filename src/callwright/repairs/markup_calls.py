"""Calls in the markup of particular models: each dialect with a tag or token per call and, mostly, per parameter.

<invoke name="read"><parameter name="path">…   also <function name="read">, and with DeepSeek's <｜DSML｜…> around them
<start_function_call>call:read{path:<escape>…<escape>}<end_function_call>    <|tool_call>call:read{…}<tool_call|>
<tool_call>read <arg_key>path</arg_key><arg_value>…          <read><path>…</path></read>
<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{…}     <｜tool▁call▁begin｜>read<｜tool▁sep｜>{…}
<|tool_call_start|>[read(path="…")]<|tool_call_end|>         Action: read  Action Input: {…}   Tool: read Arguments: {…}
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from callwright.repairs.lenient_json import NotJson, read_lenient, try_read_object
from callwright.repairs.names import repair_name

MarkupCall: TypeAlias = tuple[str, dict[str, Any]]
"""The name and the arguments of a call."""

_NAMESPACE = re.compile(r"<(/?)(?:\s*[|｜]+\s*DSML\s*[|｜]+\s*|\w+:(?=invoke\b|parameter\b|function_calls\b))")
_WRAPPER = re.compile(
    r"\A<(?P<tag>function_calls|tool_calls|tool_use|calls)>(?P<body>.*?)(?:</(?P=tag)>)?\Z", re.DOTALL
)
_INVOKE = re.compile(
    r"\s*<(?P<tag>invoke|function)\s+name=\"(?P<name>[^\"]+)\"\s*>(?P<body>.*?)</(?P=tag)>\s*", re.DOTALL
)
_PARAMETER = re.compile(
    r"\s*<parameter\s+name=\"(?P<key>[^\"]+)\"(?:\s+string=\"(?P<string>\w+)\")?\s*>(?P<value>.*?)</parameter>\s*",
    re.DOTALL,
)
_KEYED = re.compile(r"\s*<tool_call>\s*(?P<name>[\w.:-]+)\s*(?P<body><arg_key>.*?)</tool_call>\s*", re.DOTALL)
_PAIR = re.compile(r"\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>\s*", re.DOTALL)
_SECTION = re.compile(r"<[|｜]tool[_▁]calls[_▁](?:section[_▁])?(?:begin|end)[|｜]>")
_TOKENS = re.compile(
    r"\s*<[|｜]tool[_▁]call[_▁]begin[|｜]>\s*(?:function<[|｜]tool[_▁]sep[|｜]>)?(?P<name>[^<\s]+)(?![^<\s])"
    r"(?:\s*<[|｜](?:tool[_▁]sep|tool[_▁]call[_▁]argument[_▁]begin)[|｜]>)?(?P<body>.*?)"
    r"<[|｜]tool[_▁]call[_▁]end[|｜]>\s*",
    re.DOTALL,
)
_GEMMA = re.compile(
    r"\s*<(?:start_function_call|\|tool_call)>\s*call:(?P<name>[\w.:-]+)\s*(?P<body>\{.*?\})\s*"
    r"<(?:end_function_call|tool_call\|)>\s*",
    re.DOTALL,
)
_ELEMENT = re.compile(r"\s*<(?P<name>[A-Za-z][\w-]*)>(?P<body>.*?)</(?P=name)>\s*", re.DOTALL)
LABELLED = (
    r"(?i:\b(?:action|tool|function)(?:[ _](?:name|call|use))?)[*`]{0,3}:[ \t*`]{0,9}(?P<name>[\w.:-]{1,256}+)[*`]{0,3}"
    r"[\s,;]{0,9}[*`]{0,3}(?i:(?:action[ _]input|arguments|parameters|args|params|input)\b)?[*`]{0,3}[:=]?[*`]{0,3}"
    r"\s{0,9}(?:```\w{0,9}\s{0,9})?(?=\{)"
)
"""The beginning of a call whose tool and arguments have labels, on one line or on two: `Tool: read Arguments: {…`.

Its name has an end: in a text of many labels, each would be tried as the name of the one before it.
"""
_ACTION = re.compile(rf"\A(?:Thought:[^\n]*\n+)?[ \t*`]*{LABELLED}(?P<body>.*)\Z", re.DOTALL)
_OPENING = re.compile(
    r"<(?P<tag>[\w:]*function_calls|tool_calls|[\w:]*invoke(?=[\s>])|[A-Za-z][\w-]*(?=>))"
    r"|<\s?(?P<dsml>[|｜]{1,2}\s?DSML)|<[|｜](?P<tokens>tool[_▁]calls?[_▁])"
)
_ENDINGS = {
    "dsml": re.compile(r"</\s?[|｜]{1,2}\s?DSML\s?[|｜]{1,2}\s?(?:tool_calls|calls|tool_use)>"),
    "tokens": re.compile(r"<[|｜]tool[_▁]calls[_▁](?:section[_▁])?end[|｜]>|<[|｜]tool[_▁]call[_▁]end[|｜]>"),
}
_MOST_OPENINGS = 50


def find_markup(text: str, spellings: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a text that may be calls in markup: from an opening to its end, a bounded number of them."""
    known = (found for found in _OPENING.finditer(text) if _may_open_call(found["tag"], spellings))
    for found in islice(known, _MOST_OPENINGS):
        if found["tag"]:
            closing = f"</{found['tag']}>"
            end = text.find(closing, found.end())
            end = end + len(closing) if end >= 0 else end
        else:
            ending = _ENDINGS[str(found.lastgroup)].search(text, found.end())
            end = ending.end() if ending else -1
        if end >= 0:
            yield text[found.start() : end]


def _may_open_call(tag: str | None, spellings: Mapping[str, str]) -> bool:
    return tag is None or tag in spellings or tag.endswith(("function_calls", "tool_calls", "invoke"))


def read_markup_calls(body: str, spellings: Mapping[str, str]) -> list[MarkupCall] | None:
    """Return the calls that a message consists of; None if it is anything else, or contains anything else."""
    text = _NAMESPACE.sub(r"<\1", body)
    wrapped = _WRAPPER.match(text)
    text = wrapped["body"].strip() if wrapped else text
    return (
        _read_each(text, _INVOKE, partial(_read_parameters, _PARAMETER))
        or _read_each(text, _KEYED, partial(_read_parameters, _PAIR))
        or _read_each(_SECTION.sub("", body).strip(), _TOKENS, _read_object)
        or _read_each(body.strip(), _GEMMA, _read_object)
        or _read_elements(text, spellings)
        or _read_action(text, spellings)
    )


def _read_each(
    text: str, call: re.Pattern[str], read_body: Callable[[str], dict[str, Any] | None]
) -> list[MarkupCall] | None:
    calls: list[MarkupCall] = []
    for match in split_matches(text, call) or ():
        given = read_body(match["body"])
        if given is None:
            return None
        calls.append((match["name"], given))
    return calls


def split_matches(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]] | None:
    """Return the matches that a text consists of; None if anything stands between them."""
    found: list[re.Match[str]] = []
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None or match.end() == at:
            return None
        found.append(match)
        at = match.end()
    return found


def _read_parameters(pattern: re.Pattern[str], body: str) -> dict[str, Any] | None:
    """Return the parameters between tags; a name given twice has two readings."""
    if not body.strip():
        return {}
    if body.lstrip().startswith("{"):
        return try_read_object(body)
    found = split_matches(body, pattern)
    if found is None or len({match["key"].strip() for match in found}) != len(found):
        return None
    given: dict[str, Any] = {}
    for match in found:
        value: Any = match["value"].removeprefix("\n").removesuffix("\n")
        if match.groupdict().get("string") == "false":
            try:
                value = read_lenient(value)
            except NotJson:
                return None
        given[match["key"].strip()] = value
    return given


def _read_object(body: str) -> dict[str, Any] | None:
    return try_read_object(body.strip() or "{}")


def _read_elements(text: str, spellings: Mapping[str, str]) -> list[MarkupCall] | None:
    """Read `<read><path>a.py</path></read>`: only the tags of known tools, which are no HTML."""
    found = split_matches(text, _ELEMENT)
    if not found or any(match["name"] not in spellings for match in found):
        return None
    calls: list[MarkupCall] = []
    for match in found:
        fields = split_matches(match["body"], _ELEMENT) if match["body"].strip() else []
        if fields is None or len({field["name"] for field in fields}) != len(fields):
            return None
        given = {field["name"]: field["body"].removeprefix("\n").removesuffix("\n") for field in fields}
        calls.append((match["name"], given))
    return calls


def _read_action(text: str, spellings: Mapping[str, str]) -> list[MarkupCall] | None:
    found = _ACTION.match(text)
    name = None if found is None else repair_name(found["name"], spellings)
    given = None if found is None else try_read_object(found["body"].rstrip().removesuffix("```"))
    return None if name is None or given is None else [(name, given)]
