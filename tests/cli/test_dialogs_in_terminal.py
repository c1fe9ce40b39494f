"""Dialogs in a real terminal: paging, keys typed too early, trust, waiting, interruption."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.forked import warm_command
from tests.waiting import LONG_SECONDS

from callwright.cli.approval_dialog import DialogText
from callwright.cli.render.text import Palette, width_of
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.ui import Terminal
from callwright.cli.terminal.views import DialogView

if TYPE_CHECKING:
    from tests.cli.conftest import Machine


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def read_to_the_end(tmux: Any) -> None:
    while True:
        first, last, count = map(int, re.findall(r"rows (\d+)-(\d+) of (\d+)", tmux.screen())[-1])
        if last == count:
            return
        tmux.type("Space")
        while f"rows {first}-{last} of" in tmux.screen():
            pass


def test_long_dialog_is_read_before_a_yes_counts(machine: Any, tmux: Any) -> None:
    lines = [*(f"echo {number}" for number in range(80)), "touch made", *(f"echo {number}" for number in range(80))]
    tmux.start(machine.project, machine.says(call("bash", command="\n".join(lines)), "done"), rows=24)
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    asked = tmux.shows("allow? >")
    assert "rows 1-" in asked and "$ touch made" in asked  # what caused the question is on every page
    tmux.type("y", "Enter")
    tmux.shows("read to the end first")
    assert not (machine.project / "made").exists()
    read_to_the_end(tmux)
    tmux.type("PPage")
    tmux.type("y", "Enter")
    tmux.shows("allowed once")
    tmux.shows("done")
    assert (machine.project / "made").exists()


def test_sentence_is_a_no_for_the_model(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says(call("write", path="a.txt", content="x"), "understood"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("allow? >")
    tmux.type("a quick question: which file?", "Enter")
    tmux.shows("declined: a quick question: which file?")
    tmux.shows("understood")
    assert not (machine.project / "a.txt").exists()
    assert not (machine.project / ".callwright").exists()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    descriptor = os.open(tmp_path / "screen", os.O_CREAT | os.O_WRONLY)
    return Terminal(Screen(descriptor), Palette(False))


def typed(terminal: Terminal, data: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, data)
    terminal.read_input(reading)
    os.close(reading)
    os.close(writing)


async def test_keys_answer_only_after_the_question_was_drawn(terminal: Terminal) -> None:
    terminal.settle_seconds = 0
    view = DialogView(lambda width: DialogText(["Allow?"], ["row"], [], []))
    asked = asyncio.create_task(terminal.ask("allow?", view=view, settled=False))
    await asyncio.sleep(0)
    typed(terminal, b"y\r")  # before the first frame
    assert not asked.done() and await terminal.prompt() == "y"
    terminal.draw()
    typed(terminal, b"y\r")  # after the frame, before the user could have seen it
    assert not asked.done() and await terminal.prompt() == "y"
    await asyncio.sleep(0.01)
    typed(terminal, b"n\r")
    assert await asked == "n"
    terminal.draw()


async def test_escape_while_a_question_appears_declines(terminal: Terminal) -> None:
    asked = asyncio.create_task(terminal.ask("allow?", settled=False))
    await asyncio.sleep(0)
    typed(terminal, b"\x1b")
    terminal._flush()  # pyright: ignore[reportPrivateUsage] - the time after which a lone byte is the Esc key
    assert await asked is None
    terminal.draw()


async def test_escape_returns_the_queue_to_the_editor(terminal: Terminal) -> None:
    terminal.busy = True
    typed(terminal, b"first\rsecond\rdraft\x03")
    assert terminal.editor.text == "first\nsecond\ndraft"
    typed(terminal, b"\r")
    assert await terminal.prompt() == "first\nsecond\ndraft"
    terminal.draw()


async def test_resized_dialog_has_to_be_read_again() -> None:
    view = DialogView(lambda width: DialogText(["h"], [f"row {number} {width}" for number in range(40)], [], ["c"]))
    while not view.read:
        view.rows(80, 20)
        view.turn(1)
    view.rows(40, 20)
    assert not view.read


@pytest.mark.parametrize("height", range(1, 16))
def test_rows_count_as_shown_only_if_they_fit_the_window(height: int) -> None:
    body = [f"row {number}" for number in range(20)]
    view = DialogView(lambda width: DialogText(["h"], body, ["deciding"] * 3, ["edge", "answers"]))
    seen: set[str] = set()
    for _ in range(30):
        rows = view.rows(80, height)
        assert len(rows) <= height and (rows[0] == "h") == (height > 2)
        seen |= {*rows}
        view.turn(1)
    assert view.read == (height > 2) == seen.issuperset(body)


def test_no_row_of_a_dialog_is_wider_than_a_narrow_window() -> None:
    view = DialogView(lambda width: DialogText(["h"], ["row"] * 400, ["deciding"] * 200, ["c"], rule="├─ "))
    for width in (12, 20, 30):
        assert all(width_of(row) <= width for row in view.rows(width, 20))


def test_help_of_a_dialog_is_whole_at_80_columns() -> None:
    view = DialogView(lambda width: DialogText(["h"], ["row"] * 400, [], ["c"], rule="├─ "))
    view.note = "y yes · n no; " + "anything else is a no with that reason, " * 3
    rows = view.rows(79, 20)
    assert not any("…" in row for row in rows) and "a yes counts after the last" in "\n".join(rows)
    assert " ".join(" ".join(rows).split()).endswith(view.note.strip())
    assert len(rows) <= 20


@pytest.mark.slow
def test_dumb_terminal_shows_a_long_dialog_in_pages(machine: Any, tmux: Any) -> None:
    text = "\n".join(f"line {number}" for number in range(60))
    script = machine.says(call("write", path="a.txt", content=text), "done")
    tmux.start(machine.project, script, before="TERM=dumb", rows=24)
    tmux.shows(">")
    tmux.type("go", "Enter")
    tmux.shows("Enter shows more")
    tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("+ line 30")
    assert not (machine.project / "a.txt").exists()
    for _ in range(6):
        tmux.type("Enter")
    tmux.shows("+ line 59")
    tmux.type("y", "Enter")
    tmux.shows("done")
    assert (machine.project / "a.txt").read_text() == text


def test_settings_swapped_behind_the_trust_question_are_not_trusted(machine: Any, tmux: Any) -> None:
    def hook(command: str) -> dict[str, object]:
        return {"hooks": {"SessionStart": [{"hooks": [{"command": command}]}]}}

    machine.settings(hook("touch harmless"))
    tmux.start(machine.project, machine.says("hello", "hello"))
    tmux.shows("trust? >")
    machine.settings(hook("touch harmful"))
    tmux.type("y", "Enter")
    tmux.shows("changed while they were shown")
    tmux.shows("touch harmful")
    tmux.shows("trust? >")
    tmux.type("n", "Enter")
    tmux.shows("default mode")
    tmux.type("hi", "Enter")
    tmux.shows("hello")
    assert not (machine.project / "harmful").exists() and not (machine.project / "harmless").exists()


def test_trust_needs_the_whole_list(machine: Any, tmux: Any) -> None:
    long = "true " + "x" * 4000 + "; touch harmful"
    machine.settings({"hooks": {"SessionStart": [{"hooks": [{"command": long}]}]}})
    tmux.start(machine.project, machine.says("hello"), rows=24)
    tmux.shows("trust? >")
    tmux.type("y", "Enter")
    tmux.shows("read to the end first")
    read_to_the_end(tmux)
    tmux.shows("; touch harmful")
    tmux.type("q", "Enter")
    tmux.shows("EXIT 0")
    assert not (machine.home / "trust.json").exists()


def test_slash_commands_are_echoed_and_clear_promises_nothing(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("hello"))
    tmux.shows("default mode")
    tmux.type("/cost", "Enter")
    tmux.shows("> /cost")
    tmux.type("/clear", "Enter")
    shown = tmux.shows("new session")
    assert "returns to the previous one" not in shown


def test_waiting_row_shows_time(machine: Any, tmux: Any) -> None:
    machine.user_settings(
        {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "until [ -e shown ]; do sleep 0.05; done"}]}]}}
    )
    tmux.start(machine.project, machine.says("late answer"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("waiting for the model · 1")
    (machine.project / "shown").touch()
    assert "waiting for" not in tmux.shows("late answer").rpartition("late answer")[2]


def test_interrupt_ends_the_demo(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, "demo")
    tmux.shows("your answer:")
    tmux.type("C-c")
    shown = tmux.shows("EXIT 130")
    assert "Traceback" not in shown and "Exception" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.02, 0.2, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.1, 0.4))])
@pytest.mark.parametrize("line", [("tools",), ("doctor",), ("mcp", "list"), ("demo", "--turn")], ids=" ".join)
def test_interrupted_command_prints_no_traceback(machine: "Machine", line: tuple[str, ...], delay: float) -> None:
    code = (
        "import sys; import callwright.__main__ as entry; run = entry._run\n"
        "def tell(arguments):\n    print('up', flush=True)\n    return run(arguments)\n"
        "entry._run = tell; sys.exit(entry.main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=LONG_SECONDS)
    assert process.returncode in (0, 1, 3, 130, -signal.SIGINT) and "Traceback" not in error


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [("--version",), ("--help",), ("call", "--help"), ("tools",), ("stats",), ("sessions", "list")],
    ids=" ".join,
)
def test_full_disk_is_an_error_and_not_a_crash(machine: "Machine", line: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            warm_command("-m", "callwright", *line), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1 and "space left" in ended.stderr
    assert "Traceback" not in ended.stderr and len(ended.stderr.splitlines()) == 1
