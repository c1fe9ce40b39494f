"""Compiles globs and gitignore patterns to regular expressions without catastrophic backtracking.

The only glob compiler of the package: search, ignore files and permission rules use it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

Backslash: TypeAlias = Literal["escape", "literal", "separator"]

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NEVER = "(?!)"
_SHOWN_CHARS = 200
_MOST_NESTED = 10
_MOST_PLAIN_GROUPS = 2
"""How many groups of plain alternatives are left to the regular expression, which may try each with each."""
_MOST_TOKENS = 5_000
"""How long a pattern may be with every choice of its alternatives written out."""
_MOST_DEEP_BRANCHES = 1
"""How many `**` of one choice may have no slash beside them: each multiplies the places that are tried."""


class BadGlob(ValueError):
    """The glob is malformed; the message names the place."""


class BadClass(BadGlob):
    """A class in brackets that cannot match what its writer meant: a range from high to low, an unknown name."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the special characters of a pattern are read."""

    crossing: bool = False
    """Whether `*` and `?` also match a slash."""
    braces: bool = True
    empty_alternatives: bool = True
    """Whether `{,x}` also stands for nothing, as in a shell."""
    backslash: Backslash = "escape"
    ignore_case: bool = False
    strict: bool = False
    """Whether a range from high to low is an error; git lets it match nothing."""


SHELL = Dialect()
GITIGNORE = Dialect(braces=False)


class _Token(NamedTuple):
    kind: Literal["star", "fixed", "other", "slash", "deep", "rest", "group"]
    regex: str = ""
    branches: "tuple[tuple[_Token, ...], ...]" = ()
    """The alternatives of a group in braces."""


def compile_glob(pattern: str, dialect: Dialect = SHELL) -> re.Pattern[str]:
    """Turn a glob into an expression for `fullmatch`; raises `BadGlob`."""
    return _compile_cached(pattern, dialect)


def matches(pattern: str, path: str, dialect: Dialect = SHELL) -> bool:
    """Whether a path fits a glob."""
    if dialect.backslash == "separator":
        path = path.replace("\\", "/")
    return compile_glob(pattern, dialect).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compile_cached(pattern: str, dialect: Dialect) -> re.Pattern[str]:
    flags = re.DOTALL | (re.IGNORECASE if dialect.ignore_case else 0)
    if dialect.backslash == "separator":
        pattern = pattern.replace("\\", "/")
    return re.compile(glob_regex(pattern, dialect), flags)


def glob_regex(pattern: str, dialect: Dialect) -> str:
    """Write a glob as the text of a regular expression; raises `BadGlob`."""
    reader = _GlobReader(pattern, dialect)
    tokens = reader.read()
    if reader.place < len(pattern):
        raise BadGlob(f"the glob {pattern!r} closes a brace that was never opened")
    return ".*" if tokens == [_Token("deep")] else reader.write(tokens)


class _GlobReader:
    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.place = 0
        self.any = "." if dialect.crossing else "[^/]"
        self.groups: list[_Token] = []

    def write(self, tokens: list[_Token]) -> str:
        """Write a pattern as one expression.

        With alternatives inside, a star cannot be written so that it is never tried twice. Few plain ones do no harm;
        of others, every choice is written out as a pattern of its own.
        """
        if len(self.groups) <= _MOST_PLAIN_GROUPS and all(map(_is_plain, self.groups)):
            return self.emit([self._inline(token) if token.kind == "group" else token for token in tokens])
        return f"(?:{'|'.join(map(self.emit, self._write_out(tokens)))})"

    def _inline(self, group: _Token) -> _Token:
        return _Token("other", f"(?:{'|'.join(self.emit(list(branch)) for branch in group.branches)})")

    def _write_out(self, tokens: Iterable[_Token]) -> list[list[_Token]]:
        """Return the pattern for every choice of the alternatives."""
        choices: list[list[_Token]] = [[]]
        for token in tokens:
            ends = [[token]]
            if token.kind == "group":
                ends = [end for branch in token.branches for end in self._write_out(branch)]
            size = len(ends) * sum(map(len, choices)) + len(choices) * sum(map(len, ends))
            if size > _MOST_TOKENS or len(choices) * len(ends) > _MOST_TOKENS:
                raise BadGlob(f"the glob {_shorten(self.pattern)} has too many alternatives; write several globs")
            choices = [_join(choice, end) for choice in choices for end in ends]
        if any(map(_has_many_deep_ends, choices)):
            raise BadGlob(f"the glob {_shorten(self.pattern)} has ** in too many alternatives; write several globs")
        return choices

    def read(self, depth: int = 0) -> list[_Token]:
        """Read tokens up to the end, or inside braces up to the comma or brace that ends a branch."""
        tokens: list[_Token] = []
        while self.place < len(self.pattern):
            character = self.pattern[self.place]
            if self.dialect.braces and ((depth and character in ",}") or character == "}"):
                break
            self.place += 1
            self._add(tokens, character, depth)
        return tokens

    def _add(self, tokens: list[_Token], character: str, depth: int) -> None:
        match character:
            case "*":
                self._read_stars(tokens, depth)
            case "?":
                tokens.append(_Token("fixed", self.any))
            case "/":
                tokens.append(_Token("slash", "/"))
            case "[":
                tokens.append(self._read_class())
            case "{" if self.dialect.braces:
                tokens.append(self._read_group(depth))
            case "\\" if self.dialect.backslash == "escape":
                tokens.append(_Token("fixed", re.escape(self._read_escaped())))
            case _:
                tokens.append(_Token("fixed", re.escape(character)))

    def _read_stars(self, tokens: list[_Token], depth: int) -> None:
        began = self.place - 1
        while self.pattern.startswith("*", self.place):
            self.place += 1
        ends = self.pattern[self.place : self.place + 1]
        whole = (not tokens or tokens[-1].kind == "slash") and (ends in ("", "/") or (depth > 0 and ends in ",}"))
        deep = self.place - began == 2 or (self.place - began > 2 and not self.dialect.braces)  # git takes *** for **
        tokens.append(_Token("deep" if whole and deep else "star"))

    def _read_escaped(self) -> str:
        if self.place == len(self.pattern):
            raise BadGlob(f"the glob {self.pattern!r} ends in a backslash; write \\\\ for a real one")
        self.place += 1
        return self.pattern[self.place - 1]

    def _read_group(self, depth: int) -> _Token:
        if depth == _MOST_NESTED:
            raise BadGlob(f"the glob {_shorten(self.pattern)} nests braces more than {_MOST_NESTED} deep")
        branches: list[tuple[_Token, ...]] = []
        while True:
            tokens = self.read(depth + 1)
            if tokens and tokens[-1].kind == "deep":  # whatever follows the braces, it reaches to anything
                tokens[-1] = _Token("rest", ".*")
            branches.append(tuple(tokens))
            if self.place == len(self.pattern):
                raise BadGlob(f"the glob {_shorten(self.pattern)} opens a brace that it never closes")
            self.place += 1
            if self.pattern[self.place - 1] == "}":
                break
        kept = branches if self.dialect.empty_alternatives else [branch for branch in branches if branch]
        self.groups.append(_Token("group", "", tuple(kept) or ((),)))
        return self.groups[-1]

    def _read_class(self) -> _Token:
        negated = self.pattern.startswith(("!", "^"), self.place)
        self.place += negated
        body = self._read_members()
        if not body:
            return _Token("fixed", self.any if negated else _NEVER)
        regex = f"[{'^' if negated else ''}{body}]"
        slash = not self.dialect.crossing and re.match(regex, "/")  # as in a shell, only a slash matches a slash
        return _Token("fixed", f"(?!/){regex}" if slash else regex)

    def _read_members(self) -> str:
        parts: list[str] = []
        first = True
        while True:
            if self.place >= len(self.pattern):
                raise BadGlob(f"the glob {self.pattern!r} opens a [ that it never closes")
            if self.pattern[self.place] == "]" and not first:
                self.place += 1
                return "".join(parts)
            first = False
            parts.append(self._read_member())

    def _read_member(self) -> str:
        posix = re.compile(r"\[:(\w*):\]").match(self.pattern, self.place)
        if posix:
            if posix[1] not in _POSIX:
                raise BadClass(f"the glob {self.pattern!r} names the unknown class [:{posix[1]}:]")
            self.place = posix.end()
            return _POSIX[posix[1]]
        low = self._read_character()
        rest = self.pattern[self.place : self.place + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return re.escape(low)
        self.place += 1
        high = self._read_character()
        if low > high and self.dialect.strict:
            raise BadClass(f"the glob {self.pattern!r} has the range {low}-{high}, which holds nothing")
        return f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""

    def _read_character(self) -> str:
        self.place += 1
        character = self.pattern[self.place - 1]
        return self._read_escaped() if character == "\\" and self.dialect.backslash == "escape" else character

    def emit(self, tokens: list[_Token]) -> str:
        """Write tokens as one expression."""
        parts: list[str] = []
        place = 0
        while place < len(tokens):
            text, place = self._emit_one(tokens, place)
            parts.append(text)
        return "".join(parts)

    def _emit_one(self, tokens: list[_Token], place: int) -> tuple[str, int]:
        token = tokens[place]
        if token.kind == "star":
            return self._emit_star(tokens, place)
        if found := self._emit_before_deep(tokens, place):
            return found
        if token.kind == "deep":  # the first of a branch: deeper ones are reached through their slash
            end = self._past_deep(tokens, place)
            return (".*", end) if end == len(tokens) and tokens[-1].kind == "deep" else ("(?:/?|.*/)", end)
        if token.kind == "slash" and place + 1 < len(tokens) and tokens[place + 1].kind == "deep":
            end = self._past_deep(tokens, place + 1)
            return ("(?:/|/.*/)", end) if end < len(tokens) or tokens[-1].kind == "slash" else ("/.*", end)
        return token.regex, place + 1

    def _emit_before_deep(self, tokens: list[_Token], place: int) -> tuple[str, int] | None:
        """Write `**/` and the names up to the next `/**`, for which the leftmost place is as good as any.

        The names hold a fixed number of slashes, so that the leftmost start gives the leftmost end; and from there
        the next `**` reaches everything that it reaches from a later end.
        """
        slash = tokens[place].kind == "slash"
        if self.dialect.crossing or place + slash >= len(tokens) or tokens[place + slash].kind != "deep":
            return None
        begin = end = self._past_deep(tokens, place + slash)
        while end < len(tokens) and tokens[end].kind not in ("other", "rest", "deep"):
            if tokens[end].kind == "slash" and end + 1 < len(tokens) and tokens[end + 1].kind == "deep":
                gap = "(?:/|/.*?/)" if slash else "(?:|.*?/)"
                return f"(?>{gap}{self.emit(tokens[begin:end])}(?=/))", end
            end += 1
        return None

    @staticmethod
    def _past_deep(tokens: list[_Token], place: int) -> int:
        """Skip `**/`, and `**/**/`, which means the same."""
        while place < len(tokens) and tokens[place].kind == "deep":
            place += 2
        return min(place, len(tokens))

    def _emit_star(self, tokens: list[_Token], place: int) -> tuple[str, int]:
        end = place + 1
        while end < len(tokens) and tokens[end].kind == "fixed":
            end += 1
        fixed = "".join(token.regex for token in tokens[place + 1 : end])
        if end < len(tokens) and tokens[end].kind in ("star", "rest"):
            # with another star behind it, the leftmost place is as good as any: no need to come back
            return f"(?>{self.any}*?{fixed})", end
        return f"{self.any}*{fixed}", end


def _is_plain(group: _Token) -> bool:
    return all(token.kind in ("fixed", "slash") for branch in group.branches for token in branch)


def _join(tokens: Sequence[_Token], end: Sequence[_Token]) -> list[_Token]:
    """Join two parts of a pattern; a star beside what reaches to anything adds nothing to it."""
    joined = list(tokens)
    for token in end:
        wild = token.kind in ("star", "rest")
        if token.kind == "rest":
            while joined and joined[-1].kind in ("star", "rest"):
                joined.pop()
        if not (wild and joined and joined[-1].kind == "rest"):
            joined.append(token)
    return joined


def _has_many_deep_ends(tokens: Sequence[_Token]) -> bool:
    """Whether several `**` have no slash beside them, which only alternatives make possible."""
    inside = pairwise(tokens)
    begun = sum(token.kind == "deep" and before.kind != "slash" for before, token in inside)
    return begun + sum(token.kind == "rest" for token in tokens[:-1]) > _MOST_DEEP_BRANCHES


def _shorten(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _SHOWN_CHARS else f"{pattern[:_SHOWN_CHARS]}…")
