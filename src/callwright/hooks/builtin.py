"""Built-in hooks: `Cache` for reading tools, `PermissionGate` for destructive ones, `Redact` for secrets in outputs."""

import json
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, TypeAlias, cast

from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.content import Output, Text
from callwright.core.errors import ToolError, UsageError
from callwright.core.json import canonical, compact
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.hooks.base import Answer, Deny, Hook, PendingCall, Proceed, Verdict, await_if_needed

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


@lru_cache(1024)
def _may_tell(key: str) -> bool:
    """Whether the name of a value may tell that it is a secret."""
    lowered = key.lower()
    return bool(_NAME.search(key)) or any(word in lowered for rule in secret_rules()[1] for word in rule.words)


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


class Cache(Hook):
    """Caches outputs of tools that only read, by exact arguments and session; any other call clears it.

    A tool that only reads has the effect READ, makes no calls itself (`delegates`) and is not in one of the groups
    `ask`, `plan`, `shell` and `todo`, whose tools act on the session. What is read while another call runs is not kept.

    Args:
        entries: How many outputs to keep; the least recently used is dropped first.

    Raises:
        UsageError: `entries` is less than 1.
    """

    def __init__(self, entries: int = 256) -> None:
        if entries < 1:
            raise UsageError(f"Cache.entries must be at least 1, got {entries!r}")
        self.entries = entries
        self._known: OrderedDict[str, tuple[object, Output]] = OrderedDict()
        """By the key of a call, with its tool: another one of the same name reads something else."""
        self._reading: set[int] = set()  # by identity: call ids are unique within one message only

    def before(self, pending: PendingCall) -> Verdict | None:
        if not _only_reads(pending.spec):
            self._clear()
            return None
        key = self._key(pending)
        tool, output = self._known.get(key, (None, None))
        if output is not None and tool is pending.tool:
            self._known.move_to_end(key)
            return Answer(output)
        if len(self._reading) >= self.entries:  # calls that were denied after this hook never end
            self._reading.clear()
        self._reading.add(id(pending.call))
        return None

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if not _only_reads(pending.spec):
            self._clear()
        elif id(pending.call) in self._reading:
            self._reading.discard(id(pending.call))
            if isinstance(outcome, Completed):
                self._known[self._key(pending)] = (pending.tool, outcome.output)
                if len(self._known) > self.entries:
                    self._known.popitem(last=False)
        return None

    def _clear(self) -> None:
        """Forget what was read, and what is being read now: another call may change it."""
        self._known.clear()
        self._reading.clear()

    def _key(self, pending: PendingCall) -> str:
        # with the session: what one user may read must not be answered to another
        # and with the arguments as written: those that are shown may hide a secret
        written = pending.call.arguments
        written = written.decode(errors="replace") if isinstance(written, bytes) else written
        return canonical([pending.session_id, pending.spec.name, pending.arguments, written])


_ACTING_GROUPS = frozenset(("ask", "plan", "shell", "todo"))
"""Their tools change no file, but ask the user, switch the mode, keep a list, or read what a job has written since."""


def _only_reads(spec: ToolSpec) -> bool:
    claims = spec.annotations
    return claims.effect is Effect.READ and not claims.delegates and spec.group not in _ACTING_GROUPS


CanUseTool: TypeAlias = Callable[[str, Annotations], bool | Awaitable[bool]]


class PermissionGate(Hook):
    """Denies calls of tools with the effect DESTROY unless a function permits them.

    Args:
        allow: Called with the tool's name and annotations; the call may run if it returns True itself. May be async.
    """

    def __init__(self, allow: CanUseTool) -> None:
        self.allow = allow

    async def before(self, pending: PendingCall) -> Verdict | None:
        annotations = pending.spec.annotations
        if annotations.effect is not Effect.DESTROY:
            return Proceed()
        allowed = await await_if_needed(self.allow(pending.spec.name, annotations))
        if allowed is True:  # what only counts as true may be a refusal: a verdict, or a text that says no
            return Proceed()
        return Deny(f"{pending.spec.name} is destructive and was not permitted")


class Redact(Hook):
    """Replaces credentials in tool outputs: text, structured data and error messages.

    Args:
        patterns: Regular expressions of what to replace. By default the formats of several hundred vendors, keys,
            passwords in addresses, and values that are assigned to names such as `password` or `API_KEY`.
        mark: The text to put in its place.

    Raises:
        UsageError: `patterns` is one text, of which every character would be a pattern, or one is not valid.
    """

    def __init__(self, patterns: Iterable[str] | None = None, *, mark: str = "[redacted]") -> None:
        if isinstance(patterns, str):
            raise UsageError(f"Redact expects a list of patterns, got the string {patterns!r}; write [{patterns!r}]")
        try:  # each by itself: one may begin with (?i) or refer to a group of its own
            self._patterns = None if patterns is None else tuple(map(re.compile, patterns))
        except re.error as error:
            raise UsageError(f"Redact: {error.pattern!r} is not a regular expression: {error}") from None
        self._mark = mark

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Completed):
            return replace(outcome, output=self._output(outcome.output))
        if isinstance(outcome, Failed):
            return replace(outcome, error=self._error(outcome.error))
        return None

    def clean(self, text: str) -> str:
        """Replace every match in one text."""
        if self._patterns is None:
            spans = find_secrets(text)
        else:
            spans = _merge([found.span() for pattern in self._patterns for found in pattern.finditer(text)])
        return replace_spans(text, spans, self._mark) if spans else text

    def _output(self, output: Output) -> Output:
        content = output.content
        if isinstance(content, str):
            content = self.clean(content)
        else:
            content = tuple(Text(self.clean(part.text)) if isinstance(part, Text) else part for part in content)
        return Output(content, self.clean_data(output.structured))

    def clean_data(self, value: Any) -> Any:
        """Replace every match in the texts of plain data."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {self.clean(key): self._named(key, part) for key, part in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self.clean_data(part) for part in cast("list[Any]", value)]
        if isinstance(value, tuple):
            return tuple(self.clean_data(part) for part in cast("tuple[Any, ...]", value))
        return value

    def _named(self, key: str, value: Any) -> Any:
        """Replace what is found in a value, and what only its name says, as in `"password": "…"`."""
        cleaned = self.clean_data(value)
        if not isinstance(cleaned, (str, int)) or isinstance(cleaned, bool):
            return cleaned
        if self._patterns is None and not _may_tell(key):
            return cleaned
        head = f"{compact(key)}:"
        written = f"{head}{compact(cleaned)}"
        changed = self.clean(written)
        if changed == written:
            return cleaned
        try:  # a part of a longer text
            left: object = json.loads(changed.removeprefix(head))
        except ValueError:
            return self._mark
        return left if isinstance(left, str) else self._mark

    def _error(self, error: ToolError) -> ToolError:
        cleaned = error.with_message(self.clean(error.message))
        vars(cleaned).update({name: self.clean_data(value) for name, value in vars(error).items() if name != "message"})
        cleaned.__cause__ = None  # its message may hold the same secret
        return cleaned.with_traceback(None)
