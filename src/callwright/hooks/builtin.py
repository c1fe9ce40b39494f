"""Built-in hooks: `Cache` for reading tools, `PermissionGate` for destructive ones, `Redact` for secrets in outputs."""

import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, cast

from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.content import Output, Part, Text, text_of_file
from callwright.core.errors import ToolError, UsageError, check_callable
from callwright.core.json import canonical, compact
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.hooks.base import Answer, Deny, Hook, PendingCall, Proceed, Verdict, await_if_needed
from callwright.hooks.secret_formats import find_secrets, may_tell, merge_spans, replace_spans


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

    Raises:
        UsageError: `allow` cannot be called.
    """

    def __init__(self, allow: CanUseTool) -> None:
        check_callable("allow", allow, "write PermissionGate(lambda name, annotations: …)")
        self.allow = allow

    async def before(self, pending: PendingCall) -> Verdict | None:
        annotations = pending.spec.annotations
        if annotations.effect is not Effect.DESTROY:
            return Proceed()
        allowed = await await_if_needed(self.allow(pending.spec.name, annotations))
        if allowed is True:  # what only counts as true may be a refusal: a verdict, or a text that says no
            return Proceed()
        return Deny(f"{pending.spec.name} is destructive and was not permitted")


_LONG = 1000
"""Characters: longer than a secret by itself, unless its name tells it."""


class Redact(Hook):
    """Replaces credentials in tool outputs: text, files that are text, structured data and error messages.

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
            spans = merge_spans([found.span() for pattern in self._patterns for found in pattern.finditer(text)])
        return replace_spans(text, spans, self._mark) if spans else text

    def _output(self, output: Output) -> Output:
        content = output.content
        content = self.clean(content) if isinstance(content, str) else tuple(map(self._part, content))
        return Output(content, self.clean_data(output.structured))

    def _part(self, part: Part) -> Part:
        if isinstance(part, Text):
            return Text(self.clean(part.text))
        text = text_of_file(part)
        cleaned = None if text is None else self.clean(text)
        return part if cleaned is None or cleaned == text else replace(part, data=cleaned.encode("utf-8", "replace"))

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

    def _named(self, key: str, value: Any, opening: str = "") -> Any:
        """Replace what is found in a value, and what only its name says, as in `"password": "…"` or `["…"]`."""
        if isinstance(value, (list, tuple)) and self._patterns is None:
            parts = [self._named(key, part, "[") for part in cast("list[Any] | tuple[Any, ...]", value)]
            return parts if isinstance(value, list) else tuple(parts)
        cleaned = self.clean_data(value)
        if not isinstance(cleaned, (str, int)) or isinstance(cleaned, bool):
            return cleaned
        long = isinstance(cleaned, str) and len(cleaned) > _LONG
        if self._patterns is None and not may_tell(key, long=long):
            return cleaned
        head = f"{compact(key)}:{opening}"
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
