"""Built-in hooks: `Cache` for reading tools, `PermissionGate` for destructive ones, `Redact` for secrets in outputs."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, cast

from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.content import Output, Text
from callwright.core.errors import ToolError, UsageError
from callwright.core.json import canonical
from callwright.core.spec import Annotations, Effect
from callwright.hooks.base import Answer, Deny, Hook, PendingCall, Proceed, Verdict, await_if_needed
from callwright.hooks.secret_patterns import find_secrets, replace_spans


class Cache(Hook):
    """Caches outputs of tools with the effect READ, by exact arguments and session; any other call clears it.

    Args:
        entries: How many outputs to keep; the least recently used is dropped first.

    Raises:
        UsageError: `entries` is less than 1.
    """

    def __init__(self, entries: int = 256) -> None:
        if entries < 1:
            raise UsageError(f"Cache.entries must be at least 1, got {entries!r}")
        self.entries = entries
        self._known: OrderedDict[str, Output] = OrderedDict()

    def before(self, pending: PendingCall) -> Verdict | None:
        if pending.spec.annotations.effect is not Effect.READ:
            self._known.clear()  # the call may change what was read
            return None
        key = self._key(pending)
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        return Answer(self._known[key])

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Completed) and pending.spec.annotations.effect is Effect.READ:
            self._known[self._key(pending)] = outcome.output
            if len(self._known) > self.entries:
                self._known.popitem(last=False)
        return None

    def _key(self, pending: PendingCall) -> str:
        # with the session: what one user may read must not be answered to another
        return canonical([pending.session_id, pending.spec.name, pending.arguments])


CanUseTool: TypeAlias = Callable[[str, Annotations], bool | Awaitable[bool]]


class PermissionGate(Hook):
    """Denies calls of tools with the effect DESTROY unless a function permits them.

    Args:
        allow: Called with the tool's name and annotations; returns whether the call may run. May be async.
    """

    def __init__(self, allow: CanUseTool) -> None:
        self.allow = allow

    async def before(self, pending: PendingCall) -> Verdict | None:
        annotations = pending.spec.annotations
        if annotations.effect is not Effect.DESTROY or await await_if_needed(
            self.allow(pending.spec.name, annotations)
        ):
            return Proceed()
        return Deny(f"{pending.spec.name} is destructive and was not permitted")


class Redact(Hook):
    """Replaces credentials in tool outputs: text, structured data and error messages.

    Args:
        patterns: Regular expressions of what to replace. By default the formats of several hundred vendors, keys,
            passwords in addresses, and values that are assigned to names such as `password` or `API_KEY`.
        mark: The text to put in its place.
    """

    def __init__(self, patterns: Iterable[str] | None = None, *, mark: str = "[redacted]") -> None:
        listed = None if patterns is None else tuple(patterns)
        self._pattern = None if listed is None else re.compile("|".join(f"(?:{part})" for part in listed) or r"(?!)")
        self._mark = mark

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Completed):
            return replace(outcome, output=self._output(outcome.output))
        if isinstance(outcome, Failed):
            return replace(outcome, error=self._error(outcome.error))
        return None

    def clean(self, text: str) -> str:
        """Replace every match in one text."""
        if self._pattern is not None:
            return self._pattern.sub(lambda _: self._mark, text)
        spans = find_secrets(text)
        return replace_spans(text, spans, self._mark) if spans else text

    def clean_data(self, value: Any) -> Any:
        """Replace every match in the texts of plain data."""
        return self._data(value)

    def _output(self, output: Output) -> Output:
        content = output.content
        if isinstance(content, str):
            content = self.clean(content)
        else:
            content = tuple(Text(self.clean(part.text)) if isinstance(part, Text) else part for part in content)
        return Output(content, self._data(output.structured))

    def _data(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {self.clean(key): self._data(part) for key, part in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._data(part) for part in cast("list[Any]", value)]
        if isinstance(value, tuple):
            return tuple(self._data(part) for part in cast("tuple[Any, ...]", value))
        return value

    def _error(self, error: ToolError) -> ToolError:
        cleaned = error.with_message(self.clean(error.message))
        vars(cleaned).update({name: self._data(value) for name, value in vars(error).items() if name != "message"})
        cleaned.__cause__ = None  # its message may hold the same secret
        return cleaned.with_traceback(None)
