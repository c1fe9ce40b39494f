"""`Cache`: the same question asked twice is answered once.

`PermissionGate`: one callable decides about everything that destroys.

`Redact`: what must not be seen is taken out before anyone but the tool has seen it.
"""

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


class Cache(Hook):
    """Remembers the outputs of READ tools by exact arguments and session; anything that writes empties it."""

    def __init__(self, entries: int = 256) -> None:
        if entries < 1:
            raise UsageError(f"Cache.entries must be at least 1, not {entries!r}")
        self.entries = entries
        self._known: OrderedDict[str, Output] = OrderedDict()

    def before(self, pending: PendingCall) -> Verdict | None:
        if pending.spec.annotations.effect is not Effect.READ:
            self._known.clear()  # what was read may be what is about to change
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
        return canonical([pending.session_id, pending.spec.name, pending.arguments])


CanUseTool: TypeAlias = Callable[[str, Annotations], bool | Awaitable[bool]]


class PermissionGate(Hook):
    """Refuses a tool of effect DESTROY unless `allow(name, annotations)` says yes; it may be async."""

    def __init__(self, allow: CanUseTool) -> None:
        self.allow = allow

    async def before(self, pending: PendingCall) -> Verdict | None:
        annotations = pending.spec.annotations
        if annotations.effect is not Effect.DESTROY or await await_if_needed(
            self.allow(pending.spec.name, annotations)
        ):
            return Proceed()
        return Deny(f"{pending.spec.name} destroys things and was not permitted")


SECRETS = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\bxox[abpr]-[A-Za-z0-9-]{10,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
)
"""Shapes of well-known credentials; a seat-belt, not a promise."""


class Redact(Hook):
    """Replaces every match of the patterns in what tools say: text, structured data and error messages."""

    def __init__(self, patterns: Iterable[str] = SECRETS, *, mark: str = "[redacted]") -> None:
        self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
        self._mark = mark

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        if isinstance(outcome, Completed):
            return replace(outcome, output=self._output(outcome.output))
        if isinstance(outcome, Failed):
            return replace(outcome, error=self._error(outcome.error))
        return None

    def clean(self, text: str) -> str:
        """Take the secrets out of one text."""
        return self._pattern.sub(self._mark, text)

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
        cleaned.__cause__ = None  # it may say the same again
        return cleaned.with_traceback(None)
