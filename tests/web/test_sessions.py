"""Sessions over HTTP: live runs, answers that race, paused and damaged sessions, export."""

import asyncio
import gc
import json
import sqlite3
import threading
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.waiting import LONG_SECONDS, LoopClock, until
from tests.web.conftest import CHROMIUM, CHROMIUM_OPTIONS, Serve, Served

from callwright import Agent, Registry, SqliteStore
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.conversation import Conversation
from callwright.app.live import LiveAgent
from callwright.app.live_client import LiveAgents
from callwright.app.locations import Locations
from callwright.app.settings import load_settings
from callwright.core.calls import Approve, Completed, Failed, ToolCall
from callwright.core.content import Image, Output
from callwright.core.errors import CallwrightError, ToolFailed, UsageError
from callwright.core.events import CallBegan, CallWaits
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Text, ToolMessage, Usage, UserMessage
from callwright.providers.base import TextDelta
from callwright.sessions import MemoryStore, SessionError
from callwright.sessions.records import Compacted, Said, Spent
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line
from callwright.toolbox import Write
from callwright.toolbox.bash.jobs import ShellSession
from callwright.web.hosting import Hosts
from callwright.web.hub import Hub
from callwright.web.sessions import RecordCache, holds


def write(path: str, content: str = "x\n") -> dict[str, Any]:
    return {"calls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


def call(path: str, call_id: str = "c1") -> AssistantMessage:
    return AssistantMessage((ToolCall(call_id, "write", {"path": path, "content": "x\n"}),), "calls")


def done(text: str) -> AssistantMessage:
    return AssistantMessage((Text(text),))


async def say(web: Served, text: str = "go", session: str | None = None) -> str:
    reply = await web.post("/api/say", {"session": session, "text": text})
    assert reply.status == 202, reply
    return reply.data["session"]


async def open_question(web: Served, session: str) -> Any:
    found = await web.until(f"/api/session?id={session}", lambda data: data["questions"])
    return found["questions"][0]


async def answer(web: Served, session: str, question: str, **reply: Any) -> Any:
    return await web.post("/api/answer", {"session": session, "question": question, **reply})


async def test_run_from_the_page_is_shown_live_and_on_record(serve: Serve) -> None:
    async with serve(call("a.txt"), done("all done")) as web, web.events() as events:
        await events.wait(type="hello")
        session = await say(web)
        question = (await events.wait(type="asked", session=session))["questions"][0]
        assert question["preview"]["rows"][0]["text"] == "x" and question["source"] == "mode default"
        assert question["always"] and question["scopes"] == ["once", "session", "always"]
        listed = (await web.get("/api/sessions")).data["sessions"][0]
        assert (listed["id"], listed["state"], listed["questions"], listed["where"]) == (session, "waiting", 1, "page")
        reply = await answer(web, session, question["id"], approved=True)
        assert reply.status == 200 and reply.data["settled"]["approved"] is True
        assert (await events.wait(type="settled", question=question["id"]))["by"] == "page"
        assert (await events.wait(type="call_ended"))["outcome"]["ok"] is True
        assert (await events.wait(type="run_ended"))["ended"] == "done"
        await events.wait(type="stored", session=session)
        assert (web.project / "a.txt").read_text() == "x\n"
        found = await web.until(f"/api/messages?id={session}", lambda data: data["items"][-1]["kind"] == "assistant")
        kinds = [item["kind"] for item in found["items"]]
        assert kinds == ["undo_point", "user", "assistant", "asked", "answered", "began", "outcomes", "assistant"]
        assert found["items"][-1]["parts"] == [{"type": "text", "text": "all done"}]
        assert found["items"][3]["questions"][0]["preview"] is None  # the file is another one now
        turn = (await web.get(f"/api/timeline?id={session}")).data["turns"][0]
        assert [span["kind"] for span in turn["calls"][0]["spans"]][:1] == ["ask"]
        late = await answer(web, session, question["id"], approved=False)
        assert (late.status, late.data["code"], late.data["by"]) == (409, "answered", "page")


async def test_two_pages_race_and_one_wins(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        question = (await open_question(web, session))["id"]
        replies = await asyncio.gather(*(answer(web, session, question, approved=yes) for yes in (True, False) * 5))
        assert sorted(reply.status for reply in replies) == [200, *[409] * 9]
        (winner,) = [reply for reply in replies if reply.status == 200]
        late = [reply.data["approved"] for reply in replies if reply is not winner]
        assert late == [winner.data["settled"]["approved"]] * 9
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        assert (web.project / "a.txt").exists() is winner.data["settled"]["approved"]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"approved": "yes"}, 400),
        ({"approved": 1}, 400),
        ({}, 400),
        ({"approved": True, "scope": "forever"}, 400),
        ({"approved": True, "scope": None}, 400),
        ({"approved": True, "arguments": []}, 400),
        ({"approved": True, "by": "terminal"}, 400),
    ],
)
async def test_unclear_answer_leaves_the_question_open(serve: Serve, reply: Any, status: int) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        question = (await open_question(web, session))["id"]
        refused = await answer(web, session, question, **reply)
        assert refused.status == status and refused.data["code"] == "invalid"
        assert (await open_question(web, session))["id"] == question and not (web.project / "a.txt").exists()
        assert (await answer(web, session, f"{question}0", approved=True)).status == 404
        assert (await answer(web, session, question, approved=False)).status == 200


async def test_edited_arguments_are_the_same_in_file_record_and_model(serve: Serve) -> None:
    seen: list[Any] = []

    def look(request: Any) -> AssistantMessage:
        seen.extend(request.messages)
        return done("done")

    async with serve(call("a.txt"), look) as web:
        session = await say(web)
        question = await open_question(web, session)
        edited = {**question["arguments"], "content": "edited\n"}
        reply = await answer(web, session, question["id"], approved=True, arguments=edited)
        assert reply.status == 200 and reply.data["settled"]["edited"] is True
        found = await web.until(f"/api/messages?id={session}", lambda data: data["items"][-1]["kind"] == "assistant")
        (answered,) = [item for item in found["items"] if item["kind"] == "answered"]
        (recorded,) = answered["replies"].values()
        assert recorded["arguments"]["content"] == "edited\n" and recorded["by"] == "page"
        assert (web.project / "a.txt").read_text() == "edited\n"
        outcome = next(each for each in reversed(seen) if isinstance(each, ToolMessage)).outcomes[0]
        assert thaw(outcome.call.arguments) == edited and outcome.repairs[0].kind == "edited"


async def test_stop_ends_the_run_and_its_question(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        await open_question(web, session)
        assert (await web.post("/api/stop", {"session": session})).status == 202
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle" and not data["questions"])
        assert (await web.post("/api/stop", {"session": session})).data["code"] == "gone"
        assert not (web.project / "a.txt").exists()


async def test_stop_takes_back_the_prompts_that_wait(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web, web.events() as events:
        session = await say(web)
        await open_question(web, session)
        assert (await web.post("/api/say", {"session": session, "text": "then deploy"})).data["queued"]
        assert (await web.post("/api/stop", {"session": session})).status == 202
        text = "not run, because the run before was stopped: then deploy"
        await events.wait(type="notice", session=session, text=text)
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        await say(web, "go on", session)
        items = await web.until(f"/api/messages?id={session}", lambda data: data["items"][-1]["kind"] == "assistant")
        said = [part.get("text") for item in items["items"] if item["kind"] == "user" for part in item["parts"]]
        assert said == ["go", "go on"]


async def test_later_prompts_may_begin_as_the_first_one(serve: Serve) -> None:
    async with serve(done("first"), done("second")) as web:
        session = await say(web, "/etc/hosts has an error")
        path = f"/api/session?id={session}"
        await web.until(path, lambda data: data["state"] == "idle" and data["records"])
        await say(web, "/etc/hosts has another", session)
        messages = f"/api/messages?id={session}"
        await web.until(messages, lambda data: data["items"][-1].get("parts", [{}])[0].get("text") == "second")


async def pause(web: Served, *paths: str) -> str:
    """Leave a session in the project's file that waits for answers, as a process that has ended."""
    web.locations.record.mkdir(parents=True, exist_ok=True)
    calls = tuple(ToolCall(f"c{at}", "write", {"path": path, "content": "x\n"}) for at, path in enumerate(paths))
    async with SqliteStore(web.locations.sessions) as store:
        agent = Agent(ScriptedProvider(AssistantMessage(calls, "calls")), Registry(Write(web.project)), sessions=store)
        await agent.run("go", session="old/1")
    return "old/1"


async def test_paused_session_is_answered_and_goes_on(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt")
        (listed,) = (await web.get("/api/sessions")).data["sessions"]
        assert (listed["id"], listed["state"], listed["questions"]) == (session, "paused", 1)
        question = (await open_question(web, quote(session, safe="")))["id"]
        replies = await asyncio.gather(*(answer(web, session, question, approved=yes) for yes in (True, False)))
        assert sorted(reply.status for reply in replies) == [200, 409]
        approved = next(reply for reply in replies if reply.status == 200).data["settled"]["approved"]
        path = f"/api/messages?id={quote(session, safe='')}"
        found = await web.until(path, lambda data: data["items"][-1]["kind"] == "assistant")
        assert found["items"][-1]["parts"][0]["text"] == "went on"
        assert (web.project / "a.txt").exists() is approved


async def test_paused_session_is_listed_however_old_it_is(serve: Serve) -> None:
    async with serve() as web:
        session = await pause(web, "a.txt")
        async with SqliteStore(web.locations.sessions) as store:
            for number in range(3):
                hold = await store.hold(f"newer-{number}")
                await hold.append(Said(UserMessage((Text("go"),))))
                await hold.release()
        for limit, newer in ((2, 2), (100, 3)):
            listed = (await web.get(f"/api/sessions?limit={limit}")).data["sessions"]
            assert [(each["id"], each["state"]) for each in listed[newer:]] == [(session, "paused")]
            assert {each["state"] for each in listed[:newer]} == {"ended"}


@pytest.mark.slow
async def test_second_question_of_a_paused_session_stays_open(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt", "b.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        first, second = (await web.get(path)).data["questions"]
        assert (await answer(web, session, first["id"], approved=True)).status == 200
        left = await web.until(path, lambda data: data["state"] == "waiting" and data["questions"])
        (question,) = left["questions"]
        assert question["call_id"] == second["call_id"] and not (web.project / "a.txt").exists()
        assert (await answer(web, session, question["id"], approved=False)).status == 200
        await web.until(path, lambda data: data["state"] == "idle")
        assert (web.project / "a.txt").exists() and not (web.project / "b.txt").exists()


async def test_all_questions_of_a_paused_session_are_answered_at_once(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt", "b.txt", "c.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        questions = [each["id"] for each in (await web.get(path)).data["questions"]]
        given = zip(questions, (True, False, True), strict=True)
        replies = await asyncio.gather(*(answer(web, session, each, approved=yes) for each, yes in given))
        assert [reply.status for reply in replies] == [200, 200, 200]
        messages = path.replace("session?", "messages?", 1)
        await web.until(messages, lambda data: data["items"][-1]["kind"] == "assistant")
        assert [(web.project / f"{name}.txt").exists() for name in "abc"] == [True, False, True]


async def test_question_of_a_paused_session_keeps_its_first_id(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt", "b.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        first, second = (await web.get(path)).data["questions"]
        assert (await answer(web, session, first["id"], approved=True)).status == 200
        left = await web.until(path, lambda data: data["state"] == "waiting" and data["questions"])
        assert [each["call_id"] for each in left["questions"]] == [second["call_id"]]
        # from a page that does not know the new id yet
        assert (await answer(web, session, second["id"], approved=True)).status == 200
        assert (await answer(web, session, second["id"], approved=False)).status == 409
        await web.until(path, lambda data: data["state"] == "idle" and not data["questions"])
        assert (web.project / "a.txt").exists() and (web.project / "b.txt").exists()


async def test_question_with_two_ids_takes_one_answer(serve: Serve) -> None:
    async with serve(done("went on")) as web:
        session = await pause(web, "a.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        (first,) = (await web.get(path)).data["questions"]
        async with SqliteStore(web.locations.sessions) as store:
            await Agent(ScriptedProvider(), Registry(Write(web.project)), sessions=store).resume(session)
        (second,) = (await web.get(path)).data["questions"]
        assert first["id"] != second["id"]
        given = ((first["id"], False), (second["id"], True))
        replies = await asyncio.gather(*(answer(web, session, each, approved=yes) for each, yes in given))
        assert sorted(reply.status for reply in replies) == [200, 409]
        settled = next(reply.data["settled"] for reply in replies if reply.status == 200)
        await web.until(path.replace("session?", "messages?", 1), lambda data: data["items"][-1]["kind"] == "assistant")
        assert (web.project / "a.txt").exists() is settled["approved"]


async def test_answer_counts_later_if_the_session_was_busy(serve: Serve) -> None:
    async with serve(done("went on")) as web, web.events() as events:
        session = await pause(web, "a.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        (question,) = (await web.get(path)).data["questions"]
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold(session)  # a process without a live socket
            assert (await answer(web, session, question["id"], approved=True)).status == 200
            again = await events.wait(type="asked", session=session)
            assert [each["id"] for each in again["questions"]] == [question["id"]]
            assert "is being written" in (await events.wait(type="notice", session=session))["text"]
            await hold.release()
        assert [each["id"] for each in (await web.get(path)).data["questions"]] == [question["id"]]
        assert (await answer(web, session, question["id"], approved=True)).status == 200
        assert (await answer(web, session, question["id"], approved=False)).status == 409
        await web.until(path, lambda data: data["state"] == "idle" and not data["questions"])
        assert (web.project / "a.txt").exists()


async def test_answer_counts_later_if_the_run_broke(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **named: object) -> None:
        raise RuntimeError("it broke")

    async with serve(done("went on")) as web, web.events() as events:
        session = await pause(web, "a.txt")
        path = f"/api/session?id={quote(session, safe='')}"
        (question,) = (await web.get(path)).data["questions"]
        with monkeypatch.context() as patch:
            patch.setattr(Conversation, "go_on", fail)
            assert (await answer(web, session, question["id"], approved=True)).status == 200
            assert "it broke" in (await events.wait(type="notice", session=session))["text"]
        assert [each["id"] for each in (await web.get(path)).data["questions"]] == [question["id"]]
        assert (await answer(web, session, question["id"], approved=True)).status == 200
        await web.until(path, lambda data: data["state"] == "idle" and not data["questions"])
        assert (web.project / "a.txt").exists()


async def test_hooks_hear_of_questions_and_of_the_end(serve: Serve, tmp_path: Path) -> None:
    log = tmp_path / "log"
    events = ("SessionStart", "Notification", "SessionEnd")
    commands = {event: {"type": "command", "command": f"echo {event} >> {log}"} for event in events}
    settings = {"hooks": {event: [{"hooks": [command]}] for event, command in commands.items()}}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.json").write_text(json.dumps(settings))
    async with serve(call("a.txt"), done("written")) as web:
        session = await say(web)
        question = await open_question(web, session)
        await until(lambda: log.exists() and "Notification" in log.read_text())
        assert (await answer(web, session, question["id"], approved=True)).status == 200
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
    assert log.read_text().split() == list(events)


async def test_session_of_another_process_is_followed(serve: Serve) -> None:
    async with serve() as web:
        await pause(web, "a.txt")
        async with web.events() as events:
            await events.wait(type="stored", session="old/1")
            async with SqliteStore(web.locations.sessions) as store:
                hold = await store.hold("other")
                await hold.append(Said(UserMessage("hello from another process")))
                await hold.release()
            news = await events.wait(type="stored", session="other")
            assert (news["records"], news["title"]) == (1, "hello from another process")
            async with SqliteStore(web.locations.sessions) as store:
                await store.delete("other")
            await events.wait(type="removed", session="other")


async def fill(web: Served, count: int) -> None:
    web.locations.record.mkdir(parents=True, exist_ok=True)
    async with SqliteStore(web.locations.sessions) as store:
        hold = await store.hold("s")
        await hold.append(*(Said(UserMessage(f"message {number}")) for number in range(count)))
        await hold.release()


async def test_deleted_sessions_leave_nothing_in_the_cache() -> None:
    def count_locks() -> int:
        gc.collect()
        return sum(isinstance(each, asyncio.Lock) for each in gc.get_objects())

    store, cache, before = MemoryStore(), RecordCache(), count_locks()
    for number in range(20):
        hold = await store.hold(f"s{number}")
        await hold.append(Said(UserMessage("hi")))
        await hold.release()
        found = await asyncio.gather(*(cache.read(store, f"s{number}") for _ in range(3)))
        assert [len(records) for records, _ in found] == [1, 1, 1]
        cache.forget(f"s{number}")  # as deleting it does
    assert count_locks() == before


async def test_messages_come_by_position(serve: Serve) -> None:
    async with serve() as web:
        await fill(web, 50)
        last = (await web.get("/api/messages?id=s&limit=10")).data
        assert (last["records"], last["from"]) == (50, 40)
        assert [item["position"] for item in last["items"]] == list(range(40, 50))
        middle = (await web.get("/api/messages?id=s&from=5&limit=2")).data["items"]
        assert [item["parts"][0]["text"] for item in middle] == ["message 5", "message 6"]
        assert (await web.get("/api/messages?id=s&from=99")).data["items"] == []
        hits = (await web.get("/api/find?id=s&q=MESSAGE%204")).data["hits"]
        assert [hit["position"] for hit in hits] == [4, *range(40, 50)]
        for query in ("id=s&limit=0", "id=s&limit=x", "id=s&limit=9999", ""):
            assert (await web.get(f"/api/messages?{query}")).status == 400
        assert (await web.get("/api/messages?id=nothing")).status == 404


@pytest.mark.parametrize("path", ["/api/messages?id=s&from=", "/api/image?id=s&position=", "/api/image?id=s&place="])
async def test_number_that_no_record_can_have_is_refused(serve: Serve, path: str) -> None:
    async with serve() as web:
        await fill(web, 1)
        assert (await web.get(f"{path}{10**20}")).status == 400


async def test_damaged_record_is_said_and_the_others_are_shown(serve: Serve) -> None:
    async with serve() as web:
        await fill(web, 5)
        with sqlite3.connect(web.locations.sessions) as file:
            (table,) = file.execute(
                "select name from sqlite_master where name like '%record%' and type='table'"
            ).fetchone()
            file.execute(f"update {table} set body = '{{\"role\": 1}}' where position = 2")
        file.close()
        items = (await web.get("/api/messages?id=s")).data["items"]
        assert [item["kind"] for item in items] == ["user", "user", "damaged", "user", "user"] and items[2]["fault"]
        shown = (await web.get("/api/session?id=s")).data
        assert [each["position"] for each in shown["damaged"]] == [2]
        assert (await web.get("/api/export?id=s")).status == 200
        assert (await web.get("/api/export?id=s&format=jsonl")).data["code"] == "damaged"


async def test_file_of_a_later_version_is_said(serve: Serve) -> None:
    async with serve() as web:
        await fill(web, 1)
        with sqlite3.connect(web.locations.sessions) as file:
            file.execute("pragma user_version = 9999")
        file.close()
        listed = await web.get("/api/sessions")
        assert listed.status == 200 and listed.data["sessions"] == [] and "version" in listed.data["error"]
        for path in ("/api/session?id=s", "/api/messages?id=s", "/api/costs", "/api/timeline?id=s"):
            reply = await web.get(path)
            assert (reply.status, reply.data["code"]) == (409, "later_version"), path


async def test_file_that_is_not_a_database_is_said(serve: Serve) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        web.locations.sessions.write_bytes(b"nonsense" * 1000)
        listed = (await web.get("/api/sessions")).data
        assert listed["sessions"] == [] and listed["error"] and "Traceback" not in listed["error"]


async def test_images_are_served_by_type_and_never_as_markup(serve: Serve) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        images = (Image(b"\x89PNG", "image/png"), Image(b"<svg onload=alert(1)>", "image/svg+xml"))
        outcome = Completed(ToolCall("c1", "look"), Output(images))
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("s")
            await hold.append(Said(call("a")), Said(ToolMessage((outcome,))))
            await hold.release()
        parts = (await web.get("/api/messages?id=s")).data["items"][1]["outcomes"][0]["parts"]
        assert [part["type"] for part in parts] == ["image", "file"]
        shown = await web.get(parts[0]["url"])
        assert (shown.status, shown["content-type"], shown.body) == (200, "image/png", b"\x89PNG")
        assert (await web.get(parts[0]["url"].replace("place=0", "place=1"))).status == 404
        exported = (await web.get("/api/export?id=s")).body.decode()
        assert "data:image/png;base64," in exported and "onload" not in exported


async def test_export_is_one_safe_file_without_credentials(serve: Serve) -> None:
    hostile = "<script>alert(1)</script> \x1b[31mred \u202egnp.exe AKIAIOSFODNN7EXAMPLE"
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("s")
            await hold.append(Said(UserMessage(hostile)), Said(done(hostile)))
            await hold.release()
        reply = await web.get("/api/export?id=s&format=html")
        text = reply.body.decode()
        assert reply["content-disposition"].startswith("attachment") and "<script" not in text
        assert "AKIAIOSFODNN7EXAMPLE" not in text and "\x1b" not in text and "\u202e" not in text
        assert "default-src 'none'" in text and "&lt;script&gt;" in text
        lines = (await web.get("/api/export?id=s&format=jsonl")).body.decode()
        assert len(lines.splitlines()) == 2 and "AKIAIOSFODNN7EXAMPLE" not in lines


async def test_without_a_model_the_page_only_says_so(serve: Serve) -> None:
    async with serve(model=False) as web:
        reply = await web.post("/api/say", {"session": None, "text": "go"})
        assert (reply.status, reply.data["code"]) == (409, "no_model")
        await fill(web, 1)
        assert (await web.post("/api/resume", {"session": "s"})).data["code"] == "no_model"


class SlowStart:
    """Sessions of the server; those whose app is built while `held` is set wait for `may_open`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self.held, self.opening, self.may_open = threading.Event(), threading.Event(), threading.Event()
        self.hosts = Hosts(locations, self._open, lambda event: None)

    def _open(self, *, report: Any, wrap: Any, observe: Any) -> App:
        if self.held.is_set():
            self.opening.set()
            assert self.may_open.wait(LONG_SECONDS)  # as MCP servers may
        settings = load_settings(self._locations, trusted=False)
        return assemble(wrap(ScriptedProvider()), settings, self._locations, report=report, observe=observe)


async def test_session_that_starts_slowly_holds_up_no_other(project: Path, tmp_path: Path) -> None:
    slow = SlowStart(Locations.of(project, home=tmp_path / "home"))
    slow.held.set()
    waiting = [asyncio.create_task(slow.hosts.open("one")) for _ in range(2)]
    await until(slow.opening.is_set)
    slow.held.clear()
    other = await slow.hosts.open(None)
    assert slow.hosts.find(other.session_id) is other
    assert slow.hosts.find("one") is None  # it may still fail
    slow.may_open.set()
    first, second = await asyncio.gather(*waiting)
    assert first is second is slow.hosts.find("one")
    await slow.hosts.aclose()


async def test_session_that_is_closed_while_it_starts_stays_closed(project: Path, tmp_path: Path) -> None:
    slow = SlowStart(Locations.of(project, home=tmp_path / "home"))
    slow.held.set()
    waiting = asyncio.create_task(slow.hosts.open("one"))
    await until(slow.opening.is_set)
    await slow.hosts.close_session("one")
    slow.may_open.set()
    with pytest.raises(CallwrightError, match="closed while it started"):
        await waiting
    assert slow.hosts.find("one") is None


async def test_session_that_is_closed_before_it_starts_ends_the_wait(project: Path, tmp_path: Path) -> None:
    slow = SlowStart(Locations.of(project, home=tmp_path / "home"))
    waiting = asyncio.create_task(slow.hosts.open("one"))
    await asyncio.sleep(0)  # its task exists, and has not taken a step
    await slow.hosts.close_session("one")
    with pytest.raises(CallwrightError, match="closed while it started"):
        await asyncio.wait_for(waiting, LONG_SECONDS)
    assert not slow.opening.is_set()


async def test_session_that_could_not_start_may_start_later(project: Path, tmp_path: Path) -> None:
    slow = SlowStart(Locations.of(project, home=tmp_path / "home"))
    settings = tmp_path / "home" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{")
    with pytest.raises(CallwrightError):
        await slow.hosts.open("one")
    assert slow.hosts.find("one") is None
    settings.unlink()
    started = await slow.hosts.open("one")
    assert slow.hosts.find("one") is started
    await slow.hosts.aclose()


class Quiet:
    """Sessions of the server on a clock of their own; they are closed after half an hour without use."""

    def __init__(self, locations: Locations, *replies: Line) -> None:
        self._locations, self._replies = locations, replies
        self.clock = LoopClock()
        self.opened: list[App] = []
        self.events: list[dict[str, Any]] = []
        self.hosts = Hosts(locations, self._open, self.events.append)

    def _open(self, *, report: Any, wrap: Any, observe: Any) -> App:
        settings = load_settings(self._locations, trusted=False)
        model = ScriptedProvider(*self._replies)
        self.opened.append(assemble(wrap(model), settings, self._locations, report=report, observe=observe))
        return self.opened[-1]

    async def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            self.clock.pass_seconds(61)
            for _ in range(5):
                await asyncio.sleep(0)


async def test_quiet_session_is_closed_and_opened_again(project: Path, tmp_path: Path) -> None:
    quiet = Quiet(Locations.of(project, home=tmp_path / "home"), "hello")
    hosts = quiet.hosts
    first = await hosts.open("one")
    assert first.live.set_mode is not None
    first.live.set_mode("plan")
    first.say("hi")
    await until(lambda: first.is_quiet(0))
    for _ in range(4):  # a page reads it from time to time
        await quiet.pass_minutes(20)
        assert hosts.find("one") is first
        hosts.touch("one")
    await quiet.pass_minutes(32)
    assert hosts.find("one") is None
    again = await hosts.open("one")  # waits until the first is closed
    assert first.over and again is not first and hosts.find("one") is again
    assert again.live.mode() == "plan" and len(quiet.opened) == 2
    with pytest.raises(UsageError, match="is being closed"):
        first.say("lost")
    await hosts.aclose()


async def test_session_that_a_page_reads_is_in_use(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(hosts: Hosts, session_id: str) -> None:
        read.append(session_id)

    monkeypatch.setattr(Hosts, "touch", note)
    async with serve() as web:
        await fill(web, 1)
        for path in ("session", "messages"):
            assert (await web.get(f"/api/{path}?id=s")).status == 200
    assert read == ["s", "s"]


async def test_quiet_session_that_is_being_closed_is_waited_for_before_it_is_deleted(
    project: Path, tmp_path: Path
) -> None:
    quiet = Quiet(Locations.of(project, home=tmp_path / "home"), "hello")
    hosted = await quiet.hosts.open("one")
    hosted.say("hi")
    await until(lambda: hosted.is_quiet(0))
    while not quiet.hosts.is_ending("one"):
        quiet.clock.pass_seconds(61)
        await asyncio.sleep(0)
    assert not hosted.over
    await quiet.hosts.close_session("one")
    assert hosted.over and not quiet.hosts.is_ending("one")
    await quiet.hosts.aclose()


async def test_session_that_waits_or_has_jobs_is_not_closed(project: Path, tmp_path: Path) -> None:
    asking = AssistantMessage((ToolCall("c", "write", {"path": "a", "content": "b"}),), "calls")
    locations = Locations.of(project, home=tmp_path / "home")
    quiet = Quiet(locations, asking)
    waiting = await quiet.hosts.open("waiting")
    waiting.say("hi")
    await until(lambda: waiting.live.state == "waiting")
    await quiet.pass_minutes(100)
    assert quiet.hosts.find("waiting") is waiting
    await quiet.hosts.aclose()
    job = AssistantMessage((ToolCall("c", "bash", {"command": "sleep 600", "background": True}),), "calls")
    quiet = Quiet(locations, job, "started")
    busy = await quiet.hosts.open("busy")
    busy.say("hi")
    shell = ShellSession.of(quiet.opened[0].agent.state("busy"), "busy")
    await until(lambda: shell.jobs or len(busy.live.questions))
    for question in busy.live.questions.fields():  # where no sandbox holds it
        busy.live.questions.settle(question["id"], Approve(), "page")
    await until(lambda: shell.jobs and busy.live.state == "idle")
    await quiet.pass_minutes(100)
    assert quiet.hosts.find("busy") is busy
    await quiet.hosts.aclose()


async def test_session_whose_jobs_have_ended_is_closed(project: Path, tmp_path: Path) -> None:
    job = AssistantMessage((ToolCall("c", "bash", {"command": "echo hi", "background": True}),), "calls")
    read = AssistantMessage((ToolCall("d", "bash_output", {"id": "1", "wait_seconds": 60}),), "calls")
    quiet = Quiet(Locations.of(project, home=tmp_path / "home"), job, "started", read, "read")
    hosted = await quiet.hosts.open("one")
    hosted.say("hi")
    shell = ShellSession.of(quiet.opened[0].agent.state("one"), "one")
    await until(lambda: (shell.jobs and hosted.live.state == "idle") or len(hosted.live.questions))
    for question in hosted.live.questions.fields():  # where no sandbox holds it
        hosted.live.questions.settle(question["id"], Approve(), "page")
    await until(lambda: shell.jobs and shell.jobs[0].running.ended is not None and hosted.live.state == "idle")
    await quiet.pass_minutes(100)
    assert quiet.hosts.find("one") is hosted  # its output is still to be read
    hosted.say("read it")
    await until(lambda: shell.jobs[0].settled and hosted.live.state == "idle")
    await quiet.pass_minutes(100)
    assert quiet.hosts.find("one") is None
    await quiet.hosts.aclose()


async def test_fork_rename_and_delete(serve: Serve) -> None:
    async with serve() as web:
        await fill(web, 2)
        new = (await web.post("/api/fork", {"session": "s"})).data["session"]
        assert (await web.post("/api/rename", {"session": new, "title": "copy"})).status == 200
        assert {each["title"] for each in (await web.get("/api/sessions")).data["sessions"]} == {"message 0", "copy"}
        assert (await web.post("/api/delete", {"session": "s"})).status == 200
        missing = await web.get("/api/session?id=s")
        assert (missing.status, missing.data["error"]) == (404, "there is no session 's'")
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold(new)
            busy = await web.post("/api/delete", {"session": new})
            assert (busy.status, busy.data["code"]) == (409, "busy")
            await hold.release()


async def test_undo_restores_the_file_after_a_dry_run(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        await answer(web, session, (await open_question(web, session))["id"], approved=True)
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        planned = (await web.post("/api/undo", {"session": session})).data
        assert [change["action"] for change in planned["changes"]] == ["delete"] and planned["done"] is False
        assert (web.project / "a.txt").exists()
        assert (await web.post("/api/undo", {"session": session, "dry_run": False})).data["done"] is True
        assert not (web.project / "a.txt").exists()
        found = (await web.get(f"/api/messages?id={session}")).data["items"]
        assert all(item.get("rewound") for item in found[:-1]) and found[-1]["kind"] == "rewound"
        assert (await web.post("/api/redo", {"session": session, "dry_run": False})).data["done"] is True
        assert (web.project / "a.txt").exists()
        assert [*web.locations.undo.iterdir()]
        assert (await web.post("/api/delete", {"session": session})).status == 200
        assert not [*web.locations.undo.iterdir()]  # old contents go with their session


async def test_live_session_is_shown_while_its_store_fails(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*given: object, **named: object) -> None:
        raise SessionError("the database is locked")

    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        question = await open_question(web, session)
        with monkeypatch.context() as patch:
            for name in ("find", "read", "read_from", "list"):
                patch.setattr(SqliteStore, name, fail)
            shown = await web.get(f"/api/session?id={session}")
            assert shown.status == 200 and [each["id"] for each in shown.data["questions"]] == [question["id"]]
            messages = await web.get(f"/api/messages?id={session}")
            assert messages.status == 200 and messages.data["items"] == []
            reply = await answer(web, session, question["id"], approved=False, reason="not now")
            assert reply.status == 200


async def test_vanished_process_is_said(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve() as web:
        agents = LiveAgents(web.locations.live, lambda event: None)
        assert agents.find("s") is None
        for path in ("stop", "mode"):
            body = {"session": "s"} | ({"mode": "auto"} if path == "mode" else {})
            reply = await web.post(f"/api/{path}", body)
            assert (reply.status, reply.data["code"]) == (409, "gone")


async def test_change_that_could_not_be_read_is_told_later(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, failures = SqliteStore.list, iter((SessionError("the file is locked"),))

    async def fail_once(self: SqliteStore, **given: Any) -> Any:
        for failure in failures:
            raise failure
        return await listed(self, **given)

    async with serve() as web, web.events() as events:
        await events.wait(type="hello")
        monkeypatch.setattr(SqliteStore, "list", fail_once)
        await fill(web, 1)
        await events.wait(type="problem", text="the file is locked")
        await events.wait(type="stored", session="s", records=1)


async def test_mode_of_a_page_session_cannot_become_bypass(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        await open_question(web, session)
        assert (await web.post("/api/mode", {"session": session, "mode": "bypass"})).status == 400
        assert (await web.post("/api/mode", {"session": session, "mode": "plan"})).data == {"mode": "plan"}


async def test_changed_mode_is_shown(serve: Serve, project: Path, tmp_path: Path) -> None:
    live, mode = LiveAgent(Locations.of(project, home=tmp_path / "home").live, "terminal"), "default"
    live.mode = lambda: mode
    async with serve(call("a.txt")) as web, web.events() as events, live:
        live.open_session("s")
        await web.until("/api/session?id=s", lambda data: data["mode"] == "default")
        mode = "auto"
        live.tell_mode()
        await events.wait(type="agent", session="s", mode="auto")
        assert (await web.get("/api/session?id=s")).data["mode"] == "auto"
        session = await say(web)
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "waiting")
        await web.post("/api/mode", {"session": session, "mode": "plan"})
        await web.until(f"/api/session?id={session}", lambda data: data["mode"] == "plan")


async def test_sessions_are_shown_while_the_settings_are_not_valid(serve: Serve, tmp_path: Path) -> None:
    async with serve(call("a.txt"), done("all done")) as web:
        session = await say(web)
        question = await open_question(web, session)
        (tmp_path / "home" / "settings.json").write_text("{")
        assert (await web.get("/api/state")).data["problems"]
        shown = (await web.get(f"/api/session?id={session}&from=-10")).data
        assert [each["id"] for each in shown["questions"]] == [question["id"]]
        assert {"user", "assistant", "asked"} <= {each["kind"] for each in shown["messages"]["items"]}
        assert (await answer(web, session, question["id"], approved=True)).status == 200
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        assert (await web.get(f"/api/export?id={session}")).status == 200


async def test_costs_are_summed_by_day_model_and_tool(serve: Serve) -> None:
    async with serve(call("a.txt"), done("done")) as web:
        session = await say(web)
        await answer(web, session, (await open_question(web, session))["id"], approved=True)
        await web.until(f"/api/session?id={session}", lambda data: data["state"] == "idle")
        found = (await web.get("/api/costs")).data
        assert found["tools"][0]["name"] == "write" and found["tools"][0]["calls"] == 1
        assert json.dumps(found) and Path(web.project, "a.txt").exists()


async def test_costs_count_summaries_and_sub_agents(serve: Serve) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("s")
            said = Said(AssistantMessage((), usage=Usage(100), model="gpt-5"))
            await hold.append(said, Compacted((), Usage(30)), Spent(Usage(5), 0.5), Spent(Usage(1)))
            await hold.release()
        found = (await web.get("/api/costs")).data
        assert found["total"]["tokens"] == 136 and found["total"]["usd"] == pytest.approx(0.5 + 131 * 1.25e-6)
        assert [each["model"] for each in found["models"]] == ["gpt-5", "sub-agents"]
        fork = (await web.post("/api/fork", {"session": "s"})).data["session"]
        await web.until("/api/sessions", lambda data: fork in [each["id"] for each in data["sessions"]])
        assert (await web.get("/api/costs")).data == found  # what a fork has copied was spent once


async def test_costs_keep_figures_of_calls_and_no_texts(serve: Serve) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("s")
            for number in range(50):
                made = ToolCall(f"c{number}", "bash", {"command": f"{number} " * 10_000})
                ended = Completed(made, Output(f"{number:04}" * 25_000), 2.0)
                failed = Failed(ToolCall(f"f{number}", "bash", {}), ToolFailed("no"))
                said = UserMessage((Text("say " * 10_000),)), AssistantMessage((made,)), ToolMessage((ended, failed))
                await hold.append(*map(Said, said))
            await hold.release()
        await web.get("/api/tools")
        tracemalloc.start()
        try:
            (tool,) = (await web.get("/api/costs")).data["tools"]
            await web.get("/api/sessions")  # the thread of the store holds its last result
            gc.collect()
            kept_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (tool["calls"], tool["failed"], tool["max"]) == (100, 50, 2.0) and tool["tokens"] > 1_000_000
        assert kept_bytes < 1_000_000


async def test_costs_count_sessions_that_are_written_at_the_same_time(serve: Serve) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        said = Said(AssistantMessage((), usage=Usage(100), model="gpt-5"))
        async with SqliteStore(web.locations.sessions) as store:
            holds = [await store.hold(f"s{number}") for number in range(20)]
            for _ in range(2):
                await asyncio.gather(*(hold.append(said) for hold in holds))
            await asyncio.gather(*(hold.release() for hold in holds))
            await store.fork("s3", "copy")
        found = (await web.get("/api/costs")).data
        assert found["total"]["tokens"] == 20 * 2 * 100 and len(found["sessions"]) == 20


@pytest.mark.parametrize(("turns", "numbers"), [(30, [*range(11, 31)]), (200, [None] * 20)])
async def test_timeline_numbers_turns_only_if_it_knows_them(
    serve: Serve, turns: int, numbers: list[int | None]
) -> None:
    async with serve() as web:
        web.locations.record.mkdir(parents=True, exist_ok=True)
        outcome = Completed(ToolCall("c1", "write", {}), Output("ok"))
        async with SqliteStore(web.locations.sessions) as store:
            hold = await store.hold("s")
            await hold.append(*[Said(call("a.txt")), Said(ToolMessage((outcome,)))] * turns)
            await hold.release()
        found = (await web.get("/api/timeline?id=s")).data["turns"]
        assert [turn["number"] for turn in found] == numbers


@pytest.mark.slow
async def test_long_session_is_shown_before_all_of_it_is_read(serve: Serve) -> None:
    async with serve() as web, web.events() as events:
        await fill(web, 1500)
        first = (await web.get("/api/session?id=s")).data
        assert first["records"] == 1500 and first["usage"] is None and first["state"] == "ended"
        await events.wait(type="summary", session="s")
        second = (await web.get("/api/session?id=s")).data
        assert second["usage"]["input_tokens"] == 0 and second["cost"]["usd"] == 0


async def test_page_that_comes_later_shows_a_call_that_waits(serve: Serve, project: Path, tmp_path: Path) -> None:
    locations = Locations.of(project, home=tmp_path / "home")
    async with LiveAgent(locations.live, "terminal", Registry()) as live:
        live.open_session("s")
        edit, write = ToolCall("c1", "edit", {}), ToolCall("c2", "write", {})
        live.observe(CallBegan(edit))
        live.observe(CallWaits(write, (edit,)))  # before any page looks
        async with serve() as web:
            found = await web.until("/api/session?id=s", lambda data: data["running"])
            assert [call["id"] for call in found["running"]] == ["c1"] and found["waits"] == {"c2": ["c1"]}


async def test_events_go_on_where_a_session_was_read(serve: Serve, project: Path, tmp_path: Path) -> None:
    locations = Locations.of(project, home=tmp_path / "home")
    async with LiveAgent(locations.live, "terminal", Registry()) as live:
        live.open_session("s")
        async with serve() as web, web.events() as events:
            await web.until("/api/session?id=s", lambda data: data["partial"] is not None)
            for words in ("one ", "two "):
                live.on_model_event(TextDelta(words))
            read = await web.until("/api/session?id=s&from=-1", lambda data: data["partial"]["text"])
            live.on_model_event(TextDelta("three"))
            await events.wait(type="text", text="three")
            later = [event["text"] for event in events.seen if event.get("number", 0) > read["number"]]
            assert read["partial"]["text"] + "".join(later) == "one two three"


async def test_page_that_fell_behind_gets_the_questions_of_now(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(call("a.txt"), done("done")) as web, web.events() as events:
        session = await say(web)
        question = (await events.wait(type="asked", session=session))["questions"][0]["id"]
        monkeypatch.setattr("callwright.web.hub._MOST_WAITING", 0)  # every event is one too many
        events.seen.clear()
        assert (await answer(web, session, question, approved=True)).status == 200
        await events.wait(type="hello", questions=[])


async def test_streams_and_store_end_with_the_hub(project: Path, tmp_path: Path) -> None:
    locations = Locations.of(project, home=tmp_path / "home")
    hub = Hub(locations, "1")
    before = hub.store
    assert before is None and not locations.sessions.exists()  # a look must not create the file
    async with SqliteStore(locations.sessions) as sessions:
        await sessions.list()
    store = hub.store
    assert store is not None and store is hub.store
    stream = hub.stream()
    await anext(stream)
    for number in (1, 2):
        hub.publish({"type": "notice"})
        assert json.loads((await anext(stream)).removeprefix(b"data: ")) == [{"type": "notice", "number": number}]
    assert hub.streams == 1
    await hub.aclose()
    assert [batch async for batch in stream] == [] and hub.streams == 0
    with pytest.raises(SessionError, match="is closed"):
        await store.list()


async def test_events_that_a_page_does_not_read_are_not_kept(project: Path, tmp_path: Path) -> None:
    hub = Hub(Locations.of(project, home=tmp_path / "home"), "1")
    stream = hub.stream()
    await anext(stream)
    for _ in range(100):
        hub.publish({"type": "call_ended", "text": "x" * 1_000_000})
    batch = await anext(stream)
    assert len(batch) < 20_000_000
    first, *rest = json.loads(batch.removeprefix(b"data: "))
    assert first["type"] == "hello" and rest[-1]["number"] == 100
    await stream.aclose()


async def test_folder_that_cannot_be_looked_into_is_said(project: Path, tmp_path: Path) -> None:
    hub = Hub(Locations.of(project, home=tmp_path / ("x" * 300)), "1")
    with pytest.raises(SessionError, match="cannot be opened: file name too long"):
        _ = hub.store
    await hub.open()
    stream = hub.stream()
    try:
        await anext(stream)
        (told,) = json.loads((await asyncio.wait_for(anext(stream), LONG_SECONDS)).removeprefix(b"data: "))
        assert told["type"] == "problem" and "cannot be opened" in told["text"]
    finally:
        await stream.aclose()
        await hub.aclose()


@pytest.mark.slow
async def test_text_that_grows_while_the_page_opens_is_shown_once(
    serve: Serve, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.async_api import Route, async_playwright, expect

    monkeypatch.setattr("callwright.web.hub._FLUSH_SECONDS", 0.5)  # the events come after what was read
    locations = Locations.of(project, home=tmp_path / "home")
    async with (
        LiveAgent(locations.live, "terminal", Registry()) as live,
        serve() as web,
        async_playwright() as playwright,
    ):
        live.open_session("s")
        await web.until("/api/session?id=s", lambda data: data["partial"] is not None)

        async def read_between(route: Route) -> None:
            live.on_model_event(TextDelta("one "))
            await web.until("/api/session?id=s", lambda data: data["partial"]["text"])
            response = await route.fetch()
            live.on_model_event(TextDelta("two "))
            await route.fulfill(response=response)
            live.on_model_event(TextDelta("three"))

        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, timeout=90_000)
        page = await browser.new_page()
        await page.route("**/api/session?*", read_between, times=1)
        await page.goto(web.link.replace("/#", "/session?id=s#"))
        await expect(page.locator(".growing .md")).to_have_text("one two three", timeout=60_000)
        await browser.close()


def test_streamed_message_is_told_from_others_once_it_is_stored() -> None:
    stored: dict[str, Any] = {
        "kind": "assistant",
        "parts": [{"type": "text", "text": "asking"}, {"type": "call", "id": "c1"}],
    }
    nothing: dict[str, Any] = {"text": "", "thinking": "", "calls": []}
    assert holds(stored, nothing | {"text": "asking"})
    assert holds(stored, nothing | {"calls": [{"id": "c1", "name": "bash", "arguments": ""}]})
    assert not holds(stored, nothing | {"text": "ask"})
    assert not holds(stored, nothing | {"calls": [{"id": "c2", "name": "bash", "arguments": ""}]})
    assert not holds({**stored, "kind": "user"}, nothing | {"text": "asking"})
    assert not holds(stored, nothing)
    assert not holds(stored, None)
