"""Finds credentials in text, for `Redact`. It reduces leaks and cannot find every secret.

Two sources: the rules of a maintained scanner (`secret_rules.json`, written by `scripts/secret_rules`), and
`secret_formats.txt` for formats that those leave to checks Python cannot do in linear time. A rule is tried only if one
of its words occurs, and rules about tokens see only the long runs of characters without blanks, which are a tenth of
an ordinary text. Every repetition is bounded, so the time grows with the length of the text alone.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property
from importlib.resources import files
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
_BARE = re.compile(r"""([^\s"'`,;(){}\[\]<>\\$&|*][^\s"'`,;(){}\[\]<>\\&|]{3,1000}+)(?![(\[])""")
_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_ESCAPE = re.compile(r"\\(?:[nrtbfv]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})")
_SHORTEST = 8
"""No format is shorter: a name of three characters, a sign and a value of four."""
_KINDS = tuple(map(re.compile, (r"[0-9]", r"[a-z]", r"[A-Z]")))


class SecretRule:
    """One format of credentials.

    Args:
        kind: `token`: found in runs without blanks, at the start of a word; `text`: found by the text around a value,
            which must look random; `block`: found anywhere.
        words: Words in lower case of which one occurs in every match.
        pattern: The expression; its longest group is the secret, or the whole match.
    """

    def __init__(self, kind: str, words: tuple[str, ...], pattern: str) -> None:
        self.kind, self.words, self.pattern = kind, words, pattern

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        # compiled on first use: most rules are never needed
        return re.compile(rf"(?<![A-Za-z0-9])(?:{self.pattern})" if self.kind == "token" else self.pattern)

    def find(self, text: str) -> Iterator[Span]:
        """Return where the secrets of this format are."""
        for found in self._expression.finditer(text):
            first, last = max(found.regs[1:], key=lambda span: span[1] - span[0], default=found.span())
            if self.kind != "text" or looks_random(text[first:last]):
                yield first, last


@cache
def secret_rules() -> tuple[tuple[SecretRule, ...], tuple[SecretRule, ...]]:
    """Return the rules about tokens, and those about whole texts."""
    folder = files(__package__ or "")
    listed: dict[str, Any] = json.loads(folder.joinpath("secret_rules.json").read_text("utf-8"))
    rules = [SecretRule(rule["kind"], tuple(rule["words"]), rule["pattern"]) for rule in listed["rules"]]
    for line in folder.joinpath("secret_formats.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, words, pattern = line.split(None, 2)
            rules.append(SecretRule(kind, tuple(words.split("|")), pattern))
    return tuple(rule for rule in rules if rule.kind == "token"), tuple(rule for rule in rules if rule.kind != "token")


def find_secrets(text: str) -> list[Span]:
    """Return where the credentials of a text are, in order and without overlaps."""
    if len(text) < _SHORTEST:
        return []
    tokens, contexts = secret_rules()
    # blanks in place of colours and of escaped line breaks, which would join a token to the letter before it
    text = _COLOUR.sub(_blank, text) if "\x1b[" in text else text
    spans = [*_find_tokens(_ESCAPE.sub(_blank, text) if "\\" in text else text, tokens), *_apply(contexts, text)]
    if "=" in text or ":" in text:
        spans.extend(_find_assigned(text))
    return _merge(spans)


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


def _apply(rules: tuple[SecretRule, ...], text: str) -> Iterator[Span]:
    lowered = text.lower()
    for rule in rules:
        for word in rule.words:
            if word in lowered:
                yield from rule.find(text)
                break


def _find_tokens(text: str, rules: tuple[SecretRule, ...]) -> Iterator[Span]:
    runs = [(found.start(), found[0]) for found in _RUN.finditer(text)]
    if not runs:  # most short texts
        return
    starts: list[int] = []
    size = 0
    for _, run in runs:
        starts.append(size)
        size += len(run) + 1
    for first, last in _apply(rules, "\n".join(run for _, run in runs)):
        number = bisect_right(starts, first) - 1
        shift = runs[number][0] - starts[number]
        yield first + shift, last + shift


def _find_assigned(text: str) -> Iterator[Span]:
    for found in _ASSIGNMENT.finditer(text):
        name = found[1]
        if not _NAME.search(name) or _HARMLESS.search(name):
            continue
        password = bool(_PASSWORD.search(name))
        if quoted := _QUOTED.match(text, found.end()):
            if password or looks_random(quoted[2]):
                yield quoted.span(2)
            continue
        bare = _BARE.match(text, found.end())
        if bare is None or _is_expression(bare[1]):
            continue
        # PASSWORD=word, as shells and .env files write it; with blanks it may be a variable of a program
        shouted = password and name.isupper() and text[found.end() - 1] == "="
        if shouted or looks_random(bare[1]) or (password and _PASSWORD_VALUE.fullmatch(bare[1])):
            yield bare.span(1)


def _is_expression(value: str) -> bool:
    return "://" in value or value.rstrip("=").count("=") > 1 or bool(_IDENTIFIER.fullmatch(value))


def _merge(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif last > first:
            merged.append((first, last))
    return merged
