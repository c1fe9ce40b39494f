"""The live socket of a running agent: events for other programs, and the first answer to a question counts."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.waiting import close_stream, until

from callwright import Approve, Decline, Executor, Registry, ToolCall, Turn
from callwright.app.live import LiveAgent
from callwright.app.live_client import AgentLink, LiveAgents
from callwright.app.shared_questions import SharedQuestions
from callwright.core.calls import Answers, Completed, Failed, Interrupted, Question
from callwright.core.errors import Unanswered, UsageError
from callwright.providers.base import MessageDone, TextDelta
from callwright.system import private_files
from callwright.toolbox import Bash, Write


@asynccontextmanager
async def followed(folder: Path, *, where: str = "page") -> AsyncGenerator[tuple[LiveAgent, LiveAgents, list[Any]]]:
    registry = Registry(Write(folder), Bash(folder, sandbox="off"))
    events: list[Any] = []
    agents = LiveAgents(folder / "live", events.append)
    async with LiveAgent(folder / "live", where, registry) as live, agents.following():
        assert not live.problem
        live.open_session("s1")
        await until(lambda: agents.links)
        yield live, agents, events


def executor(folder: Path, live: LiveAgent) -> Executor:
    assert live.toolset is not None
    return Executor(live.toolset, observe=live.observe)


def write(name: str, call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, "write", {"path": name, "content": "x\n"})


async def answer(link: AgentLink, question: str, **reply: Any) -> dict[str, Any]:
    return await link.request(op="answer", question=question, reply=reply, by="page")


async def test_answer_from_another_program_lets_the_call_run(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, agents, events):
        turn = Turn(ask=live.questions.ask, session_id="s1")
        running = asyncio.create_task(executor(tmp_path, live).execute([write("a")], turn=turn))
        (link,) = agents.links
        (question,) = (await until(lambda: link.questions)).values()
        assert question["preview"]["rows"] == [{"mark": "+", "old": None, "new": 1, "text": "x"}]
        assert question["source"] and question["accesses"] and question["session"] == "s1" and live.state == "waiting"
        assert (await answer(link, question["id"], approved=True))["ok"] is True
        (outcome,) = await running
        assert isinstance(outcome, Completed) and (tmp_path / "a").read_text() == "x\n"
        await until(lambda: [event for event in events if event["type"] == "call_ended"])
        settled = next(event for event in events if event["type"] == "settled")
        assert (settled["by"], settled["approved"], settled["session"]) == ("page", True, "s1")
        late = await answer(link, question["id"], approved=False)
        assert (late["code"], late["by"], late["approved"]) == ("answered", "page", True)


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"approved": 1},
        {"approved": "true"},
        {"approved": True, "scope": "forever"},
        {"approved": True, "scope": ["once"]},
        {"approved": True, "arguments": "x"},
        {"approved": True, "also": 1},
        {"approved": True, "reason": 1},
    ],
)
async def test_reply_that_is_not_understood_leaves_the_question_open(tmp_path: Path, reply: dict[str, Any]) -> None:
    async with followed(tmp_path) as (live, agents, _):
        running = asyncio.create_task(executor(tmp_path, live).execute([write("a")], turn=Turn(ask=live.questions.ask)))
        (link,) = agents.links
        (question,) = await until(lambda: link.questions)
        refused = await answer(link, question, **reply)
        assert refused["ok"] is False and refused["code"] == "invalid" and question in link.questions
        assert not (tmp_path / "a").exists()
        await answer(link, question, approved=False, reason="no")
        (outcome,) = await running
        assert isinstance(outcome, Failed) and "no" in outcome.text and not (tmp_path / "a").exists()


async def test_reply_that_says_two_things_leaves_the_question_open(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, agents, _):
        running = asyncio.create_task(executor(tmp_path, live).execute([write("a")], turn=Turn(ask=live.questions.ask)))
        (link,) = agents.links
        (question,) = await until(lambda: link.questions)
        (file,) = private_files.socket_folder(tmp_path / "live").iterdir()
        stream, writer = await asyncio.open_unix_connection(file, limit=1 << 20)
        await stream.readline()
        reply = '{"approved": false, "approved": true}'
        writer.write(f'{{"id": 1, "op": "answer", "question": "{question}", "reply": {reply}, "by": "x"}}\n'.encode())
        assert json.loads(await stream.readline())["code"] == "invalid"
        await close_stream(writer)
        await answer(link, question, approved=False)
        (outcome,) = await running
        assert isinstance(outcome, Failed) and not (tmp_path / "a").exists()


async def test_answer_after_the_question_expired_counts_nowhere(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, agents, _):
        (outcome,) = await executor(tmp_path, live).execute([write("a")])
        assert isinstance(outcome, Interrupted)
        (waiting,) = live.questions.open([replace(outcome.questions[0], expires_at=1)])
        (link,) = agents.links
        (question,) = await until(lambda: link.questions)
        assert (await answer(link, question, approved=True))["code"] == "not_found" and not waiting.done()


async def test_answer_in_the_moment_of_a_stop_counts_nowhere() -> None:
    question, told = Question("c", "pay", {}, "d" * 64, "Allow pay?"), list[Any]()
    questions = SharedQuestions("page", told.append)
    asking = asyncio.create_task(questions.ask([question]))
    await asyncio.sleep(0)
    asking.cancel()  # the question is taken back when the task has run
    with pytest.raises(UsageError, match="not open any more"):
        questions.settle(question.id, Approve(), "page")
    questions.settle_again(question.id, Approve(), "page")
    await asyncio.wait({asking})
    assert asking.cancelled() and questions.find_settled(question.id) is None
    assert [(each["type"], each.get("reason")) for each in told] == [("asked", None), ("settled", "withdrawn")]


async def test_early_answer_counts_for_one_call_of_its_run(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, _, _):
        (outcome,) = await executor(tmp_path, live).execute([write("a")])
        assert isinstance(outcome, Interrupted)
        (on_record,) = outcome.questions
        again, other = replace(on_record, nonce="again"), replace(on_record, call_id="c2")
        live.questions.settle_again(on_record.id, Approve(), "page")
        (refused,) = live.questions.open([other])
        (taken,) = live.questions.open([again])
        assert not refused.done() and taken.result().reply == Approve()
        (once_more,) = live.questions.open([replace(on_record, nonce="more")])
        assert not once_more.done()
        live.questions.settle_again(other.id, Decline(), "page")
        assert refused.result().reply == Decline()
        live.questions.settle_again(other.id, Approve(), "page")
        live.questions.forget_early()
        (later,) = live.questions.open([replace(other, nonce="later")])
        assert not later.done()


async def test_answer_counts_for_its_question_only(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, agents, _):
        calls = [write("a", "c1"), write("b", "c2")]
        running = asyncio.create_task(executor(tmp_path, live).execute(calls, turn=Turn(ask=live.questions.ask)))
        (link,) = agents.links
        first, second = await until(lambda: len(link.questions) == 2 and list(link.questions))
        forged = first.replace(first[:8], second[:8])
        assert (await answer(link, forged, approved=True))["code"] == "not_found"
        await answer(link, first, approved=True)
        await answer(link, second, approved=False)
        await running
        assert (tmp_path / "a").exists() and not (tmp_path / "b").exists()


@pytest.mark.parametrize("faster", ["here", "elsewhere", "left"])
async def test_first_answer_wins(tmp_path: Path, faster: str) -> None:
    async with followed(tmp_path, where="terminal") as (live, agents, _):
        (link,) = agents.links
        here: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        seen: list[Any] = []

        async def ask(questions: Any) -> Answers:
            live.questions.open(questions)
            try:
                reply, first = await live.questions.race(questions[0], _await(here))
                seen.append(first)
                return Answers({questions[0].id: reply})
            finally:
                live.questions.close(questions)

        running = asyncio.create_task(executor(tmp_path, live).execute([write("a")], turn=Turn(ask=ask)))
        (question,) = await until(lambda: link.questions)
        if faster == "here":
            here.set_result(Approve())
            (outcome,) = await running
            late = await answer(link, question, approved=False)
            assert isinstance(outcome, Completed) and (late["code"], late["by"]) == ("answered", "terminal")
        elif faster == "elsewhere":
            await answer(link, question, approved=False, reason="later")
            (outcome,) = await running
            assert isinstance(outcome, Failed) and here.cancelled() and "on the page" in seen[0].describe()
        else:
            here.set_exception(Unanswered("left"))
            await running
            assert (await answer(link, question, approved=True))["code"] == "not_found"
        assert (tmp_path / "a").exists() is (faster == "here")


async def _await(waiting: "asyncio.Future[Any]") -> Any:
    return await waiting


async def test_both_at_once_have_one_winner(tmp_path: Path) -> None:
    async with followed(tmp_path, where="terminal") as (live, _, _events):
        question = Question("c1", "write", {}, "d", "Allow?")
        live.questions.open([question])
        asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        racing = asyncio.create_task(live.questions.race(question, _await(asked)))
        await asyncio.sleep(0)
        asked.set_result(Approve())  # the terminal has its answer in the same turn of the loop
        assert live.questions.settle(question.id, Decline("no"), "page") is None
        reply, first = await racing
        assert reply == Decline("no") and first is not None and first.by == "page"


async def test_newcomer_gets_the_state_so_far(tmp_path: Path) -> None:
    async with followed(tmp_path) as (live, _, _events):
        live.on_model_event(TextDelta("half a "))
        live.on_model_event(TextDelta("message"))
        later: list[Any] = []
        agents = LiveAgents(tmp_path / "live", later.append)
        async with agents.following():
            (link,) = await until(lambda: agents.links)
            assert (link.session_id, link.where, link.partial["text"]) == ("s1", "page", "half a message")
            live.on_model_event(TextDelta("!"))
            await until(lambda: link.partial["text"] == "half a message!")
            from callwright.core.messages import AssistantMessage

            live.on_model_event(MessageDone(AssistantMessage(())))
            await until(lambda: link.partial["text"] == "")


async def test_connection_that_comes_as_the_agent_ends_is_closed(tmp_path: Path) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    with far:
        async with LiveAgent(tmp_path / "live", "terminal") as live:
            stream, writer = await asyncio.open_unix_connection(sock=near)
            live._accept(stream, writer)  # pyright: ignore[reportPrivateUsage] - its task has not begun when it ends
        assert writer.is_closing() and far.recv(1) == b""


async def test_socket_is_private_and_other_users_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with followed(tmp_path) as (live, agents, _):
        folder = private_files.socket_folder(tmp_path / "live")
        (file,) = folder.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600
        (link,) = agents.links
        monkeypatch.setattr(private_files.os, "getuid", lambda: os.geteuid() + 1)
        stream, writer = await asyncio.open_unix_connection(file)
        with pytest.raises(ConnectionResetError):
            if await stream.read() == b"":
                raise ConnectionResetError
        await close_stream(writer)
        monkeypatch.undo()
        assert live.state == "idle" and link in agents.links


async def test_folder_of_another_mode_or_a_link_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    (tmp_path / "real").mkdir()
    folder.symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="0700"):
        private_files.check_socket_folder(folder)
    folder.unlink()
    folder.mkdir(mode=0o755)
    with pytest.raises(OSError, match="0700"):
        private_files.check_socket_folder(folder)


async def test_socket_is_found_only_when_it_listens(tmp_path: Path) -> None:
    folder = private_files.socket_folder(tmp_path / "live")
    async with LiveAgent(tmp_path / "live", "terminal") as live:
        (path,) = folder.iterdir()
        assert path.suffix == ".sock" and live._server is not None  # pyright: ignore[reportPrivateUsage] - see below
        (bound,) = live._server.sockets  # pyright: ignore[reportPrivateUsage] - only it knows its first name
        assert bound.getsockname() == str(path.with_suffix(".new"))
    assert not [*folder.iterdir()]


@pytest.mark.slow
async def test_killed_agent_is_gone_and_its_socket_removed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from callwright.app.live import LiveAgent\n"
        "async def main():\n"
        "    async with LiveAgent(Path(sys.argv[1]), 'terminal') as live:\n"
        "        live.open_session('s9')\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", program, str(tmp_path / "live")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        await asyncio.to_thread(process.stdout.readline)
        events: list[Any] = []
        agents = LiveAgents(tmp_path / "live", events.append)
        async with agents.following():
            await until(lambda: agents.find("s9"))
            process.kill()
            await until(lambda: events and events[-1] == {**events[-1], "state": "gone", "session": "s9"})
            await until(lambda: not any(private_files.socket_folder(tmp_path / "live").iterdir()))
    finally:
        process.kill()
        process.stdout.close()
        await asyncio.to_thread(process.wait)


@pytest.mark.parametrize("line", [b"[]\n", b"{\n", b'{"op": "say"}\n', b'{"op": "quit"}\n', b"x" * 100 + b"\n", b"1\n"])
async def test_request_that_is_not_understood_changes_nothing(tmp_path: Path, line: bytes) -> None:
    async with followed(tmp_path):
        (file,) = private_files.socket_folder(tmp_path / "live").iterdir()
        stream, writer = await asyncio.open_unix_connection(file, limit=1 << 20)
        assert json.loads(await stream.readline())["type"] == "hello"
        writer.write(line)
        result = json.loads(await stream.readline())
        assert result["type"] == "result" and result["ok"] is False and result["error"]
        await close_stream(writer)


async def test_prompts_of_other_programs_are_not_commands(tmp_path: Path) -> None:
    said: list[str] = []
    async with followed(tmp_path) as (live, agents, _):
        live.say = said.append
        (link,) = agents.links
        for text in ("!rm -r .", "/exit", "  !ls", ""):
            assert (await link.request(op="say", text=text))["ok"] is False
        assert (await link.request(op="say", text="go on"))["ok"] is True
        assert said == ["go on"]


@pytest.mark.parametrize("wall", ["prefer", "off"])
async def test_walled_command_cannot_reach_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: Literal["prefer", "off"]
) -> None:
    """A command of the model must not approve the model's next call."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    monkeypatch.setenv("CALLWRIGHT_HOME", str(home))
    bash = Bash(project, sandbox=wall)
    if wall != "off" and not bash.sandbox.complete:
        pytest.skip("no complete sandbox on this machine")
    async with LiveAgent(home / "projects" / "p" / "live", "page", Registry(bash)) as live:
        (file,) = private_files.socket_folder(home / "projects" / "p" / "live").iterdir()
        reach = f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{file}'); print('reached')\""

        async def ask(questions: Any) -> Answers:
            return Answers.approving(questions)

        call = ToolCall("c1", "bash", {"command": f"eval {json.dumps(reach)}"})
        (outcome,) = await Executor(Registry(bash), observe=live.observe).execute([call], turn=Turn(ask=ask))
        # without a wall it can, as it can do everything else that the user can
        assert ("reached" in outcome.text.splitlines()) is (wall == "off"), outcome.text
