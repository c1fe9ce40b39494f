"""Fills variables with the values that the line itself gives them, so that deny rules and guards see what may run.

Nothing is allowed because of what is filled in: the words as they are written are judged too.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from math import prod

from callwright.shell.findings import Findings
from callwright.shell.words import Word, literal_words
from callwright.shell.wrappers import unwrap

_MAX_FILLINGS = 5
_MAX_COMBINATIONS = 256
_MAX_OPERANDS = 32  # combinations of values that decide no program
_MAX_COMBINED_CHARS = 200_000
_COMBINATION_CHARS = 100  # what a combination costs at least: its command is judged
UNCOMBINED = "its variables may hold more texts than can be checked; split it into several lines"
_LIVE = re.compile(r"[$`]")
_VARIABLE = re.compile(
    r"\$(?:(\w+|[@*])|\{(\w+|[@*])(?:\[(\d{1,3}|[@*])\])?"
    r"(?::(\s*\d{1,4}|\s+-\d{1,4})(?::(\d{1,4}))?(?=\}))?(?:(:?[-=+])([^{}`]*))?\})",
    re.ASCII,
)
"""A variable, one or all elements of an array, a part of them, and the text that stands in for it: `${x:-rm}`."""
_PRINTED = re.compile(r"\$\((?:echo|printf) ([^()`$]*)\)|`(?:echo|printf) ([^()`$]*)`")
"""A text that the line has another command print: `$(echo rm)`."""
_MARKS = re.compile(r"[\"'\\()]")
_QUOTES = re.compile(r'\\?"')
PARAMETERS = "@"
"""The name under which the positional parameters are recorded."""

_Choose = Callable[[str], Sequence[str] | None]
_MayFill = Callable[[str], bool]


def fill_variables(words: tuple[Word, ...], findings: Findings) -> Iterator[tuple[Word, ...]]:
    """Yield the words with the line's own variables filled in, with their newest values and with earlier ones.

    Args:
        words: The words of a command.
        findings: What the line sets before.
    """
    seen = {words}
    for age in range(findings.most_values):
        for filled in _fill_words(words, findings, _choose_by_age(findings, age), findings.may_fill):
            if filled not in seen:
                seen.add(filled)
                yield filled
    for choose in _list_combinations(words, findings):
        for filled in _fill_words(words, findings, choose, lambda value: may_combine(len(value), findings)):
            if filled not in seen:
                seen.add(filled)
                yield filled


def _choose_by_age(findings: Findings, age: int) -> _Choose:
    def choose(name: str) -> Sequence[str] | None:
        values = findings.values.get(name, ())
        return values[min(age, len(values) - 1)] if values else None

    return choose


def _list_combinations(words: tuple[Word, ...], findings: Findings) -> Iterator[_Choose]:
    """Yield the choices among the values that the variables of a command may hold: `x=rm; (x=ls); y=/; $x -rf $y`.

    Where there are too many, the line is refused if they decide which program runs.
    """
    if not findings.values or findings.overfilled:
        return
    decides = _decide_program(words)
    values, complete = _list_values(words, findings)
    count = prod(map(len, values.values()))
    most = _MAX_COMBINATIONS if decides else _MAX_OPERANDS
    for chosen in islice(product(*values.values()), most) if count > 1 else ():
        if not may_combine(_COMBINATION_CHARS, findings):
            complete = False
            break
        yield dict(zip(values, chosen, strict=True)).get
    if decides and (count > most or not complete):
        findings.add_danger(UNCOMBINED)


def may_combine(chars: int, findings: Findings) -> bool:
    """Count the characters of a text that is made of values of variables, and return whether there may be more."""
    findings.combined_chars += chars
    return findings.combined_chars <= _MAX_COMBINED_CHARS


def _decide_program(words: tuple[Word, ...]) -> bool:
    """Whether words that are not literal decide which program runs; behind a wrapper they are looked at again."""
    if not words[0].literal:
        return True
    inner = unwrap(words)
    return inner is not None and inner.script is not None and not inner.script.literal


def _list_values(words: Sequence[Word], findings: Findings) -> tuple[dict[str, list[tuple[str, ...]]], bool]:
    """Return what the variables in words, and those in their values, may hold, and whether this is all."""
    values: dict[str, list[tuple[str, ...]]] = {}
    complete = True
    pending = [word.text for word in words if not word.literal]
    while pending and complete:
        text = pending.pop()
        complete = may_combine(len(text), findings)
        for found in _VARIABLE.finditer(text):
            name = _recorded_name(found[1] or found[2])
            pending.extend([found[7]] if found[7] else [])
            if name in findings.values and name not in values:
                values[name] = findings.list_possible(name)
                pending.extend([each for value in values[name] for each in value if "$" in each])
    return values, complete and findings.lost.isdisjoint(values)


def read_number(text: str) -> int | None:
    """Return a number of few digits; None for other texts, also those of digits that Python cannot read."""
    digits = text.lstrip("0") or text[:1]
    return int(digits) if len(digits) < 10 and digits.isascii() and digits.isdigit() else None


def _recorded_name(name: str) -> str:
    return PARAMETERS if name in "@*" or name.isdigit() else name


def _fill_words(
    words: tuple[Word, ...], findings: Findings, choose: _Choose, may_fill: _MayFill
) -> Iterator[tuple[Word, ...]]:
    filled: list[Word] = []
    split: list[Word] = []
    separators = _list_separators(findings)
    for word in words:
        live = not word.literal and _LIVE.search(word.text)
        value = _fill_text(word.text, findings, choose, may_fill) if live else None
        filled.extend([word] if value is None else literal_words(value.split() or [""]))
        if separators:
            parts = None if value is None else value.translate(separators).split()
            split.extend([word] if parts is None else literal_words(parts or [""]))
    yield tuple(filled)
    if separators:
        yield tuple(split)


def _list_separators(findings: Findings) -> dict[int, str]:
    """Return the letters at which bash splits a value besides blanks, because the line says so: `IFS=,`."""
    values = findings.values.get("IFS", ())
    return {ord(letter): " " for value in values for text in value for letter in text}


def _fill_text(text: str, findings: Findings, choose: _Choose, may_fill: _MayFill) -> str | None:
    filled = bare = _QUOTES.sub("", text) if '"' in text else text
    for _ in range(_MAX_FILLINGS):  # eval and sh -c expand a text again: b='$a x'; a=rm; eval $b
        if "$" in filled and not findings.overfilled:
            filled = _VARIABLE.sub(lambda found: _fill_variable(found, choose, may_fill), filled)
    filled = _PRINTED.sub(lambda found: _MARKS.sub("", found[1] or found[2] or ""), filled)
    return None if filled == bare or _LIVE.search(filled) else filled


def _fill_variable(found: re.Match[str], choose: _Choose, may_fill: _MayFill) -> str:
    name, operator, other = found[1] or found[2], found[6] or "", found[7] or ""
    elements = choose(_recorded_name(name))
    if elements is None and name == "IFS":
        elements = (" ",)  # rm${IFS}x is split into two words
    value = None if elements is None else _read_value(name, elements, found)
    if operator[-1:] == "+" or (operator and not value):
        return other or found[0]
    return value if value is not None and may_fill(value) else found[0]


def _read_value(name: str, elements: Sequence[str], found: re.Match[str]) -> str | None:
    """Return what an expansion gives: one text, one element, or all of them or of its letters from one on."""
    index, first = found[3] or "0", int(found[4] or 0)
    count = int(found[5]) if found[5] else None
    if name in "@*":
        return " ".join(elements[first - (first > 0) :][:count])  # the parameters are counted from one
    if index in "@*":
        return " ".join(elements[first:][:count])
    place = (read_number(name) or 0) - 1 if name.isdigit() else int(index)
    return elements[place][first:][:count] if 0 <= place < len(elements) else None


def fill_own(text: str, name: str, value: Sequence[str], may_fill: _MayFill) -> str:
    """Fill one variable with a value: in `x="$x y"` what it held before, which may be nothing."""

    def fill(found: re.Match[str]) -> str:
        own = _recorded_name(found[1] or found[2]) == name
        return _fill_variable(found, {name: value or ("",)}.get, may_fill) if own else found[0]

    return _VARIABLE.sub(fill, text)


def names_variable(text: str, name: str) -> bool:
    """Whether a text holds a variable."""
    return any(_recorded_name(found[1] or found[2]) == name for found in _VARIABLE.finditer(text))


def is_fillable(text: str) -> bool:
    """Whether a text may become literal when variables are filled in."""
    return _LIVE.search(_PRINTED.sub("", _VARIABLE.sub("", text))) is None
