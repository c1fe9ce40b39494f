"""Model options and fallback models of the command: flags, settings, and their errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.app.models import physical_cores
from callwright.testing.loopback import Loopback, LoopbackReply

from .conftest import Machine, first_request

_END: dict[str, Any] = {"choices": [{"delta": {"content": "hello"}, "finish_reason": "stop"}]}
_ANSWER = f"data: {json.dumps(_END)}\n\ndata: [DONE]\n\n".encode()


@pytest.fixture
def answering(server: Loopback) -> Loopback:
    server.reply(LoopbackReply([_ANSWER]))
    return server


def test_flags_outrank_settings(machine: Machine, answering: Loopback) -> None:
    options = {"temperature": 0.5, "maxTokens": 77, "stop": ["END"], "effort": "low"}
    machine.user_settings({"modelOptions": options})
    ended = machine(
        "-p", "hi", "--model", f"{answering.url}/v1#m", "--temperature", "0.25", "--stop", "A", "--stop", "B"
    )
    assert (ended.code, ended.out.strip()) == (0, "hello")
    sent = first_request(answering)
    assert (sent["temperature"], sent["max_tokens"], sent["stop"], sent["reasoning_effort"]) == (
        0.25,
        77,
        ["A", "B"],
        "low",
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temprature": 1}, "modelOptions"),
        ({"temperature": "hot"}, 'modelOptions.temperature: "hot" is not of type "number"'),
        ({"temperature": 3}, "modelOptions.temperature: 3 is greater than the maximum of 2"),
        ({"effort": "huge"}, 'modelOptions.effort: "huge" is not one of'),
        ({"stop": "END"}, "modelOptions.stop"),
        ({"threads": 0}, "modelOptions.threads: 0 is less than the minimum of 1"),
    ],
)
def test_invalid_setting_names_key_value_and_file(machine: Machine, options: dict[str, Any], told: str) -> None:
    machine.user_settings({"modelOptions": options})
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 2
    assert told in ended.err
    assert "settings.json:1: " in ended.err
    assert next(iter(options)) in ended.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--temperature", "3"], "--temperature must be a number from 0 to 2, got 3.0"),
        (["--effort", "huge"], "--effort must be one of none, minimal, low"),
        (["--max-tokens", "0"], "--max-tokens must be a whole number above 0, got 0"),
        (["--threads", "many"], "many"),
    ],
)
def test_invalid_flag_is_named(machine: Machine, flags: list[str], told: str) -> None:
    ended = machine("-p", "hi", machine.says("hello"), *flags)
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize("by", ["flag", "setting", "list"])
def test_fallback_answers_and_is_recorded(machine: Machine, answering: Loopback, by: str) -> None:
    name = f"{answering.url}/v1#small"
    if by != "flag":
        machine.user_settings({"fallbackModel": [name] if by == "list" else name})
    flags = ["--fallback-model", name] if by == "flag" else []
    ended = machine("-p", "hi", "--model", "http://127.0.0.1:9/v1#big", "--output-format", "json", *flags)
    assert ended.document["result"] == "hello"
    assert "big cannot answer" in ended.err
    shown = machine("sessions", "export", ended.document["session_id"])
    assert '"small"' in shown.out or "small" in shown.out


def test_unpriced_fallback_needs_a_price_for_a_limit_in_money(machine: Machine) -> None:
    machine.user_settings({"prices": {"scripted": {"input": 1, "output": 1}}})
    flags = ("--fallback-model", "http://127.0.0.1:9/v1#small", "--max-budget-usd", "1")
    ended = machine("-p", "hi", machine.says("hello"), *flags)
    assert ended.code == 2
    assert "price of small" in ended.err


def test_physical_cores_count_each_core_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] - a stand-in
    for number, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{number}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{siblings}\n")
    assert physical_cores(tmp_path) == 2
    assert physical_cores(tmp_path / "none") == 4
