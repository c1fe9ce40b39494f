"""Patterns in a rule's parentheses: gitignore-style paths, commands, domains and values.

Command, domain and value patterns are matched without backtracking, so a hostile pattern or text costs nothing extra.
"""

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from socket import inet_aton, inet_ntoa

from callwright.system.search.globs import GITIGNORE, BadClass, BadGlob, glob_regex


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A gitignore-style pattern for absolute paths; it covers what lies below whatever it matches."""

    expression: re.Pattern[str]
    literal: str = ""
    """The folder it is bound to before its first wildcard; empty when it matches at any depth."""
    others: "tuple[PathPattern, ...]" = ()
    """Further readings of the same text, which count too."""

    def matches(self, path: str) -> bool:
        """Compare an absolute path."""
        return self.expression.match(_plain(path)) is not None or any(each.matches(path) for each in self.others)

    def beginnings(self) -> Iterator[str]:
        """Yield the paths it is bound to: all that it matches is one of them, or below it."""
        yield from (self.literal,) if self.literal else ()
        for other in self.others:
            yield from other.beginnings()

    def below(self, folder: str) -> bool:
        """Whether the folder it is bound to lies inside another one."""
        if self.literal and self.literal.casefold().startswith(_plain(folder).rstrip("/").casefold() + "/"):
            return True
        return any(other.below(folder) for other in self.others)

    def reaches(self, folder: str) -> bool:
        """Whether it may match something inside a folder."""
        bound, place = (f"{path.rstrip('/')}/".casefold() for path in (self.literal, _plain(folder)))
        if not self.literal or bound.startswith(place) or place.startswith(bound):
            return True
        return any(other.reaches(folder) for other in self.others)


_SPECIAL = frozenset("*?[\\")


def _plain(path: str) -> str:
    return path if path.isascii() else unicodedata.normalize("NFC", path)


@lru_cache(maxsize=4096)
def path_pattern(text: str, *, base: str, cwd: str, home: str, wide: bool) -> PathPattern:
    """Parse a path pattern.

    `//x` starts at the root of the file system, `~/x` at the home folder, `/x` where the rule was written, `x` and
    `./x` at the working folder, `../x` at its parent. `wide` is for deny and ask: a relative pattern then matches
    anywhere, in any case, `/etc/x` means the file of that name too, and a path through a link means its target too.
    """
    start, written, anchored = _anchor(text, base, cwd, home)
    folder_only = written.endswith("/")
    folder, rest = _resolve_dots(start, written, wide=wide)
    anchored = anchored or folder != start or not rest
    start = folder
    any_depth = not anchored and (wide or "/" not in written.rstrip("/"))  # `./x` is not `x`, which may be anywhere
    found = _bind(start, rest, "/.+" if folder_only and not wide else "(?:/.*)?", any_depth=any_depth, wide=wide)
    others = list[PathPattern]()
    if wide and _may_be_absolute(text):
        others.append(path_pattern(f"/{text}", base=base, cwd=cwd, home=home, wide=True))
    if wide and found.literal and (target := _follow_links(found.literal)) != found.literal:
        bound = found.literal.count("/") - start.rstrip("/").count("/")
        others.append(_bind(target, "/".join(rest.split("/")[bound:]), "(?:/.*)?", any_depth=False, wide=True))
    return replace(found, others=tuple(others))


def _bind(start: str, rest: str, tail: str, *, any_depth: bool, wide: bool) -> PathPattern:
    """Make the pattern of a text that starts at a folder."""
    # a deny on `.env` must also hold in a folder outside the working folder, so it is not bound to one
    inside = "" if wide and any_depth else re.escape(_plain(start.rstrip("/")))
    body = _body(_plain(rest)) if rest else ""
    middle = "/(?:.*/)?" if any_depth else "/" if body else ""
    flags = re.DOTALL | (re.IGNORECASE if wide else 0)
    literal = "" if any_depth else _literal_part(start, rest)
    return PathPattern(re.compile(inside + middle + body + tail + r"\Z", flags), literal)


def _follow_links(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a link that may not be read, a NUL
        return path


def _may_be_absolute(text: str) -> bool:
    """Tell whether a pattern with one slash begins like a path of this machine, which was probably meant."""
    first = text[1:].partition("/")[0]
    return text.startswith("/") and not text.startswith("//") and bool(first) and os.path.isdir(f"/{first}")  # noqa: PTH112 - a text


_STRICT = replace(GITIGNORE, strict=True)


def check_path_pattern(text: str) -> None:
    """Check that every class in brackets can match.

    Raises:
        BadClass: One cannot, so that a deny rule would deny nothing.
    """
    for segment in text.split("/"):
        try:
            glob_regex(segment, _STRICT)
        except BadClass:
            raise
        except BadGlob:
            continue  # an open bracket stands for itself


def _literal_part(start: str, rest: str) -> str:
    segments = list[str]()
    for segment in rest.split("/"):
        if not segment or not _SPECIAL.isdisjoint(segment):
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
    return cwd, text, False


def _resolve_dots(start: str, rest: str, *, wide: bool) -> tuple[str, str]:
    """Return a pattern without `.` and `..`, which no path it is compared with has; a first `..` moves its start up."""
    kept = list[str]()
    for segment in rest.split("/"):
        if segment in ("", "."):
            continue
        if segment != ".." or (kept and not wide):  # after a link, `..` is elsewhere: an allow rule must not guess
            kept.append(segment)
        elif not kept:
            start = os.path.dirname(start.rstrip("/")) or "/"  # noqa: PTH120 - patterns are text, not paths
        elif kept[-1] != "**":  # `a/**/..` is a folder at any depth below `a`
            kept.pop()
    return start, "/".join(kept)


def _body(rest: str) -> str:
    segments = [segment for segment in rest.split("/") if segment]
    written = list[str]()
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "**":
            written.append(".+" if last else "(?:.*/)?")
        else:
            written.append(_segment_regex(segment) + ("" if last else "/"))
    return "".join(written)


def _segment_regex(segment: str) -> str:
    if not segment.strip("*"):
        return "[^/]*"  # git reads *** as **; a rule stays inside one folder name unless it says exactly **
    try:
        return glob_regex(segment, GITIGNORE)
    except BadGlob:  # an open bracket or a last backslash stands for itself, so that a deny rule still matches
        closed = segment + "\\" * ((len(segment) - len(segment.rstrip("\\"))) % 2)
        return glob_regex(re.sub(r"(\\.)|\[", lambda found: found[1] or r"\[", closed), GITIGNORE)


# stands for a space inside one word, so that a literal space in a pattern only matches between words
INNER_SPACE = "\0"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Literal pieces with any text, or none, between them."""

    pieces: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """It has no wildcard."""
        return len(self.pieces) == 1

    def matches(self, text: str) -> bool:
        """Compare the whole text; no backtracking, so a hostile pattern costs nothing extra."""
        if self.exact:
            return text == self.pieces[0]
        first, *middle, last = self.pieces
        if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
            return False
        place, end = len(first), len(text) - len(last)
        for piece in middle:
            found = text.find(piece, place, end)
            if found < 0:
                return False
            place = found + len(piece)
        return True

    def fold_case(self) -> "Wildcard":
        """Return the same pattern without regard to case."""
        return Wildcard(tuple(piece.casefold() for piece in self.pieces))


def wildcard(text: str) -> Wildcard:
    r"""Parse a pattern in which `*` is any text; `\*` and `\\` are literal."""
    pieces, piece = [""], iter(text)
    for character in piece:
        if character == "\\":
            following = next(piece, "")
            pieces[-1] += following if following in ("*", "\\") and following else character + following
        elif character == "*":
            pieces.append("")
        else:
            pieces[-1] += character
    return Wildcard(tuple(pieces))


def escape_wildcards(text: str) -> str:
    """Escape text so that a rule matches it literally."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


_SCRIPTS = re.compile(r"(?P<program>[A-Za-z][\w.-]*) (?:\./)?\*(?P<ending>\.[A-Za-z][A-Za-z0-9]*)")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A pattern for one sub-command: `git log *`, `npm run build`, `git:*`."""

    forms: tuple[Wildcard, ...]
    """The pattern as written and without its quotes; either may match."""
    anything: bool
    """It matches every command."""
    bounded: bool
    """It ends in ` *`: more words may follow."""

    @property
    def exact(self) -> bool:
        """It matches one command only."""
        return all(form.exact for form in self.forms) and not self.bounded

    @property
    def literal_prefix(self) -> str:
        """The text before the first wildcard: all that the pattern says for certain."""
        return self.forms[0].pieces[0].strip()

    @property
    def script_form(self) -> tuple[str, str] | None:
        """The program and the ending of a pattern for scripts of one kind in a folder, such as `node *.mjs`."""
        pieces = self.forms[-1].pieces
        found = _SCRIPTS.fullmatch("*".join(pieces)) if len(pieces) == 2 and not self.bounded else None
        return (found["program"], found["ending"]) if found else None

    def stays_in_word(self, command: tuple[str, ...]) -> bool:
        """Whether a last wildcard that belongs to an operand, as in `build/*`, matched only the rest of that operand.

        A wildcard that completes the program or a word before any operand may stand for more words: `npm run test*`.
        """
        text = self.forms[-1].pieces[0]
        spelled = text.split(" ")
        if self.bounded or self.exact or len(self.forms[-1].pieces) != 2 or self.forms[-1].pieces[1]:
            return True
        last = spelled[-1]
        if len(spelled) < 2 or not last or last.startswith("-") or not _names_operand(spelled):
            return True
        if "://" in last and "/" not in last.partition("://")[2]:
            return False  # the wildcard could complete the host
        return all(word.startswith("-") and "=" not in word for word in command[len(spelled) :])

    @lru_cache(maxsize=4096)  # noqa: B019 - patterns are few and live as long as their rules
    def loosen(self) -> "CommandPattern":
        """Return the pattern without regard to case and to quoted spaces, because neither may evade a deny rule."""
        folded = tuple(form.fold_case() for form in self.forms)
        plain = (Wildcard(tuple(piece.replace(INNER_SPACE, " ") for piece in form.pieces)) for form in folded)
        return CommandPattern(tuple(dict.fromkeys((*folded, *plain))), self.anything, self.bounded)

    def matches(self, text: str) -> bool:
        """Compare one command, its words joined by single spaces."""
        return self.anything or any(self._form_matches(form, text) for form in self.forms)

    def _form_matches(self, form: Wildcard, text: str) -> bool:
        if form.matches(text):
            return True
        # most texts begin otherwise: a command is compared with every rule
        if not self.bounded or not text.startswith(form.pieces[0]):
            return False
        return Wildcard((*form.pieces[:-1], form.pieces[-1] + " ", "")).matches(text)


def _names_operand(spelled: list[str]) -> bool:
    """Whether the last word is a path, an address or follows an option, and not the name of a sub-command."""
    last = spelled[-1]
    return "/" in last or "." in last or ":" in last or any(word.startswith("-") for word in spelled[1:-1])


@lru_cache(maxsize=4096)
def command_pattern(text: str) -> CommandPattern:
    """Parse a command pattern; `:*` and ` *` at the end mean the same, any other `:` is literal."""
    body = " ".join(text.split())
    bounded = body.endswith((":*", " *")) and not body.endswith("\\:*")
    if bounded:
        body = body[:-2].rstrip()
    forms = tuple(dict.fromkeys((wildcard(body), wildcard(_unquote(body)))))
    empty = not any(forms[0].pieces)
    return CommandPattern(forms, anything=empty, bounded=bounded)


def _unquote(text: str) -> str:
    """Remove shell quotes, and mark quoted spaces so that they do not match spaces between words."""
    written, quote = list[str](), ""
    for character in text.strip():
        if quote:
            quote = "" if character == quote else quote
            written.append("" if not quote else INNER_SPACE if character == " " else character)
        elif character in "'\"":
            quote = character
        elif character != " " or (written and written[-1] != " "):
            written.append(character)
    return "".join(written) if not quote else text


def join_words(words: tuple[str, ...]) -> str:
    """Join words in the form command patterns are matched with."""
    return " ".join(mark_spaces(word) for word in words)


def mark_spaces(word: str) -> str:
    """Mark the spaces inside one word, so that they do not match spaces between words."""
    return word.replace(" ", INNER_SPACE) if " " in word else word


_LONGEST_HOST = 253
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_HOST = re.compile(r"(?:[\w.:*-]|[^\x00-\x7f\s])+")
_NUMBERS = re.compile(r"[0-9][0-9a-fx.]*")


@lru_cache(maxsize=1024)
def host_readings(host: str) -> frozenset[str]:
    """Return every spelling of a host that a program could look up; empty if they cannot be listed.

    A name in full-width letters is also the plain one, `xn--bcher-kva.de` is `bücher.de`, and 127.1 is 127.0.0.1.
    """
    labels = _DOTS.split(host.lower())
    while len(labels) > 1 and not labels[-1]:
        labels.pop()
    plain = ".".join(labels)
    if len(plain) > _LONGEST_HOST:  # decoding a long name takes quadratic time
        return frozenset()
    try:
        encoded = [label if label.isascii() else label.encode("idna").decode("ascii") for label in labels]
        decoded = [label[4:].encode().decode("punycode") if label.startswith("xn--") else label for label in labels]
    except UnicodeError:
        return frozenset()
    found = frozenset((plain, ".".join(encoded), ".".join(decoded), _address(plain))) - {""}
    return found if all(_HOST.fullmatch(reading) for reading in found) else frozenset()


def _address(host: str) -> str:
    """Return the usual spelling of an address: 0x7f.1 and 2130706433 are 127.0.0.1; empty for a name."""
    try:
        if _NUMBERS.fullmatch(host):
            return inet_ntoa(inet_aton(host))
        address = ip_address(host)
    except (OSError, ValueError):
        return ""
    return str((address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address)


@lru_cache(maxsize=1024)
def domain_matches(pattern: str, host: str) -> bool:
    """Compare host labels: `*.example.com` is any depth below it, a `*` elsewhere never crosses a dot."""
    pattern, host = pattern.strip().lower().rstrip("."), host.lower().rstrip(".")
    if pattern == "*":
        return bool(host)
    wanted, given = pattern.split("."), host.split(".")
    if wanted[0] == "*":
        wanted, given = wanted[1:], given[1:]
        given = given[-len(wanted) :] if len(given) >= len(wanted) else given
    return len(wanted) == len(given) and all(wildcard(a).matches(b) for a, b in zip(wanted, given, strict=True))
