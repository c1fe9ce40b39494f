"""Damaged records: `SessionError` for every kind of damage, and the other records stay readable."""

import json
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from callwright import Agent, Failed, Question, ToolCall, UsageError
from callwright.core.content import Image, Text
from callwright.core.errors import ToolFailed
from callwright.core.messages import AssistantMessage, Usage, UserMessage
from callwright.sessions import MemoryStore, SessionDamaged, SessionError, SqliteStore
from callwright.sessions.message_encoding import UnreadableRecord
from callwright.sessions.record_encoding import dump_record, load_record
from callwright.sessions.records import Asked, Ended, Kept, Said
from callwright.testing.fakes import ScriptedProvider
from callwright.testing.stores import STORED_RECORDS

STORED_QUESTIONS = [each for record in STORED_RECORDS if isinstance(record, Asked) for each in record.questions]
DAMAGE: list[Any] = [
    None,
    b"",
    b"\xff\xfe",
    b'{"kind":"user","content":"\xff"}',
    17,
    "",
    "not json",
    '{"kind":"user"',
    "[]",
    "null",
    "5",
    "{}",
    '{"kind":5}',
    '{"kind":"later"}',
    '{"kind":"user"}',
    '{"kind":"user","content":5}',
    '{"kind":"user","content":[5]}',
    '{"kind":"user","content":[{"text":5}]}',
    '{"kind":"user","content":[{"image":"?","media_type":"image/png"}]}',
    '{"kind":"user","content":"x","turn":1}',
    '{"kind":"assistant","parts":{},"stop":"end","usage":[0,0,0,0],"model":""}',
    '{"kind":"assistant","parts":[{"call":1,"name":"x","arguments":{}}],"stop":"end","usage":[0,0,0,0],"model":""}',
    '{"kind":"assistant","parts":[],"stop":"end","usage":[1,2,3,4,5],"model":""}',
    '{"kind":"assistant","parts":[],"stop":"end","usage":["1"],"model":""}',
    '{"kind":"outcomes","outcomes":[{}]}',
    '{"kind":"began","digests":[]}',
    '{"kind":"began","digests":{"c":5}}',
    '{"kind":"asked","questions":[{"call_id":"c"}]}',
    '{"kind":"answered","replies":{"q":true}}',
    '{"kind":"answered","replies":{"q":{}}}',
    '{"kind":"answered","replies":{"q":{"approve":true,"arguments":null}}}',
    '{"kind":"compacted","messages":[{"kind":"began"}],"usage":[0,0,0,0]}',
    "[" * 100_000,
]


async def fill(path: Path) -> None:
    async with SqliteStore(path) as store:
        hold = await store.hold("s")
        await hold.append(*(Said(UserMessage(text)) for text in ("first", "second", "third")))
        await hold.release()


def damage(path: Path, body: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints=ON")
    if body is None:
        connection.execute("DELETE FROM records WHERE position = 1")
    else:
        connection.execute("UPDATE records SET body = ? WHERE position = 1", (body,))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("body", DAMAGE, ids=range(len(DAMAGE)))
async def test_damage_is_a_session_error_and_the_rest_readable(tmp_path: Path, body: object) -> None:
    path = tmp_path / "s.db"
    await fill(path)
    damage(path, body)
    async with SqliteStore(path) as store:
        with pytest.raises(SessionDamaged, match="record 1 cannot be read") as raised:
            await store.read("s")
        assert [stored.position for stored in raised.value.readable] == [0, 2]
        assert [stored.record for stored in raised.value.readable] == [
            Said(UserMessage("first")),
            Said(UserMessage("third")),
        ]
        with pytest.raises(SessionError):
            await store.hold("s")
        with pytest.raises(SessionError):
            await store.fork("s", "t")
        with pytest.raises(SessionError):
            await Agent(ScriptedProvider("hi"), sessions=store).run("more", session="s")
        assert [stored.position for stored in await store.read_from("s", 2)] == [2]
        assert (await store.list())[0].records == 3
        assert [hit.position for hit in await store.search("third", session="s")] == [2]
        await store.delete("s")  # not busy: the failed hold released it


async def test_damaged_title_and_id_do_not_break_the_list(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE sessions SET title = CAST(x'ff41' AS TEXT)")
    connection.commit()
    connection.close()
    async with SqliteStore(path) as store:
        assert (await store.list())[0].title.endswith("A")


def test_every_field_of_a_question_is_read_as_it_was_written() -> None:
    for question in STORED_QUESTIONS:
        (again,) = cast("Asked", load_record(dump_record(Asked((question,))))).questions
        assert again == question and hash(again.accesses) == hash(question.accesses)
    filled = next(question for question in STORED_QUESTIONS if question.running)
    empty = Question("", "", {}, "", "")
    same = [each.name for each in fields(Question) if getattr(filled, each.name) == getattr(empty, each.name)]
    assert same == ["kind", "url"]  # whatever is added to questions is tried here


_SHADOWING: list[dict[str, object]] = [{"is_transient": True}, {"with_message": "x"}, {"args": 5}]


class ForeignError(ToolFailed):
    """An error whose attributes have the names of fields, or are not JSON."""

    def __init__(self, **attributes: object) -> None:
        super().__init__("no such customer")
        vars(self).update(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"type": 404},
        {"type": None},
        {"type": "Transient"},
        {"pairs": ({("a", "b"): 1},)},
        {"number": 10**5000},
        *_SHADOWING,
    ],
)
def test_error_with_any_attributes_is_read_again(attributes: dict[str, object]) -> None:
    failed = Failed(ToolCall("c", "lookup", {}), ForeignError(status=404, **attributes))
    again = cast("Ended", load_record(dump_record(Ended(failed)))).outcome
    assert isinstance(again, Failed) and type(again.error) is ToolFailed
    assert vars(again.error) == {"message": "no such customer", "status": 404}


def test_arguments_that_are_no_dict_are_read_as_one() -> None:
    said = Said(AssistantMessage((ToolCall("c", "lookup", MappingProxyType({"name": "O'Hara"})),)))
    again = cast("Said", load_record(dump_record(said))).message
    assert isinstance(again, AssistantMessage) and again.calls[0].arguments == {"name": "O'Hara"}


@pytest.mark.parametrize("kind", [404, None, [], "rate_limit"])
def test_error_that_was_stored_with_a_foreign_type_is_read(kind: object) -> None:
    data = json.loads(dump_record(Ended(Failed(ToolCall("c", "lookup", {}), ToolFailed("no")))))
    data["error"]["type"] = kind
    again = cast("Ended", load_record(json.dumps(data))).outcome
    assert isinstance(again, Failed) and type(again.error) is ToolFailed


@pytest.mark.parametrize("note", ["\ud800", "é " * 5_000, [1.5, 1e-7, float("inf")], {"n": 10**4000}, [[["x"]]] * 900])
def test_unusual_value_is_read_as_it_was_written(note: Any) -> None:
    assert load_record(dump_record(Kept("c", note))) == Kept("c", note)


def test_number_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(ValueError, match="digits"):
        dump_record(Kept("c", {"n": 10**5000}))


def test_every_field_of_every_record_is_checked() -> None:
    for record in STORED_RECORDS:
        whole = json.loads(dump_record(record))
        for path in paths_in(whole):
            for foreign in (None, True, 5, "x", [], {}, [5], {"x": 5}):
                changed = json.loads(dump_record(record))
                replace_at(changed, path, foreign)
                try:
                    again = load_record(json.dumps(changed))
                except UnreadableRecord:
                    continue
                dump_record(again)  # what was accepted must be a record like any other


def paths_in(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [before] if before else []
    inner: Any = ()
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        inner = enumerate(cast("list[Any]", value))
    return found + [path for key, part in inner for path in paths_in(part, (*before, key))]


def replace_at(value: Any, path: tuple[Any, ...], foreign: object) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = foreign


async def list_all(store: SqliteStore) -> int:
    return len(await store.list(limit=1))


async def search_one(store: SqliteStore) -> int:
    return len(await store.search("a", session="s"))


@pytest.mark.parametrize("look", [list_all, search_one])
async def test_other_records_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: Any) -> None:
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connections.append(connect(*arguments, **options))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)
    steps: list[int] = []
    async with SqliteStore(tmp_path / "s.db") as store:
        short, hold = await store.hold("s"), await store.hold("t")
        await short.append(Said(UserMessage("a")))
        await short.release()
        await hold.append(Said(UserMessage("x")))
        for _ in range(2):
            counted = [0]
            connections[0].set_progress_handler(lambda counted=counted: counted.__setitem__(0, counted[0] + 1), 1)
            assert await look(store) == 1
            connections[0].set_progress_handler(None, 1)
            steps.append(counted[0])
            await hold.append(*(Said(UserMessage("x" * 1000)) for _ in range(500)))
        await hold.release()
    assert steps[1] <= steps[0] * 2


_CALL = ToolCall("c", "lookup", {})
_UNREADABLE: list[Any] = [
    "no record",
    Said(UserMessage(cast("Any", ("no part",)))),
    Said(UserMessage("x"), key=cast("Any", 42)),
    Said(AssistantMessage((_CALL,), model=cast("Any", None))),
    Said(AssistantMessage((_CALL,), stop=cast("Any", None))),
    Said(AssistantMessage((_CALL,), usage=Usage(cast("Any", 1.5)))),
]


@pytest.mark.parametrize("record", _UNREADABLE, ids=range(len(_UNREADABLE)))
async def test_record_that_could_not_be_read_again_is_not_stored(tmp_path: Path, record: Any) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        hold = await store.hold("s")
        await hold.append(Said(UserMessage("first")))
        with pytest.raises(UnreadableRecord):
            await hold.append(record)
        await hold.append(Said(UserMessage("second")))
        await hold.release()
        assert len(await store.read("s")) == 2


async def test_prompt_with_a_foreign_part_is_refused(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(ScriptedProvider("hello"), sessions=store)
        with pytest.raises(UsageError, match="a part of a prompt must be Text, Image or File, got 'look'"):
            await agent.run(cast("Any", ("look", Image(b"x"))), session="s")
        for store_ in (store, MemoryStore()):
            with pytest.raises(UsageError, match="the key of a prompt as text, got 42"):
                await Agent(ScriptedProvider("hello"), sessions=store_).run("hi", session="s", key=cast("Any", 42))
        await agent.run((Text("look"), Image(b"x")), session="s")
        assert len(await store.read("s")) == 2


@pytest.mark.parametrize("position", ["'p'", "1.5", "x'ff'"])
async def test_damaged_position_is_a_session_error(tmp_path: Path, position: str) -> None:
    path = tmp_path / "s.db"
    await fill(path)
    change(path, f"UPDATE records SET position = {position} WHERE position = 1")
    async with SqliteStore(path) as store:
        with pytest.raises(SessionDamaged) as raised:
            await store.read("s")
        assert [stored.position for stored in raised.value.readable] == [0, 2]


@pytest.mark.parametrize("time", ["'noon'", "x'ff'", "9e999", "-1", "1e13"])
async def test_damaged_time_does_not_lose_the_record(tmp_path: Path, time: str) -> None:
    path = tmp_path / "s.db"
    await fill(path)
    change(path, f"UPDATE records SET at = {time} WHERE position > 0")
    change(path, f"UPDATE sessions SET created_at = {time}")
    async with SqliteStore(path) as store:
        times = [stored.at for stored in await store.read_from("s")]
        assert len(times) == 3 and times[0] > 0 and times[1:] == [0.0, 0.0]
        (entry,) = await store.list()
        assert (entry.created_at, entry.updated_at) == (0.0, 0.0)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
