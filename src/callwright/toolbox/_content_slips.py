"""Contents that a model did not mean as the content of a file: fenced, numbered, abbreviated, escaped, a diff."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from json import loads
from pathlib import PurePath
from typing import TypeAlias

_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".mdc", ".qmd", ".rmd", ".mkd", ".rst", ".adoc"})
_TABLES = frozenset({".tsv", ".tab", ".csv", ".txt", ".log", ".dat", ".out", ".psv"})
_MAPPINGS = frozenset({".yaml", ".yml", ".toml", ".ini", ".conf", ".properties", *_TABLES, *_MARKDOWN})
_DIFFS = frozenset({".diff", ".patch", ".rej"})
_PROGRAMS = frozenset(
    ".py .pyi .js .mjs .cjs .ts .mts .cts .jsx .tsx .java .c .h .cc .cpp .hpp .cs .go .rs .rb .php .swift .kt .scala "
    ".lua .r .pl .sh .bash .zsh .sql .css .scss .less .json .jsonc .html .htm .vue .svelte".split()
)
"""Languages in which a code fence or a number does not begin a line outside of a string."""
_SHELLS = frozenset({".sh", ".bash", ".zsh"})

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})[^`\n]*\n")
_FENCE_BEGIN = re.compile(r"`{3,20}|~{3,20}")
_FENCE_END = re.compile(r"(?:`{3,20}|~{3,20})[ \t]*")
_ANY_NUMBER = re.compile(r"[ \t]*(?:L|\[)?([0-9]{1,9})(?:[\t→│:.)\]|]|-(?=\D)|[ ]{2,})")
_NUMBER = re.compile(r"[ \t]*([0-9]{1,9})(?:[\t→│]|[ ]*\|(?!\|)| ?:(?= |$))")
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
    r"|[\[(<]+[ ]?(?:the[ ])?(?:existing|rest|remaining|unchanged|previous|snip|other|truncated)\b"
    r"[^.]{0,40}[\])>-]+\W*"
    # --- rest of the file --- or --- other methods ---, and not the heading --- Other tools ---
    r"|-+[ ]?(?:the[ ])?(?:(?:existing|rest|remaining|unchanged|snip|truncated)"
    rf"(?:[ ]of\b[^.]{{0,40}}|[ ](?:\w+[ ]){{0,2}}{_WHOLE}[^.]{{0,20}})?|previous[ ]{_WHOLE}"
    r"|other[ ](?:code|methods?|functions?|imports?|tests?|routes?|class(?:es)?|handlers?))[ ]?-+\W*"
    r"|(?:\w+[ ]){0,3}omitted[ ]for[ ](?:brevity|clarity)\b.*"
    rf"|(?:\.\.\.|…)[ ](?:the[ ])?{_OTHER}[ ]\w+(?:[ ]\w+)?[ ]?(?:\.\.\.|…)\W*"  # ... other commands ...
    r")$"
    # without the mark of a comment, as in a text
    rf"|[ \t]*(?:\.\.\.|…)[ ]?\(?(?:(?:the[ ])?(?:rest|remainder)[ ]of[ ]|existing[ ]{_WHOLE}|"
    r"[0-9]+[ ](?:more[ ])?lines)[^\n]*$",
    re.IGNORECASE,
)
_DIFF = re.compile(
    r"(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|\*\*\* Begin Patch\n)"
)
_BLOCKS = tuple(
    tuple(map(re.compile, marks))
    for marks in ((r"<{5,} ?SEARCH$", r"={5,}$", r">{5,} ?REPLACE"), (r"<{7} \S", r"={7}$", r">{7} \S"))
)
"""What lines begin with, one after the other, in an edit and in a merge conflict."""
_WEAK_ELISION = re.compile(
    r"(?:[ \t]*(?:\#+|//+|/\*+|--+|<!--|\{/\*)[ \t]*"
    rf"(?:\.\.\.|…|(?:the[ ])?(?:existing|previous|remaining)[ ](?:styles|jsx|fields|rules|props|{_WHOLE})|"
    r"same[ ]as[ ](?:before|above)|unchanged)[ \t]*(?:\*/\}?|-->)?"
    r"|[\[(<]?(?:\.\.\.|…|unchanged|truncated|(?:output|file)[ ]truncated)[\])>]?)[ \t]*$",
    re.IGNORECASE,
)
"""May be meant in a new file; in place of lines that were there, they are lost."""
_PLACEHOLDER = re.compile(
    r"[\[<({]+[ ]?(?:\.\.\.|…|(?:(?:new|whole|full|the|your|file|updated)[ ])*(?:contents?|code|text)(?:[ ]here)?)"
    r"[ ]?[\])>}]+|\.\.\.|…",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"<\|[a-z_]+\|>\s*\Z|</(?:parameter|invoke|function|tool_call|new_string|old_string|file_text|tool_use)>\s*\Z"
    r"|\A\s*<(?P<tag>content|file|code|file_content|new_content|document)>\n(?:.*\n)?</(?P=tag)>\s*\Z",
    re.DOTALL,
)
_STRAY_END = re.compile(r"</(?:content|file|code|file_content|s)>\s*\Z")

_MARKUP = frozenset(
    ".html .htm .xhtml .xml .svg .vue .svelte .astro .jsx .tsx .plist .xsl .xslt .xsd .rss .atom .erb .ejs .hbs "
    ".handlebars .mustache .j2 .jinja .jinja2 .njk .twig .liquid .tmpl .tpl .gohtml .cshtml .razor .jsp .aspx".split()
)
_MARKED_UP = re.compile(r"\A\s*<(?!\?php\s)")
"""A page whatever its name, such as a page of PHP or a translation of Qt (.ts): entities belong there."""
_PHP = frozenset({".php", ".phtml"})
_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`")
_ENTITIES = re.compile(
    r"[\w)\]] &(?:lt|gt);=? |[-=]&gt;|&amp;&amp;|\#include &lt;|&lt;&lt;|\w&lt;\w[\w, \[\]]*&gt;"
    r"|[(=, ]&(?:quot|\#39);[^&\n]*&"
    r"|[\w)\]] &amp; [\w(]"
)
_COMMENTS = re.compile(r"(?:^|\s)(?:\#(?!include)|//)[^\n]*|\"\"\".*?\"\"\"|/\*.*?\*/", re.MULTILINE | re.DOTALL)

_RUN = re.compile(r"([^\w\s])\1{3,}")
_MOST_LINE_CHARS = 300
"""A longer line stands for no others."""
_MOST_JSON_CHARS = 1_000_000
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
    line = _find_new(_WEAK_ELISION, content, before) if before and suffix not in _MARKDOWN else None
    return None if line is None else _explain_elision(line)


def find_edit_slip(name: str, old: str, new: str) -> str | None:
    """Return why the new text of an edit is refused; None for one that may be meant."""
    line = find_elision(new, old)
    if line is not None:
        return f"the line {line[:80]!r} of new_string stands for other lines, which would be lost; write them"
    suffix = PurePath(name).suffix.lower()
    checks: Sequence[_Check] = (_find_fence, _find_marks, _find_entities, _find_blocks)
    found = [reason for check in checks if (reason := check(suffix, new)) and check(suffix, old) is None]
    if not found and suffix in _PROGRAMS and _is_numbered(new) and not _is_numbered(old):
        found = ["its lines carry line numbers; leave them out"]
    return f"new_string: {found[0]}" if found else None


def find_elision(content: str, before: str = "") -> str | None:
    """Return the first line that stands for other lines and is new; None if there is none."""
    return _find_new(_ELISION, content, before)


def _find_new(pattern: re.Pattern[str], content: str, before: str) -> str | None:
    known = {line.strip() for line in before.splitlines()}
    lines = (line.strip() for line in content.splitlines() if _stands_for_others(pattern, line))
    return next((line for line in lines if line not in known), None)


def _stands_for_others(pattern: re.Pattern[str], line: str) -> bool:
    """Match a line without its long runs of one mark, such as a ruler of dashes, which would take cubic time."""
    return len(line) <= _MOST_LINE_CHARS and pattern.match(_RUN.sub(r"\1\1\1", line)) is not None


def _find_fence(suffix: str, content: str) -> str | None:
    text = content.strip()
    opening = _FENCE.match(text)
    if opening is not None and (suffix not in _MARKDOWN or opening[0].strip("`~ \n").lower() in ("markdown", "md")):
        mark = opening["mark"]
        closings = [line for line in text.split("\n")[1:] if line.startswith(mark) and not line.strip(mark[0] + " ")]
        if len(closings) == 1 and text.endswith(closings[0]):
            return "the whole content stands in a code fence (```), which would become part of the file; leave it out"
    if suffix in _PROGRAMS and _has_outer_fence(text):
        return "a code fence (```) begins or ends the content, and would become part of the file; leave it out"
    return None


def _has_outer_fence(text: str) -> bool:
    """Tell whether the first line opens a fence or the last closes one, but not several with text between."""
    lines = text.split("\n")
    fences = [line for line in lines if re.match(r"(?:`{3}|~{3})[\w+-]*[ \t]*\r?$", line)]
    return 0 < len(fences) <= 2 and (fences[0] is lines[0] or fences[-1] is lines[-1])


def _is_numbered(text: str) -> bool:
    """Tell whether every line begins with a number and a mark, as in the output of read and grep."""
    lines = [line for line in text.split("\n") if line.strip()]
    numbers = [int(mark[1]) for line in lines if (mark := _ANY_NUMBER.match(line))]
    if len(lines) == 1:
        return bool(re.match(r"[ \t]*[0-9]+(?:\t|→)[ \t]*\S", lines[0]))
    return len(numbers) == len(lines) > 1 and _rise(numbers)


def _find_numbers(suffix: str, content: str) -> str | None:
    if suffix in _TABLES:
        return None
    lines = [line for line in content.split("\n") if line.strip()]
    numbers = [int(mark[1]) for line in lines if (mark := _NUMBER.match(line))]
    if suffix in _PROGRAMS and len(lines) > 1 and _is_numbered(content):
        numbers = list(range(len(lines)))
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
    code = _QUOTED.sub("", re.sub(r'(?<!\\)\\"', "", text))
    if (
        suffix in _PROGRAMS - _SHELLS
        and text.count('\\"') > 1
        and '"' not in text.replace('\\"', "")
        and '\\"' in (re.sub(r"'[^'\n]*'", "", text))
    ):
        return 'quotes are written as \\" outside of a string; send plain quotes'
    if "\n" in text or "\\n" not in text:
        return None
    if suffix in _MAPPINGS:
        several = text.count("\\n") > 1 and text.endswith("\\n")
        return "the line breaks are written as \\n characters; send real line breaks" if several else None
    if text.endswith("\\n") or re.search(r"[:{;]\\n(?:\\t|[ ]{2})|[;{}]\\n", code if suffix in _PROGRAMS else text):
        return "the line breaks are written as \\n characters; send real line breaks"
    return None


def _find_diff(suffix: str, content: str) -> str | None:
    if suffix in _DIFFS or suffix in _MARKDOWN:
        return None
    lines = [line for line in content.split("\n") if line.strip()]
    bare = suffix in _PROGRAMS and len(lines) > 1 and all(re.match(r"[+ ]|-(?!-)", line) for line in lines)
    if _DIFF.match(content.lstrip()) or (bare and any(re.match(r"\+(?!\+)", line) for line in lines)):
        return "the content is a diff or an edit, not a file; send the whole new content, or change a part with edit"
    return _find_blocks(suffix, content)


def _find_blocks(suffix: str, content: str) -> str | None:
    if suffix in _DIFFS or suffix in _MARKDOWN or not any(_have_in_order(content, marks) for marks in _BLOCKS):
        return None
    return "it holds the marks of a diff or of a merge conflict; send the whole new content, or change a part with edit"


def _have_in_order(content: str, marks: Sequence[re.Pattern[str]]) -> bool:
    """Tell whether lines match these patterns, in their order; one pattern for all would take cubic time."""
    found = 0
    for line in content.split("\n"):
        found += found < len(marks) and marks[found].match(line) is not None
    return found == len(marks)


def _find_marks(suffix: str, content: str) -> str | None:
    if "\0" in content:
        return "it holds a NUL character, which no text has; leave it out"
    if suffix in _MARKDOWN or suffix in _TABLES:
        return None
    found = _MARKS.search(content) or (_STRAY_END.search(content) if suffix not in _MARKUP else None)
    if found is None:
        return None
    return f"{found[0].strip()[-30:]!r} belongs to the call, not to the file; leave the marks of the call out"


def _find_placeholder(suffix: str, content: str) -> str | None:
    text = content.strip()
    if (suffix != ".pyi" and _PLACEHOLDER.fullmatch(text)) or _is_call(suffix, text):
        return f"{text[:80]!r} stands for the content; send the content itself"
    return None


def _is_call(suffix: str, text: str) -> bool:
    """Tell whether a content is the arguments of the call, or one string, as JSON."""
    if suffix in (".json", ".jsonl", ".jsonc") or not text.startswith(("{", '"')) or len(text) > _MOST_JSON_CHARS:
        return False
    try:
        value: object = loads(text)
    except ValueError:
        return False
    if isinstance(value, str):
        return suffix in _PROGRAMS and "\n" in value
    return (
        isinstance(value, dict) and "content" in value and value.keys() <= {"path", "file_path", "content", "overwrite"}
    )


def _find_entities(suffix: str, content: str) -> str | None:
    if "&" not in content or suffix in _MARKUP or suffix in _MAPPINGS or _MARKED_UP.match(content):
        return None
    if suffix in _PHP and "?>" in content:  # a page follows
        return None
    closed, end, rest = content.rpartition("*/")
    # no comment ends in the rest: for each that begins there, all of it would be read in vain
    code = _COMMENTS.sub("", closed + end + rest.replace("/*", "/+"))
    if _ENTITIES.search(_QUOTED.sub("", code)):
        return "operators are written as in HTML (&lt; &gt; &amp;); write the characters < > & themselves"
    return None


def _find_elided(suffix: str, content: str) -> str | None:
    text = _without_fences(content) if suffix in _MARKDOWN else content
    line = find_elision(text)
    return None if line is None else _explain_elision(line)


def _explain_elision(line: str) -> str:
    return (
        f"the line {line[:80]!r} stands for other lines, which would be lost; send them all, or change a part with edit"
    )


def _without_fences(text: str) -> str:
    """Drop fenced blocks: a manual may show an abbreviated program."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if _FENCE_END.fullmatch(line):
            ends.setdefault(line.rstrip(" \t"), []).append(number)
    kept: list[str] = []
    number = 0
    while number < len(lines):
        end = _find_end(lines[number], number, ends)
        kept.append(lines[number] if end == number else "")
        number = end + 1
    return "\n".join(kept)


def _find_end(line: str, number: int, ends: Mapping[str, Sequence[int]]) -> int:
    """Return the line that ends the fence which a line begins; the line itself if there is no such fence."""
    begun = _FENCE_BEGIN.match(line)
    for size in range(len(begun[0]) if begun else 0, 2, -1):
        later = ends.get(line[:size], ())
        if (place := bisect_right(later, number)) < len(later):
            return later[place]
    return number


_CHECKS: Sequence[_Check] = (
    _find_fence,
    _find_numbers,
    _find_placeholder,
    _find_marks,
    _find_escapes,
    _find_diff,
    _find_entities,
    _find_elided,
)
