"""Unusual surroundings of the command: each gives one clear error, or works."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import callwright
from callwright import Completed, Executor, Registry, tool
from callwright.app.locations import Locations
from callwright.cli.main import run
from callwright.core.errors import UsageError
from callwright.policy import AllowEverything
from callwright.sessions.sqlite_connection import migrate


@pytest.mark.slow
def test_output_without_the_characters_is_escaped(tmp_path: Path):
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "callwright", "permissions", "test", "bash", "echo h\u00e9"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert "Traceback" not in found.stderr
    assert "echo h\\xe9" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("-p hi --model=script:replies.json >&-", 0),
        ("-p hi --model=script:replies.json <&- 2>&-", 0),
        ("'hi there' <&-", 2),
    ],
)
def test_closed_streams_give_no_traceback(tmp_path: Path, line: str, code: int):
    (tmp_path / "replies.json").write_text('["hello"]')
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = ["bash", "-c", f"exec {sys.executable} -m callwright {line}"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert (found.returncode, "Traceback" in found.stderr) == (code, False)


def test_short_option_prints_the_version(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "callwright", "-v"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"callwright {callwright.__version__}\n")


@pytest.mark.parametrize("buffering", ["", "1"])
def test_reader_that_has_gone_is_no_error_message(tmp_path: Path, buffering: str):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": buffering}
    command = [sys.executable, "-m", "callwright", "--version"]
    try:
        ended = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path, check=False
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.slow
def test_reader_that_goes_during_a_call_ends_the_run(tmp_path: Path):
    call = {"calls": [{"name": "bash", "arguments": {"command": "read _ < ../go"}}]}
    (tmp_path / "project").mkdir()
    (tmp_path / "replies.json").write_text(json.dumps([call, "never"]))
    os.mkfifo(tmp_path / "go")
    options = ["--permission-mode", "bypass", "--output-format", "stream-json"]
    command = [sys.executable, "-m", "callwright", "-p", "hi", "--model=script:../replies.json", *options]
    environment = {**os.environ, "HOME": str(tmp_path)}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path / "project",
    )
    assert process.stdout is not None and process.stderr is not None
    assert [json.loads(process.stdout.readline())["type"] for _ in range(2)] == ["system", "assistant"]
    process.stdout.close()
    (tmp_path / "go").write_text("on\n")
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), told) == (141, "")


@pytest.mark.slow
def test_closed_window_ends_the_page_cleanly(tmp_path: Path):
    command = [sys.executable, "-m", "callwright", "web", "--port", "0"]
    home = tmp_path / "home"
    environment = {**os.environ, "HOME": str(tmp_path), "CALLWRIGHT_HOME": str(home)}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
        # tests that run under nohup ignore it
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - takes no lock
    )
    with process:
        try:
            assert process.stdout is not None
            while "#token=" not in (line := process.stdout.readline()):
                assert line
            link = Locations.of(tmp_path, home=home).web_link
            assert link.exists()
            process.send_signal(signal.SIGHUP)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
    assert not link.exists()


def test_deleted_working_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="no longer exists"):
        Locations.of()


def test_home_that_is_a_file_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "home").write_text("")
    (tmp_path / "replies.json").write_text('["hello"]')
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert run(["-p", "hi", "--model", f"script:{tmp_path / 'replies.json'}"]) == 1
    assert "CALLWRIGHT_HOME" in capsys.readouterr().err


def test_full_disk_is_reported_as_such(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    connection.execute("PRAGMA page_size=512")
    connection.execute("PRAGMA max_page_count=2")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        migrate(connection, tmp_path / "sessions.db")
    connection.close()


async def test_mutable_default_is_fresh_for_every_call():
    @tool
    def collect(item: str, seen: list[str] = []) -> list[str]:  # noqa: B006 - what the test is about
        """Collect items."""
        seen.append(item)
        return seen

    executor = Executor(Registry(collect), AllowEverything())
    outcomes = [await executor.run("collect", {"item": item}) for item in ("a", "b")]
    assert all(isinstance(outcome, Completed) for outcome in outcomes)
    assert [outcome.text for outcome in outcomes] == ['["a"]', '["b"]']
