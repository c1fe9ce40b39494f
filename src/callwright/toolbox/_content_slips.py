"""Contents that a model did not mean as the content of a file: fenced, numbered, abbreviated, escaped, a diff."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import TypeAlias

_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mdc", ".qmd", ".rmd", ".mkd", ".rst", ".adoc"})
_TABLES = frozenset({".tsv", ".tab", ".csv", ".txt", ".log", ".dat", ".out", ".psv"})
_MAPPINGS = frozenset({".yaml", ".yml", ".toml", ".ini", ".conf", ".properties", *_TABLES, *_MARKDOWN})
_DIFFS = frozenset({".diff", ".patch", ".rej"})

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[^`\n]*\n")
_NUMBER = re.compile(r"[ \t]*([0-9]+)(?:[\t→│]|[ ]*\|(?!\|)| ?:(?= |$))")
_COLON_NUMBER = re.compile(r"[ \t]*[0-9]+ ?:")
_COMMENT = r"[ \t]*(?:\#+|//+|/\*+|--+|;+|%+|<!--|\{/\*|\*|\"\"\"|'''|\[|\(|<)[ \t]*"
_KEPT = (
    r"(?:existing|rest|remaining|remainder|unchanged|omitted|truncated|snip(?:ped)?|as[ ]before|same[ ]as|"
    r"no[ ]changes?|abbreviated|elided|keep)"
)
_OTHER = r"(?:existing|rest|remaining|unchanged|previous|other|same|original)"
_WHOLE = r"(?:file|code|contents?|document|class|functions?|methods?|imports|implementation|lines|script|tests)"
_ELISION = re.compile(
    rf"{_COMMENT}(?:"
    rf"(?:\.\.\.|…).*\b{_KEPT}\b.*"  # ... existing code ...
    rf"|(?:\.\.\.|…)\W*(?:the[ ])?{_OTHER}[ ](?:\w+[ ]){{0,2}}{_WHOLE}\b.*"  # ... other methods ...
    rf"|(?:the[ ])?{_OTHER}[ ](?:\w+[ ]){{0,3}}{_WHOLE}\b[^.…]*(?:\.\.\.|…)\W*"  # existing code here ...
    rf"|\W*(?:the[ ])?(?:rest|remainder)[ ]of[ ](?:the|your|this|my)[ ](?:\w+[ ])?{_WHOLE}"
    r"(?:[ ](?:here|unchanged|remains|stays|is|goes|as|follows).*)?\W*"
    rf"|\W*(?:existing|previous|original|remaining|other|unchanged)[ ]{_WHOLE}"
    r"[ ](?:here|unchanged|remains?|stays?|goes|as[ ]before|omitted).*"
    r")$",
    re.IGNORECASE,
)
_DIFF = re.compile(
    r"(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\*\*\* Begin Patch\n)"
)
_BLOCKS = re.compile(r"^<{5,} ?SEARCH\n.*^={5,}\n.*^>{5,} ?REPLACE", re.MULTILINE | re.DOTALL)

_MARKUP = frozenset({".html", ".htm", ".xhtml", ".xml", ".svg", ".vue", ".svelte", ".astro", ".jsx", ".tsx", ".plist"})
_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`")
_ENTITIES = re.compile(r"[\w)\]] &(?:lt|gt);=? |[-=]&gt;|&amp;&amp;|\#include &lt;|&lt;&lt;")

_Check: TypeAlias = Callable[[str, str], str | None]


def find_slip(name: str, content: str, before: str = "") -> str | None:
    """Return why a content is refused and what to send instead; None for a content that may be meant.

    Args:
        name: The file's name; what is wrong in a program may be right in a Markdown file or a table.
        content: The whole new content.
        before: The present content; what stands there already may be written again.
    """
    suffix = PurePath(name).suffix.lower()
    for check in _CHECKS:
        reason = check(suffix, content)
        if reason is not None and (not before or check(suffix, before) is None):
            return reason
    return None


def find_elision(content: str, before: str = "") -> str | None:
    """Return the first line that stands for other lines and is new; None if there is none."""
    known = {line.strip() for line in before.splitlines()}
    lines = (line.strip() for line in content.splitlines() if _ELISION.match(line))
    return next((line for line in lines if line not in known), None)


def _find_fence(suffix: str, content: str) -> str | None:
    text = content.strip()
    opening = _FENCE.match(text)
    if opening is None or suffix in _MARKDOWN:
        return None
    mark = opening["mark"]
    closings = [line for line in text.split("\n")[1:] if line.startswith(mark) and not line.strip(mark[0] + " ")]
    if len(closings) == 1 and text.endswith(closings[0]):
        return "the whole content stands in a code fence (```), which would become part of the file; leave it out"
    return None


def _find_numbers(suffix: str, content: str) -> str | None:
    if suffix in _TABLES:
        return None
    lines = [line for line in content.split("\n") if line.strip()]
    numbers = [int(mark[1]) for line in lines if (mark := _NUMBER.match(line))]
    if len(numbers) != len(lines) or len(numbers) < 2 or not _rise(numbers):
        return None
    if suffix in _MAPPINGS and all(_COLON_NUMBER.match(line) for line in lines):
        return None
    return "every line carries a line number, which would become part of the file; leave the numbers out"


def _rise(numbers: Sequence[int]) -> bool:
    """Tell whether each number is larger than the one before; blank lines may have lost theirs."""
    return all(one < other <= one + 3 for one, other in pairwise(numbers))


def _find_escapes(suffix: str, content: str) -> str | None:
    text = content.strip()
    if "\n" in text or "\\n" not in text or suffix in _MAPPINGS:
        return None
    if text.endswith("\\n") or re.search(r"[:{;]\\n(?:\\t|[ ]{2})", text):
        return "the line breaks are written as \\n characters; send real line breaks"
    return None


def _find_diff(suffix: str, content: str) -> str | None:
    if suffix in _DIFFS or suffix in _MARKDOWN:
        return None
    if _DIFF.match(content.lstrip()) or _BLOCKS.search(content):
        return "the content is a diff or an edit, not a file; send the whole new content, or change a part with edit"
    return None


def _find_entities(suffix: str, content: str) -> str | None:
    if "&" not in content or suffix in _MARKUP or suffix in _MAPPINGS:
        return None
    if _ENTITIES.search(_QUOTED.sub("", content)):
        return "operators are written as in HTML (&lt; &gt; &amp;); write the characters < > & themselves"
    return None


def _find_elided(suffix: str, content: str) -> str | None:
    text = _without_fences(content) if suffix in _MARKDOWN else content
    line = find_elision(text)
    if line is None:
        return None
    return (
        f"the line {line[:80]!r} stands for other lines, which would be lost; send them all, or change a part with edit"
    )


def _without_fences(text: str) -> str:
    """Drop fenced blocks: a manual may show an abbreviated program."""
    return re.sub(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)


_CHECKS: Sequence[_Check] = (_find_fence, _find_numbers, _find_escapes, _find_diff, _find_entities, _find_elided)
