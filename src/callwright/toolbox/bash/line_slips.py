"""Lines that bash would run as something else than the model meant: in Markdown, JSON or HTML, or cut off."""

import re

_WRAPPED = re.compile(
    r"\s*(?:(?P<fence>```|~~~)|(?P<prompt>\$ |[\w.-]+@[\w.-]+:\S*[$#] )|(?P<ticks>`[^`]*`\s*\Z)"
    r"|(?P<json>\[(?:[ \t]*\n\s*)?\"|\[\s*(?:\{|\"(?:[^\"\\]|\\.)*\"\s*,|'[^']*',)|\{\s*[\"'](?:command|cmd)[\"']\s*:)"
    r"|(?P<blank>\Z))"
)
_WRAPPINGS = {
    "fence": "the line stands in a code fence; send the line alone",
    "prompt": "the line starts with a prompt ($); send the line alone, without output",
    "ticks": "in back quotes the output of the line would be run; leave them out, or write $(…) if that is meant",
    "json": "the line is written as JSON; send the line itself",
    "blank": "the line is blank; send a command",
}
_MARKED = re.compile(
    r"(?P<fence>^(?:```|~~~)\w*[ \t]*$)|(?P<tag></(?:command|bash|cmd|parameter|invoke|function|tool_call)>\s*\Z|"
    r"<\|\w+\|>\s*\Z|\A\s*<(?:command|bash|cmd)>)|(?P<escape>\w\\n(?!\w*[\\=])[a-z]+ )",
    re.MULTILINE,
)
_MARKS = {
    "fence": "a line is a code fence, which bash would run as a command; send the commands alone",
    "tag": "it has a tag or token of the call, which bash would take for a redirection; send the line alone",
    "escape": "the line breaks are written as \\n characters; send real line breaks",
}
_HEREDOC = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\."
    r"|\(\((?:[^()]|\([^()]{0,500}\)){0,500}\)\)"  # limited, or many open brackets would take quadratic time
    r"|<<<|<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>[A-Za-z_]\w*)",
    re.DOTALL,
)
"""Strings and arithmetic, in which << means something else, and the start of a here-document."""
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#39|#x27);")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|<<.*", re.DOTALL)


def refuse_slips(line: str) -> str:
    """Return a line unchanged.

    Raises:
        ValueError: It stands in Markdown, JSON, HTML or tags, or was cut off; the message says what to send.
    """
    if (found := _WRAPPED.match(line)) is not None:
        raise ValueError(_WRAPPINGS[str(found.lastgroup)])
    if "\0" in line:
        raise ValueError("the line has a NUL character, which no command can have; leave it out")
    bare = _QUOTED.sub("", line)
    if (found := _MARKED.search(bare)) is not None:
        raise ValueError(_MARKS[str(found.lastgroup)])
    if "&" in line and _ENTITY.search(bare):
        raise ValueError("the line has characters written as in HTML, such as &amp; or &lt;; write the characters")
    if "<<" in line:
        _refuse_open_heredoc(line)
    return line


def _refuse_open_heredoc(line: str) -> None:
    """Refuse a here-document without its end: bash would take what is there of a text that was cut off."""
    found = next((found for found in _HEREDOC.finditer(line) if found["end"]), None)
    if found is not None and not re.search(rf"^\t*{found['end']}$", line[found.end() :], re.MULTILINE):
        raise ValueError(
            f"the text after <<{found['end']} has no line {found['end']} at its end; send the whole command"
        )
