"""The terminal, played in tmux: picker, shell lines, history search, long outputs, and slash commands."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import call
from tests.waiting import LONG_SECONDS, until, until_so

from callwright import Agent, Approve, Decline, SqliteStore, ToolCall, tool
from callwright.app.live_client import LiveAgents
from callwright.app.locations import Locations, read_web_link
from callwright.cli.render.calls import transcript
from callwright.cli.render.text import Palette, width_of
from callwright.cli.terminal.chat_actions import mention_dropped, notification, paste, unfinished_calls
from callwright.cli.terminal.external_programs import read_image
from callwright.cli.terminal.input import LineEditor
from callwright.cli.terminal.vi_keys import ViKeys
from callwright.cli.terminal.views import PickEntry, Picker
from callwright.core.calls import Completed, Failed, Reply
from callwright.core.content import Output
from callwright.core.errors import Cancelled
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.sessions.records import Answered, Began, Ended, Said, Started
from callwright.testing import ScriptedProvider


def ready(tmux: Any, machine: Any, *arguments: str, before: str = "") -> None:
    tmux.start(machine.project, *arguments, before=before)
    tmux.shows("default mode")


def test_resume_without_id_picks_a_session(machine: Any, tmux: Any) -> None:
    machine("-p", "count the apples", machine.says("three apples"))
    machine("-p", "paint the fence", machine.says("it is green"))
    tmux.start(machine.project, machine.says("and on"), "--resume")
    listed = tmux.shows("sessions · 2 of 2")
    assert "count the apples" in listed and "project" in listed and "now" in listed
    tmux.type("apples")
    tmux.shows("1 of 2")
    tmux.type("Enter")
    assert "three apples" in tmux.shows("default mode")
    tmux.type("/resume", "Enter")
    tmux.shows("sessions · 2 of 2")
    tmux.type("fence")
    tmux.shows("1 of 2")
    tmux.type("Enter")
    tmux.shows("it is green")


def test_resume_without_id_is_an_error_in_a_script(machine: Any) -> None:
    ended = machine("-p", "--resume", machine.says("never"))
    assert ended.code == 2 and "--resume needs the ID" in ended.err


def test_shell_line_runs_behind_the_rules_and_reaches_the_model(machine: Any, tmux: Any) -> None:
    machine.user_settings({"permissions": {"deny": ["Bash(rm *)"]}})
    (machine.project / "kept").write_text("x")
    ready(tmux, machine, machine.says("I see it."), "--session-id", "s1")
    tmux.enter("!echo from-the-shell")
    tmux.shows("  from-the-shell")
    tmux.enter("!rm kept")
    tmux.shows("forbids")
    tmux.enter("!touch made")
    assert "╭ Run a command" in tmux.shows("allow? >")
    tmux.type("n", "Enter")
    tmux.shows("declined")
    tmux.enter("what did I run?")
    tmux.shows("I see it.")
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    assert (machine.project / "kept").exists() and not (machine.project / "made").exists()
    shown = machine("sessions", "export", "s1")
    assert "The user ran a command in the shell" in shown.out and "from-the-shell" in shown.out
    assert machine("sessions", "list").out.rstrip().endswith("  what did I run?")
    assert "back to before: what did I run?\n" in machine("sessions", "undo", "s1").out


def test_history_search_puts_an_earlier_prompt_on_the_line(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says("one", "two", "three", "four"))
    tmux.enter("find the teapot")
    tmux.shows("one")
    tmux.enter("water the plants")
    tmux.shows("two")
    tmux.type("C-r")
    tmux.shows("history · 2 of 2")
    tmux.type("tea")
    tmux.shows("1 of 2")
    tmux.type("Enter")
    tmux.shows("\n> find the teapot")
    tmux.type("Enter")
    tmux.shows("three")
    tmux.paste("kettle\n" * 20)
    tmux.type("Enter")
    tmux.shows("four")
    tmux.type("C-r")
    tmux.shows("3 of 3")
    tmux.type("Enter")
    tmux.shows("\n> [pasted 1: 21 lines]")


def test_long_output_is_expanded(machine: Any, tmux: Any) -> None:
    (machine.project / "long.txt").write_text("".join(f"line number {n}\n" for n in range(30)))
    ready(tmux, machine, machine.says(call("read", path="long.txt"), "read it"))
    tmux.enter("go")
    assert "line number 17" not in tmux.shows("read it")
    tmux.type("C-o")
    assert "line number 17" in tmux.shows("line number 29")


def test_diff_shows_the_working_tree(machine: Any, tmux: Any) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(machine.project), *words], check=True, capture_output=True)

    ready(tmux, machine, machine.says("unused"))
    tmux.enter("/diff")
    assert "--no-index" not in tmux.shows("is in no git repository")  # the options of git, which it prints here
    git("init", "-q")
    tmux.enter("/diff")
    tmux.shows("there is no commit yet")
    (machine.project / "a.txt").write_text("old\n")
    git("add", ".")
    git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")
    (machine.project / "a.txt").write_text("new\n")
    tmux.enter("/diff")
    assert "\n-old" in tmux.shows("\n+new")
    tmux.enter("/diff nowhere")
    tmux.shows("there is no revision 'nowhere'")
    tmux.enter("/diff $(touch owned)")
    tmux.shows("takes a revision")
    assert not (machine.project / "owned").exists()


def test_init_asks_the_model_for_agents_md(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says(call("write", path="AGENTS.md", content="# Notes"), "written"))
    tmux.enter("/init")
    assert "╭ Write AGENTS.md" in tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("written")
    assert (machine.project / "AGENTS.md").read_text() == "# Notes"


def test_config_and_theme_are_saved(machine: Any, tmux: Any) -> None:
    guard = {"command": "true", "args": ["--api-key", "hunter2hunter2", "--quiet"]}
    settings = {"limits": {"turns": 9}, "env": {"MY_TOKEN": "hunter2hunter2"}, "hooks": {"Stop": [{"hooks": [guard]}]}}
    machine.user_settings(settings)
    ready(tmux, machine, machine.says("x"))
    tmux.enter("/config")
    tmux.shows('limits = {"turns": 9}')
    tmux.enter("/config env")
    assert "hunter2" not in tmux.shows('env = {"MY_TOKEN": "[redacted]"}\n')
    tmux.enter("/config hooks")
    assert "hunter2" not in tmux.shows('"[redacted]", "--quiet"]')
    tmux.enter("/theme light")
    tmux.shows("the theme is light")
    tmux.enter("/theme pink")
    tmux.shows("no theme 'pink'")
    tmux.enter("/config colour red")
    tmux.shows("not a known setting")
    tmux.paste("/config env " + "[" * 5000)
    tmux.type("Enter")
    tmux.shows('is not of type "object"')
    saved = json.loads((machine.home / "settings.json").read_text())
    assert saved == {**settings, "terminal": {"theme": "light"}}


def test_no_color_wins_over_a_theme(machine: Any, tmux: Any) -> None:
    machine.user_settings({"terminal": {"theme": "light"}})
    ready(tmux, machine, machine.says("**bold**"), before="NO_COLOR=1")
    tmux.enter("go")
    tmux.shows("bold")
    assert "\x1b[1m" not in tmux.coloured()


def test_copy_hands_the_answer_to_the_terminal(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says("the answer is 42"))
    tmux.tmux("set-option", "-s", "set-clipboard", "on")
    tmux.enter("/copy")
    tmux.shows("! this session has no messages yet")
    tmux.enter("go")
    tmux.shows("the answer is 42")
    tmux.enter("/copy")
    tmux.shows("copied 16 characters")
    assert tmux.tmux("show-buffer").strip() == "the answer is 42"


def test_mcp_lists_servers_and_refuses_unknown_ones(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says("x"))
    tmux.enter("/mcp")
    tmux.shows("no MCP servers")
    tmux.enter("/mcp on shop")
    tmux.shows("no MCP servers are configured")


def test_mcp_server_of_the_command_line_is_switched_on_again(machine: Any, tmux: Any) -> None:
    server = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"
    config = machine.home / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"rough": {"command": sys.executable, "args": ["-S", str(server)]}}}))
    ready(tmux, machine, machine.says("x"), "--mcp-config", str(config))
    tmux.enter("/mcp off rough")
    tmux.shows("rough is off until")
    tmux.enter("/mcp")
    tmux.shows("off; /mcp on rough connects it")
    tmux.enter("/mcp on rough")
    tmux.shows("rough  ready")


def test_queued_prompt_is_taken_back_and_changed(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says(call("bash", command="touch one"), "first", "second"))
    tmux.enter("start")
    tmux.shows("allow? >")
    tmux.type("Escape")
    tmux.shows("stopped")
    ready_again = machine.says(call("bash", command="sleep 3"), "first", "second")
    tmux.type("C-d")
    tmux.shows("EXIT 0")
    tmux.enter(f"clear; {tmux.command} {ready_again}")
    tmux.shows("default mode")
    tmux.enter("start")
    tmux.shows("● bash sleep 3")
    tmux.enter("wrogn")
    tmux.shows("queued: wrogn")
    tmux.type("Up")
    tmux.shows("\n> wrogn")
    tmux.type("BSpace", "BSpace", "BSpace", "ong", "Enter")
    tmux.shows("queued: wrong")


def test_vi_keys_edit_the_line(machine: Any, tmux: Any) -> None:
    machine.user_settings({"terminal": {"viKeys": True}})
    ready(tmux, machine, machine.says("ok"))
    tmux.type("helo wrld", "Escape", "0", "dw", "i", "hello ", "Escape", "A", "!")
    tmux.shows("> hello wrld!")


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ("0x", "ne two"),
        ("dd", ""),
        ("0wD", "one "),
        ("0cwsix", "six two"),
        ("0wx", "one wo"),
        ("0dw", "two"),
        ("dk", "one two"),
        ("bd$", "one "),
        ("0xu", "one two"),
        ("qz", "one two"),
    ],
)
def test_vi_commands(keys: str, left: str) -> None:
    editor = LineEditor(["an earlier prompt"])
    editor.set("one two")
    vi = ViKeys(editor)
    assert vi.escape() and vi.type(keys)
    assert editor.text == left


@pytest.mark.parametrize(
    ("text", "cursor", "keys", "left", "at"),
    [
        ("one\ntwo", 4, "", "one\ntwo", 4),  # Esc at the start of a line stays in it
        ("one\ntwo", 3, "xxxx", "\ntwo", 0),  # x does not join lines
        ("one\ntwo\nsix", 5, "dd", "one\nsix", 4),
        ("one\ntwo", 5, "dd", "one", 0),
        ("one\ntwo", 5, "cc", "one\n", 4),
        ("one\ntwo", 2, "o", "one\n\ntwo", 4),
    ],
)
def test_vi_commands_keep_to_their_line(text: str, cursor: int, keys: str, left: str, at: int) -> None:
    editor = LineEditor()
    editor.set(text)
    editor.cursor, vi = cursor, ViKeys(editor)
    assert vi.escape() and vi.type(keys)
    assert (editor.text, editor.cursor) == (left, at)


@pytest.mark.parametrize("finish", [LineEditor.take, LineEditor.clear])
def test_next_prompt_begins_in_insert_mode(finish: Callable[[LineEditor], object]) -> None:
    editor = LineEditor()
    vi = ViKeys(editor)
    editor.set("one two")
    assert vi.escape() and vi.type("xd")
    finish(editor)
    assert not vi.normal and not vi.type("hello")
    editor.set("next")
    assert vi.escape() and vi.type("u") and editor.text == "next"  # the finished text does not come back


def test_vi_undo_takes_a_new_line_back() -> None:
    editor = LineEditor()
    editor.set("one")
    vi = ViKeys(editor)
    assert vi.escape() and vi.type("o") and not vi.normal
    assert vi.escape() and vi.type("u") and editor.text == "one"


def test_dropped_image_becomes_a_mention(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"x")
    assert mention_dropped(f"'{image}'", tmp_path) == "@shot.png"
    assert mention_dropped(image.as_uri(), tmp_path / "other") == f"@{image}"
    spaced = tmp_path / "Shot (1) at 10\u202fAM.png"  # as macOS names them
    spaced.write_bytes(b"x")
    escaped = str(spaced).replace(" ", "\\ ").replace("(", "\\(").replace(")", "\\)")
    for written in (str(spaced), f"'{spaced}'", escaped):
        assert mention_dropped(written, tmp_path) == f'@"{spaced.name}"'
    texts = ("hello", "see file://[host]/share for more", f"file://[host]{image}")
    for other in (*texts, str(tmp_path), str(tmp_path / "gone.png"), f"{image}\n{image}"):
        assert mention_dropped(other, tmp_path) == ""


def test_several_dropped_images_become_mentions_apart_from_the_words_before(tmp_path: Path) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b c.png"
    first.write_bytes(b"x")
    second.write_bytes(b"x")
    editor = LineEditor()
    editor.insert("compare:")
    paste(editor, tmp_path, f"{first} '{second}' ")
    paste(editor, tmp_path, first.as_uri())
    paste(editor, tmp_path, f"{first} or")
    assert editor.text == f'compare: @a.png @"b c.png" @a.png {first} or'


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def give_clipboard(folder: Path, *contents: bytes) -> str:
    """Make a folder with the program that reads the clipboard; return a PATH that begins with it."""
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"content{number}").write_bytes(content)
    program = folder / "wl-paste"
    program.write_text(f"#!/bin/sh\ncat {folder}/content*\n" if contents else "#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_image_in_the_clipboard_is_attached(machine: Any, tmux: Any, tmp_path: Path) -> None:
    path = give_clipboard(tmp_path / "programs", PICTURE)
    ready(tmux, machine, machine.says("a red dot"), "--session-id", "s1", before=f"PATH={path}")
    tmux.type("what is this?")
    tmux.type("C-v")
    tmux.shows("what is this? @")
    tmux.type("Enter")
    assert "  1 image\n" in tmux.shows("a red dot")
    exported = machine("sessions", "export", "s1").out
    assert '"image"' in exported and "image/png" in exported


@pytest.mark.parametrize("contents", [(), (b"no picture",)])
async def test_clipboard_without_an_image_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents: tuple[bytes, ...]
) -> None:
    monkeypatch.setenv("PATH", give_clipboard(tmp_path / "programs", *contents))
    assert await read_image() == "there is no image in the clipboard"


async def test_missing_clipboard_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = await read_image()
    assert isinstance(said, str) and "wl-paste" in said and "@FILE" in said


def test_notification_cannot_be_forged() -> None:
    text = "Allow bash: a\x07\x1b]52;c;eA==\x07?"
    for kind in ("osc9", "osc777"):
        code = notification(text, kind)
        assert code.count("\x07") == 1 and code.count("\x1b") == 1 and code.endswith("\x07")
    assert notification(text, "bell") == "\x07" and not notification(text, "off")


def test_question_rings_the_bell(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says(call("bash", command="touch one"), "ok"))
    tmux.tmux("new-window")  # the bell of a window that is not looked at sets its flag
    tmux.tmux("send-keys", "-t", ":0", "go", "Enter")
    until_so(lambda: "0:1" in tmux.tmux("list-windows", "-F", "#{window_index}:#{window_bell_flag}"))


def test_slow_server_is_named_while_the_program_waits_for_it(machine: Any, tmux: Any) -> None:
    config = json.dumps({"mcpServers": {"tardy": {"command": "sleep", "args": ["1000"]}}})
    (machine.home / "mcp.json").write_text(config)
    tmux.start(machine.project, machine.says("never"), "--mcp-config", str(machine.home / "mcp.json"))
    tmux.shows("waiting for the MCP server tardy to connect; Ctrl-D leaves")
    tmux.type("C-d")
    tmux.shows("EXIT 0")


def test_calls_that_a_crash_cut_off_are_named() -> None:
    calls = [ToolCall(name, "bash", {"command": f"make {name}"}) for name in ("done", "cut", "later")]
    records = [
        Said(UserMessage("build")),
        Said(AssistantMessage(tuple(calls)), "t"),
        Began(dict.fromkeys(("done", "cut", "later"), "digest"), each=True),
        Started(("done", "cut")),
        Ended(Completed(calls[0], Output("ok"))),
    ]
    (notice,) = unfinished_calls(records)
    assert notice.startswith("bash make cut\n") and "may have had an effect" in notice
    assert not list(unfinished_calls(records[:1]))


def test_earlier_calls_fit_the_screen() -> None:
    failed = Failed(ToolCall("1", "bash", {"command": "x" * 200}), Cancelled("why " * 50))
    (lines,) = transcript([ToolMessage((failed,))], 60)
    assert all(len(line) <= 62 for line in lines.splitlines())


def test_wait_for_a_slow_server_leaves_no_row_behind(machine: Any, tmux: Any) -> None:
    config = json.dumps({"mcpServers": {"tardy": {"command": "sleep", "args": ["4"]}}})
    (machine.home / "mcp.json").write_text(config)
    tmux.start(machine.project, machine.says("never"), "--mcp-config", str(machine.home / "mcp.json"))
    tmux.shows("loading... waiting for the MCP server tardy to connect")
    assert "waiting for the MCP server" not in tmux.shows("default mode")


def test_picker_aligns_titles_of_wide_characters() -> None:
    picker = Picker("x", [PickEntry("1", "日本語の題", "2 d ago"), PickEntry("2", "plain", "2 d ago")], Palette(False))
    _, wide, plain = picker.rows(40, 20)
    assert wide.endswith("2 d ago") and plain.endswith("2 d ago") and width_of(wide) == width_of(plain)


def test_picker_filters_by_all_words() -> None:
    picker = Picker("x", [PickEntry("1", "red apple"), PickEntry("2", "green apple", "2 d ago")], Palette())
    picker.mark("apple 2 d")
    assert picker.answer == "2" and len(picker.rows(60, 20)) == 2
    picker.mark("pear")
    assert picker.answer == "" and "nothing fits" in picker.rows(60, 20)[1]


def test_stop_from_elsewhere_returns_the_queue(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says(call("bash", command="sleep 30"), "too far"), "--session-id", "s1")
    tmux.enter("go")
    tmux.shows("● bash sleep 30")
    tmux.enter("then this")
    tmux.shows("queued: then this")

    async def stop_elsewhere() -> dict[str, Any]:
        agents = LiveAgents(Locations.of(machine.project, home=machine.home).live, lambda event: None)
        async with agents.following():
            await until(lambda: agents.find("s1") is not None)
            link = agents.find("s1")
            assert link is not None
            return await link.request(op="stop")

    assert asyncio.run(stop_elsewhere())["ok"] is True
    tmux.shows("stopped: interrupted")
    tmux.shows("\n> then this")
    assert "too far" not in tmux.screen()


def test_prompts_that_wait_are_named_and_kept_when_the_user_leaves(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says(call("bash", command="sleep 30"), "too far"))
    tmux.enter("go")
    tmux.shows("● bash sleep 30")
    tmux.enter("then this")
    tmux.shows("queued: then this")
    tmux.type("C-d")
    assert "! not sent, Up recalls it next time: then this" in tmux.shows("EXIT 0")
    history = Locations.of(machine.project, home=machine.home).record / "history.jsonl"
    assert [json.loads(line) for line in history.read_text().splitlines()] == ["go", "then this"]


@pytest.mark.parametrize("first", ["terminal", "page"])
def test_question_is_answered_in_the_terminal_or_elsewhere(machine: Any, tmux: Any, first: str) -> None:
    ready(tmux, machine, machine.says(call("write", path="a.txt", content="x"), "so be it"), "--session-id", "s1")
    tmux.enter("go")
    tmux.shows("allow? >")

    async def reply_elsewhere(question: str) -> tuple[str, dict[str, Any]]:
        """Return the open question if none is given, else the result of a reply to it."""
        agents = LiveAgents(Locations.of(machine.project, home=machine.home).live, lambda event: None)
        async with agents.following():
            await until(lambda: (found := agents.find("s1")) is not None and (question or found.questions))
            link = agents.find("s1")
            assert link is not None
            if not question:
                return next(iter(link.questions)), {}
            reply = {"approved": first == "page"}
            return question, await link.request(op="answer", question=question, reply=reply, by="page")

    asked, _ = asyncio.run(reply_elsewhere(""))
    if first == "terminal":
        tmux.type("y", "Enter")
        tmux.shows("so be it")
        _, late = asyncio.run(reply_elsewhere(asked))
        assert (late["ok"], late["code"], late["by"]) == (False, "answered", "terminal")
    else:
        assert asyncio.run(reply_elsewhere(asked))[1]["ok"] is True
        assert "answered on the page: allowed once" in tmux.shows("so be it")
    assert (machine.project / "a.txt").read_text() == "x"


@pytest.mark.slow
def test_web_command_shows_the_link_of_one_server(machine: Any, tmux: Any) -> None:
    tmux.start(machine.project, machine.says("hello"), "--session-id", "s1")
    tmux.shows("default mode")
    locations = Locations.of(machine.project, home=machine.home)
    tmux.enter("/web")
    tmux.shows("the page of this project")
    link, process_id = read_web_link(locations) or ("", 0)
    assert link.startswith("http://127.0.0.1:") and "#token=" in link
    with urllib.request.urlopen(link.partition("#")[0], timeout=LONG_SECONDS) as page:
        assert b"callwright" in page.read()
    assert locations.web_link.stat().st_mode & 0o077 == 0
    tmux.enter("/web")
    tmux.enter("/skills")
    tmux.shows("> /skills")  # lines are handled one after the other
    assert (read_web_link(locations) or ("", 0))[1] == process_id
    tmux.enter("/exit")
    tmux.shows("EXIT 0")
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert not locations.web_link.exists()


async def pause_runs(path: Path) -> None:
    """Leave two runs in a store, as workers do that were stopped while their questions waited."""

    @tool
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    async with SqliteStore(path) as store:
        for session, amounts in (("invoice-7", [7]), ("invoice-8", [8, 9])):
            calls = [ToolCall(f"c{amount}", "pay", {"amount": amount}) for amount in amounts]
            await Agent(ScriptedProvider(calls), [pay], sessions=store).run(f"Pay {amounts[0]}", session=session)


def test_waiting_runs_of_workers_are_answered(machine: Any, tmux: Any) -> None:
    path = machine.home / "runs.db"
    asyncio.run(pause_runs(path))
    ready(tmux, machine, machine.says("unused"), before=f"CALLWRIGHT_STORE={path}")
    tmux.shows("2 runs wait for your answer: /runs")
    tmux.enter("/runs")
    listed = tmux.shows("/runs NUMBER answers one")
    assert "1. invoice-8  Pay 8" in listed and "2. invoice-7  Pay 7" in listed and "Allow pay: amount=7?" in listed
    tmux.enter("/runs 2")
    assert "amount=7" in tmux.shows("allow? >")
    tmux.type("y", "Enter")
    tmux.shows("recorded in invoice-7; a worker goes on with it")
    tmux.enter("/runs invoice-8")
    tmux.shows("1 of 2, allow? >")
    tmux.type("n", "Enter")
    tmux.shows("2 of 2, allow? >")
    tmux.type("Escape")
    tmux.shows("recorded in invoice-8; 1 more to answer before it goes on")
    tmux.enter("/runs nonsense")
    tmux.shows("no run nonsense waits for an answer")
    replies = asyncio.run(read_replies(path))
    assert [type(reply) for reply in replies] == [Approve, Decline]
    assert all(reply.by.endswith("the terminal") for reply in replies)


async def read_replies(path: Path) -> list[Reply]:
    async with SqliteStore(path) as store:
        records = [record for session in ("invoice-7", "invoice-8") for record in await store.read(session)]
    return [reply for record in records if isinstance(record, Answered) for reply in record.replies.values()]


def test_runs_without_a_store_says_how_to_name_one(machine: Any, tmux: Any) -> None:
    ready(tmux, machine, machine.says("unused"), before="CALLWRIGHT_STORE=")
    tmux.enter("/runs")
    tmux.shows("set CALLWRIGHT_STORE to the store of your workers")
