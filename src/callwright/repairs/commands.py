"""Shell lines that were written as a list of words, in a code fence, after a prompt, or as JSON."""

import re
import shlex
from collections.abc import Sequence
from typing import Any, cast

from callwright.repairs.lenient_json import NotJson, read_lenient, strip_fence

_OPERATORS = re.compile(r"[|&;<>()`$*?~{}\n]")
_PROMPT = "$ "


def quote_words(words: Sequence[Any]) -> str | None:
    """Return a list of words as one line; None if a word may have been meant as an operator, or is no word."""
    if not words or not all(isinstance(word, str) and word for word in words) or not _is_plain_argv(words):
        return None
    return shlex.join(words)


def _is_plain_argv(words: Sequence[str]) -> bool:
    """Tell whether words are what `exec` takes: operators only inside the program text of `sh -c`."""
    script = len(words) == 3 and re.fullmatch(r"(?:/\S*/)?(?:ba|z|da|k)?sh", words[0]) and words[1] in ("-c", "-lc")
    return bool(script) or not any(_OPERATORS.search(word) for word in words)


def unwrap_line(text: str) -> str | None:
    """Return the line that a text is wrapped around; None if it is a line already, or has no reading, or two."""
    body = strip_fence(text.strip())
    if body is not None:
        return None if "```" in body or "~~~" in body else (_strip_prompts(body) or body).strip() or None
    if text.lstrip().startswith(("[", "{")):
        return _read_json_line(text)
    return _strip_prompts(text)


def _strip_prompts(text: str) -> str | None:
    """Return lines without the prompt that all of them have; among lines without one, those may be output."""
    lines = text.strip().split("\n")
    stripped = [line.strip().removeprefix(_PROMPT) for line in lines]
    if not all(line.strip().startswith(_PROMPT) for line in lines):
        return None
    return "\n".join(stripped)


def _read_json_line(text: str) -> str | None:
    try:
        value: Any = read_lenient(text)
    except NotJson:
        return None
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        value = next(iter(held.values())) if len(held) == 1 and set(held) <= {"command", "cmd"} else None
    if isinstance(value, list):
        words = cast("list[Any]", value)
        return quote_words(words) if len(words) != 1 else _take_text(words[0])
    return _take_text(value)


def _take_text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
