"""Retries: which errors are repeated, how often, and after which delay."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from email.message import Message
from functools import partial
from typing import Annotated, Any
from urllib.error import HTTPError
from uuid import UUID, uuid4

import pytest
from pydantic import Field, SecretStr

from callwright import (
    Annotations,
    Arguments,
    Completed,
    Effect,
    Executor,
    Failed,
    Limits,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Transient,
    Turn,
    TypedTool,
    UsageError,
    tool,
)
from callwright.core.raised import is_transient_status
from callwright.policy import AllowEverything
from callwright.retry import RetryPolicy
from callwright.testing import FakeClock, Flaky
from callwright.tool.typed import describe

SHORT = Limits(seconds=0.02)


class Item(Arguments):
    """Something with an identifier of its own, and with what a tool may change."""

    tags: list[str]
    id: UUID = Field(default_factory=uuid4)


class Tags(Arguments):
    """What a tool may change."""

    tags: list[str]


class StoringTags(TypedTool[Tags]):
    spec = describe("store", "Store tags, at the second attempt.", effect=Effect.READ)

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def run(self, arguments: Tags, context: ToolContext) -> str:
        return store(self.seen, arguments.tags, None)


class StoringItem(TypedTool[Item]):
    spec = describe("store", "Store an item, at the second attempt.", effect=Effect.READ)

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def run(self, arguments: Item, context: ToolContext) -> str:
        return store(self.seen, arguments.tags, arguments.id)


def store(seen: list[str], tags: list[str], identifier: UUID | None) -> str:
    tags.append("stored")
    seen.append(f"{tags} {identifier}")
    if len(seen) == 1:
        raise Transient("busy")
    return "ok"


async def test_function_is_retried_with_the_same_arguments() -> None:
    seen: list[str] = []

    @tool(effect=Effect.READ)
    async def plain(tags: list[str]) -> str:
        """Store tags."""
        return store(seen, tags, None)

    @tool(effect=Effect.READ)
    async def secret(tags: list[str], key: SecretStr) -> str:
        """Store tags with a key."""
        return store(seen, tags, None)

    @tool(effect=Effect.READ)
    async def identified(tags: list[str], key: Annotated[UUID, Field(default_factory=uuid4)]) -> str:
        """Store tags under an identifier."""
        return store(seen, tags, key)

    @tool(effect=Effect.READ)
    def inside(item: Item) -> str:
        """Store an item."""
        return store(seen, item.tags, item.id)

    executor = Executor(Registry(plain, secret, identified, inside), AllowEverything(), clock=FakeClock())
    for name, arguments in (
        ("plain", {"tags": ["a"]}),
        ("secret", {"tags": ["a"], "key": "k"}),
        ("identified", {"tags": ["a"]}),
        ("inside", {"item": {"tags": ["a"]}}),
    ):
        for _ in range(2):  # only the second call may take the fast path
            seen.clear()
            outcome = await executor.run(name, arguments)
            assert isinstance(outcome, Completed) and outcome.attempts == 2
            assert seen[0] == seen[1], name


async def test_typed_tool_is_retried_with_the_same_arguments() -> None:
    for made in (StoringTags(), StoringItem()):
        outcome = await Executor(Registry(made), clock=FakeClock()).run("store", {"tags": ["a"]})
        assert isinstance(outcome, Completed) and outcome.attempts == 2
        assert made.seen[0] == made.seen[1]


async def test_transient_failure_is_retried_with_backoff() -> None:
    clock = FakeClock()
    executor = Executor(Registry(Flaky(Transient("busy"), Transient("busy"))), clock=clock, retry=RetryPolicy(jitter=0))
    outcome = await executor.run("flaky")
    assert isinstance(outcome, Completed) and outcome.attempts == 3
    assert clock.slept == [0.5, 1.0]
    assert executor.stats["flaky"].calls == 1 and executor.stats["flaky"].attempts == 3


async def test_last_attempt_reports_the_number_of_attempts() -> None:
    clock = FakeClock()
    outcome = await Executor(Registry(Flaky(*[Transient("busy")] * 5)), clock=clock).run("flaky")
    assert isinstance(outcome, Failed) and outcome.attempts == 3
    assert "busy" in outcome.text and "tried 3 times" in outcome.text
    assert len(clock.slept) == 2


async def test_idempotency_key_is_the_same_for_every_attempt() -> None:
    flaky = Flaky(Transient("a"), Transient("b"))
    executor = Executor(Registry(flaky), clock=FakeClock())
    await executor.run("flaky")
    await executor.run("flaky")
    assert len(set(flaky.keys[:3])) == 1
    assert flaky.keys[3] != flaky.keys[0]


async def test_idempotency_key_differs_by_session_turn_and_call() -> None:
    keys: list[str] = []

    @tool(effect=Effect.READ)
    async def note(context: ToolContext) -> str:
        """Note the key."""
        keys.append(context.idempotency_key)
        return "noted"

    for session, turn, call in (("a", "1", "c"), ("b", "1", "c"), ("a", "2", "c"), ("a", "1", "d"), ("a", "1", "c")):
        await Executor(Registry(note)).execute([ToolCall(call, "note")], turn=Turn(session, turn))
    assert len(set(keys)) == 4 and keys[0] == keys[-1], "another executor, as after a restart, gives the same"


async def test_idempotency_keys_of_two_executors_differ_outside_a_turn() -> None:
    keys: list[str] = []

    @tool(effect=Effect.READ)
    async def note(context: ToolContext) -> str:
        """Note the key."""
        keys.append(context.idempotency_key)
        return "noted"

    for turn in (Turn(), Turn("session")):
        for _ in range(2):  # two processes begin to count at the same number
            executor = Executor(Registry(note))
            await executor.run("note", turn=turn)
            await executor.execute([ToolCall("1", "note")], turn=turn)
    assert len(set(keys)) == len(keys) == 8


async def test_idempotency_keys_of_nested_calls_include_the_outer_call() -> None:
    keys: list[str] = []

    @tool(effect=Effect.READ)
    async def note(n: int, context: ToolContext) -> str:
        """Note the key."""
        keys.append(context.idempotency_key)
        return "noted"

    @tool(effect=Effect.READ)
    async def outer(context: ToolContext) -> str:
        """Call twice with one id."""
        for n in range(2):
            await context.execute(ToolCall("x", "note", {"n": n}))
        return "done"

    for _ in range(2):  # the second time as after a restart
        calls = [ToolCall("a", "outer"), ToolCall("b", "outer")]
        await Executor(Registry(note, outer), width=1).execute(calls, turn=Turn("s", "t"))
    assert len(set(keys)) == 4 and keys[:4] == keys[4:]


def test_delays_grow_up_to_the_longest() -> None:
    policy = RetryPolicy(max_attempts=9, initial_seconds=1, longest_seconds=5, jitter=0)
    assert [policy.delay(Transient("busy"), attempt) for attempt in range(1, 6)] == [1, 2, 4, 5, 5]


def test_delay_stays_the_longest_after_thousands_of_attempts() -> None:
    policy = RetryPolicy(max_attempts=10_000, initial_seconds=0.1, longest_seconds=5, jitter=0)
    assert policy.delay(Transient("busy"), 5_000) == 5
    assert RetryPolicy(initial_seconds=0, jitter=0).delay(Transient("busy"), 5_000) == 0


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        ("7", [7.0, 7.0]),
        (timedelta(seconds=7), [7.0, 7.0]),
        ("Wed, 21 Oct 2026 07:28:00 GMT", [1.0, 2.0]),
        (float("nan"), [1.0, 2.0]),
        ([7], [1.0, 2.0]),
        (10**400, []),
    ],
)
async def test_retry_after_may_be_what_stands_in_a_header(given: Any, waits: list[float]) -> None:
    clock = FakeClock()

    @tool(effect=Effect.READ)
    async def ask() -> str:
        """Ask a busy server."""
        raise Transient("busy", retry_after=given)

    policy = RetryPolicy(initial_seconds=1, jitter=0)
    outcome = await Executor(Registry(ask), retry=policy, clock=clock).run("ask")
    assert isinstance(outcome, Failed) and outcome.attempts == len(waits) + 1
    assert clock.slept == waits


async def test_retry_after_of_the_server_is_respected() -> None:
    clock = FakeClock()
    await Executor(Registry(Flaky(Transient("busy", retry_after=7.0))), clock=clock).run("flaky")
    assert clock.slept == [7.0]


@pytest.mark.parametrize("error", [ToolFailed("no"), ValueError("bug")])
async def test_other_errors_are_not_retried(error: Exception) -> None:
    flaky = Flaky(error)
    outcome = await Executor(Registry(flaky), clock=FakeClock()).run("flaky")
    assert isinstance(outcome, Failed) and len(flaky.keys) == 1


async def test_broken_connection_is_retried_only_if_harmless() -> None:
    reading = Flaky(ConnectionResetError("reset"))
    assert isinstance(await Executor(Registry(reading), clock=FakeClock()).run("flaky"), Completed)

    attempts = 0

    @tool(effect=Effect.WRITE)
    async def order() -> str:
        """Order something."""
        nonlocal attempts
        attempts += 1
        raise ConnectionResetError("reset")

    outcome = await Executor(Registry(order), AllowEverything(), clock=FakeClock()).run("order")
    assert isinstance(outcome, Failed) and outcome.error.code == "transient"
    assert attempts == 1


async def test_timeout_is_retried_only_if_idempotent() -> None:
    for idempotent, expected in ((True, 3), (False, 1)):

        @tool(annotations=Annotations(Effect.READ, idempotent=idempotent), limits=SHORT)
        async def stall() -> str:
            """Stall."""
            await asyncio.sleep(60)
            return "late"

        outcome = await Executor(Registry(stall), clock=FakeClock()).run("stall")
        assert isinstance(outcome, Failed) and outcome.attempts == expected


def test_retry_policy_without_attempts_raises() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        RetryPolicy(max_attempts=0)


def test_transient_http_statuses() -> None:
    assert [status for status in (400, 401, 404, 408, 429, 500, 502, 503, 529) if not is_transient_status(status)] == [
        400,
        401,
        404,
    ]


def _http_error(status: int, headers: dict[str, str] | None = None) -> Exception:
    httpx: Any = pytest.importorskip("httpx")  # only the main environment has it
    request = httpx.Request("GET", "http://localhost/")
    response = httpx.Response(status, headers=headers, request=request)
    return httpx.HTTPStatusError(f"status {status}", request=request, response=response)


def _refused() -> Exception:
    httpx: Any = pytest.importorskip("httpx")  # as above
    error = httpx.ConnectError("all connection attempts failed")
    error.__cause__ = OSError("all connection attempts failed")
    error.__cause__.__cause__ = ConnectionRefusedError("refused")
    return error


class _Hostile(Exception):
    @property
    def response(self) -> object:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("make", "attempts"),
    [
        (partial(_http_error, 429), 3),
        (partial(_http_error, 503), 3),
        (partial(_http_error, 404), 1),
        (partial(HTTPError, "http://localhost/", 502, "Bad Gateway", Message(), None), 3),
        (partial(HTTPError, "http://localhost/", 400, "Bad Request", Message(), None), 1),
        (_refused, 3),
        (partial(_Hostile, "x"), 1),
    ],
)
async def test_http_errors_of_other_libraries_are_retried_if_they_may_pass(
    make: Callable[[], Exception], attempts: int
) -> None:
    raised = make()

    @tool(effect=Effect.READ)
    async def ask() -> str:
        """Ask."""
        raise raised

    outcome = await Executor(Registry(ask), clock=FakeClock()).run("ask")
    assert isinstance(outcome, Failed)
    assert outcome.attempts == attempts
    assert outcome.error.code == ("transient" if attempts > 1 else "crashed")


async def test_passing_status_is_not_retried_where_a_repeat_may_do_harm() -> None:
    raised = _http_error(503)

    @tool(effect=Effect.WRITE)
    async def order() -> str:
        """Order."""
        raise raised

    outcome = await Executor(Registry(order), AllowEverything(), clock=FakeClock()).run("order")
    assert isinstance(outcome, Failed) and outcome.attempts == 1


async def test_wait_that_the_server_asks_for_is_kept() -> None:
    raised = _http_error(429, {"Retry-After": "7"})

    @tool(effect=Effect.READ)
    async def ask() -> str:
        """Ask."""
        raise raised

    clock = FakeClock()
    await Executor(Registry(ask), clock=clock).run("ask")
    assert clock.slept == [7.0, 7.0]
