"""The log and OpenTelemetry, enabled by the command line, the environment and the settings."""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from callwright.app.locations import Locations
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage, UserMessage
from callwright.sessions import SqliteStore
from callwright.sessions.records import Compacted, Said, Spent

if TYPE_CHECKING:
    from tests.cli.conftest import Machine

Calls = Callable[..., dict[str, object]]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CALLWRIGHT_LOG", "CALLWRIGHT_TELEMETRY", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"):
        monkeypatch.delenv(name, raising=False)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_log_option_writes_a_log(machine: "Machine", calls: Calls) -> None:
    (machine.project / "a.txt").write_text("hello")
    file = machine.home / "log.jsonl"
    ended = machine("-p", "go", machine.says(calls("read", path="a.txt"), "done"), "--log", str(file))
    assert (ended.code, ended.out) == (0, "done\n")
    logged = events(file.read_text())
    assert [line["event"] for line in logged] == ["request ended", "call ended", "request ended", "run ended"]
    assert logged[1]["tool"] == "read" and logged[1]["code"] == "completed"
    assert "hello" not in file.read_text()


@pytest.mark.parametrize("place", ["environment", "settings"])
def test_log_from_environment_and_settings(machine: "Machine", place: str) -> None:
    file = machine.home / "log.jsonl"
    if place == "settings":
        machine.user_settings({"log": str(file)})
    else:
        machine.patch.setenv("CALLWRIGHT_LOG", str(file))
    assert machine("-p", "go", machine.says("done")).code == 0
    assert events(file.read_text())[-1]["ended"] == "done"


def test_log_on_stderr_keeps_stdout_clean(machine: "Machine") -> None:
    ended = machine("-p", "go", machine.says("done"), "--output-format", "json", "--log", "-")
    assert ended.document["result"] == "done"
    assert events(ended.err)[-1]["event"] == "run ended"


def test_unwritable_log_is_reported_and_the_run_continues(machine: "Machine") -> None:
    ended = machine("-p", "go", machine.says("done"), "--log", str(machine.project))
    assert (ended.code, ended.out) == (0, "done\n")
    assert "cannot write the log" in ended.err


def test_untrusted_repository_cannot_enable_log_or_tracing(machine: "Machine") -> None:
    file = machine.project / "log.jsonl"
    machine.settings({"log": str(file), "telemetry": "content"})
    ended = machine("-p", "go", machine.says("done"))
    assert not file.exists()
    assert "log" in ended.err and "telemetry content" in ended.err


def test_spans_follow_the_standard_variables(machine: "Machine") -> None:
    machine.patch.setenv("CALLWRIGHT_TELEMETRY", "1")
    machine.patch.setenv("OTEL_TRACES_EXPORTER", "console")
    machine.patch.setenv("OTEL_METRICS_EXPORTER", "none")
    ended = machine("-p", "the prompt", machine.says("done"))
    assert (ended.code, ended.out) == (0, "done\n")
    assert '"name": "invoke_agent"' in ended.err and '"service.name": "callwright"' in ended.err
    assert "the prompt" not in ended.err


@pytest.mark.parametrize("asked", ["setting", "true", "SPAN_ONLY"])
def test_content_is_traced_only_on_request(machine: "Machine", asked: str) -> None:
    machine.patch.setenv("OTEL_TRACES_EXPORTER", "console")
    machine.patch.setenv("OTEL_METRICS_EXPORTER", "console")
    machine.user_settings({"telemetry": "content" if asked == "setting" else True})
    if asked != "setting":
        machine.patch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", asked)
    ended = machine("-p", "the prompt", machine.says("done"))
    assert "the prompt" in ended.err and "gen_ai.client.operation.duration" in ended.err


def test_environment_can_disable_a_setting(machine: "Machine") -> None:
    machine.user_settings({"telemetry": True})
    machine.patch.setenv("CALLWRIGHT_TELEMETRY", "0")
    assert machine("-p", "go", machine.says("done")).err == ""


def test_misspelt_variable_is_reported(machine: "Machine") -> None:
    machine.patch.setenv("CALLWRIGHT_TELEMETRY", "contents")
    ended = machine("-p", "go", machine.says("done"))
    assert (ended.code, ended.out) == (0, "done\n")
    assert "tracing is off: CALLWRIGHT_TELEMETRY is 'contents'; write 1, content or 0" in ended.err


def test_missing_exporter_is_reported_and_the_run_continues(machine: "Machine") -> None:
    machine.patch.setenv("CALLWRIGHT_TELEMETRY", "1")
    machine.patch.setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
    ended = machine("-p", "go", machine.says("done"))
    assert (ended.code, ended.out) == (0, "done\n")
    assert "tracing is off: no exporter" in ended.err and "pip install" in ended.err


def test_missing_opentelemetry_is_reported_with_the_command_that_installs_it(machine: "Machine") -> None:
    machine.patch.setenv("CALLWRIGHT_TELEMETRY", "1")
    machine.patch.setitem(sys.modules, "opentelemetry.trace", None)
    ended = machine("-p", "go", machine.says("done"))
    assert (ended.code, ended.out) == (0, "done\n")
    assert "tracing is off: the OpenTelemetry SDK is not installed: pip install opentelemetry-sdk " in ended.err


def test_stats_count_what_sub_agents_used(machine: "Machine") -> None:
    machine.user_settings({"prices": {"own": {"input": 3, "output": 0}}})
    locations = Locations.of()
    locations.record.mkdir(parents=True)

    async def talk() -> None:
        async with SqliteStore(locations.sessions) as store:
            hold = await store.hold("s")
            said = AssistantMessage((Text("hi"),), usage=Usage(1_000_000), model="own")
            inner = (Spent(Usage(2_000_000), 0.5), Spent(Usage(1_000_000)))
            await hold.append(Said(UserMessage("go")), Said(said), *inner)
            await hold.release()

    asyncio.run(talk())
    spent = machine("stats", "--json").document
    assert spent["tokens"]["input"] == 4_000_000 and spent["cost_usd"] == pytest.approx(3 + 0.5 + 3)


def test_sessions_and_stats_use_the_prices_of_each_model(machine: "Machine") -> None:
    machine.user_settings({"prices": {"own": {"input": 3, "output": 0}}})
    locations = Locations.of()
    locations.record.mkdir(parents=True)
    spoke = (("gpt-5-2026-01-01", 1_000_000), ("own", 1_000_000), ("unpriced", 500))

    async def talk() -> None:
        async with SqliteStore(locations.sessions) as store:
            hold = await store.hold("s")
            said = [AssistantMessage((Text("hi"),), usage=Usage(count), model=model) for model, count in spoke]
            await hold.append(Said(UserMessage("go")), *map(Said, said), Compacted((UserMessage("short"),), Usage(70)))
            await hold.release()

    asyncio.run(talk())
    spent = machine("stats", "--json").document
    assert spent["cost_usd"] == pytest.approx(1.25 + 3)
    assert spent["unpriced_tokens"] == 570
    assert "4.2500 USD and 570 tokens of unknown price" in machine("stats").out
    assert "4.2500 USD" in machine("sessions", "show", "s").out


def test_session_of_unknown_price_shows_no_amount(machine: "Machine") -> None:
    locations = Locations.of()
    locations.record.mkdir(parents=True)

    async def talk() -> None:
        async with SqliteStore(locations.sessions) as store:
            hold = await store.hold("s")
            await hold.append(Said(AssistantMessage((Text("hi"),), usage=Usage(500), model="unpriced")))
            await hold.release()

    asyncio.run(talk())
    assert "[500 tokens in, 0 out; 500 tokens of unknown price]" in machine("sessions", "show", "s").out
