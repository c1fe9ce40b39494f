"""Sessions of the editor: stored with those of the command, loaded, listed, forked, closed and deleted."""

import asyncio
import gc
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, spawn_agent_process
from acp.schema import McpServerStdio
from tests.acp.conftest import Connect
from tests.acp.editor import EditorClient, call, choose, until

from callwright.app.live_client import LiveAgents
from callwright.app.locations import Locations
from callwright.app.questions import find_last_questions
from callwright.sessions import SqliteStore

_WRITE = call("write", path="a.txt", content="hi\n")


async def leave_at_a_question(connect: Connect) -> str:
    """Disconnect while the question about a write waits; return the session."""
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect(_WRITE, "never said", client=client) as editor:
        session = await editor.start()
        answer = await editor.say_until_asked(session, "write it")
    answer.cancel()
    assert not (editor.project / "a.txt").exists()
    return session


async def test_load_replays_the_conversation(connect: Connect) -> None:
    async with connect({**_WRITE, "text": "I write."}, "done") as editor:
        session = await editor.start()
        await editor.say(session, "write it")
        await editor.connection.close_session(session)
        editor.client.updates.clear()
        loaded = await editor.connection.load_session(str(editor.project), session, mcp_servers=[])
        assert loaded is not None and loaded.modes is not None
        client = editor.client
        assert client.kinds(session)[:5] == [
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        (shown,) = client.calls().values()
        assert (shown["status"], shown["content"][0]["new_text"]) == ("completed", "hi\n")


@pytest.mark.slow
async def test_sessions_are_those_of_the_command(connect: Connect, script: Callable[..., str]) -> None:
    command = ("-m", "callwright", "-p", "from the terminal", script("answered"), "--session-id", "t1")
    terminal = await asyncio.create_subprocess_exec(sys.executable, *command, stdin=DEVNULL, stdout=DEVNULL)
    assert await terminal.wait() == 0
    async with connect("again") as editor:
        session = await editor.start()
        await editor.say(session, "from the editor")
        listed = await editor.connection.list_sessions(cwd=str(editor.project))
        assert {each.session_id for each in listed.sessions} == {"t1", session}
        assert {each.cwd for each in listed.sessions} == {str(editor.project)}
        await editor.connection.load_session(str(editor.project), "t1", mcp_servers=[])
        assert "answered" in editor.client.text()


async def test_pages_of_a_list(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.acp.stored_sessions._PAGE", 2)
    async with connect("a", "b", "c") as editor:
        ids = set[str]()
        for _ in range(3):
            session = await editor.start()
            await editor.say(session, "hello")
            ids.add(session)
        first = await editor.connection.list_sessions(cwd=str(editor.project))
        rest = await editor.connection.list_sessions(cwd=str(editor.project), cursor=first.next_cursor)
        assert [len(first.sessions), len(rest.sessions), rest.next_cursor] == [2, 1, None]
        assert {each.session_id for each in (*first.sessions, *rest.sessions)} == ids


async def test_fork_continues_in_a_copy(connect: Connect) -> None:
    async with connect("one", "two") as editor:
        session = await editor.start()
        await editor.say(session, "hello")
        forked = await editor.connection.fork_session(session, str(editor.project))
        assert forked.session_id != session
        await editor.say(forked.session_id, "go on")
        listed = await editor.connection.list_sessions(cwd=str(editor.project))
        assert {each.session_id for each in listed.sessions} == {session, forked.session_id}


async def test_resume_sends_no_history(connect: Connect) -> None:
    async with connect("one") as editor:
        session = await editor.start()
        await editor.say(session, "hello")
        editor.client.updates.clear()
        await editor.connection.resume_session(session, str(editor.project))
        await editor.raw("session/list", {})  # after the commands were sent
        assert set(editor.client.kinds()) <= {"available_commands_update"}


async def test_closed_session_is_gone_and_deleted_one_too(connect: Connect) -> None:
    async with connect("one") as editor:
        session = await editor.start()
        await editor.say(session, "hello")
        await editor.connection.close_session(session)
        with pytest.raises(RequestError, match="not open"):
            await editor.say(session, "still there?")
        await editor.raw("session/delete", {"sessionId": session})
        with pytest.raises(RequestError, match="no session") as raised:
            await editor.connection.load_session(str(editor.project), session, mcp_servers=[])
        assert raised.value.code == -32002
        with pytest.raises(RequestError):
            await editor.raw("session/delete", {"sessionId": "../../etc"})


async def test_two_sessions_run_at_once(connect: Connect) -> None:
    waiting = asyncio.Event()

    async def wait(options: Any) -> str:
        await waiting.wait()
        return str(options[0].option_id)

    client = EditorClient(wait)
    async with connect(_WRITE, "done", client=client) as editor:
        one, two = await editor.start(), await editor.start()
        first = await editor.say_until_asked(one, "write it")
        client.question_arrived.clear()
        second = await editor.say_until_asked(two, "write it")
        await editor.connection.cancel(two)
        assert await second == "cancelled"
        assert not first.done()
        with pytest.raises(RequestError, match="being answered"):
            await editor.say(one, "and this")
        waiting.set()
        assert await first == "end_turn"
        assert (editor.project / "a.txt").exists()


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [("project", "absolute"), ("", "absolute"), ("/no/such/folder", "no such folder"), ("/etc/passwd", "not a folder")],
)
async def test_folder_must_exist(connect: Connect, cwd: str, reason: str) -> None:
    async with connect("never") as editor:
        await editor.connection.initialize(1)
        for method, more in (("session/new", {}), ("session/load", {"sessionId": "x"})):
            with pytest.raises(RequestError, match=reason) as raised:
                await editor.raw(method, {"cwd": cwd, "mcpServers": [], **more})
            assert raised.value.code == -32602


async def test_folder_outside_of_the_workspace_is_refused(connect: Connect, project: Path) -> None:
    (project / "way-out").symlink_to("/")
    async with connect("never", arguments=("--workspace", str(project))) as editor:
        await editor.start()
        for params in (
            {"cwd": str(project.parent)},
            {"cwd": f"{project}/.."},
            {"cwd": f"{project}/way-out"},
            {"cwd": str(project), "additionalDirectories": ["/"]},
        ):
            with pytest.raises(RequestError, match="outside"):
                await editor.raw("session/new", {"mcpServers": [], **params})


async def test_variables_of_two_projects_stay_apart(connect: Connect, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".callwright").mkdir(parents=True)
    (other / ".callwright" / "settings.json").write_text('{"env": {"CALLWRIGHT_TEST_ONE": "theirs"}}')
    async with connect("never", arguments=("--trust",)) as editor:
        await editor.start()
        with pytest.raises(RequestError, match="environment variables"):
            await editor.raw("session/new", {"cwd": str(other), "mcpServers": []})
        assert "CALLWRIGHT_TEST_ONE" not in os.environ


async def test_variables_of_a_project_that_fails_to_open_are_taken_back(connect: Connect, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / ".callwright").mkdir(parents=True)
    (broken / ".callwright" / "settings.json").write_text(
        '{"env": {"CALLWRIGHT_TEST_ONE": "theirs"}, "permissions": {"deny": ["Bash("]}}'
    )
    async with connect("never", arguments=("--trust",)) as editor:
        await editor.connection.initialize(1)
        with pytest.raises(RequestError, match="deny rule"):
            await editor.raw("session/new", {"cwd": str(broken), "mcpServers": []})
        assert "CALLWRIGHT_TEST_ONE" not in os.environ


async def test_disconnect_at_a_question_keeps_it_open(connect: Connect) -> None:
    session = await leave_at_a_question(connect)
    async with connect("after the answer", client=EditorClient(choose("once"))) as again:
        await again.connection.initialize(1)
        await again.connection.load_session(str(again.project), session, mcp_servers=[])
        await again.client.question_arrived.wait()
        await until(lambda: "after the answer" in again.client.text())
        assert (again.project / "a.txt").read_text() == "hi\n"


async def test_load_replays_the_images_of_a_prompt(connect: Connect) -> None:
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    async with connect("I see.", "Again.") as editor:
        session = await editor.start()
        await editor.say(session, image)
        await editor.say(session, "and this?", image)
        await editor.connection.close_session(session)
        editor.client.updates.clear()
        await editor.connection.load_session(str(editor.project), session, mcp_servers=[])
        shown = [each.content for _, each in editor.client.updates if each.session_update == "user_message_chunk"]
        assert [each.type for each in shown] == ["image", "text", "image"]
        assert (shown[0].data, shown[0].mime_type) == ("aGVsbG8=", "image/png")


async def test_close_and_load_show_the_question_again(connect: Connect) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect(_WRITE, client=client) as editor:
        session = await editor.start()
        answer = asyncio.create_task(editor.say(session, "write it"))
        for count in (1, 2, 3):
            await until(lambda count=count: len(client.asked) == count)
            await editor.connection.close_session(session)
            await editor.connection.load_session(str(editor.project), session, mcp_servers=[])
        assert await answer == "cancelled"
        await until(lambda: len(client.asked) == 4)
        assert {shown.tool_call_id for shown, _ in client.asked} == {"call-1-1"}
        assert not (editor.project / "a.txt").exists()


async def test_close_before_a_question_is_shown_keeps_it_open(connect: Connect, tmp_path: Path) -> None:
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    wait = f"touch {began}; while [ ! -e {go_on} ]; do sleep 0.05; done"
    hooks = {"hooks": {"Notification": [{"hooks": [{"type": "command", "command": wait}]}]}}
    async with connect(_WRITE, "never said", arguments=("--settings", json.dumps(hooks))) as editor:
        session = await editor.start()
        answer = asyncio.create_task(editor.say(session, "write it"))
        await until(began.exists)
        closing = asyncio.create_task(editor.connection.close_session(session))
        with pytest.raises(RequestError, match="not open"):
            while True:
                await editor.raw("session/set_mode", {"sessionId": session, "modeId": "default"})
        go_on.touch()
        await closing
        assert await answer == "cancelled" and editor.client.asked == []
        async with SqliteStore(Locations.of(editor.project).sessions) as store:
            assert await find_last_questions(store, session)


async def test_prompt_that_is_faster_than_the_old_question_is_the_one_that_runs(connect: Connect) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect(_WRITE, "never said", client=client) as editor:
        session = await editor.start()
        answer = await editor.say_until_asked(session, "write it")
        opened = editor.agent._sessions[session]  # pyright: ignore[reportPrivateUsage] - as a slow editor delays it
        opened.resume_question()
        assert opened.running
        await editor.connection.cancel(session)
        assert await answer == "cancelled"


async def test_closed_session_does_not_go_on_at_its_question(connect: Connect) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect(_WRITE, "never said", client=client) as editor:
        session = await editor.start()
        answer = await editor.say_until_asked(session, "write it")
        opened = editor.agent._sessions[session]  # pyright: ignore[reportPrivateUsage] - as a slow editor delays it
        await editor.connection.close_session(session)
        assert await answer == "cancelled"
        opened.resume_question()
        assert opened._run is None  # pyright: ignore[reportPrivateUsage] - no request of a closed session shows it


async def test_one_prompt_at_a_time_after_an_old_question_was_answered(connect: Connect) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    second = call("write", path="b.txt", content="hi\n")
    async with connect(_WRITE, "went on", second, "never said", client=client) as editor:
        session = await editor.start()
        stopped = await editor.say_until_asked(session, "write it")
        await editor.connection.close_session(session)
        assert await stopped == "cancelled"
        client.answer = choose("once")
        await editor.connection.load_session(str(editor.project), session, mcp_servers=[])
        await until(lambda: "went on" in client.text())
        client.answer = lambda _: asyncio.Event().wait()
        client.question_arrived.clear()
        answer = await editor.say_until_asked(session, "write another")
        with pytest.raises(RequestError, match="is being answered; cancel it first"):
            await editor.say(session, "and another")
        await editor.connection.cancel(session)
        assert await answer == "cancelled" and (editor.project / "a.txt").exists()


async def test_disconnect_ends_running_commands(connect: Connect) -> None:
    line = "touch began.txt; sleep 30; touch late.txt"
    async with connect(call("bash", command=line), "never said") as editor:
        session = await editor.start()
        answer = asyncio.create_task(editor.say(session, "run it"))
        await until((editor.project / "began.txt").exists)
    answer.cancel()
    await asyncio.sleep(0)
    assert not [name for name in Path("/proc").glob("[0-9]*/cmdline") if b"touch late.txt" in _read(name)]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


async def test_sessions_have_a_limit(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.acp.agent._MOST_SESSIONS", 2)
    async with connect("one") as editor:
        first = await editor.start()
        await editor.start()
        with pytest.raises(RequestError, match="close one"):
            await editor.start()
        await editor.connection.close_session(first)
        await editor.start()


async def test_failed_openings_do_not_count_as_sessions(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.acp.agent._MOST_SESSIONS", 2)
    async with connect("one") as editor:
        settings = editor.project / ".callwright" / "settings.json"
        settings.parent.mkdir()
        settings.write_text("{")
        gc.disable()  # tracebacks of the failures would be collected at some time
        try:
            for _ in range(3):
                with pytest.raises(RequestError, match="not valid JSON"):
                    await editor.start()
            settings.unlink()
            await editor.start()
            await editor.start()
        finally:
            gc.enable()


async def test_session_that_starts_slowly_holds_up_no_other(connect: Connect, tmp_path: Path) -> None:
    started, leave = tmp_path / "started", tmp_path / "leave"
    code = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\n"
    code += f"while not pathlib.Path({str(leave)!r}).exists(): time.sleep(0.01)"
    server = McpServerStdio(name="slow", command=sys.executable, args=["-c", code], env=[])
    async with connect("one") as editor:
        await editor.connection.initialize(1)
        slow = asyncio.create_task(editor.connection.new_session(str(editor.project), mcp_servers=[server]))
        await until(started.exists)
        other = await editor.connection.new_session(str(editor.project), mcp_servers=[])
        assert await editor.say(other.session_id, "hello") == "end_turn"
        assert not slow.done()
        leave.touch()
        assert (await slow).session_id != other.session_id


async def test_session_that_opens_while_the_others_end_is_ended_too(connect: Connect, tmp_path: Path) -> None:
    started, leave, ends = (tmp_path / name for name in ("started", "leave", "ends"))
    hook = f"touch {leave}; sleep 1; echo end >> {ends}"  # while the first one ends, the second one is opened
    hooks = {"SessionEnd": [{"hooks": [{"type": "command", "command": hook}]}]}
    (tmp_path / "home" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    code = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\n"
    code += f"while not pathlib.Path({str(leave)!r}).exists(): time.sleep(0.01)"
    server = McpServerStdio(name="slow", command=sys.executable, args=["-c", code], env=[])
    async with connect("one") as editor:
        await editor.start()
        slow = asyncio.create_task(editor.connection.new_session(str(editor.project), mcp_servers=[server]))
        await until(started.exists)
    slow.cancel()
    await asyncio.sleep(0)
    assert ends.read_text().split() == ["end", "end"]


async def test_server_that_cannot_be_used_stops_no_session(connect: Connect) -> None:
    servers = [McpServerStdio(name=name, command=command, args=[], env=[]) for name, command in (("a", ""), ("", "x"))]
    async with connect("one") as editor:
        await editor.connection.initialize(1)
        session = (await editor.connection.new_session(str(editor.project), mcp_servers=[*servers])).session_id
        messages = editor.record()
        assert await editor.say(session, "hello") == "end_turn"
        assert "mcpServers: MCP server 'a' needs either a command or a url" in str(messages)


async def test_answer_on_the_page_counts_for_the_editor(connect: Connect) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect(_WRITE, "done", client=client) as editor:
        session, messages = await editor.start(), editor.record()
        answer = await editor.say_until_asked(session, "write it")
        async with LiveAgents(Locations.of(editor.project).live, lambda event: None).following() as agents:
            await until(lambda: any(link.questions for link in agents.links))
            (link,) = agents.links
            (question,) = link.questions
            assert (link.where, link.session_id, link.state) == ("editor", session, "waiting")
            reply = {"approved": True, "scope": "once"}
            await link.request(op="answer", question=question, reply=reply, by="page")
            assert await answer == "end_turn"
        assert (editor.project / "a.txt").read_text() == "hi\n"
        assert "answered on the page" in client.thoughts()
        (asked,) = (each["id"] for each in messages if each.get("method") == "session/request_permission")
        (withdrawn,) = (each["params"] for each in messages if each.get("method") == "$/cancel_request")
        assert withdrawn == {"requestId": asked}


async def test_prompt_after_load_withdraws_the_question(connect: Connect) -> None:
    session = await leave_at_a_question(connect)
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect("something else then", client=client) as again:
        await again.connection.initialize(1)
        await again.connection.load_session(str(again.project), session, mcp_servers=[])
        await client.question_arrived.wait()
        assert await again.say(session, "forget it") == "end_turn"
        assert not (again.project / "a.txt").exists()
        assert "something else then" in client.text()


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_prompt_that_waits_for_the_old_question_can_be_stopped(connect: Connect, how: str) -> None:
    session = await leave_at_a_question(connect)
    client = EditorClient(lambda _: asyncio.Event().wait())
    async with connect("never said", client=client) as again:
        await again.connection.initialize(1)
        await again.connection.load_session(str(again.project), session, mcp_servers=[])
        await client.question_arrived.wait()
        answer = asyncio.create_task(again.say(session, "forget it"))
        await asyncio.sleep(0)  # it is sent before the next line
        await (again.connection.cancel if how == "cancel" else again.connection.close_session)(session)
        assert await answer == "cancelled" and "never said" not in client.text()


@pytest.mark.slow
async def test_killed_process_shows_its_question_again(connect: Connect, project: Path, script: Any) -> None:
    client = EditorClient(lambda _: asyncio.Event().wait())
    command = (sys.executable, "-m", "callwright", "acp", script(_WRITE))
    async with spawn_agent_process(client, *command, env=dict(os.environ), cwd=project) as (connection, process):  # type: ignore[arg-type] - it has what the test uses
        await connection.initialize(1)
        session = (await connection.new_session(str(project), mcp_servers=[])).session_id
        answer = asyncio.create_task(connection.prompt(session, [{"type": "text", "text": "write it"}]))  # type: ignore[list-item] - the SDK takes objects too
        await client.question_arrived.wait()
        process.send_signal(signal.SIGKILL)
        await process.wait()
        answer.cancel()
    async with connect("done", client=EditorClient(choose("reject"))) as again:
        await again.connection.initialize(1)
        await again.connection.load_session(str(project), session, mcp_servers=[])
        await again.client.question_arrived.wait()
        ((shown, _),) = again.client.asked
        assert "a.txt" in str(shown.title)
        await until(lambda: "done" in again.client.text())
        assert not (project / "a.txt").exists()
