"""Records what a line puts into its variables, by assignments and by builtins that set them."""

import re
from collections import deque
from collections.abc import Callable, Sequence

from callwright.shell.filling import PARAMETERS, fill_own, is_fillable, may_combine, names_variable, read_number
from callwright.shell.findings import Findings, FoundCommand
from callwright.shell.words import is_name, read_ansi_c

_MAX_INDEX = 100
_MAX_LINES = 100
_ASSIGNMENT = re.compile(r"\w*(?:\[([^]]*)\])?(\+?)=(.*)", re.DOTALL)
_MARKS = re.compile(r"[\"'\\()]")
_QUOTES = re.compile(r'\\?"')
_KEY = re.compile(r"(?:\A|(?<=\s))\[[^]\s]*\]=")

_Value = tuple[str, ...]


def record_assignment(name: str, value: str | None, source: str, findings: Findings) -> None:
    """Record what the line puts into a variable: `x=a`, `x=(a b)`, and what it adds to one, `x+=a`, `x[1]=a`.

    Args:
        name: The variable.
        value: The text; None if it is not literal.
        source: The assignment as it is written; empty if the variable is set in another way.
        findings: What the line sets before.
    """
    form = _ASSIGNMENT.match(source)
    if form is None:
        findings.add_value(name, value)
        return
    index, appends, right = form[1], bool(form[2]), form[3]
    listed = right[:1] == "("
    elements = tuple(_KEY.sub("", _MARKS.sub("", right)).split()) if listed else ()
    parts = elements if listed else (_QUOTES.sub("", right) if value is None else value,)
    before = findings.joined.get(name, [])
    findings.add_value(name, *(elements or (value,)))
    if appends or index is not None:
        _set_joined(name, parts, before, findings, _join(index, appends, listed))
    elif value is None:
        _set_joined(name, parts, before, findings)


def _join(index: str | None, appends: bool, listed: bool) -> Callable[[_Value, _Value], _Value]:
    place = read_number(index or "0")

    def join(old: _Value, added: _Value) -> _Value:
        if listed:
            return (*old, *added)
        if place is None or place >= _MAX_INDEX:
            return (*old, *added)  # an associative array, or one whose elements are counted by a variable
        elements = [*old, *[""] * (place + 1 - len(old))]
        elements[place] = elements[place] * appends + "".join(added)
        return tuple(elements)

    return join


def _set_joined(
    name: str,
    parts: _Value,
    before: Sequence[_Value],
    findings: Findings,
    join: Callable[[_Value, _Value], _Value] | None = None,
) -> None:
    """Record the values that arise from those which the variable may have held before: from each of them one.

    Without a function that joins them, the parts hold their own variable, as in `x="$x y"`, or replace its value.
    """
    if not all(map(is_fillable, parts)):
        return
    own = join is not None or any(names_variable(text, name) for text in parts)
    found: list[_Value] = []
    for old in before or [()] if own else ():
        added = tuple([fill_own(text, name, old, lambda text: may_combine(len(text), findings)) for text in parts])
        found.append(join(old, added) if join else added)
        if not may_combine(sum(map(len, found[-1])), findings):
            findings.lost.add(name)
            return
    findings.set_joined(name, found or (parts, *before))


def record_builtin(name: str, found: FoundCommand, findings: Findings) -> None:
    """Record what a builtin of `SETTERS` puts into variables.

    Args:
        name: The plain name of the builtin.
        found: The call.
        findings: What the line sets before.
    """
    stdin_texts = found.redirects.stdin_texts or found.context.stdin_texts
    SETTERS[name]([word.text for word in found.words[1:]], stdin_texts, findings)


def _record_printf(texts: Sequence[str], _: Sequence[str], findings: Findings) -> None:
    if not texts or texts[0][:2] != "-v":
        return
    variable, *operands = [*filter(None, [texts[0][2:]]), *texts[1:], "", ""]
    layout, *values = operands[1:] if operands[0] == "--" else operands
    name, subscript = variable.partition("[")[::2]
    source = f"{name}[{subscript}=" if subscript else ""
    record_assignment(name, " ".join(values).strip() if "%" in layout else layout, source, findings)
    record_assignment(name, _format(layout, values[:-1]), source, findings)


_DIRECTIVE = re.compile(r"%(?:(%)|-?\d*(?:\.([0-9]{1,9}))?([sbqdic])|.|\Z)", re.DOTALL)


def _format(layout: str, values: Sequence[str]) -> str | None:
    """Return the text that printf makes; None if it is not known."""
    layout, pending, made = read_ansi_c(layout).text, deque(values), ""
    known = True

    def fill(directive: re.Match[str]) -> str:
        nonlocal known
        if directive[1]:
            return "%"
        known = known and directive[3] is not None
        value = pending.popleft() if pending else ""
        value = read_ansi_c(value).text if directive[3] == "b" else value
        return value[: int(directive[2])] if directive[2] else value

    while True:
        left = len(pending)
        made += _DIRECTIVE.sub(fill, layout)
        if not pending or len(pending) == left:
            return made if known else None


def _record_read(texts: Sequence[str], stdin_texts: Sequence[str], findings: Findings) -> None:
    if not stdin_texts:
        return
    names = [text for text in texts if is_name(text)] or ["REPLY"]
    lines = stdin_texts[-1].strip().splitlines()
    if len(lines) > _MAX_LINES:
        findings.lost.update(names)
    for line in reversed(lines[:_MAX_LINES]):  # a loop reads one after the other
        for name, value in zip(names, line.split(None, len(names) - 1), strict=False):
            findings.add_value(name, value)


def _record_lines(texts: Sequence[str], stdin_texts: Sequence[str], findings: Findings) -> None:
    if stdin_texts:
        name = texts[-1] if texts and is_name(texts[-1]) else "MAPFILE"
        findings.add_value(name, *stdin_texts[-1].splitlines())


def _record_parameters(texts: Sequence[str], _: Sequence[str], findings: Findings) -> None:
    """Record the positional parameters that `set` sets; with options alone it keeps them."""
    place = 0
    while place < len(texts) and texts[place][:1] in ("-", "+") and texts[place] not in ("-", "--"):
        place += 2 if texts[place][-1] == "o" else 1
    if place >= len(texts):
        return
    place += texts[place] in ("-", "--")
    set_parameters(texts[place:], findings)


def set_parameters(texts: Sequence[str], findings: Findings) -> None:
    """Record the positional parameters of what follows."""
    parts = tuple([_QUOTES.sub("", text) for text in texts])
    before = findings.joined.get(PARAMETERS, [])
    findings.add_value(PARAMETERS, *parts)
    _set_joined(PARAMETERS, parts, before, findings)


def _shift_parameters(texts: Sequence[str], _: Sequence[str], findings: Findings) -> None:
    count = read_number(texts[0]) if texts else 1
    before = findings.joined.get(PARAMETERS, [])
    longest = max(map(len, before), default=0)
    counts = range(longest + 1) if count is None else (count,)  # a variable: any number of them may be gone
    if may_combine(sum(map(len, before)) * len(counts), findings):
        findings.set_joined(PARAMETERS, [value[each:] for value in before for each in counts])
    else:
        findings.lost.add(PARAMETERS)


def _unset(texts: Sequence[str], _: Sequence[str], findings: Findings) -> None:
    for name in filter(is_name, texts):
        findings.set_joined(name, [(), *findings.joined.get(name, ())])


SETTERS: dict[str, Callable[[Sequence[str], Sequence[str], Findings], None]] = {
    "printf": _record_printf,
    "read": _record_read,
    "mapfile": _record_lines,
    "readarray": _record_lines,
    "set": _record_parameters,
    "shift": _shift_parameters,
    "unset": _unset,
}
"""The builtins that set variables to what the line spells out."""
