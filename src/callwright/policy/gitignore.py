"""Path patterns in the manner of gitignore, anchored where their first characters say."""

import os
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_SEGMENT = re.compile(r"\\(.)|(\*)|(\?)|\[([!^]?)((?:\\.|[^]\\])+)]|(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A gitignore-style pattern for absolute paths; it covers what lies below whatever it matches."""

    expression: re.Pattern[str]
    literal: str = ""
    """The folder it is bound to before its first wildcard; empty when it matches at any depth."""

    def matches(self, path: str) -> bool:
        """Compare an absolute path."""
        return self.expression.match(_plain(path)) is not None

    def below(self, folder: str) -> bool:
        """Whether what it is bound to lies inside a folder."""
        return bool(self.literal) and self.literal.casefold().startswith(_plain(folder).rstrip("/").casefold() + "/")


def _plain(path: str) -> str:
    return path if path.isascii() else unicodedata.normalize("NFC", path)


@lru_cache(maxsize=4096)
def path_pattern(text: str, *, base: str, cwd: str, home: str, wide: bool) -> PathPattern:
    """Read a path pattern.

    `//x` starts at the root of the file system, `~/x` at the home folder, `/x` where the rule was written, `x` and
    `./x` at the working folder. `wide` is for deny and ask: a relative pattern then matches anywhere, in any case.
    """
    start, rest, anchored = _anchor(text, base, cwd, home)
    folder_only = rest.endswith("/")
    rest = rest.strip("/")
    any_depth = not anchored and (wide or "/" not in rest)
    inside = "" if wide and any_depth else re.escape(_plain(start.rstrip("/")))
    body = _body(_plain(rest)) if rest else ""
    tail = r"/.+" if folder_only and not wide else r"(?:/.*)?"
    middle = "/(?:.*/)?" if any_depth else "/" if body else ""
    flags = re.DOTALL | (re.IGNORECASE if wide else 0)
    literal = "" if any_depth else _literal_part(start, rest)
    return PathPattern(re.compile(inside + middle + body + tail + r"\Z", flags), literal)


def _literal_part(start: str, rest: str) -> str:
    segments = list[str]()
    for segment in rest.split("/"):
        if not segment or not frozenset("*?[\\").isdisjoint(segment):
            break
        segments.append(segment)
    return "/".join((_plain(start.rstrip("/")), *segments))


def _anchor(text: str, base: str, cwd: str, home: str) -> tuple[str, str, bool]:
    if text.startswith("//"):
        return "/", text[1:], True
    if text == "~" or text.startswith("~/"):
        return home, text[1:], True
    if text.startswith("/"):
        return base, text, True
    while text.startswith("./"):
        text = text[2:]
    up = os.path.normpath(text) if text.startswith("../") else ""
    if up:  # "../x" leaves the working folder: it can only be meant literally
        return os.path.normpath(os.path.join(cwd, up)), "", True  # noqa: PTH118 - patterns are text, not paths
    return cwd, "" if text == "." else text, text == "."


def _body(rest: str) -> str:
    segments = [segment for segment in rest.split("/") if segment]
    written = list[str]()
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "**":
            written.append(".+" if last else "(?:.*/)?")
        else:
            written.append("".join(_piece(found) for found in _SEGMENT.finditer(segment)) + ("" if last else "/"))
    return "".join(written)


def _piece(found: re.Match[str]) -> str:
    literal, star, question, negated, members, plain = found.groups()
    if star:
        return "[^/]*"
    if question:
        return "[^/]"
    if members is not None:
        inner = re.sub(r"([\[^&~|])", r"\\\1", members.replace("\\", ""))
        return f"(?!/)[{'^' if negated else ''}{inner}]"
    return re.escape(literal or plain)
