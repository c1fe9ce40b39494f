"""Content is checked where it is made: a bad output fails its own call, and its session stays readable."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from callwright import (
    Agent,
    Completed,
    Effect,
    Executor,
    Failed,
    Image,
    MemoryStore,
    Output,
    Registry,
    SqliteStore,
    Text,
    ToolCall,
    UsageError,
    tool,
)
from callwright.agent import Done
from callwright.core.content import File
from callwright.core.messages import ToolMessage
from callwright.hooks import Answer, Hook, PendingCall
from callwright.policy import AllowEverything
from callwright.testing import ScriptedProvider


class Unprintable:
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Broken(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("gone")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


BAD: dict[str, Callable[[], Any]] = {
    "parts that are numbers": lambda: Output((1, 2)),  # type: ignore[arg-type]
    "a set of parts": lambda: Output({Text("a")}),  # type: ignore[arg-type]
    "content None": lambda: Output(None),  # type: ignore[arg-type]
    "content bytes": lambda: Output(b"x"),  # type: ignore[arg-type]
    "content a part": lambda: Output(Text("a")),  # type: ignore[arg-type]
    "nested parts": lambda: Output(((Text("a"),),)),  # type: ignore[arg-type]
    "text a number": lambda: Text(5),  # type: ignore[arg-type]
    "text None": lambda: Text(None),  # type: ignore[arg-type]
    "text without text": lambda: Text(Unprintable()),  # type: ignore[arg-type]
    "image from text": lambda: Image("str"),  # type: ignore[arg-type]
    "image from a list": lambda: Image([1, 2]),  # type: ignore[arg-type]
    "image type": lambda: Image(b"x", 5),  # type: ignore[arg-type]
    "file from text": lambda: File("str"),  # type: ignore[arg-type]
    "file name": lambda: File(b"x", name=Path("a")),  # type: ignore[arg-type]
    "a list with a bad part": lambda: [Text("a"), Image(None)],  # type: ignore[arg-type]
    "cyclic data": lambda: Output("x", cyclic()),
    "deep data": lambda: Output("x", deep(500)),
    "deeper data": lambda: Output("x", deep(100_000)),
    "5,000 digits": lambda: Output("x", 10**5_000),
    "NaN": lambda: Output("x", float("nan")),
    "infinity": lambda: Output("x", {"a": [float("-inf")]}),
    "bytes as a key": lambda: Output("x", {b"a": 1}),  # type: ignore[dict-item]
    "a tuple as a key": lambda: Output("x", {(1, 2): 1}),  # type: ignore[dict-item]
    "bytes as data": lambda: Output("x", b"a"),  # type: ignore[arg-type]
    "a set as data": lambda: Output("x", {1, 2}),  # type: ignore[arg-type]
    "an object": lambda: Output("x", object()),  # type: ignore[arg-type]
    "an unprintable object": lambda: Output("x", [Unprintable()]),  # type: ignore[list-item]
    "an unreadable mapping": lambda: Output("x", Broken()),
}
ODD: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "surrogate in a text part": (lambda: Text("a\udc80"), None, None),
    "surrogate in data": (lambda: Output("x", {"a": "b\udc80"}), "x", {"a": "b?"}),
    "a list of parts": (lambda: Output([Text("a"), "b"]), "a\nb", None),  # type: ignore[arg-type]
    "a string enum": (lambda: Output(StrEnum("Kind", "A").A), "a", None),  # type: ignore[arg-type,attr-defined]
    "a bytearray": (lambda: Image(bytearray(b"x")), "", None),  # type: ignore[arg-type]
    "a tuple as data": (lambda: Output("x", (1, (2,))), "x", [1, [2]]),
    "a read-only mapping": (lambda: Output("x", MappingProxyType({"a": 1})), "x", {"a": 1}),
    "numbers as keys": (lambda: Output("x", {1: "a"}), "x", {"1": "a"}),  # type: ignore[dict-item]
    "brackets in text": (lambda: Output("x", "[" * 500), "x", "[" * 500),
}


def make_tool(make: Callable[[], Any]) -> Any:
    @tool(effect=Effect.READ)
    async def work() -> Any:
        """Work."""
        return make()

    return work


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("count", [1, 2])
def test_bad_content_fails_its_call_and_the_session_stays_readable(name: str, count: int, tmp_path: Path) -> None:
    async def run() -> None:
        for store in (MemoryStore(),) if count == 1 else (MemoryStore(), SqliteStore(tmp_path / "sessions.db")):
            calls = [ToolCall(str(number), "work") for number in range(count)]
            executor = Executor(Registry(make_tool(BAD[name])), AllowEverything())
            agent = Agent(ScriptedProvider(calls, "done"), executor=executor, sessions=store)
            assert isinstance(await agent.run("go", session="s"), Done)
            message = (await agent.messages("s"))[2]
            assert isinstance(message, ToolMessage)
            outcomes = message.outcomes
            assert len(outcomes) == count
            for outcome in outcomes:
                assert isinstance(outcome, Failed) and outcome.error.code in ("crashed", "tool_failed")
            if isinstance(store, SqliteStore):
                store.close()

    asyncio.run(run())


@pytest.mark.parametrize("name", BAD)
def test_bad_content_is_a_usage_error_where_it_is_made(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        BAD[name]()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ODD)
async def test_odd_content_is_made_plain(name: str, tmp_path: Path) -> None:
    make, text, structured = ODD[name]
    store = SqliteStore(tmp_path / "sessions.db")
    executor = Executor(Registry(make_tool(make)), AllowEverything())
    agent = Agent(ScriptedProvider(ToolCall("1", "work"), "done"), executor=executor, sessions=store)
    assert isinstance(await agent.run("go", session="s"), Done)
    message = (await agent.messages("s"))[2]
    assert isinstance(message, ToolMessage)
    (outcome,) = message.outcomes
    assert isinstance(outcome, Completed)
    if text is not None:
        assert outcome.text == text
    assert outcome.output.structured == structured
    json.dumps(outcome.output.structured)
    store.close()


async def test_bad_content_of_a_hook_denies_the_call() -> None:
    class Answering(Hook):
        def before(self, pending: PendingCall) -> Answer:
            return Answer(Output((1, 2)))  # type: ignore[arg-type]

    executor = Executor(Registry(make_tool(lambda: "ran")), AllowEverything(), hooks=[Answering()])
    outcome = await executor.run("work")
    assert isinstance(outcome, Failed) and not outcome.started


def test_structured_data_is_a_copy() -> None:
    data = {"a": [1]}
    output = Output("x", data)
    data["a"].append(2)
    assert output.structured == {"a": [1]}


def test_long_integer_is_refused_whatever_the_interpreter_allows() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(UsageError):
            Output("x", 10**5_000)
    finally:
        sys.set_int_max_str_digits(before)
