"""The command with models that slip: tool mode, tool set, repairs, and messages that are no answer."""

import json
from typing import Any

import pytest

from callwright.testing.loopback import Loopback, LoopbackReply

from .conftest import Machine, first_request

_CALL = '{"name": "read", "arguments": {"path": "notes.txt"}}'


def _streamed(text: str) -> bytes:
    delta: dict[str, Any] = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
    return f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n".encode()


@pytest.mark.parametrize(
    ("setting", "flag", "schema"), [("schema", "", True), ("schema", "native", False), ("native", "schema", True)]
)
def test_tool_mode_by_setting_and_flag(
    machine: Machine, server: Loopback, setting: str, flag: str, *, schema: bool
) -> None:
    machine.user_settings({"toolMode": setting})
    server.reply(LoopbackReply([_streamed('{"answer": "hello"}' if schema else "hello")]))
    flags = ("--tool-mode", flag) if flag else ()
    ended = machine("-p", "hi", "--model", f"{server.url}/v1#m", *flags)
    assert (ended.code, ended.out.strip()) == (0, "hello")
    sent = first_request(server)
    assert ("response_format" in sent) is schema
    assert ("tools" in sent) is not schema


@pytest.mark.slow
def test_tools_by_setting_and_flag(machine: Machine, server: Loopback) -> None:
    machine.user_settings({"tools": "compact"})
    server.reply(LoopbackReply([_streamed("hello")]))
    machine("-p", "hi", "--tool-mode", "native", "--model", f"{server.url}/v1#m")
    names = {tool["function"]["name"] for tool in first_request(server)["tools"]}
    assert {"read", "write", "edit", "bash", "grep"} <= names
    assert "glob" not in names
    server.received.clear()
    server.reply(LoopbackReply([_streamed("hello")]))
    machine("-p", "hi", "--tool-mode", "native", "--tools", "read", "--model", f"{server.url}/v1#m")
    assert "bash" not in {tool["function"]["name"] for tool in first_request(server)["tools"]}


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"toolMode": "json"}, ('toolMode: "json" is not one of', "native")),
        ({"repairs": True}, ("repairs: true is not one of", "report")),
        ({"tools": 5}, ("tools: 5 is not",)),
    ],
)
def test_invalid_setting_is_an_error(machine: Machine, setting: dict[str, Any], told: tuple[str, ...]) -> None:
    machine.user_settings(setting)
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 2
    assert all(text in ended.err for text in told), ended.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temprature": 0.4}, "modelOptions.temprature: unknown, with the value 0.4; did you mean temperature?"),
        ({"zip": [1]}, "modelOptions.zip: unknown, with the value [1]; known are temperature, maxTokens"),
    ],
)
def test_unknown_option_names_key_value_and_next_step(machine: Machine, options: dict[str, Any], told: str) -> None:
    machine.user_settings({"modelOptions": options})
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 2
    assert f"settings.json:1: {told}" in ended.err


@pytest.mark.parametrize(("mode", "read"), [("on", True), ("report", False), ("off", False)])
def test_repairs_by_setting(machine: Machine, mode: str, *, read: bool) -> None:
    (machine.project / "notes.txt").write_text("the door is red\n")
    machine.user_settings({"repairs": mode})
    slip = {"calls": [{"name": "functions.read", "arguments": {"path": ["notes.txt"]}}]}
    ended = machine("-p", "look", machine.says(slip, "done"), "--output-format", "stream-json")
    shown = json.dumps(ended.lines)
    assert ended.code == 0
    assert ("the door is red" in shown) is read
    assert ("(The call was " in shown) is read
    assert ("send read with" in shown) is (mode == "report")
    counted = machine("stats")
    assert ("name" in counted.out and "list" in counted.out) is read, counted.out


@pytest.mark.parametrize(
    "replies",
    [
        ("", ""),
        ("  \n", ""),
        (f"I call it now:\n{_CALL}\n\nDone.",) * 2,
        ("", f"Now:\n\n```json\n{_CALL}\n```\n\nDone."),
    ],
)
def test_message_that_is_no_answer_is_no_success(machine: Machine, replies: tuple[str, ...]) -> None:
    (machine.project / "notes.txt").write_text("the door is red\n")
    ended = machine("-p", "look", machine.says(*replies), "--output-format", "json")
    assert ended.code == 1
    assert (ended.document["is_error"], ended.document["exit_code"]) == (True, 1)
    assert ended.document["subtype"] != "success"


def test_call_as_text_runs_behind_the_same_permissions(machine: Machine) -> None:
    (machine.project / "notes.txt").write_text("the door is red\n")
    write = '<tool_call>{"name": "write", "arguments": {"path": "n.txt", "content": "x"}}</tool_call>'
    ended = machine("-p", "go", machine.says(f"```json\n{_CALL}\n```", write, "done"), "--output-format", "json")
    assert ended.code == 4  # the write asks, as any write does
    assert not (machine.project / "n.txt").exists()
    assert "write" in json.dumps(ended.document["questions"])
