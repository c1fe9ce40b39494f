"""Requests that act on sessions: what they refuse, and what they leave as it was."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from tests.web.conftest import Serve, Served
from tests.web.test_sessions import answer, call, done, fill, open_question, pause, say

from callwright import Agent, Registry, SqliteStore
from callwright.app.live import LiveAgent
from callwright.app.locations import Locations
from callwright.core.messages import UserMessage
from callwright.sessions import SessionError
from callwright.sessions.records import Asked, OpenQuestions, Said
from callwright.testing import ScriptedProvider
from callwright.toolbox import Write
from callwright.web.hub import Hub


async def list_ids(web: Served) -> list[str]:
    return sorted(each["id"] for each in (await web.get("/api/sessions")).data["sessions"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"session": None, "text": " \n"}, 400),
        ({"session": None, "text": ""}, 400),
        ({"session": 5, "text": "go"}, 400),
        ({"session": ["s"], "text": "go"}, 400),
        ({"session": "", "text": "go"}, 400),
        ({"session": "other", "text": "go"}, 404),
        ({"session": "s", "text": 5}, 400),
        ({"session": "s"}, 400),
    ],
)
async def test_prompt_that_cannot_be_run_begins_no_session(serve: Serve, body: Any, status: int) -> None:
    async with serve(done("never said")) as web:
        await fill(web, 1)
        assert (await web.post("/api/say", body)).status == status
        assert await list_ids(web) == ["s"]
        assert (await web.get("/api/session?id=s")).data["records"] == 1


async def test_only_a_session_that_exists_and_rests_is_resumed(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        await fill(web, 1)
        for session, status in (("other", 404), (5, 400)):
            assert (await web.post("/api/resume", {"session": session})).status == status
        assert await list_ids(web) == ["s"]
        async with LiveAgent(web.locations.live, "terminal") as live:
            live.open_session("s")
            await web.until("/api/session?id=s", lambda data: data["state"] == "idle")
            busy = await web.post("/api/resume", {"session": "s"})
            assert (busy.status, busy.data["code"]) == (409, "busy")
        await web.until("/api/session?id=s", lambda data: data["state"] == "ended")
        assert (await web.post("/api/resume", {"session": "s"})).status == 202
        found = await web.until("/api/messages?id=s", lambda data: data["items"][-1]["kind"] == "assistant")
        assert found["items"][-1]["parts"][0]["text"] == "went on"


async def test_prompt_for_a_session_of_another_process_is_its_own(serve: Serve) -> None:
    heard: list[str] = []
    async with serve(done("never said")) as web, LiveAgent(web.locations.live, "terminal") as live:
        await fill(web, 1)
        live.say = heard.append
        live.open_session("s")
        await web.until("/api/session?id=s", lambda data: data["state"] == "idle")
        assert await say(web, "hello", "s") == "s"
        assert heard == ["hello"]
        assert (await web.get("/api/session?id=s")).data["records"] == 1


async def test_expired_question_of_a_paused_session_takes_no_answer(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        await pause(web, "a.txt")
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("expired")
            for record in await store.read("old/1"):
                if isinstance(record, Asked):
                    (question,) = (replace(each, expires_at=1) for each in record.questions)
                    record = replace(record, questions=(question,))
                await hold.append(record)
            await hold.release()
            (question,) = OpenQuestions(await store.read("expired"))
        assert question.expires_at == 1
        for session, status in (("expired", 404), ("missing", 404)):
            assert (await answer(web, session, question.id, approved=True)).status == status
        assert (await answer(web, "old/1", f"{question.id}0", approved=True)).status == 404
        assert not (web.project / "a.txt").exists()
        assert (await web.get("/api/session?id=expired")).data["state"] != "idle"


async def test_question_of_an_earlier_turn_takes_no_answer(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt")
        (question,) = (await web.get("/api/session?id=old%2F1")).data["questions"]
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold(session)
            await hold.append(Said(UserMessage("never mind")))
            await hold.release()
        assert (await answer(web, session, question["id"], approved=True)).status == 404
        assert not (web.project / "a.txt").exists()


async def test_answer_that_could_not_be_used_leaves_the_question_open(serve: Serve) -> None:
    async with serve(model=False) as web:
        session = await pause(web, "a.txt")
        path = "/api/session?id=old%2F1"
        (question,) = (await web.get(path)).data["questions"]
        for approved in (True, False):
            refused = await answer(web, session, question["id"], approved=approved)
            assert (refused.status, refused.data["code"]) == (409, "no_model")
        assert [each["id"] for each in (await web.get(path)).data["questions"]] == [question["id"]]


async def test_id_of_an_earlier_turn_does_not_answer_the_same_question_of_this_one(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt")
        (first,) = (await web.get("/api/session?id=old%2F1")).data["questions"]
        async with SqliteStore(web.locations.sessions) as store:
            tools = Registry(Write(web.project))
            again = Agent(ScriptedProvider(call("a.txt", "c0")), tools, sessions=store)
            await again.run("never mind, do it now", session=session)
        (second,) = (await web.get("/api/session?id=old%2F1")).data["questions"]
        assert second["id"] != first["id"] and second["call_id"] == first["call_id"]
        assert (await answer(web, session, first["id"], approved=True)).status == 404
        assert not (web.project / "a.txt").exists()


async def test_files_change_only_if_that_is_said_clearly(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        await answer(web, session, (await open_question(web, session))["id"], approved=True)
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        unclear = [{"session": session, "dry_run": each} for each in (True, None, 0, "", "false")]
        for body in unclear:
            assert (await web.post("/api/undo", body)).data["done"] is False
        assert (web.project / "a.txt").exists()
        undo = {"session": session, "dry_run": False}
        assert (await web.post("/api/undo", {**undo, "position": 99})).status == 404
        assert (web.project / "a.txt").exists()
        (web.project / "a.txt").write_text("mine\n")
        for overwrite in (False, None, 1, "yes"):
            conflict = await web.post("/api/undo", {**undo, "overwrite": overwrite})
            assert (conflict.status, conflict.data["code"]) == (409, "conflict")
        assert (web.project / "a.txt").read_text() == "mine\n"
        assert (await web.post("/api/undo", {**undo, "position": 0, "overwrite": True})).data["done"] is True
        assert not (web.project / "a.txt").exists()
        for body in unclear:
            assert (await web.post("/api/redo", body)).data["done"] is False
        assert not (web.project / "a.txt").exists()
        (web.project / "a.txt").write_text("other\n")
        for overwrite in (False, None, 1, "yes"):
            conflict = await web.post("/api/redo", {**undo, "overwrite": overwrite})
            assert (conflict.status, conflict.data["code"]) == (409, "conflict")
        assert (web.project / "a.txt").read_text() == "other\n"
        assert (await web.post("/api/redo", {**undo, "overwrite": True})).data["done"] is True


async def test_title_is_not_longer_than_a_line(serve: Serve) -> None:
    async with serve() as web:
        await fill(web, 1)
        assert (await web.post("/api/rename", {"session": "s", "title": "t" * 5_000})).status == 200
        assert (await web.get("/api/session?id=s")).data["title"] == "t" * 200


async def test_problem_of_the_session_file_is_told_once(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callwright.web.hub._POLL_SECONDS", 0.0)
    locations = Locations.of(project, home=tmp_path / "home")
    locations.sessions.parent.mkdir(parents=True)
    locations.sessions.touch()
    looks, failing = list[int](), ["it is away", "", "it is away", "it is full"]

    async def look(store: object) -> str:
        looks.append(len(looks))
        fault = failing[min(len(looks) // 5, 3)]
        if fault:
            raise SessionError(fault)
        return ""

    monkeypatch.setattr(SqliteStore, "version", look)
    hub, told = Hub(locations, "1"), list[str]()
    stream = hub.stream()
    await anext(stream)
    await hub.open()
    await until(lambda: len(looks) > 25)
    hub.publish({"type": "end"})
    while "end" not in told:
        events = json.loads((await anext(stream)).removeprefix(b"data: "))
        told += [each.get("text") or each["type"] for each in events]
    assert told == ["it is away", "it is away", "it is full", "end"]
    await stream.aclose()
    await hub.aclose()
