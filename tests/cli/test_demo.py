"""The command line as a new user meets it."""

import subprocess
import sys


def callwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "callwright", *arguments], capture_output=True, text=True, check=False)


def test_the_demo_shows_reads_side_by_side_and_the_conflicting_write_after_its_read() -> None:
    done = callwright("demo", "--turn")
    assert done.returncode == 0, done.stderr
    steps = [line.split()[2:] for line in done.stdout.splitlines() if " ms  " in line]
    happened = [f"{step[0]} {step[-1]}" for step in steps]
    assert happened.index("c1 starts") < happened.index("c2 done")
    assert happened.index("c2 starts") < happened.index("c1 done")
    assert happened.index("c2 done") < happened.index("c3 starts")
    assert "unknown tool: raed_note; did you mean read_note" in done.stdout
    assert "c5  error  invalid arguments: " in done.stdout
    assert "todo.txt now contains: 'plants are watered'" in done.stdout


def test_help_lists_the_commands_and_a_slip_is_answered_with_the_nearest() -> None:
    shown = callwright("--help")
    assert shown.returncode == 0
    assert "demo" in shown.stdout and "permissions" in shown.stdout
    slip = callwright("dmeo")
    assert slip.returncode == 2
    assert "unknown command 'dmeo'; did you mean demo?" in slip.stderr


def test_the_rule_tester_answers_by_exit_code() -> None:
    assert callwright("permissions", "test", "bash", "git status").returncode == 0
    assert callwright("permissions", "test", "bash", "rm -rf build").returncode == 4
    assert callwright("permissions", "test", "bash", "rm -rf build", "--deny", "Bash(rm *)").returncode == 3


def test_the_demo_leads_a_real_agent_through_a_task_and_asks_before_it_deletes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "callwright", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout
    steps = [
        "● write words.py",
        "Allow bash?",
        "in /",
        "your answer: s",
        "✗ bash python3 -m unittest",
        "+    return sorted(set(words), key=words.count, reverse=True)[:count]",
        "● bash python3 -m unittest",
        "deletes /",
        "your answer: y",
        "● bash rm scratch.txt",
        "files: test_words.py, words.py",
    ]
    place = 0
    for step in steps:
        place = told.index(step, place) + len(step)
    assert told.count("Allow bash?") == 2  # the yes for this session is not asked for again
    assert "scripted: stdin is not a terminal" in told
