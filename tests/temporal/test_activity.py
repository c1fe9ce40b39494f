"""The activity by itself, in Temporal's environment for tests: retries after a kill at awkward moments."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from callwright import Agent, Answers, RunLimits, SqliteStore, ToolCall, tool
from callwright.sessions import SessionStore, list_waiting, record_answers
from callwright.temporal.activity import Advance
from callwright.temporal.blobs import keep_prompt
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line


@tool
async def change(n: int) -> str:
    """Change something; asks first."""
    return f"changed {n}"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore, None]:
    async with SqliteStore(tmp_path / "s.db") as opened:
        yield opened


async def advance(store: SessionStore, *lines: Line, attempt: int = 1, turns: int = 50, **order: Any) -> dict[str, Any]:
    agent = Agent(ScriptedProvider(*lines), [change], sessions=store, name="desk", limits=RunLimits(turns=turns))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt, workflow_id="callwright/s")
    given: dict[str, Any] = {
        "agent": "desk",
        "session": "s",
        "turns": 5,
        "prompt": "",
        "open": [],
        "lapsed": False,
    }
    return await environment.run(
        Advance({"desk": agent}, lambda store, session: None).advance, {**given, "position": 0, **order}
    )


async def test_retry_does_not_start_a_reached_limit_again(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "missing", {})
    first = await advance(store, call, turns=1, prompt=key, key=key)
    assert (first["state"], first["kind"]) == ("stopped", "turns")
    again = await advance(store, call, turns=1, prompt=key, key=key, attempt=2)  # the report had not arrived
    assert (again["state"], again["kind"], again["position"]) == ("stopped", "turns", first["position"])


async def test_retry_after_the_prompt_was_heard_and_deleted(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    assert (await advance(store, "hello", prompt=key, key=key))["state"] == "done"
    assert await store.read_blob(key) is None
    again = await advance(store, prompt=key, key=key, attempt=2)  # its model would fail if it were asked
    assert again["state"] == "done"


async def test_prompt_that_was_lost_is_final(store: SqliteStore) -> None:
    with pytest.raises(ApplicationError, match="not in the store") as failed:
        await advance(store, prompt="prompt-none", key="prompt-none")
    assert failed.value.type == "PromptLost" and failed.value.non_retryable


async def test_run_is_not_asked_again_until_its_answers_are_on_record(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "change", {"n": 1})
    paused = await advance(store, call, prompt=key, key=key)
    (run,) = await list_waiting(store)
    woken = await advance(store, key=key, open=paused["open"])  # a signal without an answer: the model is not asked
    assert woken == paused and (await list_waiting(store)) == [run]
    await record_answers(store, "s", Answers().approve(run.questions[0]))
    done = await advance(store, "done", key=key, open=paused["open"])
    assert done["state"] == "done"


async def test_cancelled_run_closes_its_turn_once(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    paused = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    assert paused["state"] == "paused" and len(paused["open"]) == 1 and paused["expires"] > 0
    assert await store.list(waiting=True)
    for _ in range(2):
        closed = await advance(store, key=key, cancel=True)
        assert (closed["state"], closed["kind"]) == ("stopped", "cancelled")
        assert not await store.list(waiting=True)


async def test_cancelled_before_it_began(store: SqliteStore) -> None:
    closed = await advance(store, key="k", cancel=True)
    assert closed["state"] == "stopped" and closed["position"] == 0
    assert not await store.list()


@pytest.mark.parametrize(("kind", "final"), [("UsageError", True), ("SessionBusy", False)])
async def test_errors_say_whether_a_retry_helps(store: SqliteStore, kind: str, final: bool) -> None:
    hold = await store.hold("s")
    session = "s" if kind == "SessionBusy" else "\n"
    key = await keep_prompt(store, "go")
    with pytest.raises(ApplicationError) as failed:
        await advance(store, prompt=key, key=key, session=session)
    assert (failed.value.type, failed.value.non_retryable) == (kind, final)
    await hold.release()
