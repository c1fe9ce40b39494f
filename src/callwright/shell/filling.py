"""Fills variables with the values that the line itself gives them, so that deny rules and guards see what may run.

Nothing is allowed because of what is filled in: the words as they are written are judged too.
"""

import re
from collections.abc import Iterator, Sequence

from callwright.shell.findings import Findings, FoundCommand
from callwright.shell.words import Word, is_name, literal_words

_MAX_FILLINGS = 5
_LIVE = re.compile(r"[$`]")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[(\d{1,3}|[@*])\])?(?:(:?[-=+])([^{}`]*))?\})", re.ASCII)
"""A variable, one or all elements of an array, and the text that stands in for it: `${x:-rm}`."""
_PRINTED = re.compile(r"\$\((?:echo|printf) ([^()`$]*)\)|`(?:echo|printf) ([^()`$]*)`")
"""A text that the line has another command print: `$(echo rm)`."""
_MARKS = re.compile(r"[\"'\\()]")


def fill_variables(words: tuple[Word, ...], findings: Findings) -> Iterator[tuple[Word, ...]]:
    """Yield the words with the line's own variables filled in, with their newest values and with earlier ones.

    Args:
        words: The words of a command.
        findings: What the line sets before.
    """
    seen = {words}
    for age in range(findings.most_values):
        filled: list[Word] = []
        for word in words:
            value = _fill_text(word.text, findings, age) if not word.literal and _LIVE.search(word.text) else None
            filled.extend([word] if value is None else literal_words(value.split() or [""]))
        if tuple(filled) not in seen:
            seen.add(tuple(filled))
            yield tuple(filled)


def _fill_text(text: str, findings: Findings, age: int) -> str | None:
    filled = bare = text.strip('"')
    for _ in range(_MAX_FILLINGS):  # eval and sh -c expand a text again: b='$a x'; a=rm; eval $b
        if "$" in filled and not findings.overfilled:
            filled = _VARIABLE.sub(lambda found: _fill_variable(found, findings, age), filled)
    filled = _PRINTED.sub(lambda found: _MARKS.sub("", found[1] or found[2] or ""), filled)
    return None if filled == bare or _LIVE.search(filled) else filled


def _fill_variable(found: re.Match[str], findings: Findings, age: int) -> str:
    name, index, operator, other = found[1] or found[2], found[3], found[4] or "", found[5] or ""
    values = findings.values.get(name, [(" ",)] if name == "IFS" else ())  # rm${IFS}x is split into two words
    value = _read_element(values[min(age, len(values) - 1)], index or "0") if values else None
    if operator[-1:] == "+" or (operator and not value):
        return other or found[0]
    return value if value is not None and findings.may_fill(value) else found[0]


def _read_element(elements: Sequence[str], index: str) -> str | None:
    if index in ("@", "*"):
        return " ".join(elements)
    return elements[int(index)] if int(index) < len(elements) else None


def list_elements(array: str) -> Sequence[str]:
    """Return the texts in an array, as far as these are plain: `(rm -rf)`."""
    return _MARKS.sub("", array).split()


def list_assigned(name: str, found: FoundCommand) -> Iterator[tuple[str, str]]:
    """Yield the variables that `printf -v` sets, and `read` from a text in the line, each with its value.

    Args:
        name: The plain name of the program.
        found: The call.
    """
    texts = [word.text for word in found.words[1:]]
    if name == "printf" and texts and texts[0][:2] == "-v":
        variable, layout, *values = [*filter(None, [texts[0][2:]]), *texts[1:], "", ""]
        yield variable, " ".join(values).strip() if "%" in layout else layout
    elif name == "read" and found.redirects.stdin_texts:
        names = [text for text in texts if is_name(text)]
        line = found.redirects.stdin_texts[-1].strip().partition("\n")[0]
        yield from zip(names, line.split(None, len(names) - 1), strict=False)
