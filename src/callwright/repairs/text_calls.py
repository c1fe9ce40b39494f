"""Calls that a model wrote as text: a message that is nothing but calls in a known dialect, and calls among prose.

<tool_call>{…}</tool_call>   <tools>…   <function=read>{…}</function>   [TOOL_CALLS][…]   <|channel|>commentary to=…
a fenced or bare JSON object or list, {{…}}, read(path="a.py"), and the markup of markup_calls.py
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from callwright.core.json import compact
from callwright.repairs.lenient_json import NotJson, read_lenient, strip_end
from callwright.repairs.markup_calls import find_markup, read_markup_calls
from callwright.repairs.names import repair_name

_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_END = re.compile(r"(?:\s|<\|(?:im_end|eot_id|eom_id|end|call|return|end_of_text|endoftext)\|>|</s>)+\Z")
_TAGS = r"tool_calls?|tools?|function_calls?|functioncall|action|invoke"
_TAGGED = re.compile(rf"\s*<(?P<tag>{_TAGS})>\s*(?P<body>.*?)\s*(?:</(?:{_TAGS})>|\Z)\s*", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=(?P<name>[^>\s]+)>\s*(?P<body>.*?)\s*(?:</function>|\Z)\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>\s*", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json|tool_call|tool_code|tool|python|py)?[ \t]*\n(?P<body>.*?)\n?```\s*", re.DOTALL)
_MISTRAL = re.compile(
    r"\s*\[TOOL_CALLS\]\s*(?P<name>[\w.-]*)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?P<body>.*)\Z", re.DOTALL
)
_TAG_TOKENS = re.compile(
    r"\s*<\|(?:python_tag|tool_call|tool_calls_section_begin|tool_call_start)\|>\s*(?P<body>.*?)\s*"
    r"(?:<\|[^|]*\|>\s*)*\Z",
    re.DOTALL,
)
_HARMONY = re.compile(
    r"(?:<\|start\|>assistant)?\s*(?:<\|channel\|>)?(?:commentary|analysis)\s+to=(?P<name>[\w.:-]+)\s*"
    r"(?:<\|constrain\|>\s*json|json|code)?\s*<\|message\|>(?P<body>.*?)(?:<\|(?:call|end)\|>|\Z)\s*",
    re.DOTALL,
)
_HARMONY_THOUGHT = re.compile(
    r"(?:<\|start\|>assistant\s?)?<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)\s*", re.DOTALL
)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_SURE_NAMES = ("tool", "tool_name", "function", "function_name")
_HOLDERS = ("arguments", "parameters", "args", "params", "input", "kwargs", "tool_input", "action_input")
_LINES = re.compile(r"\n+|(?<=\})\s*;\s*(?=\{)")
_MOST_CALLS = 32
_BLANK = re.compile(r"\s{20,}")
_MOST_PARTS = 20
_MOST_PROSE_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call that was written as text."""

    name: str
    arguments: str
    """As JSON text."""


def read_text_calls(text: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    """Return the calls that a message consists of; None if it is anything else, or contains anything else.

    Args:
        text: The whole message.
        spellings: Every name and alias that can be called, with the name of its tool.
    """
    body = strip_end(_THINKING.sub("", text), _END).strip()
    if not body:
        return None
    for read in (_read_markup, _read_tagged, _read_harmony, _read_tokens, _read_fenced, _read_bare, _read_python):
        calls = read(body, spellings)
        if calls:
            return calls if len(calls) <= _MOST_CALLS else None
    return None


def find_call_in_prose(text: str, spellings: Mapping[str, str]) -> str | None:
    """Return the tool of a call that stands among other text; None if there is none."""
    body = _BLANK.sub("\n\n", _THINKING.sub("", text)[:_MOST_PROSE_CHARS])  # patterns try each start in a run of blanks
    for part in _find_parts(body, spellings):
        calls = read_text_calls(part, spellings)
        if calls:
            return calls[0].name
    for start in islice(re.finditer(r"^[ \t]*(?=\{)", body, re.MULTILINE), _MOST_PARTS):
        end = body.find("\n\n", start.end())
        calls = _read_bare(body[start.end() : end if end > 0 else len(body)].strip(), spellings)
        if calls:
            return calls[0].name
    return None


def _find_parts(body: str, spellings: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a text that may be calls; a bounded number, because each is read on its own."""
    for pattern in (_TAGGED, _FUNCTION, _FENCED, _HARMONY):
        yield from (found[0] for found in islice(pattern.finditer(body), _MOST_PARTS))
    yield from find_markup(body, spellings)


def _read_tagged(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    at = 0
    while at < len(body):
        tagged, function = _TAGGED.match(body, at), _FUNCTION.match(body, at)
        found = tagged or function
        if found is None:
            return None
        inner = _read_function(function) if function else _read_inside(found["body"], spellings)
        if not inner:
            return None
        calls += inner
        at = found.end()
    return calls


def _read_markup(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    found = read_markup_calls(body, spellings)
    return [TextCall(repair_name(name, spellings) or name, compact(given)) for name, given in found or ()] or None


def _read_inside(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    function = _FUNCTION.fullmatch(body)
    if function is not None:
        return _read_function(function)
    fenced = _FENCED.fullmatch(body)
    return _read_values(fenced["body"] if fenced else body, spellings, tagged=True)


def _read_function(found: re.Match[str]) -> list[TextCall] | None:
    """Read `<function=read>` with JSON or with `<parameter=path>` inside."""
    body = found["body"]
    if not body:
        return [TextCall(found["name"], "{}")]
    at, given = 0, dict[str, str]()
    while (parameter := _PARAMETER.match(body, at)) is not None:
        given[parameter["key"]] = parameter["value"]
        at = parameter.end()
    if given:
        return [TextCall(found["name"], compact(given))] if at == len(body) else None
    value = _read_json(body)
    return [TextCall(found["name"], compact(cast("Any", value)))] if isinstance(value, dict) else None


def _read_harmony(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    body, calls, at = _HARMONY_THOUGHT.sub("", body), list[TextCall](), 0
    while at < len(body):
        found = _HARMONY.match(body, at)
        value = None if found is None else _read_json(found["body"].strip() or "{}")
        if found is None or not isinstance(value, dict):
            return None
        calls.append(TextCall(repair_name(found["name"], spellings) or found["name"], compact(cast("Any", value))))
        at = found.end()
    return calls


def _read_tokens(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    found = _MISTRAL.fullmatch(body)
    if found is not None and found["name"]:
        value = _read_json(found["body"])
        return [TextCall(found["name"], compact(cast("Any", value)))] if isinstance(value, dict) else None
    found = found or _TAG_TOKENS.fullmatch(body)
    if found is None:
        return None
    return _read_values(found["body"], spellings, tagged=True) or _read_python(found["body"], spellings)


def _read_fenced(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    calls, at = list[TextCall](), 0
    while at < len(body):
        found = _FENCED.match(body, at)
        inner = None if found is None else _read_bare(found["body"].strip(), spellings)
        inner = inner or (None if found is None else _read_python(found["body"].strip(), spellings))
        if found is None or not inner:
            return None
        calls += inner
        at = found.end()
    return calls


def _read_bare(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    if not body.startswith(("{", "[")):
        return None
    return _read_values(body, spellings, tagged=False)


def _read_values(body: str, spellings: Mapping[str, str], *, tagged: bool) -> list[TextCall] | None:
    """Read one object, a list of objects, or objects one after the other."""
    value = _read_json(body)
    if value is None:
        values = (_read_json(line.rstrip(" ;,")) for line in _LINES.split(body) if line.strip())
    else:
        values = iter(cast("list[Any]", value) if isinstance(value, list) else [value])
    calls: list[TextCall] = []
    for each in values:  # one by one: the first that is no call ends the reading of a long list
        call = _to_call(each, spellings, tagged=tagged)
        if call is None:
            return None
        calls.append(call)
    return calls or None


def _to_call(value: Any, spellings: Mapping[str, str], *, tagged: bool) -> TextCall | None:
    """Return an object as a call; outside of tags only a known tool's, with its arguments named as such."""
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, Any]", value)
    function = given.get("function")
    if isinstance(function, dict):
        return _to_call(function, spellings, tagged=tagged)
    label = next((key for key in _NAMES if isinstance(given.get(key), str)), None)
    if label is None:
        return _to_keyed_call(given, spellings)
    name = repair_name(given[label], spellings)
    if name is None and not tagged:
        return None
    holder = next((key for key in _HOLDERS if key in given), None)
    if holder is not None:
        arguments = given[holder]
    elif tagged or label in _SURE_NAMES:
        arguments = {key: part for key, part in given.items() if key not in (label, "type", "id")}
    else:
        return None
    if isinstance(arguments, str):
        return TextCall(name or given[label], arguments or "{}")  # the executor reads it, with the same repairs
    return TextCall(name or given[label], compact({} if arguments is None else arguments))


def _to_keyed_call(given: Mapping[str, Any], spellings: Mapping[str, str]) -> TextCall | None:
    """Read `{"read": {"path": …}}`."""
    if len(given) != 1:
        return None
    (key, value) = next(iter(given.items()))
    known = repair_name(key, spellings)
    return TextCall(known, compact(value)) if known and isinstance(value, dict) else None


def _read_python(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    """Read `read(path="a.py")` or a list of such calls, with literal keyword arguments."""
    if not re.match(r"\[?\s*[\w.-]+\(", body):
        return None
    try:
        tree = ast.parse(body, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        calls = [_to_python_call(node, spellings) for node in nodes]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def _to_python_call(node: ast.expr, spellings: Mapping[str, str]) -> TextCall | None:
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        return None
    name = repair_name(ast.unparse(node.func), spellings)
    if name is None:
        return None
    return TextCall(name, compact(dict(_literals(node))))


def _literals(node: ast.Call) -> Iterator[tuple[str, Any]]:
    for keyword in node.keywords:
        yield str(keyword.arg), ast.literal_eval(keyword.value)


def _read_json(text: str) -> Any:
    try:
        return read_lenient(text)
    except NotJson:
        return None
