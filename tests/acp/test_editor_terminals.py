"""The editor's terminals: only a command that the user allowed outside the sandbox runs there."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import ClientCapabilities
from tests.acp.conftest import Connect
from tests.acp.editor import EditorClient, call, until

from callwright.acp.transport import NO_VALID_ANSWER
from callwright.system.sandbox.sandbox import find_sandbox

_TERMINAL = ClientCapabilities(terminal=True)
_OUTSIDE = ("--settings", '{"sandbox": {"mode": "prefer", "excludedCommands": ["touch", "echo", "sleep"]}}')


class TerminalClient(EditorClient):
    """An editor whose terminals are real processes."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.outputs: dict[str, asyncio.Task[bytes]] = {}
        self.created: list[dict[str, Any]] = []
        self.released: list[str] = []
        self.refuses = False
        self.mumbles = False

    async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
        self.created.append({"command": command, **more})
        if self.refuses:
            raise RequestError.internal_error()
        name = f"t{len(self.created)}"
        environment = {**os.environ, **{each.name: each.value for each in more["env"]}}
        self.processes[name] = process = await asyncio.create_subprocess_exec(
            command, *more["args"], cwd=more["cwd"], env=environment, stdout=PIPE, stderr=STDOUT, start_new_session=True
        )
        assert process.stdout is not None
        self.outputs[name] = asyncio.create_task(process.stdout.read())  # from now on: a full pipe stops the command
        return {} if self.mumbles else {"terminalId": name}

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        code = await self.processes[terminal_id].wait()
        return {"exitCode": code if code >= 0 else None, "signal": None if code >= 0 else signal.Signals(-code).name}

    async def terminal_output(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        whole = (await self.outputs[terminal_id]).decode()
        kept = whole[-self.created[-1]["output_byte_limit"] :]  # as the protocol has it: from the beginning is dropped
        return {"output": kept, "truncated": len(kept) < len(whole)}

    async def kill_terminal(self, session_id: str, terminal_id: str, **more: Any) -> None:
        if self.processes[terminal_id].returncode is None:
            os.killpg(self.processes[terminal_id].pid, signal.SIGKILL)
            await self.processes[terminal_id].wait()

    async def release_terminal(self, session_id: str, terminal_id: str, **more: Any) -> None:
        await self.outputs[terminal_id]
        self.released.append(terminal_id)


async def test_allowed_command_runs_in_the_editors_terminal(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    line = "touch made.txt; echo from the terminal"
    async with connect(call("bash", command=line), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert [each["args"][-1] for each in client.created] == [line]
        assert client.created[0]["cwd"] == str(project)
        assert "from the terminal" in shown["raw_output"]["text"]
        assert shown["content"] == [{"terminal_id": "t1", "type": "terminal"}]
        assert client.released == ["t1"]
        assert (project / "made.txt").exists()
        assert len(client.asked) == 1


@pytest.mark.parametrize(("count", "cut"), [(60_000, False), (1_200_000, True)])
async def test_long_output_of_a_terminal_has_both_ends_or_a_note(
    connect: Connect, project: Path, count: int, cut: bool
) -> None:
    client = TerminalClient()
    line = f"echo first; head -c {count} /dev/zero | tr '\\0' x; echo last"
    settings = '{"sandbox": {"mode": "prefer", "excludedCommands": ["echo", "head", "tr"]}}'
    async with connect(call("bash", command=line), "done", client=client, arguments=("--settings", settings)) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        text = shown["raw_output"]["text"]
        assert len(client.created) == 1 and "last" in text
        assert text.startswith("[the beginning of the output is missing" if cut else "first\nxxx")
        assert "characters left out here" in text


async def test_terminal_runs_the_line_without_code_from_variables(
    connect: Connect, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first.sh").write_text(f"touch {project}/other.txt\n")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "first.sh"))
    monkeypatch.setenv("BASH_FUNC_touch%%", "() { echo not touch; }")
    client = TerminalClient()
    async with connect(call("bash", command="touch made.txt"), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        assert len(client.created) == 1
        assert (project / "made.txt").exists() and not (project / "other.txt").exists()


async def test_terminal_gets_the_variables_of_commands(
    connect: Connect, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_WORD", "kept")
    monkeypatch.setenv("CDPATH", "/")
    client = TerminalClient()
    line = 'echo "word=$SOME_WORD, path=$CDPATH, pager=$PAGER."'
    async with connect(call("bash", command=line), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert len(client.created) == 1 and "word=kept, path=, pager=cat." in shown["raw_output"]["text"]


@pytest.mark.skipif(not find_sandbox("prefer", roots=["/tmp"]).confines, reason="needs a sandbox")
async def test_walled_command_stays_behind_its_wall(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    line = "touch approved.txt; echo inside"
    async with connect(call("bash", command=line), "done", client=client) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert len(client.asked) == 1
        assert client.created == []
        assert "inside" in shown["raw_output"]["text"]
        assert (project / "approved.txt").exists()


async def test_editor_that_opens_no_terminal_gets_the_output(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    client.refuses = True
    async with connect(call("bash", command="echo ours"), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert len(client.created) == 1
        assert "ours" in shown["content"][0]["content"]["text"]


async def test_command_that_a_terminal_may_run_is_not_run_again(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    client.mumbles = True
    line = "echo once >> made.txt"
    async with connect(call("bash", command=line), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert await client.processes["t1"].wait() == 0
        assert (project / "made.txt").read_text() == "once\n"
        assert shown["status"] == "failed" and "may have had an effect" in shown["raw_output"]["message"]


async def test_command_behind_an_answer_that_cannot_be_read_is_not_run_again(connect: Connect, project: Path) -> None:
    class GarbledClient(TerminalClient):
        async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
            await super().create_terminal(session_id, command, **more)
            await self.processes["t1"].wait()
            raise RequestError(-32600, NO_VALID_ANSWER)  # as our end of the connection says it

    client, line = GarbledClient(), "echo once >> made.txt"
    async with connect(call("bash", command=line), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert (project / "made.txt").read_text() == "once\n"
        assert shown["status"] == "failed" and "may have had an effect" in shown["raw_output"]["message"]


async def test_command_that_the_user_ends_in_the_terminal_has_failed(connect: Connect, project: Path) -> None:
    class ImpatientClient(TerminalClient):
        async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
            await self.kill_terminal(session_id, terminal_id)
            return await super().wait_for_terminal_exit(session_id, terminal_id)

    client = ImpatientClient()
    async with connect(call("bash", command="sleep 60"), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert "137" in str(shown["raw_output"])


async def test_command_of_an_editor_that_left_is_not_run_again(connect: Connect, project: Path) -> None:
    class LeavingClient(TerminalClient):
        async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
            await super().create_terminal(session_id, command, **more)
            await self.processes["t1"].wait()
            left.set()
            await asyncio.Event().wait()

    left, client = asyncio.Event(), LeavingClient()
    async with connect(
        call("bash", command="echo once >> made.txt"), "never said", client=client, arguments=_OUTSIDE
    ) as editor:
        asking = asyncio.create_task(editor.say(await editor.start(_TERMINAL), "run it"))
        await left.wait()
    await asyncio.gather(asking, return_exceptions=True)
    assert (project / "made.txt").read_text() == "once\n"


async def test_command_of_a_lost_terminal_is_not_run_again(connect: Connect, project: Path) -> None:
    class LosingClient(TerminalClient):
        async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
            await super().wait_for_terminal_exit(session_id, terminal_id)
            raise RequestError.internal_error()

    client = LosingClient()
    line = "echo once >> made.txt"
    async with connect(call("bash", command=line), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert shown["status"] == "failed" and "may have had an effect" in shown["raw_output"]["message"]
        assert (project / "made.txt").read_text() == "once\n" and client.released == ["t1"]


async def test_terminal_that_opens_after_a_cancellation_is_ended(connect: Connect, project: Path) -> None:
    class SlowClient(TerminalClient):
        async def create_terminal(self, session_id: str, command: str, **more: Any) -> Any:
            opening.set()
            await cancelled.wait()
            return await super().create_terminal(session_id, command, **more)

    opening, cancelled, client = asyncio.Event(), asyncio.Event(), SlowClient()
    line = "sleep 60; touch late.txt"
    async with connect(call("bash", command=line), "never said", client=client, arguments=_OUTSIDE) as editor:
        session = await editor.start(_TERMINAL)
        answer = asyncio.create_task(editor.say(session, "run it"))
        await opening.wait()
        await editor.connection.cancel(session)
        await editor.start(_TERMINAL)  # answered after the cancellation was read
        cancelled.set()
        assert await answer == "cancelled"
        await until(lambda: client.released)
        assert await client.processes["t1"].wait() != 0
        assert not (project / "late.txt").exists()


@pytest.mark.parametrize("terminal", [False, None])
async def test_editor_without_terminals_is_asked_for_none(
    connect: Connect, project: Path, terminal: bool | None
) -> None:
    client = TerminalClient()
    async with connect(call("bash", command="echo ours"), "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(None if terminal is None else ClientCapabilities(terminal=False)), "go")
        assert client.created == [] and "ours" in str(client.calls())


async def test_cancel_ends_the_command_in_the_terminal(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    line = "touch began.txt; sleep 60; touch late.txt"
    async with connect(call("bash", command=line), "never said", client=client, arguments=_OUTSIDE) as editor:
        session = await editor.start(_TERMINAL)
        answer = asyncio.create_task(editor.say(session, "run it"))
        await until((project / "began.txt").exists)
        await editor.connection.cancel(session)
        assert await answer == "cancelled"
        await until(lambda: client.released)
        assert await client.processes["t1"].wait() != 0
        assert not (project / "late.txt").exists()


@pytest.mark.slow
async def test_time_limit_ends_the_command_in_the_terminal(connect: Connect, project: Path) -> None:
    client = TerminalClient()
    run = call("bash", command="echo started; sleep 60", timeout_seconds=0.5)
    async with connect(run, "done", client=client, arguments=_OUTSIDE) as editor:
        await editor.say(await editor.start(_TERMINAL), "run it")
        (shown,) = client.calls().values()
        assert "timed out" in shown["raw_output"]["message"]
        assert client.processes["t1"].returncode is not None
