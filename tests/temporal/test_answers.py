"""Prompts and answers as they travel, and the checks of clients and workers; without a server."""

import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from callwright import Agent, Approve, Decline, Image, MemoryStore, Question, SqliteStore, Text
from callwright.cli.main import run as run_command
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.sessions.records import Answered, Said
from callwright.temporal import AgentWorker, Runs, TemporalError
from callwright.temporal.blobs import find_references, keep_prompt, pack_answer, read_prompt, unpack_answer
from callwright.temporal.workflow import question_key
from callwright.testing import ScriptedProvider

QUESTION = Question("c.1", "pay", {}, "d" * 64, "Allow pay?")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore, None]:
    async with SqliteStore(tmp_path / "s.db") as opened:
        yield opened


@pytest.mark.parametrize("prompt", ["hello \N{SNOWMAN}", "x" * 5_000_000, (Text("see"), Image(b"\x00\xff"))])
async def test_prompt_travels_as_a_reference(store: SqliteStore, prompt: Any) -> None:
    reference = await keep_prompt(store, prompt)
    assert len(reference) < 50
    assert await read_prompt(store, reference) == prompt
    await store.delete_blobs([reference, "unknown"])
    assert await read_prompt(store, reference) is None


async def test_prompt_is_redacted_like_records(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "r.db", redact=lambda text: text.replace("secret", "***")) as store:
        assert await read_prompt(store, await keep_prompt(store, "my secret")) == "my ***"


@pytest.mark.parametrize(
    "reply", [Approve(), Decline(), Approve({"n": 1}), Approve(scope="session", by="ada"), Decline("no", "ada")]
)
async def test_answer_travels(store: SqliteStore, reply: Any) -> None:
    signal = await pack_answer(store, QUESTION.id, reply)
    assert len(str(signal)) < 300
    assert await unpack_answer(store, signal) == (QUESTION.id, reply)


@pytest.mark.parametrize(
    "signal",
    [
        {"approved": "yes"},
        {"approved": 1},
        {"approved": None},
        {},
        {"approved": True, "blob": "unknown"},
        {"approved": True, "blob": 7},
        {"approved": True, "blob": ""},
        {"approved": True, "blob": "prompt"},
        {"approved": True, "blob": "other"},
        {"approved": False, "blob": "mine"},
        {"approved": "true", "blob": "mine"},
    ],
)
async def test_what_is_not_an_approval_declines(store: SqliteStore, signal: dict[str, Any]) -> None:
    await store.keep_blob("prompt", Said(UserMessage("x")))
    await store.keep_blob("other", Answered({"another question": Approve()}))
    await store.keep_blob("mine", Answered({QUESTION.id: Approve({"n": 1})}))
    found = await unpack_answer(store, {"question": QUESTION.id, **signal})
    assert found is not None and isinstance(found[1], Decline)


@pytest.mark.parametrize("signal", [None, 1, "yes", [], {}, {"question": None, "approved": True}])
async def test_signal_without_a_question_is_none(store: SqliteStore, signal: object) -> None:
    assert await unpack_answer(store, signal) is None


async def test_reply_must_be_one(store: SqliteStore) -> None:
    with pytest.raises(UsageError):
        await pack_answer(store, QUESTION.id, True)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the point


def test_key_is_bound_to_digest_and_call() -> None:
    again = Question("c.1", "pay", {}, "d" * 64, "Allow pay?", expires_at=99)
    assert question_key(again.id) == question_key(QUESTION.id)
    for other in (Question("c.2", "pay", {}, "d" * 64, ""), Question("c.1", "pay", {}, "e" * 64, "")):
        assert question_key(other.id) != question_key(QUESTION.id)


def test_references_are_found() -> None:
    assert find_references([{"blob": "a"}, {}, None, {"blob": 3}], "p") == ["p", "a"]
    assert find_references([], "") == []


async def test_unreachable_server_is_named(store: SqliteStore) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{door.getsockname()[1]}"
    with pytest.raises(TemporalError, match=f"{address} cannot be reached; start one"):
        await Runs.connect(address, sessions=store)
    agent = Agent(ScriptedProvider(), sessions=store, name="desk")
    with pytest.raises(TemporalError, match="cannot be reached"):
        await AgentWorker([agent]).run(address)


async def test_workers_need_named_agents_with_durable_stores(store: SqliteStore) -> None:
    named = Agent(ScriptedProvider(), sessions=store, name="desk")
    for agents, message in (
        ([], "at least one agent"),
        ([Agent(ScriptedProvider(), sessions=store)], "needs a name"),
        ([named, Agent(ScriptedProvider(), sessions=store, name="desk")], "two agents"),
        ([Agent(ScriptedProvider(), sessions=MemoryStore(), name="desk")], "in this process only"),
        (["desk"], "expected an Agent"),
    ):
        with pytest.raises(UsageError, match=message):
            AgentWorker(agents)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - some are wrong
    with pytest.raises(UsageError, match="in this process only"):
        await Runs.connect(sessions=MemoryStore())
    with pytest.raises(UsageError, match="must be positive"):
        await Runs.connect(sessions=store, turns=0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("worker desk", "expected MODULE:NAME"),
        ("worker no_such_module:agent", "No module named 'no_such_module'"),
        ("worker json:agent", "the module has no 'agent'"),
        ("worker json:loads", "expected"),
        ("worker json:JSONDecoder", "expected an Agent"),
        ("runs waiting", "name the store"),
        ("runs waiting --store missing.db", "no such file"),
        ("runs list --store missing.db", "no such file"),
    ],
)
def test_bad_command_lines(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLWRIGHT_STORE", raising=False)
    assert run_command(line.split()) in (1, 2)
    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_waiting_needs_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    from callwright import ToolCall, tool

    @tool
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    async def pause() -> None:
        async with SqliteStore(tmp_path / "s.db") as store:
            model = ScriptedProvider(ToolCall("1", "pay", {"amount": 7}))
            await Agent(model, [pay], sessions=store).run("Pay 7", session="invoice")

    asyncio.run(pause())
    assert run_command(["runs", "waiting", "--store", str(tmp_path / "s.db")]) == 0
    shown = capsys.readouterr().out
    assert "invoice  Pay 7" in shown and "1. Allow pay: amount=7?" in shown
