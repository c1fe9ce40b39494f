"""`callwright web` as a process: killed agents, and the command line itself."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_so
from tests.web.conftest import RealServer

from callwright.cli.main import run as run_command

Web = Callable[..., RealServer]


def write(path: str) -> dict[str, Any]:
    return {"calls": [{"name": "write", "arguments": {"path": path, "content": "x\n"}}]}


def test_missing_extra_names_the_line_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "callwright.web.server", None)
    monkeypatch.delitem(sys.modules, "callwright.web.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run_command(["web", "--demo"]) == 2
    assert "pip install 'callwright[web]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "70000"], "port"),
        (["--port", "x"], "port"),
        (["--host", "0.0.0.0"], "--host"),
        (["--host", "::"], "--host"),
        (["--host", "192.0.2.1", "--port", "0"], "choose another with --host"),
        (["--host", "x" * 80], "choose another with --host"),
    ],
)
def test_address_that_cannot_be_used_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "home"))
    try:
        code = run_command(["web", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2 and told in capsys.readouterr().err


@pytest.mark.slow
def test_question_of_a_killed_agent_is_answered_on_the_page(web: Web, tmp_path: Path) -> None:
    server = web(replies=["went on"])
    script = tmp_path / "agent.json"
    script.write_text(json.dumps([write("a.txt"), "never said"]))
    environment = {**os.environ, "CALLWRIGHT_HOME": str(server.home)}
    agent = subprocess.Popen(
        [sys.executable, "-m", "callwright", "web", "--port", "0", "--model", f"script:{script}"],
        cwd=server.project,
        env=environment,
        stdout=subprocess.PIPE,
    )
    assert agent.stdout is not None
    try:
        link = next(line for line in agent.stdout if b"#token=" in line).decode().strip()
        other = RealServer(agent, link, server.project, server.home)
        session = other.post("/api/say", {"session": None, "text": "go"})["session"]
        asked = until_so(lambda: server.get(f"/api/session?id={session}").get("questions"))
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        state = until_so(lambda: (found := server.get(f"/api/session?id={session}"))["state"] == "paused" and found)
        assert [each["call_id"] for each in state["questions"]] == [each["call_id"] for each in asked]
        body = {"session": session, "question": state["questions"][0]["id"], "approved": True}
        status, reply = server.request("/api/answer", body)
        assert status == 200 and reply["resumed"] is True
        until_so((server.project / "a.txt").exists)
        items = until_so(
            lambda: (found := server.get(f"/api/messages?id={session}")["items"])[-1]["kind"] == "assistant" and found
        )
        assert items[-1]["parts"][0]["text"] == "went on"
        assert server.request("/api/answer", body)[0] == 409
    finally:
        agent.kill()
        agent.stdout.close()
        agent.wait()
