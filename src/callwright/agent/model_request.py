"""Requests to the model, with retries of transient failures."""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from callwright.agent.replay import ensure_unique_ids
from callwright.agent.results import ModelRetried
from callwright.agent.transcript import Transcript
from callwright.core.calls import ToolCall
from callwright.core.content import Text
from callwright.core.errors import Transient, UsageError, check_kind, check_number, describe_raised, safe_repr
from callwright.core.json import FrozenDict, Json
from callwright.core.messages import NO_USAGE, AssistantMessage, Thinking, Usage
from callwright.executor.driver import count_cancellations, drive_on, is_cancelling, next_order, take_first_step
from callwright.providers.base import MessageDone, ModelRequest, Provider, ProviderError
from callwright.retry import Clock, RetryPolicy, WallClock

_GRACE_SECONDS = 5.0
"""How long a request that was cancelled may take to end before it is abandoned."""
_MAX_DELAY_SECONDS = 300.0
"""A provider that asks for a longer delay is treated as failed: a run should not look hung."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Options of the requests to the model.

    Args:
        max_tokens: The most tokens of one answer.
        options: Vendor options, passed through to the provider.
        retry: How often and after which delays a transient failure is retried.
        clock: Waits between attempts; replaced in tests.

    Raises:
        UsageError: `max_tokens` is not a positive whole number, or another option is of the wrong kind.
    """

    max_tokens: int = 8_192
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    retry: RetryPolicy = RetryPolicy(max_attempts=4, initial_seconds=1.0)
    clock: Clock = field(default_factory=WallClock)

    def __post_init__(self) -> None:
        check_number("Requests.max_tokens", self.max_tokens, 1, whole=True)
        check_kind("Requests.options", self.options, Mapping, "write options={…}, with the vendor's names")
        check_kind("Requests.retry", self.retry, RetryPolicy, "write retry=RetryPolicy(max_attempts=2)")


class RequestWatch(Protocol):
    """Follows a request to the model and its repetitions."""

    def on_event(self) -> None:
        """Called with each part of the answer that arrives."""
        ...

    def on_retry(self, error: ProviderError, attempt: int, delay_seconds: float) -> None:
        """Called before a failed request is repeated."""
        ...


def ask_model(
    provider: Provider,
    request: ModelRequest,
    requests: Requests,
    transcript: Transcript,
    watch: RequestWatch | None = None,
) -> Awaitable[AssistantMessage]:
    """Return the model's complete message.

    A failed request has produced nothing but deltas, so retrying it repeats no effect.

    Raises:
        ProviderError: The last failure, when retries are exhausted or pointless.
        TimeoutError: The run was stopped.
    """
    asking = _ask_with_retries(provider, request, requests, transcript, watch)
    return asking if transcript.watch.cancellation is None else _ask_until_cancelled(asking, transcript)


async def _ask_until_cancelled(asking: Awaitable[AssistantMessage], transcript: Transcript) -> AssistantMessage:
    async with transcript.watch.time_out():
        return await asking


async def _ask_with_retries(
    provider: Provider, request: ModelRequest, requests: Requests, transcript: Transcript, watch: RequestWatch | None
) -> AssistantMessage:
    attempt = 1
    while True:
        try:
            order = next_order()
            steps, ended, waits_for = take_first_step(_ask_once(provider, request, transcript, watch))
            if not ended:  # as `drive` does, without a coroutine of its own
                await drive_on(steps, ended, waits_for, _GRACE_SECONDS, order, count_cancellations())
            message = ended[0]
            return message if _is_usual(message) else _check_message(message)
        except ProviderError as error:
            failure = error
        except (UsageError, KeyboardInterrupt, GeneratorExit):
            raise
        # SDKs let some transport errors through; for the caller they are provider failures like any other.
        except (ConnectionError, EOFError, TimeoutError) as error:
            failure = ProviderError(f"the connection broke: {describe_raised(error)}", fault="transient")
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelling():
                raise
            failure = ProviderError(f"the provider failed: {describe_raised(error)}", fault="unavailable")
            failure.__cause__ = error
        delay = requests.retry.delay(Transient(str(failure), retry_after=failure.retry_after), attempt)
        if failure.fault != "transient" or attempt >= requests.retry.max_attempts or delay > _MAX_DELAY_SECONDS:
            raise failure
        transcript.emit_event(ModelRetried(failure, attempt, delay))
        if watch is not None:
            watch.on_retry(failure, attempt, delay)
        await requests.clock.sleep(delay)
        attempt += 1


def _check_message(message: object) -> AssistantMessage:
    """Refuse what is not a message: stored, it would make the session unreadable. Every call gets a unique id."""
    if isinstance(message, AssistantMessage) and _is_usage(message.usage):
        parts, stop, model = cast("tuple[Any, Any, Any]", (message.parts, message.stop, message.model))
        known = isinstance(stop, str) and isinstance(model, str) and issubclass(type(parts), (tuple, list))
        if known and all(map(_is_part, parts)):
            return ensure_unique_ids(_drop_refused_calls(message))
    raise ProviderError(f"the provider returned a malformed message: {safe_repr(message)}", fault="unavailable")


def _drop_refused_calls(message: AssistantMessage) -> AssistantMessage:
    """Leave out calls that must not run: the server took the message back, or may not have finished it."""
    if message.stop not in ("refusal", "other"):
        return message
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolCall)))


def _is_usage(usage: Any) -> bool:
    if type(usage) is not Usage:
        return False
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return {*map(type, counts)} == {int}


def _is_usual(message: Any) -> bool:
    """Tell quickly of the commonest message that it is one: a single call, with an id and arguments as text."""
    if type(message) is not AssistantMessage or type(parts := message.parts) is not tuple or len(parts) != 1:
        return False
    call: Any = parts[0]
    if type(call) is not ToolCall or not type(call.arguments) is type(call.name) is type(call.id) is str:
        return False
    plain = type(message.stop) is type(message.model) is str and message.stop == "calls"
    return plain and call.id != "" and (message.usage is NO_USAGE or _is_usage(message.usage))


def _is_part(part: Any) -> bool:
    if issubclass(type(part), ToolCall):  # the abstract class last: asking it takes ten times as long
        known = isinstance(part.arguments, (str, bytes)) or _is_writable(part.arguments)
        return known and isinstance(part.id, str) and isinstance(part.name, str)
    return isinstance(part, Text) or (issubclass(type(part), Thinking) and isinstance(part.text, str))


def _is_writable(arguments: object) -> bool:
    """Whether arguments can be compared and stored: not with keys of several types, or nested too deeply."""
    try:
        return isinstance(arguments, (dict, Mapping)) and bool(json.dumps(arguments, sort_keys=True, default=str))
    except Exception:  # noqa: BLE001 - a provider's own objects may fail with anything
        return False


async def _ask_once(
    provider: Provider, request: ModelRequest, transcript: Transcript, watch: RequestWatch | None
) -> AssistantMessage:
    emit = transcript.emit if request.shown else None
    stream = provider.stream(request)
    try:
        async for event in stream:
            if watch is not None:
                watch.on_event()
            if isinstance(event, MessageDone):
                return event.message
            if emit is not None:
                emit(event)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:  # an open generator would keep the connection of an abandoned request
            await close()
    raise ProviderError("the stream ended before the message was complete", fault="transient")
