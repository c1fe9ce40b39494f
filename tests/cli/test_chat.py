"""Conversations in tmux: everything a user may type, and what the screen shows."""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS

from callwright.app.locations import Locations
from callwright.testing.loopback import Loopback, LoopbackReply

Call = Callable[..., dict[str, object]]


def wait_until(tmux: Any, condition: Callable[[str], bool]) -> str:
    """Wait until the screen meets a condition, and return the screen."""
    deadline = time.monotonic() + LONG_SECONDS
    while not condition(screen := tmux.screen()):
        assert time.monotonic() < deadline, f"the screen never met the condition:\n{screen}"
        time.sleep(0.03)
    return screen


def wait_gone(tmux: Any, text: str) -> str:
    """Wait until a text is no longer on the screen."""
    return wait_until(tmux, lambda screen: text not in screen)


def leave_with_control_c(tmux: Any) -> None:
    """Press Ctrl-C until the command ends: on a slow machine, the second press may come too late to be one."""
    shown = tmux.screen()
    while "EXIT 0" not in shown:
        hints = shown.count("press Ctrl-C again")
        tmux.type("C-c")
        shown = wait_until(
            tmux, lambda screen, hints=hints: "EXIT 0" in screen or screen.count("press Ctrl-C again") > hints
        )


def test_file_is_completed_attached_and_edited(machine: Any, tmux: Any, calls: Call) -> None:
    (machine.project / "notes.txt").write_text("alpha\n")
    edit = calls("edit", path="notes.txt", old_string="alpha", new_string="beta")
    tmux.start(machine.project, machine.says(edit, "changed"), "--permission-mode auto")
    tmux.shows("auto mode")
    tmux.type("look at @not", "Tab", "and @gone.txt", "Enter")
    shown = tmux.shows("changed")
    assert "look at @notes.txt and @gone.txt" in shown and "● read notes.txt" in shown
    assert "! @gone.txt: no such file" in shown
    assert "-alpha" in shown and "+beta" in shown and (machine.project / "notes.txt").read_text() == "beta\n"


def test_names_with_spaces_are_completed_in_quotes(machine: Any, tmux: Any) -> None:
    for number in range(250):  # more than are offered at once
        (machine.project / f"a{number}.txt").touch()
    (machine.project / "my notes").mkdir()
    (machine.project / "my notes" / "of may.txt").write_text("alpha\n")
    (machine.project / "zebra.txt").write_text("beta\n")
    tmux.start(machine.project, machine.says("read"))
    tmux.shows("default mode")
    tmux.type("look at @my", "Tab", "of", "Tab", "and @zeb", "Tab", "Enter")
    shown = tmux.shows("● read zebra.txt")
    assert 'look at @"my notes/of may.txt" and @zebra.txt' in shown and "● read my notes/of may.txt" in shown


def test_error_of_a_server_sets_no_colours_and_keeps_its_lines(machine: Any, tmux: Any, server: Loopback) -> None:
    error = {"error": {"message": "bad \x1b[8mhidden\nand a second line that says what to do about it"}}
    headers = {"content-type": "application/json"}
    server.reply(LoopbackReply([json.dumps(error).encode()], 400, headers))
    tmux.start(machine.project, f"--model {server.url}/v1#m")
    tmux.shows("default mode")
    tmux.enter("hi")
    shown = tmux.shows("what to do about it")
    assert "answered 400: bad\n\\x1b[8mhidden\nand a second line" in shown


def test_one_name_with_spaces_quotes_no_other(machine: Any, tmux: Any) -> None:
    for name in ("main.py", "my notes.txt", "draft", "draft 2"):
        (machine.project / name).write_text("alpha\n")
    tmux.start(machine.project, machine.says("read"))
    tmux.shows("default mode")
    tmux.type("look at @m", "Tab")
    assert '@main.py  @"my notes.txt"' in tmux.shows("@main.py")
    tmux.type("ain.py and @d", "Tab", ", @", "Tab", "main.py", "Enter")
    shown = tmux.shows("● read draft")
    assert "look at @main.py and @draft, @main.py" in shown and "● read main.py" in shown


def test_slash_commands_and_their_mistakes(machine: Any, tmux: Any) -> None:
    machine.user_settings({"permissions": {"deny": ["Bash(rm *)"]}})
    tmux.start(
        machine.project, machine.says("hello", "it is here", "a summary", "again"), "--allowedTools 'Bash(go vet)'"
    )
    tmux.shows("default mode")
    tmux.type("/compact", "Enter")
    tmux.shows("this session has no messages yet")
    tmux.type("/undo", "Enter", "/rewind", "Enter", "/redo", "Enter", "/cost", "Enter")
    assert tmux.shows("no price for scripted").count("this session has no messages yet") == 4
    tmux.type("hi", "Enter")
    tmux.shows("hello")
    for typed, answer in {
        "/permissions": "deny   Bash(rm *)",
        "/permissions ": "allow  Bash(go vet)  [the command line]",
        "/vim": "unknown command /vim; use /config terminal.viKeys true",
        "/context": "model messages",
        "/cost": "no price for scripted",
        "/moed plan": "did you mean /mode?",
        f"{machine.home} is where?": "it is here",
        "/ foo": "unknown command /foo",
        "/mode nonsense": "nonsense",
        "/model nosuch": "unknown model 'nosuch': write anthropic:NAME",
        "/export a.md": "exported to",
        "/export b.jsonl": "b.jsonl",
        "/compact the names": "compacted from about",
    }.items():
        tmux.type(typed, "Enter")
        tmux.shows(answer)
    assert "> hi" in (machine.project / "a.md").read_text()
    assert '"hello"' in (machine.project / "b.jsonl").read_text()
    assert "a summary" not in tmux.screen()
    tmux.type("/export a.md", "Enter")
    tmux.shows("already exists")
    tmux.type("/clear", "Enter")
    tmux.shows("new session; /resume")


def test_model_command_switches_the_next_turn(machine: Any, tmux: Any) -> None:
    other = machine.says("from the other").removeprefix("--model=")
    tmux.start(machine.project, machine.says("from the first", "never said"))
    tmux.shows("default mode")
    tmux.type("one", "Enter")
    tmux.shows("from the first")
    tmux.type(f"/model {other}", "Enter")
    tmux.shows("the model is scripted")
    tmux.type("two", "Enter")
    tmux.shows("from the other")
    assert "never said" not in tmux.screen()


def test_large_paste_is_folded_and_sent_whole(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("read it"), "--session-id s1")
    tmux.shows("default mode")
    tmux.paste("".join(f"row {number}\n" for number in range(5_000)))
    tmux.shows("> [pasted 1: 5001 lines]")
    tmux.type(" and this", "Enter")
    shown = tmux.shows("read it")
    assert "> … 4989 more lines" in shown
    exported = machine("sessions", "export", "s1").out
    assert "row 4999\\n and this" in exported


def test_resized_screen_shows_no_leftovers(machine: Any, tmux: Any) -> None:
    text = "words that stay where they are, " * 4
    tmux.start(machine.project, machine.says(text.strip()), rows=24)
    tmux.shows("default mode")
    tmux.type("hi", "Enter")
    tmux.shows("stay where they are")
    tmux.type("a line that is being typed and that is longer than the narrow screen will be")
    marks = shown = ""
    for size in ((50, 20), (100, 30), (40, 9), (80, 24)):
        tmux.resize(*size)
        marks += "!"
        tmux.type("!")  # shown only after the resize was handled: the next one must not overtake it
        shown = wait_until(tmux, lambda screen, marks=marks: f"be{marks}" in screen.replace("\n", ""))
    shown = shown.replace("\n", " ")
    assert shown.count("default mode") == 1 and shown.count("a line that is being") == 1
    assert shown.count("stay where they are") == 4


def test_low_screen_with_many_calls_and_prompts(machine: Any, tmux: Any) -> None:
    sleeps = [{"name": "bash", "arguments": {"command": f"sleep 3{number}"}} for number in range(4)]
    replies = [{"calls": sleeps}, *["ok"] * 8]
    tmux.start(machine.project, machine.says(*replies), "--allowedTools", "'Bash(sleep *)'", rows=10)
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("● bash sleep 3")
    for number in range(6):
        tmux.type(f"next {number}", "Enter")
    shown = tmux.shows("more queued")
    assert shown.count("default mode") == 1
    tmux.type("Escape")
    tmux.shows("stopped: interrupted by the user")
    shown = wait_gone(tmux, "queued")
    assert shown.count("default mode") == 1


def test_keys_after_an_answer_are_kept(machine: Any, tmux: Any, calls: Call) -> None:
    tmux.start(machine.project, machine.says(calls("write", path="a", content="x"), "fine"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("allow? >")
    tmux.type("y", "Enter", "next thing")
    tmux.shows("> next thing")
    tmux.shows("fine")


def test_edited_arguments_are_asked_about_again(machine: Any, tmux: Any, calls: Call) -> None:
    tmux.start(machine.project, machine.says(calls("bash", command="touch one"), "done"))
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("allow? >")
    tmux.type("e", "Enter")
    tmux.shows("arguments >")
    tmux.type("C-u", '{"command": "touch two"', "Enter")
    tmux.shows("not valid JSON")
    tmux.shows('arguments > {"command": "touch two"')  # a slip does not lose the edit
    tmux.type("}", "Enter")
    tmux.shows("writes two")
    assert not (machine.project / "two").exists()
    tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("done")
    assert (machine.project / "two").exists() and not (machine.project / "one").exists()


def test_long_arguments_open_the_editor(machine: Any, tmux: Any, calls: Call) -> None:
    script = machine.says(calls("write", path="a.txt", content="hello " * 60), "done")
    tmux.start(machine.project, script, before="EDITOR='sed -i s/hello/HELLO/'")
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("allow? >")
    tmux.type("e", "Enter")
    tmux.shows("done")
    assert (machine.project / "a.txt").read_text().startswith("HELLO hello")
    tmux.type("still here")
    tmux.shows("> still here")


def test_dumb_terminal_gets_lines(machine: Any, tmux: Any, calls: Call) -> None:
    script = machine.says(calls("write", path="a.txt", content="x"), "All **done**.")
    tmux.start(machine.project, script, before="TERM=dumb")
    tmux.shows(">")
    tmux.type("write it", "Enter")
    tmux.shows("allow? >")
    tmux.type("y", "Enter")
    shown = tmux.shows("All **done**.\n>")  # with the prompt: until then Ctrl-C is for the run
    assert "\x1b" not in shown and "default mode" not in shown
    tmux.type("C-c")
    tmux.shows("press Ctrl-C again")
    leave_with_control_c(tmux)


def test_dumb_terminal_takes_other_arguments(machine: Any, tmux: Any, calls: Call) -> None:
    script = machine.says(calls("write", path="a.txt", content="x"), "All done.")
    tmux.start(machine.project, script, before="TERM=dumb")
    tmux.shows(">")
    tmux.type("write it", "Enter")
    shown = tmux.shows("allow? >")
    assert "tab:" not in shown and "writes /" in shown  # everything, as no key shows more
    tmux.type("e", "Enter")
    shown = tmux.shows("all arguments >")
    assert '{"path": "a.txt", "content": "x", "overwrite": false}\n' in shown
    tmux.enter("{broken")
    tmux.shows("(char 1)\nallow? >")  # it is not valid, and y would not silently take the old arguments
    tmux.tmux("send-keys", "-R", ";", "clear-history")
    tmux.type("e", "Enter")
    tmux.shows("all arguments >")
    tmux.tmux("send-keys", "-R", ";", "clear-history")
    tmux.enter('{"path": "b.txt", "content": "y"}')
    assert "Write b.txt" in tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("All done.")
    assert [each.name for each in machine.project.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("term", ["dumb", "tmux-256color"])
def test_control_c_as_a_run_ends_counts_for_the_prompt(machine: Any, tmux: Any, term: str) -> None:
    hold = "touch ending; while [ ! -e go ]; do sleep 0.02; done"
    machine.user_settings({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": hold}]}]}})
    tmux.start(machine.project, machine.says("All said."), before=f"TERM={term}")
    tmux.shows(">")
    tmux.type("hi", "Enter")
    wait_until(tmux, lambda screen: "All said." in screen and (machine.project / "ending").exists())
    tmux.type("C-c")  # the model has answered: nothing is left to stop
    (machine.project / "go").touch()
    assert "stopped:" not in tmux.shows("press Ctrl-C again")
    leave_with_control_c(tmux)


@pytest.mark.slow
def test_no_color_removes_all_colours(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("# Title\n\n`code`\n"), before="NO_COLOR=1")
    tmux.shows("default mode")
    tmux.type("hi", "Enter")
    tmux.shows("`code`")
    assert "\x1b[" not in tmux.coloured()


def test_control_c_interrupts_clears_then_leaves(machine: Any, tmux: Any, calls: Call) -> None:
    tmux.start(machine.project, machine.says(calls("bash", command="sleep 30")), "--allowedTools", "'Bash(sleep *)'")
    tmux.shows("default mode")
    tmux.type("go", "Enter")
    tmux.shows("● bash sleep 30")
    tmux.type("C-c")
    tmux.shows("stopped: interrupted by the user")
    tmux.shows("/help · shift-tab")  # in the status line when the run has ended
    tmux.type("half a thou", "C-c")
    wait_gone(tmux, "half a thou")
    tmux.type("C-c")
    tmux.shows("press Ctrl-C again")
    leave_with_control_c(tmux)


@pytest.mark.slow
def test_history_of_earlier_sessions_is_recalled(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("hello"))
    tmux.shows("default mode")
    tmux.type("remember me", "Enter")
    tmux.shows("hello")
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.type("clear; " + f"{tmux.command} {machine.says('x')}", "Enter")
    tmux.shows("default mode")
    tmux.type("Up")
    tmux.shows("> remember me")


@pytest.mark.slow
def test_empty_session_is_not_offered_to_continue(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("x"))
    tmux.shows("default mode")
    tmux.type("C-d")
    assert "to continue" not in tmux.shows("EXIT 0")


def test_unstored_session_is_not_offered_to_continue_and_leaves_no_history(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("hello"), "--no-session-persistence")
    tmux.shows("default mode")
    tmux.type("hi", "Enter")
    tmux.shows("hello")
    tmux.type("C-d")
    assert "to continue" not in tmux.shows("EXIT 0")
    assert not (Locations.of(machine.project, home=machine.home).record / "history.jsonl").exists()


def test_unknown_model_is_explained(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, "--model", "nosuch")
    shown = tmux.shows("EXIT 2")
    assert "unknown model 'nosuch'" in shown


@pytest.mark.slow
def test_user_can_leave_at_any_time(machine: Any, tmux: Any, calls: Call) -> None:
    tmux.start(machine.project, machine.says("x"), before="env")
    tmux.shows(">")
    tmux.type("C-d")  # while everything is still being loaded
    tmux.shows("EXIT 0")
    machine.settings({"env": {"WANTED": "1"}})
    tmux.type("clear; " + f"{tmux.command} {machine.says('x')}; echo LEFT $?", "Enter")
    tmux.shows("trust? >")
    tmux.type("C-d")
    tmux.shows("LEFT 0")
    tmux.type(
        "clear; " + f"{tmux.command} {machine.says(calls('write', path='a', content='x'))}; echo GONE $?", "Enter"
    )
    tmux.shows("trust? >")
    tmux.type("n", "Enter", "go", "Enter")
    tmux.shows("allow? >")
    tmux.type("C-d")
    tmux.shows("GONE 0")
    assert not (machine.project / "a").exists()


def test_resumed_session_is_shown_as_it_was(machine: Any, tmux: Any) -> None:
    prompt = "\n".join(f"line {number}" for number in range(1, 60))
    machine("-p", prompt, machine.says("- milk\n- bread\n\n| a | b |\n|---|---|\n| 1 | 2 |"))
    tmux.start(machine.project, machine.says("x"), "--continue")
    shown = tmux.shows("default mode")
    assert "• milk" in shown and "a  b" in shown and "|---" not in shown
    assert "line 12" in shown and "… 47 more lines" in shown and "line 13" not in shown


def test_picker_offers_the_sessions_beside_a_damaged_one(machine: Any, tmux: Any) -> None:
    for name in ("s1", "s2"):
        machine("-p", f"prompt of {name}", machine.says("x"), "--session-id", name)
    with closing(sqlite3.connect(Locations.of(machine.project).sessions)) as connection:
        connection.execute(
            "DELETE FROM records WHERE session = (SELECT key FROM sessions WHERE id = 's1') AND position = 1"
        )
        connection.commit()
    tmux.start(machine.project, machine.says("and on"), "--resume")
    assert "session 's1' is damaged" in tmux.shows("sessions · 2 of 2").replace("\n", " ")
    tmux.type("s2")
    tmux.shows("1 of 2")
    tmux.type("Enter")
    tmux.shows("prompt of s2")
