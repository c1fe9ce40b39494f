"""The structured log: one JSON object per event, without secrets."""

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from callwright import Effect, Executor, Registry, ToolCall, ToolFailed, Transient, UsageError, tool
from callwright.agent import Agent, Done, Requests
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage
from callwright.hooks import Rewrite
from callwright.policy import AllowEverything
from callwright.providers.base import ProviderError
from callwright.retry import RetryPolicy
from callwright.telemetry import EventLog, JsonLines, log_to
from callwright.testing import FakeClock, Flaky, ScriptedHook
from callwright.testing.fakes import ScriptedProvider

KEY = "sk-abcdefghijklmnopqrstuvwxyz"
PRIVATE = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"


@tool(effect=Effect.READ)
async def look(place: str) -> str:
    """Look at a place."""
    return f"nothing at {place}"


@tool(effect=Effect.READ)
async def refuse() -> str:
    """Say no."""
    raise ToolFailed(f"the key {KEY} is not welcome")


@tool
async def note() -> str:
    """Write something down."""
    return "noted"


def agent_with(log: EventLog, *script: Any, policies: Any = None) -> Agent:
    tools = Registry(look, refuse, note, Flaky(Transient("busy")))
    executor = Executor(tools, policies, observe=log, clock=FakeClock())
    requests = Requests(retry=RetryPolicy(max_attempts=2), clock=FakeClock())
    return Agent(ScriptedProvider(*script, model="gpt-5"), executor=executor, name="helper", requests=requests)


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_end_of_a_call_is_logged_if_a_hook_changed_its_arguments() -> None:
    stream = io.StringIO()
    hooks = [ScriptedHook(Rewrite({"place": "work"}))]
    executor = Executor(Registry(look), hooks=hooks, observe=log_to(stream, logging.DEBUG))
    await executor.run("look", {"place": "home"})
    assert [line["event"] for line in lines_of(stream)] == ["call began", "call ended"]


async def test_every_event_is_one_line_with_ids_and_usage() -> None:
    stream = io.StringIO()
    log = log_to(stream, logging.DEBUG)
    first = AssistantMessage((ToolCall("1", "look", {"place": "home"}),), "calls", Usage(1000, 10), "gpt-5-2026")
    await agent_with(log, first, "done").run("go", session="s")
    lines = lines_of(stream)
    assert [(line["level"], line["event"]) for line in lines] == [
        ("debug", "run began"),
        ("debug", "request began"),
        ("info", "request ended"),
        ("debug", "call began"),
        ("info", "call ended"),
        ("debug", "request began"),
        ("info", "request ended"),
        ("info", "run ended"),
    ]
    assert {line["session"] for line in lines} == {"s"}
    assert all(line["time"].endswith("+00:00") for line in lines)
    request, call, run = lines[2], lines[4], lines[7]
    assert (request["input_tokens"], request["output_tokens"], request["answered_by"]) == (1000, 10, "gpt-5-2026")
    assert request["cost_usd"] == pytest.approx(0.00135)
    assert (call["tool"], call["call"], call["code"], call["attempts"]) == ("look", "1", "completed", 1)
    assert call["turn"] and call["seconds"] >= 0
    assert (run["agent"], run["model"], run["ended"], run["turns"]) == ("helper", "gpt-5", "done", 2)
    assert run["cost_usd"] == pytest.approx(0.00135)


async def test_failures_retries_and_questions_have_their_levels() -> None:
    stream = io.StringIO()
    calls = [ToolCall("1", "flaky"), ToolCall("2", "refuse"), ToolCall("3", "lok")]
    script = (ProviderError("overloaded", fault="transient"), calls, ToolCall("4", "note"))
    await agent_with(log_to(stream), *script).run("go", session="s")
    told = [(line["level"], line["event"], line.get("code", "")) for line in lines_of(stream)]
    assert told[0] == ("warning", "request retried", "")
    assert sorted(told[2:6]) == [
        ("info", "call ended", "completed"),
        ("warning", "call ended", "not_found"),
        ("warning", "call ended", "tool_failed"),
        ("warning", "call retried", "transient"),
    ]
    assert told[-2:] == [("info", "question raised", ""), ("info", "run ended", "")]
    assert lines_of(stream)[-1]["ended"] == "paused"


async def test_secrets_and_content_stay_out_of_the_log() -> None:
    stream = io.StringIO()
    log = log_to(stream, logging.DEBUG)
    failure = ProviderError(f"bad key {KEY}\n{PRIVATE}", fault="auth")
    await agent_with(log, ToolCall("1", "refuse"), failure, policies=AllowEverything()).run("the prompt", session=KEY)
    written = stream.getvalue()
    for said in (KEY, "PRIVATE KEY", "the prompt", "welcome"):
        assert said not in written
    assert lines_of(stream)[-2]["error"] == "bad key [redacted]\n[redacted]"


async def test_failing_handler_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    logger = logging.Logger("broken")
    logger.addHandler(Broken())
    agent = agent_with(EventLog(logger), ToolCall("1", "look", {"place": "home"}), "done")
    assert isinstance(await agent.run("go"), Done)
    assert capsys.readouterr().err == "callwright: logging failed: OSError: disk full\n"


async def test_standard_logging_receives_the_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="callwright.events"):
        await Executor(Registry(look), observe=EventLog()).execute([ToolCall("7", "look", {"place": "home"})])
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["tool"], record.__dict__["call"]) == ("call ended", "look", "7")


def test_formatter_writes_any_record_with_exception() -> None:
    try:
        raise ValueError(KEY)
    except ValueError as error:
        record = logging.LogRecord("any", logging.ERROR, __file__, 1, "it was %s", ("bad",), (type(error), error, None))
    written = json.loads(JsonLines().format(record))
    assert (written["level"], written["event"]) == ("error", "it was bad")
    assert "ValueError: [redacted]" in written["exception"]


def test_formatter_writes_json_for_numbers_that_are_none() -> None:
    record = logging.makeLogRecord({"msg": "slow", "rate": float("nan"), "wait": float("inf"), "seconds": 1.23456789})
    written = JsonLines().format(record)
    assert "NaN" not in written and "Infinity" not in written
    assert json.loads(written).items() >= {"rate": "nan", "wait": "inf", "seconds": 1.234568}.items()


async def test_log_to_file_is_written_and_closed(tmp_path: Path) -> None:
    log = log_to(tmp_path / "events.jsonl")
    await agent_with(log, "hi").run("go")
    log.close()
    assert [json.loads(line)["event"] for line in (tmp_path / "events.jsonl").read_text().splitlines()] == [
        "request ended",
        "run ended",
    ]
    with pytest.raises(UsageError, match=r"cannot write the log .*: is a directory; choose another file"):
        log_to(tmp_path)


async def test_inner_agent_is_logged_once() -> None:
    stream = io.StringIO()
    logger = logging.Logger("shared")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    inner = Agent(ScriptedProvider("found"), observe=EventLog(logger))
    registry = Registry(inner.as_tool("scout", "Go and see."))
    executor = Executor(registry, AllowEverything(), observe=EventLog(logger))
    await Agent(ScriptedProvider(ToolCall("1", "scout", {"prompt": "go"}), "done"), executor=executor).run("go")
    assert [line.get("agent", "") for line in lines_of(stream) if line["event"] == "run ended"] == ["scout", ""]


async def test_call_is_logged_if_another_run_of_that_session_name_ends_first() -> None:
    stream = io.StringIO()
    log, ended = log_to(stream), asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait until the other run has ended."""
        await ended.wait()
        return "ok"

    outer = Agent(ScriptedProvider(ToolCall("1", "wait"), "done"), [wait], observe=log)
    waiting = asyncio.ensure_future(outer.run("go", session="s"))
    await agent_with(log, ToolCall("1", "look", {"place": "home"}), "done").run("go", session="s")
    ended.set()
    await waiting
    assert [line["tool"] for line in lines_of(stream) if line["event"] == "call ended"] == ["look", "wait"]


async def test_run_end_is_logged_without_content() -> None:
    stream = io.StringIO()
    await agent_with(log_to(stream), AssistantMessage((Text("cut"),), "length")).run("go")
    line = lines_of(stream)[-1]
    assert (line["level"], line["ended"], line["code"]) == ("warning", "stopped", "length")
