"""`callwright demo`, `--help` and the exit codes of a first session with the command."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.forked import warm_command


def callwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(warm_command("-m", "callwright", *arguments), capture_output=True, text=True, check=False)


def test_demo_turn_runs_reads_in_parallel_then_the_write(machine: Any) -> None:
    done = machine("demo", "--turn")
    assert done.code == 0, done.err
    steps = [line.split()[2:] for line in done.out.splitlines() if " ms  " in line]
    happened = [f"{step[0]} {step[-1]}" for step in steps]
    assert happened.index("c1 starts") < happened.index("c2 done")
    assert happened.index("c2 starts") < happened.index("c1 done")
    assert happened.index("c2 done") < happened.index("c3 starts")
    assert "unknown tool: raed_note; did you mean read_note" in done.out
    assert "c5  error  invalid arguments: " in done.out
    assert "todo.txt now contains: 'plants are watered'" in done.out


def test_help_lists_commands_and_typos_get_a_suggestion(machine: Any) -> None:
    shown = machine("--help")
    assert shown.code == 0
    assert "demo" in shown.out and "permissions" in shown.out
    slip = callwright("dmeo")
    assert slip.returncode == 2
    assert "unknown command 'dmeo'; did you mean demo?" in slip.stderr


def test_permissions_test_sets_the_exit_code(machine: Any) -> None:
    assert machine("permissions", "test", "bash", "git status").code == 0
    assert machine("permissions", "test", "bash", "rm -rf build").code == 4
    assert callwright("permissions", "test", "bash", "rm -rf build", "--deny", "Bash(rm *)").returncode == 3


def test_terminated_demo_leaves_no_folder(tmp_path: Path) -> None:
    command = warm_command("-m", "callwright", "demo")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        assert any("write words.py" in line for line in iter(demo.stdout.readline, ""))
        demo.terminate()
        _, errors = demo.communicate()
    assert (demo.returncode, errors) == (143, "")
    assert list(tmp_path.glob("callwright-demo-*")) == []


@pytest.mark.slow
def test_demo_completes_its_task_and_asks_before_deleting(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # the temporary folder may lie in a repository
    done = subprocess.run(
        warm_command("-m", "callwright", "demo"),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout
    steps = [
        f"temporary project {tmp_path.resolve()}/callwright-demo-",
        "● write words.py",
        "✗ bash python3 -m unittest",
        "+    return sorted(set(words), key=words.count, reverse=True)[:count]",
        "● bash python3 -m unittest",
        "Allow bash?",
        "deletes /",
        "your answer: s",
        "● bash rm scratch.txt",
        "files: test_words.py, words.py",
    ]
    place = 0
    for step in steps:
        place = told.index(step, place) + len(step)
    assert told.count("Allow bash?") == 1  # the test ran unasked behind the wall
    assert "scripted: stdin is not a terminal" in told
