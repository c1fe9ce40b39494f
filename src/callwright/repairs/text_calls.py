"""Calls that a model wrote as text: a message that is nothing but calls in a known dialect.

<tool_call>{…}</tool_call>   <tools>…   <function=read>{…}</function>   [TOOL_CALLS][…]   <|channel|>commentary to=…
functools[…]   a fenced or bare JSON object or list, {{…}}, read(path="a.py"), and the markup of markup_calls.py,
each also inside of <vendor:tool_call>
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from callwright.core.json import compact
from callwright.repairs.lenient_json import strip_end, try_read, try_read_object
from callwright.repairs.markup_calls import read_markup_calls, split_matches
from callwright.repairs.names import ARGUMENT_KEYS, NAME_KEYS, SURE_NAME_KEYS, repair_name

_BEGIN = re.compile(
    r"\A\s*(?:<\|(?:im_start|start_header_id|start)\|>)?(?:assistant|<\|assistant\|>)[:\s]*(?:<\|end_header_id\|>)?"
)
THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_END = re.compile(r"(?:\s|<\|(?:im_end|eot_id|eom_id|end|call|return|end_of_text|endoftext)\|>|</s>)+\Z")
_CLOSINGS = re.compile(r"(?:\s*</(?:tool_calls?|tools?|function_calls?)>)+\Z")
_TAGS = r"tool_calls?|toolcall|tool_use|tool_code|tools?|function_calls?|functioncall|action|invoke"
TAGGED = re.compile(rf"\s*<(?P<tag>{_TAGS})>(?P<body>.*?)(?:</(?:{_TAGS})>|\Z)\s*", re.DOTALL)
FUNCTION = re.compile(r"\s*<function=(?P<name>[^>\s]+)>(?P<body>.*?)(?:(?P<end></function>)|\Z)\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>\s*", re.DOTALL)
FENCED = re.compile(r"\s*```(?:json|tool_call|tool_code|tool|python|py)?[ \t]*\n(?P<body>.*?)\n?```\s*", re.DOTALL)
_MISTRAL = re.compile(
    r"\s*\[TOOL_CALLS\]\s*(?P<name>[\w.-]*)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?P<body>.*)\Z", re.DOTALL
)
_TAG_TOKENS = re.compile(
    r"(?:<\|(?:python_tag|tool_call|tool_calls_section_begin|tool_call_start|action_start)\|>(?:<\|plugin\|>)?"
    r"|functools(?=\[))"
)
_TOKENS_FROM_END = re.compile(r"(?:\s*>\|[^|]*\|<)*")
"""Further tokens, in a text that is reversed: a search for their first one from the beginning is quadratic."""
_NAMESPACED = re.compile(r"<(?P<tag>\w+:(?:tool|function)_calls?)>(?P<body>.*?)</(?P=tag)>", re.DOTALL)
HARMONY = re.compile(
    r"(?:<\|start\|>assistant)?\s*(?:<\|channel\|>)?(?:commentary|analysis)\s+to=(?P<name>[\w.:-]+)\s*+"
    r"(?:(?:<\|constrain\|>\s*json|json|code)\s*+)?<\|message\|>(?P<body>.*?)(?:<\|(?:call|end)\|>|\Z)\s*",
    re.DOTALL,
)
_HARMONY_THOUGHT = re.compile(
    r"(?:<\|start\|>assistant\s?)?<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)\s*", re.DOTALL
)
_NAMED = re.compile(r"(?P<name>[\w.:-]+)\s*(?P<body>\{.*\})", re.DOTALL)
_HALF_FENCED = re.compile(r"\A(?:`+|~{3,})(?:json)?\s*(?=[{\[])|(?:(?<!`)`+|(?<!~)~{3,})\Z|\Ajson\s+(?=[{\[])")
_SEVERAL = ("calls", "tool_calls", "function_calls", "actions")
_ONE = ("function", "function_call", "tool_call", "tool_use")
_EXTRAS = frozenset({"type", "id", "call_id", "tool_call_id", "index", "thought", "reasoning", "explanation"})
_CALL_TYPES = ("function", "function_call", "tool_call", "tool_use")
_LINES = re.compile(r"\n+|(?<=\})\s*;\s*(?=\{)")
_OBJECTS = re.compile(r"\n(?=\{)")
_MOST_CALLS = 32
_MOST_CLOSING_CHARS = 200


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
    body = _BEGIN.sub("", strip_end(THINKING.sub("", text), _END)).strip()
    if not body:
        return None
    outer = _NAMESPACED.fullmatch(body)
    body = outer["body"].strip() if outer else body
    calls = _read_body(body, spellings)
    if calls is None and (shorter := _CLOSINGS.sub("", body[-_MOST_CLOSING_CHARS:])) != body[-_MOST_CLOSING_CHARS:]:
        calls = _read_body(body[:-_MOST_CLOSING_CHARS] + shorter, spellings)  # closed, but never opened
    return calls if calls and len(calls) <= _MOST_CALLS else None


def _read_body(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    for read in _READERS:
        calls = read(body, spellings)
        if calls:
            return calls
    return None


def _read_tagged(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    at = 0
    while at < len(body):
        tagged, function = TAGGED.match(body, at), FUNCTION.match(body, at)
        found = tagged or function
        if found is None:
            return None
        inner = _read_function(function) if function else _read_inside(found["body"].strip(), spellings)
        if not inner:
            return None
        calls += inner
        at = found.end()
    return calls


def _read_markup(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    found = read_markup_calls(body, spellings)
    return [TextCall(repair_name(name, spellings) or name, compact(given)) for name, given in found or ()] or None


def _read_inside(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    function = FUNCTION.fullmatch(body)
    if function is not None:
        return _read_function(function)
    fenced = FENCED.fullmatch(body)
    inner = fenced["body"] if fenced else body
    return _read_values(inner, spellings, tagged=True) or read_python(inner, spellings) or _read_named(inner, spellings)


def _read_named(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    """Read `read {"path": …}`."""
    found = _NAMED.fullmatch(body)
    name = None if found is None else repair_name(found["name"], spellings)
    given = None if found is None or name is None else try_read_object(found["body"])
    return [TextCall(name, compact(given))] if name and given is not None else None


def _read_function(found: re.Match[str]) -> list[TextCall] | None:
    """Read `<function=read>` with JSON or with `<parameter=path>` inside."""
    body = found["body"].strip()
    if not body:
        return [TextCall(found["name"], "{}")] if found["end"] else None
    at, given, repeated = 0, dict[str, str](), False
    while (parameter := _PARAMETER.match(body, at)) is not None:
        repeated = repeated or parameter["key"] in given
        given[parameter["key"]] = parameter["value"]
        at = parameter.end()
    if given:  # without the end of the call, a parameter may be missing
        whole = found["end"] and at == len(body) and not repeated
        return [TextCall(found["name"], compact(given))] if whole else None
    held = try_read_object(body)
    return None if held is None else [TextCall(found["name"], compact(held))]


def _read_harmony(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    for found in split_matches(_HARMONY_THOUGHT.sub("", body), HARMONY) or ():
        given = try_read_object(found["body"].strip() or "{}")
        if given is None:
            return None
        calls.append(TextCall(repair_name(found["name"], spellings) or found["name"], compact(given)))
    return calls


def _read_tokens(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    if body.startswith("[TOOL_CALLS]") and body.count("[TOOL_CALLS]") > 1:
        parts = [_read_tokens(f"[TOOL_CALLS]{part}".strip(), spellings) for part in body.split("[TOOL_CALLS]")[1:]]
        return [call for part in parts if part for call in part] if all(parts) else None
    found = _MISTRAL.fullmatch(body)
    if found is not None and found["name"]:
        given = try_read_object(found["body"])
        return None if given is None else [TextCall(found["name"], compact(given))]
    if found is not None:
        inner = found["body"]
    elif (opening := _TAG_TOKENS.match(body)) is not None:
        inner = _drop_tokens(body[opening.end() :]).strip()
    else:
        return None
    return _read_values(inner, spellings, tagged=True) or read_python(inner, spellings)


def _drop_tokens(text: str) -> str:
    """Remove the tokens at the end, such as `<|im_end|>`."""
    found = _TOKENS_FROM_END.match(text[::-1])
    return text[: len(text) - found.end()] if found else text


def _read_fenced(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    for found in split_matches(body, FENCED) or ():
        inner = found["body"].strip()
        read = _read_bare(inner, spellings) or read_python(inner, spellings)
        if not read:
            return None
        calls += read
    return calls


def _read_bare(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    if body.startswith(("`", "~", "json")) or body.endswith(("`", "~")):
        body = _HALF_FENCED.sub("", body).rstrip()
    return _read_values(body, spellings, tagged=False) if body.startswith(("{", "[", '"{')) else None


def _read_values(body: str, spellings: Mapping[str, str], *, tagged: bool) -> list[TextCall] | None:
    """Read one object, a list of objects, or objects one after the other."""
    value = try_read(body)
    value = try_read(value) if isinstance(value, str) else value
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        ((key, held),) = cast("dict[str, Any]", value).items()
        value = cast("Any", held if key in _SEVERAL and isinstance(held, list) else value)
    if value is None:
        return _read_each(_LINES.split(body), spellings, tagged=tagged) or _read_each(
            _OBJECTS.split(body), spellings, tagged=tagged
        )
    return _to_calls(cast("list[Any]", value if isinstance(value, list) else [value]), spellings, tagged=tagged)


def _read_each(texts: Iterable[str], spellings: Mapping[str, str], *, tagged: bool) -> list[TextCall] | None:
    return _to_calls(
        (try_read(text.rstrip().rstrip(" ;,")) for text in texts if text.strip()), spellings, tagged=tagged
    )


def _to_calls(values: Iterable[Any], spellings: Mapping[str, str], *, tagged: bool) -> list[TextCall] | None:
    calls: list[TextCall] = []
    for value in values:  # one by one: the first that is no call ends the reading of a long list
        call = to_call(value, spellings, tagged=tagged)
        if call is None:
            return None
        calls.append(call)
    return calls or None


def to_call(value: Any, spellings: Mapping[str, str], *, tagged: bool) -> TextCall | None:
    """Return an object as a call; outside of tags only a known tool's, with its arguments named as such."""
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, Any]", value)
    function = next((given[key] for key in _ONE if isinstance(given.get(key), dict)), None)
    if function is not None and given.keys() <= {*_ONE, *_EXTRAS}:
        return to_call(function, spellings, tagged=tagged)
    labels = [key for key in NAME_KEYS if isinstance(given.get(key), str)]
    if not labels:
        return _to_keyed_call(given, spellings)
    known = {key: name for key in labels if (name := repair_name(given[key], spellings)) is not None}
    if len(set(known.values())) > 1 or (not known and not tagged):
        return None
    label = next(iter(known), labels[0])
    name = known.get(label) or str(given[label])
    holders = [key for key in ARGUMENT_KEYS if key in given]
    if not holders and not tagged and label not in SURE_NAME_KEYS:
        return None
    beside = {key: part for key, part in given.items() if key not in (label, *holders)}
    written = join_arguments([given[key] for key in holders], beside)
    return None if written is None else TextCall(name, written)


def join_arguments(holders: list[Any], beside: Mapping[str, Any]) -> str | None:
    """Return the arguments of a call as JSON text: what its holder has and the fields beside; None for two readings.

    Args:
        holders: The values under `arguments` and its like; one that is a text is read later, with the same repairs.
        beside: The other keys of the call but its name. Marks of a call among them are left out.
    """
    held = [value for value in holders if value not in (None, {}, "")]
    if len(held) > 1:
        return None
    if not held:
        marked = beside.get("type") in _CALL_TYPES
        return compact({key: part for key, part in beside.items() if not (marked and key in ("type", "id"))})
    only: Any = held[0]
    fields = {key: part for key, part in beside.items() if key not in _EXTRAS}
    if not fields:
        return only if isinstance(only, str) else compact(only)
    given = cast("dict[str, Any]", only if isinstance(only, dict) else fields)  # beside a text or a list: two readings
    return None if fields.keys() & given.keys() else compact({**given, **fields})


def _to_keyed_call(given: Mapping[str, Any], spellings: Mapping[str, str]) -> TextCall | None:
    """Read `{"read": {"path": …}}`."""
    if len(given) != 1:
        return None
    (key, value) = next(iter(given.items()))
    known = repair_name(key, spellings)
    return TextCall(known, compact(cast("Any", value))) if known and isinstance(value, dict) else None


def read_python(body: str, spellings: Mapping[str, str]) -> list[TextCall] | None:
    """Read `read(path="a.py")` or a list of such calls, with literal keyword arguments."""
    if not re.match(r"\[?\s*[\w.-]+\(", body):
        return None
    try:
        lines = ast.parse(body).body
        nodes = [line.value for line in lines if isinstance(line, ast.Expr)]
        if len(nodes) != len(lines):
            return None
        if _has_unescaped_quote(body):
            return None
        nodes = nodes[0].elts if len(nodes) == 1 and isinstance(nodes[0], ast.List) else nodes
        calls = [_to_python_call(node, spellings) for node in nodes]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, tokenize.TokenError):
        # no literals, or none that JSON has
        return None
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def _has_unescaped_quote(body: str) -> bool:
    """Tell whether a quote may have been meant inside a string: in `"a "" b"` and before `"a "# b"`."""
    before = None
    for token in tokenize.generate_tokens(io.StringIO(body).readline):
        if token.type == tokenize.COMMENT and re.search("[\"']", token.string):
            return True
        if token.type == before == tokenize.STRING:
            return True
        before = before if token.type in (tokenize.NL, tokenize.COMMENT) else token.type
    return False


def _to_python_call(node: ast.expr, spellings: Mapping[str, str]) -> TextCall | None:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and len(node.args) == 1 and not node.keywords:
        node = node.args[0]  # print(read(path="a.py")), as models write that are trained on notebooks
    if not isinstance(node, ast.Call) or node.args:
        return None
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == "call":  # read.call(path="a.py"), as Llama 3 writes
        called = called.value
    names = [keyword.arg for keyword in node.keywords]
    name = repair_name(ast.unparse(called), spellings)
    if name is None or None in names or len(set(names)) != len(names):
        return None
    given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    return TextCall(name, compact(given))


_READERS = (
    _read_markup,
    _read_tagged,
    _read_harmony,
    _read_tokens,
    _read_fenced,
    _read_bare,
    _read_named,
    read_python,
)
