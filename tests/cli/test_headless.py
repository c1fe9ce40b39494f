"""`callwright -p`: output, exit codes, approvals, input and sessions."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.forked import warm_command

from callwright.app.locations import Locations
from callwright.cli.main import run
from callwright.cli.startup import find_session
from callwright.core.content import Text
from callwright.core.messages import UserMessage
from callwright.sessions import MemoryStore, SqliteStore
from callwright.sessions.records import Said

Call = Callable[..., dict[str, object]]


def test_stdout_has_only_the_answer(machine: Any) -> None:
    ended = machine("-p", "hi", machine.says("hello there"))
    assert (ended.code, ended.out, ended.err) == (0, "hello there\n", "")


def test_json_result_has_usage_and_cost(machine: Any) -> None:
    ended = machine("-p", "hi", machine.says("hello"), "--output-format", "json", "--session-id", "mine")
    document = ended.document
    assert document["type"] == "result" and document["subtype"] == "success"
    assert (document["result"], document["session_id"], document["num_turns"]) == ("hello", "mine", 1)
    assert document["permission_denials"] == [] and document["is_error"] is False


def test_stream_starts_with_init_and_ends_with_result(machine: Any, calls: Call) -> None:
    (machine.project / "a.txt").write_text("alpha")
    script = machine.says(calls("read", path="a.txt"), "done")
    lines = machine("-p", "look", script, "--output-format", "stream-json").lines
    assert [line["type"] for line in lines] == ["system", "assistant", "user", "assistant", "result"]
    assert "read" in lines[0]["tools"] and lines[0]["permissionMode"] == "default"
    called, told = lines[1]["message"]["content"][0], lines[2]["message"]["content"][0]
    assert (called["type"], called["name"], called["input"]) == ("tool_use", "read", {"path": "a.txt"})
    assert told["tool_use_id"] == called["id"] and "alpha" in told["content"] and told["is_error"] is False


def test_partial_messages_precede_the_message(machine: Any) -> None:
    script = machine.says("hello")
    lines = machine("-p", "hi", script, "--output-format", "stream-json", "--include-partial-messages").lines
    assert [line["type"] for line in lines] == ["system", "stream_event", "assistant", "result"]
    assert lines[1]["event"]["delta"] == {"type": "text_delta", "text": "hello"}


def test_run_pauses_for_approval_and_resumes_with_answers(machine: Any, calls: Call) -> None:
    first = machine.says(calls("write", path="a.txt", content="alpha"))
    paused = machine("-p", "write", first, "--output-format", "json", "--session-id", "s1")
    assert paused.code == 4 and not (machine.project / "a.txt").exists()
    (question,) = paused.document["questions"]
    assert question["tool_name"] == "write" and "a.txt" in question["summary"]
    assert "--resume s1 --answers" in paused.err
    done = machine("-p", "--resume", "s1", "--answers", "allow", machine.says("written"))
    assert (done.code, done.out) == (0, "written\n")
    assert (machine.project / "a.txt").read_text() == "alpha"


def test_misspelt_skill_is_an_error_and_a_path_is_text(machine: Any) -> None:
    skill = machine.project / ".callwright/skills/release-note/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: release-note\ndescription: Write a note.\n---\nNote: $ARGUMENTS")
    misspelt = machine("-p", "/relase-note done", machine.says("never"), "--session-id", "s1")
    assert misspelt.code == 2 and "there is no skill /relase-note; did you mean /release-note?" in misspelt.err
    assert "callwright skills list" in machine("-p", "/cost", machine.says("never")).err
    for prompt in ("/release-note done", "/usr is full", "/no/such/file is gone", "/nosuch/ why?", "a /relase-note"):
        assert machine("-p", prompt, machine.says("ok")).code == 0, prompt
    assert machine("-p", machine.says("ok"), stdin="/relase-note is a text").code == 0
    assert machine("sessions", "show", "s1").code == 2


def test_answers_and_a_prompt_in_one_call(machine: Any, calls: Call) -> None:
    first = machine.says(calls("write", path="a.txt", content="alpha"))
    machine("-p", "write", first, "--session-id", "s1")
    asked = machine("-p", "and a summary", "--resume", "s1", "--answers", "allow", machine.says("written"))
    assert (asked.code, asked.out) == (0, "written\n") and (machine.project / "a.txt").read_text() == "alpha"
    shown = machine("sessions", "show", "s1").out
    assert shown.index("a.txt") < shown.index("and a summary") < shown.index("written")


def test_denied_answer_reaches_model_and_exit_code(machine: Any, calls: Call) -> None:
    machine("-p", "write", machine.says(calls("write", path="a.txt", content="x")), "--session-id", "s1")
    reply = json.dumps({"*": {"deny": "use b.txt"}})
    ended = machine("-p", "--resume", "s1", "--answers", reply, machine.says("ok"), "--output-format", "json")
    assert ended.code == 3
    assert [denied["reason"] for denied in ended.document["permission_denials"]] == ["declined: use b.txt"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ('{"other": "allow"}', "names other; pending calls: "),
        ('{"call-l-1": "deny", "*": "allow"}', "names call-l-1; pending calls: "),
        ("{}", "names no call"),
        ("maybe", "got 'maybe'"),
    ],
)
def test_answers_that_match_no_pending_call_are_an_error(machine: Any, calls: Call, given: str, told: str) -> None:
    machine("-p", "write", machine.says(calls("write", path="a.txt", content="hi")), "--session-id", "s1")
    ended = machine("-p", "--resume", "s1", "--answers", given, machine.says("never"))
    assert ended.code == 2 and told in ended.err and not (machine.project / "a.txt").exists()


def test_answers_without_pending_questions_are_an_error(machine: Any) -> None:
    machine("-p", "hi", machine.says("hello"), "--session-id", "s1")
    ended = machine("-p", "--resume", "s1", "--answers", "allow", machine.says())
    assert ended.code == 2 and "has no pending question" in ended.err


def test_dont_ask_mode_lists_denials(machine: Any, calls: Call) -> None:
    script = machine.says(calls("bash", command="rm -rf build"), "could not")
    ended = machine("-p", "clean", script, "--permission-mode", "dontAsk", "--output-format", "json")
    assert ended.code == 3
    (denied,) = ended.document["permission_denials"]
    assert denied["tool_name"] == "bash" and denied["tool_input"] == {"command": "rm -rf build"}


def test_allowed_and_disallowed_tools_are_rules(machine: Any, calls: Call) -> None:
    allowed = machine.says(calls("write", path="a.txt", content="x"), "ok")
    assert machine("-p", "go", allowed, "--allowedTools", "Edit(a.txt),Read").code == 0
    denied = machine.says(calls("bash", command="echo hi"), "ok")
    ended = machine("-p", "go", denied, "--disallowedTools", "Bash(echo *)", "--output-format", "json")
    assert ended.code == 3 and "the command line" in ended.document["permission_denials"][0]["reason"]


def test_denied_tool_is_hidden_from_the_model(machine: Any) -> None:
    lines = machine("-p", "hi", machine.says("x"), "--disallowedTools", "Bash", "--output-format", "stream-json").lines
    assert "bash" not in lines[0]["tools"] and "read" in lines[0]["tools"]


def test_limit_has_its_own_exit_code(machine: Any, calls: Call) -> None:
    script = machine.says(calls("glob", pattern="*"), calls("glob", pattern="*"))
    ended = machine("-p", "go", script, "--max-turns", "1", "--output-format", "json")
    assert ended.code == 5 and ended.document["subtype"] == "error_max_turns"


def test_cost_limit_needs_prices(machine: Any) -> None:
    ended = machine("-p", "go", machine.says("x"), "--max-budget-usd", "1")
    assert ended.code == 2 and '"prices"' in ended.err
    prices = json.dumps({"prices": {"scripted": {"input": 3, "output": 15}}})
    ended = machine(
        "-p", "go", machine.says("x"), "--max-budget-usd", "1", "--settings", prices, "--output-format", "json"
    )
    assert ended.code == 0 and ended.document["total_cost_usd"] == 0.0


def test_failing_model_is_an_error(machine: Any) -> None:
    ended = machine("-p", "go", machine.says(), "--output-format", "json")
    assert ended.code == 1 and ended.document["is_error"] is True


def test_answer_is_checked_against_a_schema(machine: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    options = ("--json-schema", json.dumps(schema), "--output-format", "json")
    good = machine("-p", "go", machine.says('{"n": 3}'), *options)
    assert good.code == 0 and good.document["structured_output"] == {"n": 3}
    bad = machine("-p", "go", machine.says('{"n": "x"}', '{"m": 1}', "no"), *options)
    assert bad.code == 1 and bad.document["subtype"] == "error_max_structured_output_retries"
    told = machine("-p", "go", machine.says('Here:\n```json\n{"n":\n 3}\n```'), *options[:2])
    assert told.code == 0 and told.out == '{"n": 3}\n'
    wrong = machine("-p", "go", machine.says("no", "never", '{"n": "x"}'), *options[:2])
    assert wrong.code == 1 and not wrong.out and 'the last answer: {"n": "x"}' in wrong.err
    empty = machine("-p", "go", machine.says("anything"), "--json-schema", "")  # as from a variable that is not set
    assert empty.code == 2 and "--json-schema cannot be empty" in empty.err


@pytest.mark.slow
def test_stdin_follows_the_prompt_or_replaces_it(machine: Any, tmp_path: Path) -> None:
    def heard(*arguments: str, stdin: str) -> str:
        done = piped(machine, *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return machine("sessions", "show", json.loads(done.stdout)["session_id"]).out

    assert "<stdin>\nthe log\n</stdin>" in heard("summarise", stdin="the log")
    assert "just this" in heard(stdin="just this")


def piped(machine: Any, *arguments: str, stdin: str) -> "subprocess.CompletedProcess[str]":
    command = warm_command("-m", "callwright", "-p", *arguments, machine.says("ok"), "--output-format=json")
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, cwd=machine.project)


def test_missing_prompt_is_an_error(machine: Any) -> None:
    ended = machine("-p", machine.says("x"))
    assert ended.code == 2 and "no prompt" in ended.err


def test_stream_json_input_runs_messages_in_order(machine: Any) -> None:
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("one", "two")]
    ended = machine(
        *("-p", machine.says("first", "second"), "--input-format", "stream-json", "--output-format", "stream-json"),
        stdin="\n".join(map(json.dumps, lines)),
    )
    assert [line["result"] for line in ended.lines if line["type"] == "result"] == ["first", "second"]
    bad = machine("-p", machine.says("x"), "--input-format", "stream-json", stdin="nonsense\n")
    assert bad.code == 2 and "stdin line 1" in bad.err
    picture = {"type": "user", "message": {"content": [{"type": "image", "source": "x"}]}}
    other = machine("-p", machine.says("x"), "--input-format", "stream-json", stdin=json.dumps(picture))
    assert other.code == 2 and "a part of type 'image'" in other.err


def test_session_resumes_by_id_as_last_or_as_fork(machine: Any) -> None:
    machine("-p", "one", machine.says("first"), "--session-id", "abc-1")
    assert machine("-p", "two", "--continue", machine.says("second")).code == 0
    forked = machine("-p", "three", "--resume", "abc", "--fork-session", machine.says("third"), "--output-format=json")
    assert forked.document["session_id"] != "abc-1"
    assert "second" in machine("sessions", "show", "abc-1").out
    assert "third" not in machine("sessions", "show", "abc-1").out
    missing = machine("-p", "x", "--resume", "zzz", machine.says("x"))
    assert missing.code == 2 and "no session 'zzz'" in missing.err


async def test_oldest_of_very_many_sessions_is_found_by_its_id() -> None:
    store = MemoryStore()
    for number in range(10_001):
        hold = await store.hold(f"s{number}")
        await hold.append(Said(UserMessage("go")))
        await hold.release()
    assert await find_session(store, "s0") == "s0"


def test_arguments_that_cannot_be_read_are_streamed_as_text(machine: Any) -> None:
    nested = '{"a":' * 5_000 + "1" + "}" * 5_000
    script = machine.says({"text": "", "calls": [{"name": "read", "arguments": nested}]}, "done")
    ended = machine("-p", "go", script, "--output-format", "stream-json")
    assert ended.code == 0 and ended.lines[-1]["result"] == "done"
    assert ended.lines[1]["message"]["content"][0]["input"] == nested


def test_no_session_persistence_writes_nothing(machine: Any) -> None:
    assert machine("-p", "hi", machine.says("hello"), "--no-session-persistence").code == 0
    assert not list(machine.home.rglob("*.db"))


def test_pause_of_an_unstored_session_offers_no_way_to_resume(machine: Any, calls: Call) -> None:
    script = machine.says(calls("write", path="a", content="b"))
    paused = machine("-p", "go", script, "--no-session-persistence")
    assert paused.code == 4 and "--resume" not in paused.err and "cannot be continued" in paused.err
    assert "--resume" in machine("-p", "go", script).err


def test_add_dir_extends_the_workspace(machine: Any, calls: Call, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    target = str(other / "a.txt")
    options = ("--permission-mode", "auto")
    script = machine.says(calls("write", path=target, content="x"), "ok")
    assert machine("-p", "go", script, *options).code == 4
    script = machine.says(calls("write", path=target, content="x"), "ok")
    assert machine("-p", "go", script, *options, "--add-dir", str(other)).code == 0
    assert Path(target).read_text() == "x"


def test_missing_model_is_explained_in_five_lines(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.app.models._SERVERS", (("none", 9),))
    ended = machine("-p", "hi")
    assert ended.code == 2
    assert "No model found" in ended.err and len(ended.err.splitlines()) == 5
    assert max(map(len, ended.err.splitlines())) <= 80  # no command is broken in two
    assert "pip install" not in ended.err  # wrong under pipx and uv; --model local:FILE says what fits


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_interrupt_has_its_exit_code_and_keeps_the_session(
    machine: Any, calls: Call, sent: signal.Signals, code: int
) -> None:
    script = machine.says(calls("bash", command="sleep 30"), "never")
    command = warm_command("-m", "callwright", "-p", "go", script, "--session-id", "s1")
    process = subprocess.Popen(
        [*command, "--allowedTools", "Bash(sleep *)", "--output-format", "stream-json"],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=machine.project,
        env=os.environ,
    )
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if json.loads(line)["type"] == "assistant":
                    break
            time.sleep(0.05)
            process.send_signal(sent)
            rest = [json.loads(line) for line in process.stdout]
            assert process.wait(timeout=60) == code
        finally:
            process.terminate()
    assert rest[-1]["subtype"] == "interrupted" and rest[-1]["exit_code"] == code
    assert machine("-p", "and now?", "--resume", "s1", machine.says("fine")).code == 0


class _OutsideOfLoop(io.BytesIO):
    """Input that is read where Ctrl-C ends the read: an event loop only notes that its task is to be cancelled."""

    def read(self, size: int | None = -1) -> bytes:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return super().read(size)


@pytest.mark.parametrize("line", [("-p",), ("-p", "typed"), ("-p", "typed", "--resume", "s1", "--answers", "allow")])
def test_piped_text_is_read_where_ctrl_c_ends_it(machine: Any, calls: Call, line: tuple[str, ...]) -> None:
    machine("-p", "go", machine.says(calls("write", path="a", content="b")), "--session-id", "s1")
    file = machine.home / "piped"
    file.write_text("")
    with file.open() as given:
        piped = SimpleNamespace(fileno=given.fileno, buffer=_OutsideOfLoop(b"piped"))
        machine.patch.setattr(sys, "stdin", piped)
        assert run([*line, machine.says("fine")]) == 0
    assert machine.capture.readouterr().out == "fine\n"


def test_arguments_of_a_call_are_read_where_ctrl_c_ends_it(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    machine.patch.setattr(sys, "stdin", SimpleNamespace(buffer=_OutsideOfLoop(b'{"path": "a.txt"}')))
    assert run(["call", "read", "-"]) == 0 and "alpha" in machine.capture.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_wait_for_a_server_that_hangs(machine: Any, sent: signal.Signals, code: int) -> None:
    started = machine.home / "started"
    server = {"command": "bash", "args": ["-c", f"touch {started}; exec sleep 1000"]}
    config = json.dumps({"mcpServers": {"hangs": server}})
    command = warm_command("-m", "callwright", "-p", "go", machine.says("never"), "--mcp-config", config)
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=machine.project, env=os.environ
    )
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(sent)
    _, told = process.communicate(timeout=60)
    assert process.returncode == code
    assert "stopped: " in told and "did not connect" not in told  # which is said when its time is over


class _Costly(BaseHTTPRequestHandler):
    """A model server whose every reply makes a call and takes a million tokens."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        function = {"name": "glob", "arguments": '{"pattern": "*"}'}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
        }
        usage = {"prompt_tokens": 900_000, "completion_tokens": 100_000, "total_tokens": 1_000_000}
        common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "costly"}
        chunks: list[dict[str, Any]] = [
            {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            {**common, "choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""


def test_cost_limit_stops_the_run(machine: Any) -> None:
    if find_spec("openai") is None:
        pytest.skip("the package openai is not installed, so no model server can be asked")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Costly) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        model = f"http://127.0.0.1:{server.server_port}/v1#costly"
        prices = json.dumps({"prices": {"costly": {"input": 1, "output": 1}}})
        ended = machine(
            *("-p", "go", "--model", model, "--max-budget-usd", "1.5", "--settings", prices, "--output-format", "json")
        )
        server.shutdown()
    assert (ended.code, ended.document["subtype"]) == (5, "error_max_budget_usd")
    assert ended.document["num_turns"] == 2 and ended.document["total_cost_usd"] == 2.0


def test_changed_arguments_with_new_accesses_ask_again(machine: Any, calls: Call) -> None:
    first = machine("-p", "go", machine.says(calls("write", path="a.txt", content="x")), "--session-id", "s1")
    assert first.code == 4
    changed = json.dumps({"*": {"allow": {"path": "b.txt", "content": "y"}}})
    again = machine("-p", "--resume", "s1", "--answers", changed, machine.says("never"), "--output-format", "json")
    assert again.code == 4 and again.document["questions"][0]["tool_input"]["path"] == "b.txt"
    done = machine("-p", "--resume", "s1", "--answers", "allow", machine.says("written"))
    assert (done.code, done.out) == (0, "written\n")
    assert (machine.project / "b.txt").read_text() == "y" and not (machine.project / "a.txt").exists()


def test_input_with_nan_is_an_error(machine: Any, calls: Call) -> None:
    line = '{"type": "user", "message": {"content": "go", "weight": NaN}}'
    ended = machine("-p", "--input-format", "stream-json", machine.says("never"), stdin=line)
    assert ended.code == 2 and "stdin line 1 is not a user message (NaN is not JSON)" in ended.err
    machine("-p", "go", machine.says(calls("bash", command="touch x"), "never"), "--session-id", "s1")
    answers = '{"*": {"allow": {"command": "touch x", "seconds": Infinity}}}'
    ended = machine("-p", "--resume", "s1", "--answers", answers, machine.says("never"))
    assert ended.code == 2 and "Infinity is not JSON" in ended.err


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}]])
def test_empty_message_is_an_error(machine: Any, content: object) -> None:
    line = json.dumps({"type": "user", "message": {"content": content}})
    ended = machine("-p", "--input-format", "stream-json", machine.says("never"), stdin=line)
    assert ended.code == 2 and ended.out == "" and "stdin line 1 is an empty message" in ended.err


def test_deeply_nested_input_is_an_error(machine: Any, calls: Call) -> None:
    deep = "[" * 100_000
    ended = machine("-p", "--input-format", "stream-json", machine.says("never"), stdin=deep)
    assert ended.code == 2 and "stdin line 1 is not a user message" in ended.err
    machine("-p", "go", machine.says(calls("bash", command="touch x"), "never"), "--session-id", "s1")
    ended = machine("-p", "--resume", "s1", "--answers", deep, machine.says("never"))
    assert ended.code == 2 and "nested too deeply" in ended.err


def test_stream_json_input_stops_at_a_question(machine: Any, calls: Call) -> None:
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("one", "two")]
    ended = machine(
        *("-p", machine.says(calls("write", path="a.txt", content="x"), "never said")),
        *("--input-format", "stream-json", "--output-format", "stream-json"),
        stdin="\n".join(map(json.dumps, lines)),
    )
    assert ended.code == 4 and [line["subtype"] for line in ended.lines if line["type"] == "result"] == ["paused"]


def test_messages_do_not_mix_with_json_on_stdout(machine: Any, calls: Call) -> None:
    machine.settings({"hooks": {"SessionStart": [{"hooks": [{"command": "echo loud; echo louder >&2"}]}]}})
    script = machine.says(calls("bash", command="echo out; echo err >&2"), "ok")
    ended = machine("-p", "go @nope.txt", script, "--trust", "--permission-mode", "bypass", "--output-format", "json")
    assert ended.code == 0 and ended.document["result"] == "ok"


def test_markers_in_prompt_and_stdin_reach_the_model_whole(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    prompt = "first\n\n<stdin>\nthen @a.txt\n\n[hook] last"
    ended = machine("-p", prompt, machine.says("ok"), "--session-id", "s1", stdin="x\n\n[hook] y @b.txt")
    assert (ended.code, ended.err) == (0, "")
    store = SqliteStore(Locations.of(machine.project).sessions)
    records = asyncio.run(store.read("s1"))
    store.close()
    messages = [record.message for record in records if isinstance(record, Said)]
    assert isinstance(messages[0], UserMessage)
    text, *attached = messages[0].content
    assert text == Text(f"{prompt}\n\n<stdin>\nx\n\n[hook] y @b.txt\n</stdin>")
    assert "alpha" in str(attached)


@pytest.mark.parametrize("denied", ["glob", "list", "delete", "move", "bash_kill"])
def test_disallowed_tool_is_denied_and_no_other(machine: Any, calls: Call, denied: str) -> None:
    (machine.project / "config.py").write_text("needle\n")
    script = machine.says(calls(denied, path="config.py"), calls("grep", pattern="needle"), "done")
    ended = machine("-p", "go", script, "--disallowedTools", denied, "--output-format", "json")
    assert ended.code == 3 and ended.err.count("\n") == 1
    (denial,) = ended.document["permission_denials"]
    assert denial["tool_name"] == denied and f"the rule {denied} forbids it" in denial["reason"]
    shown = machine("sessions", "show", ended.document["session_id"])
    assert "config.py:1" in shown.out or "needle" in shown.out.split("grep")[1]


@pytest.mark.parametrize(
    "given",
    [
        "allow please",
        "Allow",
        "yes",
        "true",
        '{"*": true}',
        '{"*": "allow but not the second file"}',
        '{"*": ["allow"]}',
        '{"*": {"allow": {}, "deny": "no"}}',
        '{"*": {"allow": {"path": "b.txt"}, "note": "x"}}',
        '{"*": "deny", "*": "allow"}',
    ],
)
def test_answer_that_is_not_bare_runs_nothing(machine: Any, calls: Call, given: str) -> None:
    script = machine.says(calls("write", path="a.txt", content="x"), "done")
    assert machine("-p", "go", script, "--session-id", "s1").code == 4
    ended = machine("-p", "--resume", "s1", "--answers", given, machine.says("done"))
    assert ended.code == 2 and "--answers" in ended.err
    assert not list(machine.project.glob("*.txt"))


def test_code_mode_asks_about_calls_of_a_program(machine: Any, calls: Call) -> None:
    code = "await write(path='a.txt', content='one')\nprint(await read(path='a.txt'))"
    mode = ("--settings", '{"codeMode": true}')
    paused = machine("-p", "go", machine.says(calls("run_code", code=code)), "--session-id", "s1", *mode)
    assert paused.code == 4 and "Allow write" in paused.err and not (machine.project / "a.txt").exists()
    without = machine("-p", "--resume", "s1", machine.says("never"), "--answers", "allow")
    assert without.code == 2 and "run_code, which asks, is not among the tools now" in without.err
    done = machine("-p", "--resume", "s1", machine.says("all done"), "--answers", "allow", *mode)
    assert (done.code, done.out) == (0, "all done\n") and (machine.project / "a.txt").read_text() == "one"
    machine(
        "-p", "go", machine.says(calls("RunCode", code=code.replace("a.txt", "b.txt"))), "--session-id", "s2", *mode
    )
    machine("-p", "--resume", "s2", machine.says("all done"), "--answers", "allow", *mode)
    assert (machine.project / "b.txt").read_text() == "one"
