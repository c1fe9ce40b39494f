"""Parts of the user's own that are incomplete are refused where they are given; a provider's message, when it comes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from callwright import (
    Agent,
    Effect,
    Executor,
    MemoryStore,
    Policy,
    Registry,
    SqliteStore,
    ToolCall,
    UsageError,
    tool,
)
from callwright.agent import Done, Stopped
from callwright.agent.graph import Graph
from callwright.core.access import Access, Ask, Decision
from callwright.core.content import Text
from callwright.core.events import Event
from callwright.core.messages import AssistantMessage, Stop, Usage
from callwright.hooks import Hook
from callwright.policy import Policies, Subject
from callwright.providers.base import ModelEvent, ModelRequest, Provider
from callwright.registry import Catalog, Toolset
from callwright.sessions import SessionStore
from callwright.sessions.records import Said
from callwright.testing import ScriptedProvider


class SaveOnly:
    def save(self, session: str) -> None: ...


class Misnamed(SessionStore):
    def save(self, session: str) -> None: ...


class WithoutSearch(MemoryStore):
    search = SessionStore.search  # as inherited from the protocol: it returns None


class Mute(Provider):
    @property
    def model(self) -> str:
        return "mute"


class Awaited:
    model = "awaited"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        raise NotImplementedError


class Nameless:
    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        raise NotImplementedError


class Uncounted:
    def snapshot(self) -> Catalog:
        return Catalog({})


class Unmade(Toolset):
    @property
    def changes(self) -> int:
        return 0


class Listener:
    def on_event(self, event: Event) -> None: ...


class AsyncListener:
    async def __call__(self, event: Event) -> None: ...


class AsyncPolicy(Policy):
    async def judge(self, access: Access, subject: Subject) -> Decision | None:  # type: ignore[override] - the mistake
        return None


class AsyncSettler(Policy):
    async def settle(self, ask: Ask) -> Decision:  # type: ignore[override] - the mistake
        return ask


class Deaf(Hook):
    def before(self, pending: object) -> None: ...


async def async_observer(event: Event) -> None: ...


WRONG_STORES = {
    "no store": (SaveOnly(), r"expected a session store, got .*; write MemoryStore\(\) or SqliteStore\(path\)"),
    "a class": (MemoryStore, "got the class MemoryStore; pass an instance"),
    "a path": ("sessions.db", r"use sessions=SqliteStore\('sessions\.db'\)"),
    "nothing defined": (
        cast(Any, Misnamed)(),
        "Misnamed does not define delete, durable, find, fork, hold, .*version",
    ),
    "one missing": (WithoutSearch(), "WithoutSearch does not define search; a SessionStore needs them"),
}


@pytest.mark.parametrize(("given", "said"), WRONG_STORES.values(), ids=WRONG_STORES)
def test_incomplete_store_is_refused(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Agent(ScriptedProvider(), sessions=given)
    with pytest.raises(UsageError, match=said):
        Graph(dict, sessions=given)


WRONG_PROVIDERS = {
    "none": (None, r"expected a model name such as .* or a Provider, got None"),
    "a class": (ScriptedProvider, "got the class ScriptedProvider"),
    "no stream": (cast(Any, Mute)(), "Mute does not define stream"),
    "no name": (Nameless(), "Nameless does not define model"),
    "a coroutine": (Awaited(), r"Awaited\.stream returns a coroutine"),
}


@pytest.mark.parametrize(("given", "said"), WRONG_PROVIDERS.values(), ids=WRONG_PROVIDERS)
def test_incomplete_provider_is_refused(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Agent(given)


@pytest.mark.parametrize("kind", [Uncounted, Unmade])
def test_incomplete_toolset_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match=f"{kind.__name__} does not define "):
        Executor(kind())
    with pytest.raises(UsageError, match=f"{kind.__name__} does not define "):
        Agent(ScriptedProvider(), kind())


WRONG_OBSERVERS = {
    "other method": (Listener(), "expected an observer, got .*__call__"),
    "in a list": ([Listener()], "expected an observer, got .*__call__"),
    "a class": (Listener, "expected an observer, got .*__call__"),
    "a number": (3, "expected an observer, got 3"),
    "async function": (async_observer, "is async and would never run"),
    "async object": (AsyncListener(), "is async and would never run"),
}


@pytest.mark.parametrize(("given", "said"), WRONG_OBSERVERS.values(), ids=WRONG_OBSERVERS)
def test_observer_that_cannot_be_called_is_refused(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Executor(Registry(), observe=given)
    with pytest.raises(UsageError, match=said):
        Agent(ScriptedProvider(), observe=given)


@pytest.mark.parametrize("kind", [AsyncPolicy, AsyncSettler])
def test_async_policy_is_refused_where_it_is_made(kind: type[Policy]) -> None:
    with pytest.raises(UsageError, match=f"{kind.__name__} decides with async def"):
        kind()


@pytest.mark.parametrize("given", [Deaf, [Deaf], 3, [3]], ids=["class", "list of a class", "number", "list"])
def test_hook_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="expected a Hook, got"):
        Executor(Registry(), hooks=given)


def test_class_instead_of_a_policy_is_refused() -> None:
    kind: Any = AsyncPolicy
    with pytest.raises(UsageError, match="expected a Policy, got"):
        Policies(kind)


async def test_wrong_cancellation_leaves_the_session_free() -> None:
    agent, given = Agent(ScriptedProvider("hello"), sessions=MemoryStore()), cast(Any, asyncio.Event())
    for starting in (
        lambda: agent.run("hi", session="s", cancellation=given),
        lambda: agent.resume("s", cancellation=given),
        lambda: agent.compact("s", cancellation=given),
    ):
        with pytest.raises(UsageError, match=r"expected Cancellation as cancellation, got .*Event"):
            await starting()
    assert isinstance(await agent.run("hi", session="s"), Done)


_ENDLESS: dict[str, Any] = {}
_ENDLESS["a"] = _ENDLESS
_CALL = ToolCall("c", "look", {})
MALFORMED: dict[str, Any] = {
    "model": AssistantMessage((_CALL,), "calls", model=cast(Any, None)),
    "stop": AssistantMessage((_CALL,), cast(Any, None)),
    "usage": AssistantMessage((_CALL,), "calls", Usage(cast(Any, 1.5))),
    "keys": AssistantMessage((ToolCall("c", "look", cast(Any, {1: 2, "a": 3})),), "calls"),
    "cycle": AssistantMessage((ToolCall("c", "look", _ENDLESS),), "calls"),
    "digits": AssistantMessage((ToolCall("c", "look", {"a": 10**5000}),), "calls"),
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("durable", [False, True])
async def test_malformed_message_ends_the_run(message: Any, durable: bool, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db") if durable else MemoryStore()
    stopped = await Agent(ScriptedProvider(message), sessions=store).run("hi", session="s")
    assert isinstance(stopped, Stopped) and stopped.kind == "provider" and "malformed message" in stopped.reason
    assert len(await store.read("s")) == 1


@pytest.mark.parametrize("stop", ["refusal", "other"])
async def test_calls_of_a_message_that_was_taken_back_do_not_run(stop: Stop) -> None:
    ran: list[int] = []

    @tool(effect=Effect.READ)
    def look() -> None:
        """Look."""
        ran.append(1)

    store = MemoryStore()
    message = AssistantMessage((Text("no"), ToolCall("c", "look", {})), stop)
    stopped = await Agent(ScriptedProvider(message), [look], sessions=store).run("hi", session="s")
    assert isinstance(stopped, Stopped) and stopped.kind in ("refusal", "provider") and not ran
    said = (await store.read("s"))[-1]
    assert isinstance(said, Said) and said.message == AssistantMessage((Text("no"),), stop)
