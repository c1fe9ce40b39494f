"""The terminal: keys, the input line, frames, and whole conversations in tmux."""

import asyncio
import os
import pty
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.cli.render.text import Palette, width_of, wrap_columns
from callwright.cli.terminal.input import LineEditor, PromptHistory, PromptQueue
from callwright.cli.terminal.keys import KeyReader
from callwright.cli.terminal.screen import PlainScreen, Screen
from callwright.cli.terminal.ui import Terminal


def test_bytes_become_named_keys_and_text() -> None:
    keys = KeyReader()
    assert keys.feed(b"hi\r") == [("text", "hi"), ("key", "enter")]
    assert keys.feed(b"\x1b[A\x1b[Z\x7f\x03\x1bb") == [
        ("key", "up"),
        ("key", "shift-tab"),
        ("key", "backspace"),
        ("key", "interrupt"),
        ("key", "word-left"),
    ]
    assert keys.feed("é字".encode()) == [("text", "é字")]
    spoken = "👩\u200d💻 می\u200cخواهم 全\u3000角 1\u00a0kg \ue0a0"
    assert keys.feed(spoken.encode()) == [("text", spoken)]  # joiners and spaces of other scripts are text
    assert keys.feed(b"a\x00b\xc2\x85c\xed\xa0\x80") == [*(("text", each) for each in "ab"), ("text", "c���")]


def test_cursor_steps_over_what_looks_like_one_character() -> None:
    editor = LineEditor()
    for text in ("e\u0301", "👩\u200d👩\u200d👧", "字", "\u202e", "\x03", "\n", "x"):
        editor.insert(text)
    stops = [editor.cursor]
    while editor.cursor:
        editor.press("left")
        stops.append(editor.cursor)
    assert stops == [12, 11, 10, 9, 8, 7, 2, 0]  # what is shown as an escape is a character of its own
    editor.press("right")
    editor.press("delete")
    assert editor.text == "e\u0301字\u202e\x03\nx"
    editor.press("backspace")
    assert editor.text == "字\u202e\x03\nx" and editor.cursor == 0


def test_alt_keys_that_edit_are_no_escape() -> None:
    assert KeyReader().feed(b"\x1bd\x1b[1;3D\x1b[1;3C") == [
        ("key", "delete-next-word"),
        ("key", "word-left"),
        ("key", "word-right"),
    ]
    editor = LineEditor()
    editor.insert("keep drop rest")
    editor.press("home")
    editor.press("word-right")
    editor.press("delete-next-word")
    assert (editor.text, editor.cursor) == ("keep rest", 4)


def test_history_keeps_prompts_with_the_line_breaks_of_other_programs(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "history.jsonl")
    prompts = ["one\u2028two", "a\x85b", "c\nd\re"]
    for prompt in prompts:
        history.add(prompt)
    assert history.read() == prompts


def test_history_that_cannot_be_written_or_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for broken in (tmp_path / "file" / "history.jsonl", tmp_path):
        history = PromptHistory(broken)
        history.add("a prompt")
        assert history.read() == []


async def test_long_prompts_that_return_from_the_queue_are_folded() -> None:
    editor, queue = LineEditor(), PromptQueue()
    long = "row\n" * 5_000
    queue.add(long)
    queue.add("short")
    editor.insert("draft")
    assert queue.return_to(editor)
    assert editor.text == "[pasted 1: 5001 lines]\nshort\ndraft"
    assert editor.take() == f"{long}\nshort\ndraft"


def test_pasted_text_that_looks_like_another_paste_stays() -> None:
    editor = LineEditor()
    first, second = "\n".join(["[pasted 2: 20 lines]"] * 20), "\n".join(["other"] * 20)
    editor.paste(first)
    editor.paste(second)
    assert editor.text == "[pasted 1: 20 lines][pasted 2: 20 lines]" and editor.take() == first + second


@pytest.mark.parametrize("key", ["backspace", "delete-word", "delete", "delete-next-word"])
def test_placeholder_of_a_paste_is_removed_as_a_whole(key: str) -> None:
    editor = LineEditor()
    editor.insert("see ")
    editor.paste("row\n" * 20)
    if key.startswith("delete") and key != "delete-word":
        editor.cursor = len("see [pas")
    editor.press(key)
    assert editor.take() == "see "


def test_text_typed_inside_of_a_placeholder_follows_it() -> None:
    editor, pasted = LineEditor(), "row\n" * 20
    editor.paste(pasted)
    editor.press("left")
    editor.insert("!")
    assert editor.take() == f"{pasted}!"


def test_queued_prompts_do_not_precede_the_next_line_of_a_dumb_terminal() -> None:
    editor, queue = LineEditor(), PromptQueue(editable=False)
    queue.add("y")
    assert queue.return_to(editor) and not queue.return_to(editor)
    assert editor.text == ""


def test_lone_escape_is_the_escape_key() -> None:
    keys = KeyReader()
    assert keys.feed(b"\x1b") == [] and keys.wait_seconds
    assert keys.flush() == [("key", "escape")] and not keys.wait_seconds


def test_pasted_control_keys_are_text() -> None:
    keys = KeyReader()
    assert keys.feed(b"\x1b[200~one\r\ntwo\x03\x1b[201~x") == [("paste", "one\ntwo\x03"), ("text", "x")]


def test_unknown_sequence_is_skipped() -> None:
    assert KeyReader().feed(b"\x1b[99;5ux") == [("text", "x")]


@given(st.lists(st.sampled_from([b"a", "é".encode(), b"\x1b[A", b"\r", b"\x1b[200~p\x1b[201~"]), max_size=8), st.data())
def test_split_input_decodes_like_whole_input(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    keys = KeyReader()
    decoded = [key for piece in pieces for key in keys.feed(piece)]
    assert _merge_text(decoded) == _merge_text(KeyReader().feed(whole))


def _merge_text(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for kind, value in keys:
        if kind == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + value)
        else:
            found.append((kind, value))
    return found


def test_input_is_edited_and_recalled() -> None:
    editor = LineEditor()
    editor.insert("hello wrld")
    for _ in range(3):
        editor.press("left")
    editor.insert("o")
    assert editor.take() == "hello world"
    editor.insert("second")
    editor.take()
    editor.insert("draft")
    editor.press("up")
    editor.press("up")
    assert editor.text == "hello world"
    editor.press("down")
    editor.press("down")
    assert editor.text == "draft"
    editor.press("delete-word")
    assert editor.text == "" and not editor.press("no-such-key")


KEYS = (
    "left right home end word-left word-right"
    " backspace delete delete-word delete-next-word delete-to-start delete-to-end up down tab"
)


@given(st.lists(st.sampled_from("ab \n"), max_size=10), st.lists(st.sampled_from(KEYS.split()), max_size=20))
def test_cursor_stays_inside_the_text(text: list[str], keys: list[str]) -> None:
    editor = LineEditor(["one", "two"], lambda word: ["abc", "abd"])
    editor.insert("".join(text))
    for key in keys:
        editor.press(key)
        assert 0 <= editor.cursor <= len(editor.text)


def test_tab_completes_the_common_prefix() -> None:
    editor = LineEditor(complete=lambda word: [name for name in ("/help", "/history") if f"^{name}".startswith(word)])
    editor.insert("/he")
    editor.press("tab")
    assert editor.text == "/help "
    editor.set("/h")
    editor.press("tab")
    assert editor.text == "/h" and editor.suggestions == ["/help", "/history"]


@pytest.mark.parametrize(
    ("names", "text"),
    [(["@main.py", '@"ma n.txt"'], "@ma"), (['@"ma a"', '@"ma b"'], '@"ma '), (['@"m n"'], '@"m n" ')],
)
def test_tab_opens_a_quote_only_if_all_names_need_it(names: list[str], text: str) -> None:
    editor = LineEditor(complete=lambda word: names)
    editor.insert("look at @m")
    editor.press("tab")
    assert editor.text == f"look at {text}"


@given(st.text(max_size=40), st.integers(2, 12))
def test_wrapped_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    rows = wrap_columns(text, width)
    assert all(width_of(row) <= width for row in rows)
    assert "".join(rows) == text.replace("\n", "")


async def test_many_deltas_are_one_frame(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(Screen(file.fileno()), Palette(True))
        for number in range(10_000):
            terminal.stream(f"word{number} " if number % 12 else "\n")
        terminal.draw()
    drawn = (tmp_path / "screen").read_bytes()
    assert drawn.count(b"\x1b[?2026h") == 1  # one write for all that came before the frame was due
    assert b"word9999" in drawn


async def test_long_line_is_streamed_in_linear_time(tmp_path: Path) -> None:
    def work(pieces: int) -> float:
        with (tmp_path / "screen").open("wb") as file:
            terminal = Terminal(Screen(file.fileno()), Palette(True))
            began = time.process_time()
            for number in range(pieces):
                terminal.stream(f"word{number} ")
            took = time.process_time() - began
            terminal.draw()
        assert b"word%d" % (pieces - 1) in (tmp_path / "screen").read_bytes()
        return took

    assert min(work(32_000) for _ in range(3)) < 24 * min(work(4_000) for _ in range(3))


async def test_typed_ahead_keys_never_answer_a_question(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(Screen(file.fileno()), Palette(True))
        os.write(writing, b"y")
        terminal.read_input(reading)
        asked = asyncio.create_task(terminal.ask("allow?"))
        await asyncio.sleep(0)
        os.write(writing, b"\rn\r")
        terminal.read_input(reading)
        assert await asked == ""
        assert await terminal.prompt() == "yn"  # the draft is back, and goes on as a prompt
        terminal.draw()
    os.close(reading)
    os.close(writing)


async def test_closed_window_leaves_the_question_open(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(writing)
    interrupts: list[str] = []
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(Screen(file.fileno()), Palette(True))
        terminal.busy, terminal.on_interrupt = True, lambda: interrupts.append("a run")
        asked = asyncio.create_task(terminal.ask("allow?"))
        await asyncio.sleep(0)
        terminal.leave()  # the signal
        terminal.read_input(reading)  # nothing can be read any more
        assert await asked is None and not interrupts
        terminal.draw()
    os.close(reading)


async def test_closed_window_ends_no_frame_with_an_error() -> None:
    outer, inner = pty.openpty()
    terminal = Terminal(Screen(inner), Palette(True))
    os.close(outer)
    terminal.show("a line")
    terminal.draw()
    os.close(inner)


async def test_prompt_of_the_command_line_comes_before_what_was_typed(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(Screen(file.fileno()), Palette(True))
        terminal.submit("typed")
        terminal.submit("given", first=True)
        assert [await terminal.prompt(), await terminal.prompt()] == ["given", "typed"]


async def test_interrupt_between_enter_and_the_run_takes_the_prompt_back(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(Screen(file.fileno()), Palette(False))
        taken = asyncio.create_task(terminal.prompt())
        await asyncio.sleep(0)
        os.write(writing, b"delete it\r")
        terminal.read_input(reading)
        terminal.interrupt()  # the signal arrives before the task that waits for the prompt runs
        await asyncio.sleep(0)
        assert not taken.done() and terminal.editor.text == "delete it"
        terminal.interrupt()
        assert terminal.editor.text == "" and not terminal.over.is_set()
        terminal.draw()
        taken.cancel()
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(("complete", "draft", "counts"), [(True, "", 1), (False, "", 0), (True, "a draft", 0)])
async def test_late_interrupt_counts_once(tmp_path: Path, complete: bool, draft: str, counts: int) -> None:
    with (tmp_path / "screen").open("wb") as file:
        terminal = Terminal(PlainScreen(file.fileno()), Palette(False), lines=True)
        terminal.editor.insert(draft)
        terminal.busy = True
        terminal.interrupt()
        terminal.interrupt()  # the second one in a run does not leave
        terminal.end_run(complete=complete)
        terminal.end_run(complete=True)
        terminal.draw()
        assert not terminal.over.is_set() and terminal.editor.text == draft
    assert (tmp_path / "screen").read_text().count("press Ctrl-C again") == counts


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"text": f"I use {name}.", "calls": [{"name": name, "arguments": arguments}]}


def test_approved_write_and_continued_session(machine: Any, tmux: Any) -> None:
    script = machine.says(call("write", path="a.txt", content="alpha"), "It is **written**.")
    tmux.start(machine.project, script)
    tmux.shows("default mode")
    tmux.type("write a.txt", "Enter")
    asked = tmux.shows("allow? >")
    assert "╭ Write a.txt ──" in asked and "│    1  + alpha " in asked and " ❯ Yes " in asked
    assert not (machine.project / "a.txt").exists()
    tmux.type("y", "Enter")
    shown = tmux.shows("It is written.")
    assert "● write a.txt" in shown
    assert (machine.project / "a.txt").read_text() == "alpha"
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.type("clear", "Enter")
    tmux.type(f"{sys.executable} -m callwright --continue {machine.says('Welcome back.')}", "Enter")
    again = tmux.shows("default mode")
    assert "> write a.txt" in again
    assert "loading" not in again  # what was drawn anew is not left behind
    tmux.type("hello again", "Enter")
    tmux.shows("Welcome back.")


def test_escape_interrupts_and_returns_the_queue(machine: Any, tmux: Any) -> None:
    script = machine.says(call("bash", command="sleep 30"), "second answer")
    tmux.start(machine.project, script, "--allowedTools", "'Bash(sleep *)'")
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("● bash sleep 30")
    tmux.type("and then this", "Enter")
    tmux.shows("queued: and then this")
    tmux.type("Escape")
    stopped = tmux.shows("stopped: interrupted by the user")
    assert "second answer" not in stopped and "queued:" not in tmux.shows("\n> and then this")
    tmux.type("Enter")
    tmux.shows("second answer")


def test_modes_commands_denials_and_edited_arguments(machine: Any, tmux: Any) -> None:
    script = machine.says(
        call("write", path="a.txt", content="x"), "ok", call("write", path="b.txt", content="x"), "fine"
    )
    tmux.start(machine.project, script)
    tmux.shows("default mode")
    tmux.type("BTab")
    tmux.shows("auto mode")
    tmux.type("BTab")
    tmux.shows("plan mode")
    tmux.type("BTab")
    tmux.shows("default mode")
    tmux.type("/he", "Tab", "Enter")
    tmux.shows("/sessions")
    tmux.type("first", "Enter")
    tmux.shows("allow? >")
    tmux.type("n not this one", "Enter")
    tmux.shows("denied: declined: not this one")
    tmux.type("second", "Enter")
    tmux.shows("b.txt")
    tmux.shows("allow? >")
    tmux.type("e", "Enter")
    tmux.shows("arguments >")
    tmux.type("C-u", '{"path": "b.txt", "content": "edited"}', "Enter")
    tmux.shows("fine")
    assert (machine.project / "b.txt").read_text() == "edited"
    assert not (machine.project / "a.txt").exists()


def test_escape_at_a_question_declines_all_and_stops(machine: Any, tmux: Any) -> None:
    both = [{"name": "write", "arguments": {"path": f"{name}.txt", "content": name}} for name in ("one", "two")]
    tmux.start(machine.project, machine.says({"calls": both}, "never said"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("allow? >")
    tmux.type("Escape")
    shown = tmux.shows("stopped: interrupted by the user")
    assert shown.count("Write one.txt") == 1 and "Write two.txt" not in shown and "never said" not in shown
    assert "Traceback" not in shown and "error" not in shown
    assert not list(machine.project.glob("*.txt"))


def test_terminal_mode_is_restored_at_exit(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says(call("bash", command="sleep 30")), "--allowedTools", "'Bash(sleep *)'")
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("● bash sleep 30")
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.type("stty -a | grep -c ' echo '", "Enter")
    tmux.shows("\n1")


def test_suspended_conversation_goes_on_in_the_foreground(machine: Any, tmux: Any) -> None:
    os.mkfifo(machine.project / "go")
    script = machine.says(call("bash", command="cat go"), "all done")
    tmux.start(machine.project, script, before="set -m;")  # the real command, which is a job of the shell
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("● bash cat go")
    tmux.type("a draft", "C-z")
    tmux.shows("Stopped")
    tmux.type("stty -a | grep -c ' echo '; fg", "Enter")
    (machine.project / "go").write_text("on\n")
    assert "\n1\n" in tmux.shows("all done")
    tmux.type(" goes on", "Enter")
    tmux.shows("> a draft goes on")


def test_trust_is_asked_before_settings_apply(machine: Any, tmux: Any) -> None:
    machine.settings({"hooks": {"SessionStart": [{"hooks": [{"command": "touch started"}]}]}})
    tmux.start(machine.project, machine.says("hello", "hello"))
    tmux.shows("trust? >")
    tmux.type("n", "Enter")
    tmux.shows("not trusted")
    tmux.type("hi", "Enter")
    tmux.shows("hello")
    assert not (machine.project / "started").exists()


def test_paused_headless_run_is_answered_in_terminal(machine: Any, tmux: Any) -> None:
    paused = machine("-p", "go", machine.says(call("write", path="a.txt", content="x")), "--session-id", "s1")
    assert paused.code == 4
    hooked = '{"hooks": {"Notification": [{"hooks": [{"command": "touch rang"}]}]}}'
    (machine.home / "bell.json").write_text(hooked)
    tmux.start(machine.project, "--resume", "s1", machine.says("all done"), f"--settings {machine.home}/bell.json")
    tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("all done")
    assert (machine.project / "a.txt").read_text() == "x" and (machine.project / "rang").exists()


def test_conversation_needs_a_terminal(machine: Any) -> None:
    ended = machine()
    assert ended.code == 2 and "use callwright -p" in ended.err


_WITH_PID = 'sh -c \'echo $$ > pid; exec "$0" "$@"\''


@pytest.mark.parametrize(
    ("sent", "ended"),
    [
        pytest.param(signal.SIGKILL, "EXIT 137", id="killed"),
        pytest.param(signal.SIGHUP, "EXIT", id="window closed", marks=pytest.mark.slow),
    ],
)
def test_question_is_shown_again_after_the_process_ended(
    machine: Any, tmux: Any, sent: signal.Signals, ended: str
) -> None:
    model = machine.says(call("write", path="new.txt", content="once\n"), "Written.")
    tmux.start(machine.project, model, before=_WITH_PID)
    tmux.shows("default mode")
    tmux.type("write it", "Enter")
    tmux.shows("allow? >")
    os.kill(int((machine.project / "pid").read_text()), sent)
    tmux.shows(ended)
    assert not (machine.project / "new.txt").exists()
    tmux.close_and_wait()
    tmux.start(machine.project, "--continue", machine.says("Written."))
    assert "new.txt" in tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("Written.")
    assert (machine.project / "new.txt").read_text() == "once\n"
