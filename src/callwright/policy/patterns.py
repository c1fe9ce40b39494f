"""How the text in a rule's parentheses matches commands, domains and values. Linear in the text, always."""

from dataclasses import dataclass
from functools import lru_cache

# stands for a space inside one word, so that a literal space in a pattern only matches between words
INNER_SPACE = "\0"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Literal pieces with anything, or nothing, between them."""

    pieces: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """There is no wildcard in it."""
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

    def folded(self) -> "Wildcard":
        """The same without regard to case."""
        return Wildcard(tuple(piece.casefold() for piece in self.pieces))


def wildcard(text: str) -> Wildcard:
    r"""Read `*` as anything; `\*` and `\\` stand for themselves."""
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


def escaped(text: str) -> str:
    """Write text so that a rule takes it literally."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A pattern for one sub-command: `git log *`, `npm run build`, `git:*`."""

    forms: tuple[Wildcard, ...]
    """The pattern as written and with its quotes taken off; each may match."""
    anything: bool
    """It stands for every command."""
    bounded: bool
    """It ends in ` *`: whatever follows starts a new word, and may be missing."""

    @property
    def exact(self) -> bool:
        """It names one command to the letter."""
        return all(form.exact for form in self.forms) and not self.bounded

    @property
    def spelled(self) -> str:
        """What stands before the first wildcard: all the pattern really commits to."""
        return self.forms[0].pieces[0].strip()

    @lru_cache(maxsize=4096)  # noqa: B019 - patterns are few and live as long as their rules
    def loosened(self) -> "CommandPattern":
        """The same whatever the case, and with quoted spaces counted as spaces too: quoting must not evade a deny."""
        folded = tuple(form.folded() for form in self.forms)
        plain = (Wildcard(tuple(piece.replace(INNER_SPACE, " ") for piece in form.pieces)) for form in folded)
        return CommandPattern(tuple(dict.fromkeys((*folded, *plain))), self.anything, self.bounded)

    def matches(self, text: str) -> bool:
        """Compare one command, its words joined by single spaces."""
        return self.anything or any(self._form_matches(form, text) for form in self.forms)

    def _form_matches(self, form: Wildcard, text: str) -> bool:
        if not self.bounded:
            return form.matches(text)
        return form.matches(text) or Wildcard((*form.pieces[:-1], form.pieces[-1] + " ", "")).matches(text)


@lru_cache(maxsize=4096)
def command_pattern(text: str) -> CommandPattern:
    """Read a command pattern; `:*` and ` *` at the end mean the same, any other `:` is literal."""
    body = " ".join(text.split())
    bounded = body.endswith((":*", " *")) and not body.endswith("\\:*")
    if bounded:
        body = body[:-2].rstrip()
    forms = tuple(dict.fromkeys((wildcard(body), wildcard(_unquoted(body)))))
    empty = not any(forms[0].pieces)
    return CommandPattern(forms, anything=empty, bounded=bounded)


def _unquoted(text: str) -> str:
    """Take shell quotes off, keeping quoted spaces apart from the ones between words."""
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


def joined(words: tuple[str, ...]) -> str:
    """Join words the way command patterns read them."""
    return " ".join(word.replace(" ", INNER_SPACE) if " " in word else word for word in words)


@lru_cache(maxsize=1024)
def domain_matches(pattern: str, host: str) -> bool:
    """Compare host labels: `*.example.com` is any depth below it, a `*` elsewhere never crosses a dot."""
    pattern, host = pattern.strip().casefold().rstrip("."), host.casefold().rstrip(".")
    if pattern == "*":
        return bool(host)
    wanted, given = pattern.split("."), host.split(".")
    if wanted[0] == "*":
        wanted, given = wanted[1:], given[1:]
        given = given[-len(wanted) :] if len(given) >= len(wanted) else given
    return len(wanted) == len(given) and all(wildcard(a).matches(b) for a, b in zip(wanted, given, strict=True))
