"""A scripted model: returns prepared replies, for tests and demos."""

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, cast

from callwright.core.calls import ToolCall
from callwright.core.content import Text
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, ModelRequest, ProviderError, TextDelta


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """A reply that streams some text and then fails."""

    text: str
    error: Exception


Line: TypeAlias = AssistantMessage | BrokenOff | ToolCall | str | Exception | Sequence[ToolCall]
"""One reply: a message, or short for one: its text or its calls. An exception is raised."""
Script: TypeAlias = Line | Callable[[ModelRequest], Line]


class ScriptedProvider:
    """Returns its replies in order and records the requests; in a `with` block it checks that all were used.

    Args:
        script: The replies, or functions that make one from the request.
        model: The name the provider reports.

    Raises:
        UsageError: One of them is not a reply.
    """

    def __init__(self, *script: Script, model: str = "scripted") -> None:
        self.model = model
        self.requests: list[ModelRequest] = []
        """The requests so far, each with the messages at that time."""
        for line in script:
            _check(line)
        self._script: deque[Script] = deque(script)
        self._always: Callable[[ModelRequest], Line] | None = None

    @classmethod
    def answering(cls, answer: Callable[[ModelRequest], Line], *, model: str = "scripted") -> "ScriptedProvider":
        """Create a model that makes every reply from the request.

        Args:
            answer: Called with each request; returns the reply.
            model: The name of the model.
        """
        provider = cls(model=model)
        provider._always = answer
        return provider

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "ScriptedProvider":
        """Read a script from JSON: a list of texts or of `{"text": …, "calls": [{"name": …, "arguments": …}]}`.

        A file named `.yaml` or `.yml` is read as YAML where PyYAML is installed.
        """
        lines = _load(Path(path))
        if not isinstance(lines, list):
            raise UsageError(f"{path}: expected a list of replies, got {type(lines).__name__}")
        return cls(*(_line(number, line, path) for number, line in enumerate(cast("list[Any]", lines), 1)))

    def assert_used_up(self) -> None:
        """Fail if replies are left over."""
        assert not self._script, f"the script has replies that were not used: {list(self._script)!r}"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the next reply."""
        message = self._next(request)
        if isinstance(message, BrokenOff):
            yield TextDelta(message.text)
            raise message.error
        for part in message.parts:
            if isinstance(part, Text):
                yield TextDelta(part.text)
            elif isinstance(part, ToolCall):
                yield CallDelta(part.id, part.name, part.arguments if isinstance(part.arguments, str) else "")
        yield MessageDone(message)

    def _next(self, request: ModelRequest) -> AssistantMessage | BrokenOff:
        # a copy, because the history grows later
        self.requests.append(replace(request, messages=tuple(request.messages)))
        if self._always is not None:
            return _message(self._always(request))
        if not self._script:
            raise ProviderError(f"the script is used up: the model got {len(self.requests)} requests", fault="invalid")
        line = self._script.popleft()
        return _message(line(request) if callable(line) else line)

    def __enter__(self) -> "ScriptedProvider":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_used_up()


def _message(line: Line) -> AssistantMessage | BrokenOff:
    match line:
        case AssistantMessage() | BrokenOff():
            return line
        case Exception():
            raise line
        case str():
            return AssistantMessage((Text(line),))
        case ToolCall():
            return AssistantMessage((line,), "calls")
        case _:
            _check(line)
            return AssistantMessage(tuple(line), "calls")


def _check(line: object) -> None:
    """Raise a `UsageError` for what is not a reply, such as a list of texts, which is several."""
    if isinstance(line, (str, AssistantMessage, BrokenOff, ToolCall, Exception)) or callable(line):
        return
    if isinstance(line, Sequence) and all(isinstance(each, ToolCall) for each in cast("Sequence[object]", line)):
        return
    raise UsageError(
        "a reply is a text, a ToolCall, a list of ToolCalls, an AssistantMessage, a BrokenOff or an exception, "
        f"got {line!r}; write several replies as several arguments"
    )


def _load(path: Path) -> object:
    text = path.read_text(encoding="utf-8")
    if path.suffix not in {".yaml", ".yml"}:
        return json.loads(text)
    try:
        import yaml  # type: ignore[import-not-found] - optional
    except ImportError:
        raise UsageError(f"{path}: reading YAML needs PyYAML; install it or write the script as JSON") from None
    return cast(Any, yaml).safe_load(text)


def _line(number: int, line: object, path: str | PathLike[str]) -> Line:
    if isinstance(line, str):
        return line
    if not isinstance(line, dict) or not set(cast("dict[str, Any]", line)) <= {"text", "calls"}:
        raise UsageError(f"{path}: reply {number} must be a text or an object with text and calls")
    given = cast("dict[str, Any]", line)
    text: object = given.get("text") or ""
    calls: object = given.get("calls") or []
    if not isinstance(text, str) or not isinstance(calls, list) or not all(map(_is_call, cast("list[object]", calls))):
        raise UsageError(
            f"{path}: reply {number}: text must be a text, and calls a list of objects with name and arguments"
        )
    parts = [
        ToolCall(call.get("id", f"call-{number}-{place}"), call["name"], call.get("arguments", {}))
        for place, call in enumerate(cast("list[dict[str, Any]]", calls), 1)
    ]
    return AssistantMessage((*((Text(text),) if text else ()), *parts), "calls" if parts else "end")


def _is_call(given: object) -> bool:
    if not isinstance(given, dict):
        return False
    call = cast("dict[str, object]", given)
    return isinstance(call.get("name"), str) and set(call) <= {"id", "name", "arguments"}
