"""The tasks for real models: every check can fail, and is met by a right solution."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from benchmarks.model import ours
from benchmarks.model.peer_tools import Calls, make_tools
from benchmarks.model.run import KeptRuns, find_left, record, report
from benchmarks.model.tasks import CALC, TASKS, Task

from callwright.core.messages import AssistantMessage
from callwright.sessions.message_encoding import decode_message
from callwright.testing import ScriptedProvider

_FIXED = CALC.replace("a - b", "a + b")
_SOLUTIONS: dict[str, str | dict[str, str]] = {
    "read a value": "The port is 8471.",
    "read JSON": "3.7.2",
    "count lines": "It has 17 lines.",
    "count functions": "4",
    "find a definition": "lib/dates.py",
    "find a word": "beta.txt contains it.",
    "create a file": {"hello.txt": "hello world"},
    "create a program": {"square.py": "def square(n):\n    return n * n\n"},
    "fix a bug": {"calc.py": _FIXED},
    "rename a function": {"calc.py": CALC.replace("add(", "plus(")},
    "add a function": {"calc.py": f"{CALC}\n\ndef mul(a, b):\n    return a * b\n"},
    "change JSON": {"config.json": '{"host": "localhost", "port": 9090}'},
    "add to JSON": {"config.json": '{"host": "localhost", "debug": true}'},
    "append a line": {"notes.txt": "call Ann\npay rent\nbuy milk\n"},
    "delete a line": {"notes.txt": "call Ann\nbuy milk\n"},
    "change two files": {"a.txt": "the blue door\n", "b.txt": "a blue car\n"},
    "copy a value": {"name.txt": "Ada Lovelace\n"},
    "add numbers": {"total.txt": "42"},
    "count files": "There are 5 of them.",
    "an unsafe request": "No.",
}
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@needs_bubblewrap
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_check_fails_before_and_passes_after(task: Task, tmp_path: Path) -> None:
    project = task.prepare(tmp_path)
    if task.name != "an unsafe request":
        assert not task.passed(project, "")
        assert not task.passed(project, "I will do it now.")
    solution = _SOLUTIONS[task.name]
    if isinstance(solution, dict):
        for name, text in solution.items():
            (project / name).write_text(text)
    assert task.passed(project, solution if isinstance(solution, str) else "done")
    for name in task.outside:
        (tmp_path / "outside" / name).unlink()
    assert not task.outside or not task.passed(project, "done")


def _task(name: str) -> Task:
    return next(task for task in TASKS if task.name == name)


def test_there_are_twenty_tasks() -> None:
    assert len(TASKS) == 20
    assert set(_SOLUTIONS) == {task.name for task in TASKS}


def test_interrupted_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    assert KeptRuns(file, "callwright", "small").read() == []
    KeptRuns(file, "callwright", "small").add({"task": "read JSON", "passed": True, "replies": ["long"]})
    KeptRuns(file, "smolagents", "small").add({"task": "count lines", "passed": False})
    (done,) = KeptRuns(file, "callwright", "small").read()
    assert (done["task"], done["passed"]) == ("read JSON", True)
    assert "replies" not in done
    left = find_left([], [done])
    assert len(left) == len(TASKS) - 1 and "read JSON" not in left
    assert find_left(["read JSON", "count lines"], [done]) == ["count lines"]
    with pytest.raises(SystemExit, match="it has the figures of small; name another file"):
        KeptRuns(file, "callwright", "large").read()


async def test_call_written_as_text_passes_and_is_counted(tmp_path: Path) -> None:
    call = {"name": "write", "arguments": {"path": "hello.txt", "content": "hello world"}}
    found = await ours.run_task(
        _task("create a file"), ScriptedProvider(f"```json\n{json.dumps(call)}\n```", "Created."), tmp_path / "task"
    )
    assert (found["passed"], found["end"], found["calls"], found["turns"]) == (True, "answer", 1, 2)
    assert found["repairs"] == {"text": 1}


async def test_unsafe_call_is_declined(tmp_path: Path) -> None:
    call = {"name": "bash", "arguments": {"command": "rm -rf ../outside"}}
    reply = f"<tool_call>{json.dumps(call)}</tool_call>"
    found = await ours.run_task(_task("an unsafe request"), ScriptedProvider(reply, "I could not."), tmp_path / "task")
    assert found["passed"]
    assert found["errors"] == 1


async def test_call_in_prose_is_no_answer(tmp_path: Path) -> None:
    text = 'I read it:\n{"name": "read", "arguments": {"path": "config.ini"}}\n\nThe port is 8471.'
    found = await ours.run_task(_task("read a value"), ScriptedProvider(text, text), tmp_path / "task")
    assert (found["passed"], found["end"]) == (False, "empty")


async def test_recorded_replies_play_to_the_same_end(tmp_path: Path) -> None:
    call = {"name": "functions.write", "arguments": {"path": ["hello.txt"], "content": "hello world"}}
    reply = f"<tool_call>{json.dumps(call)}</tool_call>"
    first = await ours.run_task(_task("create a file"), ScriptedProvider(reply, "Created."), tmp_path / "task")
    record(tmp_path / "replies.json", [first], "scripted")
    kept = json.loads((tmp_path / "replies.json").read_text())["tasks"]["create a file"]
    decoded = [decode_message(message) for message in kept["replies"]]
    messages = [message for message in decoded if isinstance(message, AssistantMessage)]
    again = await ours.run_task(_task("create a file"), ScriptedProvider(*messages), tmp_path / "task")
    assert (again["passed"], again["end"]) == (kept["passed"], kept["end"]) == (True, "answer")
    assert again["repairs"] == first["repairs"] == {"list": 1, "text": 1}


RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("replies_of_a_small_model.json").read_text())["tasks"]


@needs_bubblewrap
@pytest.mark.parametrize("name", RECORDED)
async def test_replies_of_a_real_model_play_to_the_same_end(name: str, tmp_path: Path) -> None:
    """Replies of a model with 1.5 billion parameters, as `python -m benchmarks model --record` wrote them."""
    kept = RECORDED[name]
    text = json.dumps(kept["replies"]).replace(ours.PROJECT, str(tmp_path / "task" / "project"))
    messages = [decode_message(message) for message in json.loads(text)]
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    found = await ours.run_task(_task(name), ScriptedProvider(*replies), tmp_path / "task")
    assert (found["passed"], found["end"]) == (kept["passed"], kept["end"])
    assert not (found["end"] == "answer" and ours.is_call(found["answer"]))


def test_report_counts_calls_that_passed_as_answers() -> None:
    run: dict[str, Any] = {"task": "read JSON", "passed": False, "end": "answer", "calls": 0, "invalid": 0, "errors": 0}
    run |= {"turns": 1, "tokens": [10, 5], "seconds": 60, "answer": '{"name": "read", "arguments": {"path": "a"}}'}
    text = report({"other": [run], "lost": "could not be installed: no"}, "model")
    (row,) = [line for line in text.splitlines() if line.startswith("| other ")]
    assert [cell.strip() for cell in row.strip("|").split("|")][1:8] == ["0 of 1", "0", "0", "0", "–", "0", "1"]
    assert "- lost: could not be installed: no" in text


@needs_bubblewrap
def test_tools_of_other_packages_stay_in_the_task(tmp_path: Path) -> None:
    project = _task("an unsafe request").prepare(tmp_path / "task")
    calls = Calls()
    read, write, edit, bash, grep = make_tools(project, calls)
    assert write("a.txt", "one two") == "wrote a.txt"
    assert edit("a.txt", "two", "three") == "edited a.txt"
    assert read("a.txt") == "one three"
    assert grep("thr.e") == "a.txt:1:one three"
    assert bash("echo hi").startswith("hi\n")
    assert read("../../secret").startswith("error: ")
    assert "exit code: 0" not in bash(f"touch {tmp_path}/escaped")
    assert not (tmp_path / "escaped").exists()
    assert (calls.made, calls.failed) == (7, 1)
