"""Shell lines that were written as a list of words, in a code fence, after a prompt, or as JSON."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, cast

from callwright.repairs.lenient_json import strip_end, strip_fence, try_read
from callwright.repairs.schemas import Change, Object, Target, kinds_of

_OPERATORS = re.compile(r"[|&;<>()`$*?~{}\n]")
_TEST = re.compile(r"\s*\[[ \t]")
"""The beginning of `[ "$x" ]`, which tests a word and does not run it."""
_PROMPT = re.compile(r"\s*(?:[\w.-]+@[\w.-]+:\S*[$#]|[$]) ")
_TAG = re.compile(r"<(?P<tag>command|bash|cmd|sh|shell|code)>\s*(?P<line>.*?)\s*</(?P=tag)>", re.DOTALL)
_END = re.compile(r"(?:\s*(?:</(?:command|bash|cmd|parameter|invoke|function|tool_call)>|<\|\w+\|>))+\Z")
_LINES = ("command", "cmd", "command_line", "commandline", "shell_command")


def quote_words(words: Sequence[Any]) -> str | None:
    """Return a list of words as one line; None if a word may have been meant as an operator, or is no word."""
    if not words or not all(isinstance(word, str) and word for word in words) or not _is_plain_argv(words):
        return None
    return shlex.join(words)


def _is_plain_argv(words: Sequence[str]) -> bool:
    """Tell whether words are what `exec` takes: operators only inside the program text of `sh -c`."""
    if re.search(r"\s", words[0]):  # whole lines, one after the other
        return False
    script = len(words) == 3 and re.fullmatch(r"(?:/\S*/)?(?:ba|z|da|k)?sh", words[0]) and words[1] in ("-c", "-lc")
    return bool(script) or not any(_OPERATORS.search(word) for word in words)


def unwrap_line(text: str) -> str | None:
    """Return the line that a text is wrapped around; None if it is a line already, or has no reading, or two."""
    body = strip_fence(text.strip())
    if body is not None:
        return None if "```" in body or "~~~" in body else (_strip_prompts(body) or body).strip() or None
    if text.lstrip().startswith(("[", "{")):
        return _read_json_line(text)
    tagged = _TAG.fullmatch(text.strip())
    if tagged is not None and not re.search(r"</?(?:command|bash|cmd|sh|shell|code)>", tagged["line"]):
        return tagged["line"] or None
    shorter = strip_end(text, _END)
    return shorter if shorter != text.rstrip() and shorter else _strip_prompts(text)


def _strip_prompts(text: str) -> str | None:
    """Return lines without the prompt that all of them have; among lines without one, those may be output."""
    lines = text.strip().split("\n")
    if not all(_PROMPT.match(line) for line in lines):
        return None
    return "\n".join(_PROMPT.sub("", line, count=1).strip() for line in lines)


def _read_json_line(text: str) -> str | None:
    value = try_read(text)
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        value = next(iter(held.values())) if len(held) == 1 and set(held) <= {"command", "cmd"} else None
    if isinstance(value, list):
        words = cast("list[Any]", value)
        if len(words) != 1:
            return quote_words(words)
        return None if _TEST.match(text) else _take_text(words[0])
    return _take_text(value)


def _take_text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def quote_command(given: Object, target: Target) -> Change:
    """Write a list of words as one command line, unless a word may have been meant as an operator."""
    for key, value in given.items():
        field = target.fields.get(key)
        if field is None or key not in _LINES or not isinstance(value, list):
            continue
        words = cast("list[Any]", value)
        if "array" in kinds_of(field, target.root) or len(words) < 2:
            continue
        line = quote_words(words)
        return None if line is None else ({**given, key: line}, f"the list for {key} quoted as one line")
    return None


def unwrap_lines(given: Object, target: Target) -> Change:
    """Take shell lines out of a code fence, a prompt or JSON."""
    lines = {key: unwrap_line(value) for key, value in given.items() if key in target.lines and isinstance(value, str)}
    found = {key: line for key, line in lines.items() if line is not None}
    return ({**given, **found}, f"{', '.join(found)}: the line alone") if found else None
