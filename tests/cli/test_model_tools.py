"""The tools a model uses on the user: its list of steps and its questions, headless and in a terminal."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.conftest import call

Call = Callable[..., dict[str, object]]
STEPS = [{"content": "read the code", "status": "completed"}, {"content": "fix the bug", "status": "in_progress"}]
ASKING = {"question": "Which database?", "choices": ["sqlite", {"label": "postgres", "description": "needs a server"}]}


def test_todo_list_is_redrawn_in_place_and_survives_a_restart(machine: Any, tmux: Any) -> None:
    script = machine.says(
        call("todo", todos=[{**STEPS[1], "status": "pending"}]),
        call("todo", todos=STEPS),
        call("ask_user", question="Go on?"),
        "done",
    )
    tmux.start(machine.project, script)
    tmux.shows("default mode")
    tmux.type("work", "Enter")
    tmux.shows("your reply >")
    tmux.type("yes", "Enter")
    screen = tmux.shows("todo: 1 of 2 done")
    tmux.shows("done\n")
    assert screen.count("fix the bug") == 1 and "☑ read the code" in screen and "▸ fix the bug" in screen
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.enter(f"clear; {tmux.command} --continue {machine.says('and on')}")
    assert "▸ fix the bug" in tmux.shows("default mode")


def test_todo_list_of_a_resumed_session_is_read_back(machine: Any) -> None:
    machine("-p", "work", machine.says(call("todo", todos=STEPS), "ok"), "--session-id", "s1")
    script = machine.says(call("todo"), "ok")
    lines = machine("-p", "again", "--resume", "s1", script, "--output-format", "stream-json").lines
    results = [part for line in lines if line["type"] == "user" for part in line["message"]["content"]]
    assert results[0]["content"] == "1 of 2 done\n[x] read the code\n[~] fix the bug"


def test_question_pauses_a_script_until_it_is_answered(machine: Any) -> None:
    paused = machine("-p", "go", machine.says(call("ask_user", **ASKING)), "--session-id", "s1")
    assert paused.code == 4 and "ask_user asks: Which database? (call" in paused.err and "reply" in paused.err
    answer = json.dumps({"*": {"reply": "postgres"}})
    done = machine("-p", "--resume", "s1", "--answers", answer, machine.says("noted"), "--output-format", "stream-json")
    results = [part for line in done.lines if line["type"] == "user" for part in line["message"]["content"]]
    assert done.code == 0 and results[0]["content"] == "the user chose: postgres"


@pytest.mark.parametrize("given", ["allow", '{"*": {"allow": {"choices": ["sqlite"]}}}', '{"*": {"reply": ""}}'])
def test_an_approval_is_not_a_reply(machine: Any, given: str) -> None:
    machine("-p", "go", machine.says(call("ask_user", **ASKING)), "--session-id", "s1")
    ended = machine("-p", "--resume", "s1", "--answers", given, machine.says("never"))
    assert ended.code == 2 and "asks for a reply" in ended.err


def test_single_call_that_asks_the_user_names_the_question_once(machine: Any) -> None:
    ended = machine("call", "ask_user", json.dumps({"question": "Which database?"}))
    assert ended.code == 4
    assert "ask_user asks: Which database?; only a conversation can reply to it\n" in ended.err


def test_reply_approves_no_other_call(machine: Any) -> None:
    both = {"calls": [{"name": "ask_user", "arguments": ASKING}, *call("write", path="a", content="x")["calls"]]}  # type: ignore[misc] - a list
    paused = machine("-p", "go", machine.says(both), "--session-id", "s1", "--output-format", "json")
    assert paused.code == 4 and not (machine.project / "a").exists()
    by_tool = {question["tool_name"]: question["tool_use_id"] for question in paused.document["questions"]}
    answers = json.dumps({"*": {"reply": "yes, allow everything"}})
    ended = machine("-p", "--resume", "s1", "--answers", answers, machine.says("ok"))
    assert not (machine.project / "a").exists(), (by_tool, ended)


@pytest.mark.slow
def test_choice_is_picked_with_arrows_after_a_restart(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says(call("ask_user", **ASKING), "noted"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    asked = tmux.shows("your reply >")
    assert "╭ The model asks ──" in asked and "│ Which database?" in asked and "2  needs a server" in asked
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.enter(f"clear; {tmux.command} --continue {machine.says('noted')}")
    tmux.shows("your reply >")
    tmux.type("Down", "Enter")
    assert "the user chose: postgres" in tmux.shows("noted")


def test_free_text_is_a_reply(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says(call("ask_user", **ASKING), "noted"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("your reply >")
    tmux.type("duckdb, please", "Enter")
    assert "the user wrote: duckdb, please" in tmux.shows("noted")
