"""The formats of credentials, and the search for them in texts."""

import json
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any

Span = tuple[int, int]

_RUN = re.compile(r"[A-Za-z0-9_+/=~.$:@%?&#!,-]{14,}+")
_ASSIGNMENT = re.compile(
    r"""(?<![A-Za-z0-9_.-])(?<!\w:)([A-Za-z0-9_.-]{3,80}+)\\?["'`]?\]?[ \t]{0,8}(=>|:=|\?=|[:=])[ \t]{0,8}"""
    r"(?=[^\s=])"
)
_KEY_OF = (
    "access account private secret encryption signing master license shared storage service session security deploy "
    "write admin auth app application webhook client consumer integration server ingest subscription primary secondary "
    "root api"
)
_NAME = re.compile(
    rf"""(?ix: pass(?:word|wd|phrase|code)?s?$ | pass(?:word|wd|phrase)[_.-]?\w{{0,12}}$ | pwd$ | secrets?$
    | secret[_.-]?(?:key|token|base|value|access[_.-]?key|key[_.-]?base)$
    | (?:^|[_.-])(?:psk|pat|dsn|jwt|otp|creds?|auth|pass)$ | tokens?$ | token[_.-]?(?:secret|value|key)$ | credentials?$
    | (?:{"|".join(_KEY_OF.split())})[_.-]?keys?(?:[_.-]?data)?$ | (?:session|sess)[_.-]?(?:id|cookie|token)$
    | connection[_.-]?string$ | private[_.-]?key[_.-]?id$ | (?-i:[A-Z0-9]_KEY)$
    | (?-i:[a-z]Key)$ | _auth(?:token)?$ )"""
)
_HARMLESS = re.compile(
    r"(?i:public|next|continuation|change|page|purchase|cancellation|client[_-]?request|idempoten|minipass|askpass)"
)
# words joined by dots or underscores, with one number at most each
_IDENTIFIER = re.compile(
    r"[A-Za-z_]++\d{0,5}[A-Za-z_]*+(?:\.[A-Za-z_]++\d{0,5}[A-Za-z_]*+)++|[a-z]++(?:_[a-z0-9]++)++|[A-Z]++\d*+(?:_[A-Z0-9]++)++"
)
_PASSWORD = re.compile(r"(?i:passw|passphrase|pwd$|pass$)")
_PASSWORD_VALUE = re.compile(r"(?=\D*\d)[!-~]{6,}")
_QUOTED = re.compile(r"""[bruf]{0,2}\\?(["'`])((?!\1)[^\s\\<>{}$][^"'`\s\\]{3,1000}+)\\?["'`]""")
_LISTED = re.compile(rf"""\s{{0,99}}+(?:{_QUOTED.pattern}|"[^"\n]{{0,999}}+"|'[^'\n]{{0,999}}+')(?:\s{{0,99}}+,)?+""")
_BARE = re.compile(r"""([^\s"'`,;(){}\[\]<>\\$&|*][^\s"'`,;(){}\[\]<>\\&|]{3,1000}+)(?![(\[])""")
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_ESCAPE = re.compile(r"\\(?:[nrtbfv]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})")
_SHORTEST = 8
"""No format is shorter: a name of three characters, a sign and a value of four."""
_FOUR = struct.Struct("I").unpack_from
_NEAR = 20
"""A rule whose word is further inside is searched for in the whole text: to try every place before a word is slower."""
_ALSO_EQUAL = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}
"""The letters beyond ASCII that a pattern which ignores case takes for one of ASCII."""
_KINDS = tuple(map(re.compile, (r"[0-9]", r"[a-z]", r"[A-Z]")))


class SecretRule:
    """One format of credentials.

    Args:
        kind: `token`: found in runs without blanks, at the start of a word; `text`: found by the text around a value,
            which must look random; `block`: found anywhere.
        words: Words in lower case of which one occurs in every text that has a match.
        pattern: The expression; its longest group is the secret, or the whole match.
        before: How many characters of a match can precede its first word; None if the word may be anywhere in the text.
    """

    def __init__(self, kind: str, words: tuple[str, ...], pattern: str, before: int | None = None) -> None:
        self.kind, self.words, self.pattern, self.before = kind, words, pattern, before

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        # compiled on first use: most rules are never needed
        return re.compile(rf"(?<![A-Za-z0-9])(?:{self.pattern})" if self.kind == "token" else self.pattern)

    def find(self, text: str, lowered: str) -> Iterator[Span]:
        """Return where the secrets of this format are in a text with one of its words.

        Args:
            text: The text.
            lowered: What `lower_in_place` makes of it.
        """
        for found in self._match(text, lowered):
            first, last = max(found.regs[1:], key=lambda span: span[1] - span[0], default=found.span())
            if self.kind != "text" or looks_random(text[first:last]):
                yield first, last

    def _match(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        if self.before is None or self.before > _NEAR:
            yield from self._expression.finditer(text)
            return
        end = 0
        for place in sorted(place for word in self.words for place in _find_all(word, lowered)):
            for start in range(max(place - self.before, end), place + 1):
                end = start + 1
                if found := self._expression.match(text, start):
                    yield found
                    end = found.end()
                    break


@cache
def secret_rules() -> tuple[tuple[SecretRule, ...], tuple[SecretRule, ...]]:
    """Return the rules about tokens, and those about whole texts."""
    folder = files(__package__ or "")
    listed: dict[str, Any] = json.loads(folder.joinpath("secret_rules.json").read_text("utf-8"))
    rules = [
        SecretRule(rule["kind"], tuple(rule["words"]), rule["pattern"], rule["before"]) for rule in listed["rules"]
    ]
    for line in folder.joinpath("secret_formats.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, before, words, pattern = line.split(None, 3)
            rules.append(SecretRule(kind, tuple(words.split(",")), pattern, None if before == "-" else int(before)))
    return tuple(rule for rule in rules if rule.kind == "token"), tuple(rule for rule in rules if rule.kind != "token")


def find_secrets(text: str) -> list[Span]:
    """Return where the credentials of a text are, in order and without overlaps."""
    if len(text) < _SHORTEST:
        return []
    # blanks in place of colours and of escaped line breaks, which would join a token to the letter before it
    text = _COLOUR.sub(_blank, text) if "\x1b[" in text else text
    lowered = lower_in_place(text)
    rules = _choose_rules(lowered)
    spans = [span for rule in rules if rule.kind != "token" for span in rule.find(text, lowered)]
    if tokens := [rule for rule in rules if rule.kind == "token"]:
        spans.extend(_find_tokens(_ESCAPE.sub(_blank, text) if "\\" in text else text, tokens))
    if "=" in text or ":" in text:
        spans.extend(_find_assigned(text))
    return merge_spans(spans)


def replace_spans(text: str, spans: list[Span], mark: str) -> str:
    """Return a text with a mark in place of every span."""
    parts: list[str] = []
    end = 0
    for first, last in spans:
        parts += (text[end:first], mark)
        end = last
    return "".join((*parts, text[end:]))


def looks_random(value: str) -> bool:
    """Return whether a value is unlike the words, names and numbers of everyday text."""
    kinds = [bool(kind.search(value)) for kind in _KINDS]
    return len(value) >= 8 and len(set(value)) >= 6 and kinds[0] and sum(kinds) >= 2


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def lower_in_place(text: str) -> str:
    """Return a text in lower case, of the same length and of ASCII alone, in which words are found quickly."""
    if not text.isascii():
        for letter, plain in _ALSO_EQUAL.items():
            text = text.replace(letter, plain)
        text = text.encode("ascii", "replace").decode("ascii")
    return text.lower()


def _find_all(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


@cache
def _index_words() -> tuple[list[tuple[str, SecretRule]], dict[int, list[tuple[str, SecretRule]]]]:
    """Return the short words, and the others by their first four characters, with their rules."""
    short: list[tuple[str, SecretRule]] = []
    long: dict[int, list[tuple[str, SecretRule]]] = {}
    for rule in chain(*secret_rules()):
        for word in rule.words:
            (short if len(word) < 4 else long.setdefault(_FOUR(word.encode())[0], [])).append((word, rule))
    return short, long


def _choose_rules(lowered: str) -> set[SecretRule]:
    """Return the rules of which a word occurs in a text."""
    short, long = _index_words()
    # every four characters in a row: to look for hundreds of words one by one takes several times longer
    data = memoryview(lowered.encode())
    fours = {four for shift in range(4) for four in data[shift : shift + (len(data) - shift) // 4 * 4].cast("I")}
    found = [*short, *(each for four in long.keys() & fours for each in long[four])]
    return {rule for word, rule in found if word in lowered}


def _find_tokens(text: str, rules: list[SecretRule]) -> Iterator[Span]:
    runs = [(found.start(), found[0]) for found in _RUN.finditer(text)]
    if not runs:  # most short texts
        return
    starts: list[int] = []
    size = 0
    for _, run in runs:
        starts.append(size)
        size += len(run) + 1
    joined = "\n".join(run for _, run in runs)
    lowered = joined.lower()
    for first, last in chain.from_iterable(rule.find(joined, lowered) for rule in rules):
        number = bisect_right(starts, first) - 1
        shift = runs[number][0] - starts[number]
        yield first + shift, last + shift


def _find_assigned(text: str) -> Iterator[Span]:
    for found in _ASSIGNMENT.finditer(text):
        name = found[1]
        if not _names_secret(name):
            continue
        password = bool(_PASSWORD.search(name))
        if quoted := _QUOTED.match(text, found.end()):
            if password or looks_random(quoted[2]):
                yield quoted.span(2)
            continue
        if text[found.end()] == "[":
            yield from _find_listed(text, found.end() + 1, password=password)
            continue
        bare = _BARE.match(text, found.end())
        if bare is None or _is_expression(bare[1]):
            continue
        # PASSWORD=word, as shells and .env files write it; with blanks it may be a variable of a program
        shouted = password and name.isupper() and text[found.end() - 1] == "="
        if shouted or looks_random(bare[1]) or (password and _PASSWORD_VALUE.fullmatch(bare[1])):
            yield bare.span(1)


def _find_listed(text: str, place: int, *, password: bool) -> Iterator[Span]:
    """Return the secrets of a list in brackets, as JSON and programs write it; it may also list names of fields."""
    while listed := _LISTED.match(text, place):
        value = listed[2] or ""
        if (looks_random(value) or (password and value)) and not _is_expression(value):
            yield listed.span(2)
        place = listed.end()


@lru_cache(4096)  # programs assign to the same names again and again
def _names_secret(name: str) -> bool:
    return bool(_NAME.search(name)) and not _HARMLESS.search(name)


@lru_cache(1024)
def may_tell(key: str, *, long: bool) -> bool:
    """Whether the name of a value may tell that it is a secret.

    Args:
        key: The name.
        long: Whether the value is longer than the secrets that a name tells only together with their own format. A
            short word, such as the `n` of one format, is in almost every name, and a long text is not searched twice.
    """
    lowered = key.lower()
    words = (word for rule in secret_rules()[1] for word in rule.words if len(word) > 2 or not long)
    return bool(_NAME.search(key)) or any(word in lowered for word in words)


def _is_expression(value: str) -> bool:
    return "://" in value or value.rstrip("=").count("=") > 1 or bool(_IDENTIFIER.fullmatch(value))


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return spans in order, those that touch as one."""
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif last > first:
            merged.append((first, last))
    return merged
