"""Colours for lines of code: comments, strings, numbers and the words a language keeps for itself."""

import re
from functools import cache

from callwright.cli.palette import Palette

_HASH = "python py python3 sh bash zsh shell console yaml yml toml ini ruby rb perl r make makefile dockerfile conf"
_SLASH = "javascript js jsx typescript ts tsx java c cpp c++ cs csharp go rust rs swift kotlin kt scala php json css"
_DASH = "sql lua haskell hs elm ada"
_COMMENTS = {
    **dict.fromkeys(_HASH.split(), r"\#.*"),
    **dict.fromkeys(_SLASH.split(), r"//.*|/\*.*?(?:\*/|$)"),
    **dict.fromkeys(_DASH.split(), r"--.*"),
}
_WORDS = frozenset(
    """
    abstract and as assert async await begin bool boolean break case catch char class const continue crate def default
    del delete do done double elif else elsif end enum except export extends false False fi final finally float fn for
    foreach from func function global go if impl implements import in instanceof int interface is lambda let local long
    loop match mod module mut namespace new nil None nonlocal not null or package pass private protected pub public
    raise ref require return select self short signed static string struct super switch template then this throw throws
    trait true True try type typedef typeof undefined union unless unsafe until use using val var void when where while
    with yield SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN LEFT RIGHT ON AND OR NOT NULL ORDER GROUP
    BY LIMIT SET VALUES AS
    """.split()
)
_STYLES = {"comment": "dim", "string": "green", "number": "yellow"}
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def code_line(line: str, language: str, palette: Palette) -> str:
    """One line in the colours of its language; in an unknown language in none."""
    if not palette.on or not line:
        return line
    if language in ("diff", "patch"):
        return palette.paint(line, _DIFF[line[0]]) if line[0] in _DIFF else line
    comment = _COMMENTS.get(language)
    return line if comment is None else _tokens(comment).sub(lambda found: _coloured(found, palette), line)


@cache
def _tokens(comment: str) -> "re.Pattern[str]":
    string = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`"
    return re.compile(rf"(?P<string>{string})|(?P<comment>{comment})|(?P<number>\b\d[\w.]*)|(?P<word>\b[A-Za-z_]\w*)")


def _coloured(found: "re.Match[str]", palette: Palette) -> str:
    kind = found.lastgroup or ""
    if kind == "word":
        return palette.paint(found[0], "blue") if found[0] in _WORDS else found[0]
    return palette.paint(found[0], _STYLES[kind])
