"""Conformance check for session stores."""

import asyncio
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress

from callwright.core.access import DeletePath, Reach, ReadPath, RunCommand, UseTool, WriteResource
from callwright.core.calls import Approve, Completed, Decline, Failed, Question, ToolCall
from callwright.core.content import File, Image, Output, Text
from callwright.core.errors import Cancelled, Halted, Transient, UnknownTool
from callwright.core.messages import AssistantMessage, Thinking, ToolMessage, Usage, UserMessage
from callwright.core.spec import Effect
from callwright.sessions.base import SessionBusy, SessionError, SessionStore
from callwright.sessions.record_encoding import dump_record
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Checkpoint,
    Compacted,
    Ended,
    LimitReached,
    Record,
    Rewound,
    Said,
    Spent,
    Started,
    UndoPoint,
)
from callwright.testing.store_processes import StoreProcess, can_fork, check_processes, find_obstacle

_CALLS = (
    ToolCall("c1", "fs.read", '{"path": "a"}'),
    ToolCall("c2", "fs.read", {"path": "b", "deep": [1, None, 2.5]}),
    ToolCall("c.3", "raed", b'{"raw": 1}'),
)
_QUESTION = Question(
    "c1", "fs.read", {"path": "a"}, "digest", "Allow fs.read: a?", "because", (ReadPath("a"), RunCommand("ls", "/"))
)
_RUNNING = Question(
    "c.1",
    "deploy",
    {"to": "a"},
    "d3",
    "really?",
    "a reason",
    (RunCommand("rm b", "/", touches=(DeletePath("b"), Reach("https://a.example/"))), WriteResource("db://a")),
    expires_at=99,
    nonce="n",
    running=True,
    approved=("it changes something", "twice"),
    within="c",
    origin="> 1 deploy()",
    source="a rule",
    implementation="i",
)
_OUTCOMES = (
    Completed(_CALLS[0], Output((Text("two\nlines"), Image(b"\x00\xff"), File(b"%PDF", "application/pdf", "x.pdf")))),
    Completed(_CALLS[1], Output('{"a":1}', {"a": 1}), 0.25, 2),
    Failed(_CALLS[2], UnknownTool("raed", ["fs.read"]), started=False, attempts=1),
)
STORED_RECORDS: tuple[Record, ...] = (
    Said(UserMessage('what is in ünïcode \ud800 100%_sure "quoted"?'), key="k1"),
    Said(
        AssistantMessage(
            (Thinking("hm", {"signature": "s"}), Text("I look"), *_CALLS), "calls", Usage(1, 2, 3, 4), "m"
        ),
        "t1",
    ),
    Asked(
        (_QUESTION, Question("c2", "x", {}, "d2", "s", accesses=(UseTool("x", Effect.WRITE),), kind="auth", url="u"))
    ),
    Asked((_RUNNING,), paused=True),
    Answered({_QUESTION.id: Approve({"path": "z"}, "session", "ada"), "other": Decline("no", "a hook")}),
    Began({"c1": "d1", "c2": "d2"}, each=True),
    Started(("c1",)),
    Ended(Failed(_CALLS[0], Transient("later", retry_after=1.5), started=True, seconds=1.0, attempts=3)),
    Said(ToolMessage(_OUTCOMES)),
    Said(ToolMessage((Failed(_CALLS[0], Halted("stop")), Failed(_CALLS[1], Cancelled("cut"), started=True)))),
    Compacted((UserMessage((Text("so far"),)),), Usage(9, 9)),
    Spent(Usage(1, 2), 0.25),
    LimitReached("turns"),
    Checkpoint("verify", {"tried": 2, "notes": ["a"]}, "go on?"),
    UndoPoint("u1", "before the edit", {"files": ["a"]}),
    Rewound(14, "r1", note="files were restored"),
)

_VERSION_LOOKS = 20


async def check_store(
    made: SessionStore | Callable[[], SessionStore], *, takeover_seconds: float = 60.0
) -> tuple[str, ...]:
    """Check that a session store keeps the contract.

    Records are returned unchanged and in order, also from a position on, with their times; sessions that wait for an
    answer are listed; fork, rename, delete and search work; the version changes with every change; a durable store has
    all records after it was opened again.

    The rules about writers are run in this process, and for a durable store in other processes, which are stopped and
    killed:

    - exclusive lease: while one holds a session, `hold` raises `SessionBusy` everywhere else;
    - lost update: what several processes add in turn is all there, in order;
    - durable append: a record whose `append` returned survives `kill -9`;
    - death of a holder: the session of a killed process is free within `takeover_seconds`;
    - fencing rule: once a session was taken over, because its owner took it again or because its holder gave no sign
      for too long, the earlier holder cannot write any more, nor release it.

    Args:
        made: A function that opens the store, a durable one each time with the same sessions; or the store itself,
            and then only one process is checked.
        takeover_seconds: How long the store may take to free the session of a killed process.

    Returns:
        What was not checked, and why: other processes, for a store that is not durable.

    Raises:
        AssertionError: The store breaks the contract; for a rule about processes, the message begins with its name.
    """
    make = made if callable(made) else lambda: made
    reopened = callable(made)
    # before the store is opened here, so that nothing of it is in the forks; a store that is not durable needs none
    processes = [StoreProcess(make) for _ in range(3)] if reopened and can_fork() else []
    try:
        store = make()
        await _check_one_process(store, make)
        obstacle = find_obstacle(store, reopened=reopened)
        if obstacle:
            if store.durable:
                warnings.warn(f"check_store ran in one process: {obstacle}", stacklevel=2)
            return (f"other processes: {obstacle}",)
        await check_processes(processes, store, takeover_seconds)
        return ()
    finally:
        for process in processes:
            process.kill()


async def _check_one_process(store: SessionStore, make: Callable[[], SessionStore]) -> None:
    await _check_round_trip(store)
    await _check_writers(store)
    await _check_takeover(store)
    await _check_waiting(store)
    await _check_lists(store)
    await _check_positions(store)
    await _check_outputs(store)
    await _check_forks(store)
    if store.durable:
        again = make()
        assert _dump_all(await again.read("check-1")) == _dump_all(STORED_RECORDS), (
            "records must be readable after a restart"
        )
    await store.delete("check-1")
    with suppress(SessionError):
        await store.read("check-1")
        raise AssertionError("a deleted session must not be readable")


def _dump_all(records: Iterable[Record]) -> list[str]:
    return [dump_record(record) for record in records]


async def _check_round_trip(store: SessionStore) -> None:
    with suppress(SessionError):
        await store.read("check-1")
        raise AssertionError("reading a session that does not exist must raise SessionError")
    hold = await store.hold("check-1")
    assert list(hold.records) == [], "a new session has no records"
    await hold.append(*STORED_RECORDS[:2])
    await hold.append(STORED_RECORDS[2])
    hold.note(STORED_RECORDS[3])  # between two appends: a note must keep its place in the order
    await hold.append(*STORED_RECORDS[4:])
    await hold.release()
    assert _dump_all(await store.read("check-1")) == _dump_all(STORED_RECORDS), "records must be returned unchanged"
    hold = await store.hold("check-1")
    assert _dump_all(hold.records) == _dump_all(STORED_RECORDS), "a hold must have the records of the session"
    await hold.release()


async def _check_writers(store: SessionStore) -> None:
    taken = await asyncio.gather(*(store.hold("check-2") for _ in range(8)), return_exceptions=True)
    holds = [hold for hold in taken if not isinstance(hold, BaseException)]
    assert len(holds) == 1, f"exclusive lease: exactly one of eight writers must succeed, got {len(holds)}"
    losers = [error for error in taken if isinstance(error, BaseException)]
    assert all(isinstance(error, SessionBusy) for error in losers), f"the others must raise SessionBusy: {losers}"
    await holds[0].append(Said(UserMessage("needle in a haystack")))
    with suppress(SessionBusy):
        await store.delete("check-2")
        raise AssertionError("a session that is being written must not be deleted")
    await holds[0].release()
    await (await store.hold("check-2")).release()
    await (await store.hold("check-5")).release()
    known = {entry.session_id for entry in await store.list()}
    assert "check-5" not in known, "a session that was held but not written must not be created"


async def _check_takeover(store: SessionStore) -> None:
    """A store may let an owner take over from itself; then the earlier holder must be fenced off."""
    first = await store.hold("check-8", owner="a")
    await first.append(STORED_RECORDS[0])
    with suppress(SessionBusy):
        await store.hold("check-8", owner="b")
        raise AssertionError("exclusive lease: another owner must not take over a session")
    try:
        second = await store.hold("check-8", owner="a")
    except SessionBusy:
        await first.release()
    else:
        assert len(second.records) == 1, "who takes a session over must see its records"
        # together, because a store may commit them together
        added = await asyncio.gather(
            second.append(STORED_RECORDS[0]), first.append(STORED_RECORDS[0]), return_exceptions=True
        )
        assert added[0] is None, f"who takes a session over must be able to write, got {added[0]!r}"
        refused = isinstance(added[1], SessionError)
        assert refused, "fencing rule: a holder whose session was taken over must not write"
        await first.release()
        with suppress(SessionBusy):
            await store.hold("check-8")
            raise AssertionError("fencing rule: a lost hold must not release the session of its successor")
        await second.release()
        assert len(await store.read("check-8")) == 2, "fencing rule: only the last holder's records may be stored"
    await store.delete("check-8")


async def _check_waiting(store: SessionStore) -> None:
    asked = next(record for record in STORED_RECORDS if isinstance(record, Asked))
    hold = await store.hold("check-9")
    await hold.append(STORED_RECORDS[0], STORED_RECORDS[1], asked)
    waiting = {entry.session_id for entry in await store.list(waiting=True)}
    assert waiting == {"check-9"}, f"list(waiting=True) must return the sessions with open questions, got {waiting}"
    await hold.append(Answered({question.id: Decline() for question in asked.questions}))
    assert not await store.list(waiting=True), "a session whose questions are answered does not wait"
    await hold.release()
    await store.delete("check-9")


async def _check_lists(store: SessionStore) -> None:
    await store.rename("check-2", "a title")
    listed = {entry.session_id: entry for entry in await store.list()}
    assert listed["check-2"].title == "a title", "list() must return the new title"
    assert listed["check-1"].records == len(STORED_RECORDS), "list() must count the records"
    for session_id, entry in listed.items():
        found = await store.find(session_id)
        assert found == entry, f"find({session_id!r}) must return what list() has, {entry}, got {found}"
    assert await store.find("check-none") is None, "find() must return None for a session that does not exist"
    for query, where in (("NEEDLE in", "check-2"), ('"quoted"', "check-1"), ("100%_s", "check-1")):
        found = {hit.session_id for hit in await store.search(query)}
        assert found == {where}, f"searching {query!r} must find {where} only, got {found}"
    assert not await store.search("100x_s"), "a search must treat % and _ literally"


async def _check_positions(store: SessionStore) -> None:
    stored = await store.read_from("check-1")
    assert _dump_all(item.record for item in stored) == _dump_all(STORED_RECORDS), "read_from must return every record"
    assert [item.position for item in stored] == list(range(len(STORED_RECORDS))), "positions must count from 0"
    times = [item.at for item in stored]
    assert times == sorted(times) and times[0] > 0, "records must have the times they were stored at"
    part = await store.read_from("check-1", 3, limit=2)
    assert [item.position for item in part] == [3, 4], "read_from must begin at the position and end at the limit"
    assert not await store.read_from("check-1", len(STORED_RECORDS)), "after the last record there is none"
    with suppress(SessionError):
        await store.read_from("check-none")
        raise AssertionError("reading a session that does not exist must raise SessionError")
    before = await store.version()
    for _ in range(_VERSION_LOOKS):  # a database may be at work for itself, or for others
        last, before = before, await store.version()
        if last == before:
            break
    else:
        raise AssertionError("the version must stay the same while nothing changes")
    await _append_one(store, "check-2")
    appended = await store.version()
    assert appended != before, "the version must change when a record is added"
    await store.rename("check-2", "another title")
    assert await store.version() not in (before, appended), "the version must change when a session is renamed"
    hits = await store.search("e", session="check-2")
    assert {hit.session_id for hit in hits} == {"check-2"}, f"a search within check-2 must find it only, got {hits}"
    assert not await store.search('"quoted"', session="check-2"), "a search must not leave the session"


async def _check_outputs(store: SessionStore) -> None:
    hold = await store.hold("check-6")
    await hold.append(STORED_RECORDS[0])
    hold.keep_output("0123abcd", "a whole output \N{SNOWMAN}")
    hold.keep_output("0123abcd", "a whole output \N{SNOWMAN}")  # after a crash it may be kept again
    await hold.append(STORED_RECORDS[0])
    await hold.release()
    assert await store.read_output("check-6", "0123abcd") == "a whole output \N{SNOWMAN}", "an output must be kept"
    assert await store.read_output("check-6", "other") is None, "an unknown output is None"
    await store.fork("check-6", "check-7")
    await store.delete("check-6")
    assert await store.read_output("check-7", "0123abcd") is not None, "a fork must have the outputs of its origin"
    await store.delete("check-7")


async def _append_one(store: SessionStore, session_id: str) -> None:
    hold = await store.hold(session_id)
    await hold.append(Said(UserMessage("one more")))
    await hold.release()


async def _check_forks(store: SessionStore) -> None:
    hold = await store.hold("check-3")
    await hold.append(STORED_RECORDS[0], STORED_RECORDS[1], STORED_RECORDS[4], STORED_RECORDS[5])
    await hold.release()
    await store.fork("check-3", "check-4")
    assert _dump_all(await store.read("check-4")) == _dump_all(STORED_RECORDS[:1]), (
        "a fork must not contain the open turn"
    )
    with suppress(SessionError):
        await store.fork("check-3", "check-4")
        raise AssertionError("a fork must not overwrite a session")
    await store.delete("check-3")
    assert _dump_all(await store.read("check-4")) == _dump_all(STORED_RECORDS[:1]), (
        "a fork must not depend on its origin"
    )
    await store.delete("check-4")
    await store.delete("check-2")
