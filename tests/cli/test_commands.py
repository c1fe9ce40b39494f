"""The commands call, tools, trust, sessions, stats, skills, doctor and completion."""

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callwright.app.locations import Locations
from callwright.cli.main import run
from callwright.cli.terminal.workspace_commands import save_setting
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, Usage
from callwright.registry import Deferred
from callwright.sessions import SqliteStore
from callwright.sessions.records import Said

Call = Callable[..., dict[str, object]]


def test_call_prints_the_output_of_a_tool(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    ended = machine("call", "read", '{"path": "a.txt"}')
    assert ended.code == 0 and "alpha" in ended.out and ended.err == ""


def test_call_respects_permissions(machine: Any) -> None:
    write = ("call", "write", '{"path": "a.txt", "content": "x"}')
    asked = machine(*write)
    assert asked.code == 4 and "Allow write" in asked.err and not (machine.project / "a.txt").exists()
    assert machine(*write, "--disallowedTools", "Edit").code in (1, 3)
    assert machine(*write, "--yes").code == 0 and (machine.project / "a.txt").read_text() == "x"
    machine.settings({"permissions": {"deny": ["Bash(make *)"]}})
    denied = machine("call", "bash", '{"command": "make all"}', "--yes", "--json")
    assert denied.code == 3 and denied.document["code"] == "denied"


def test_failed_call_tells_what_to_do(machine: Any) -> None:
    unknown = machine("call", "raed", "{}")
    assert unknown.code == 1 and "did you mean read?; callwright tools lists the tools" in unknown.err
    far = machine("call", "nosuch", "--json")
    assert far.code == 1 and far.document["message"] == "unknown tool: nosuch; callwright tools lists the tools"
    bad = machine("call", "read", "{}")
    assert bad.code == 1 and "path" in bad.err


def test_bad_call_of_a_deferred_tool_gives_advice_for_people(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.app.assembly.Deferred", partial(Deferred, budget_tools=0))
    bad = machine("call", "read", "{}")
    assert bad.code == 1 and "path" in bad.err and "tool_search" not in bad.err
    assert "callwright tools --json shows the parameters of every tool" in bad.err


def test_call_reads_arguments_from_stdin(machine: Any) -> None:
    (machine.project / "a.txt").write_text("alpha")
    assert "alpha" in machine("call", "read", "-", stdin='{"path": "a.txt"}').out


def test_tools_lists_and_searches(machine: Any) -> None:
    listed = machine("tools")
    assert machine("tools", "list").out == listed.out
    assert listed.code == 0 and "bash" in listed.out and "destroy" in listed.out
    names = {entry["name"]: entry for entry in machine("tools", "--json").document}
    assert names["read"]["effect"] == "read" and "path" in names["read"]["inputSchema"]["properties"]
    found = machine("tools", "search", "run", "a", "shell", "command")
    assert found.out.splitlines()[0].startswith("bash")


def test_commands_without_a_model_ignore_settings_about_the_model(machine: Any) -> None:
    machine.user_settings({"limits": {"usd": 5}, "webSearch": "hosted", "fallbackModel": "openai:unknown"})
    (machine.project / "a.txt").write_text("alpha")
    for line in ("permissions test read a.txt", "permissions explain", "tools", 'call read {"path":"a.txt"}'):
        ended = machine(*line.split(" "))
        assert (ended.code, ended.err) == (0, "")


def test_trust_shows_gives_and_takes(machine: Any) -> None:
    assert machine("trust").code == 0
    machine.settings({"hooks": {"Stop": [{"hooks": [{"command": "curl evil\x1b[2K"}]}]}})
    shown = machine("trust")
    assert shown.code == 3 and "hook on Stop: curl evil\\x1b[2K" in shown.out
    assert machine("trust", "give").code == 0 and machine("trust").code == 0
    assert machine("trust", "take").code == 0 and machine("trust").code == 3


def test_headless_run_reports_withheld_requests(machine: Any) -> None:
    machine.settings({"hooks": {"SessionStart": [{"hooks": [{"command": "touch pwned"}]}]}, "env": {"PWNED": "1"}})
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 0 and "not trusted" in ended.err
    assert not (machine.project / "pwned").exists()
    trusted = machine("-p", "hi", machine.says("hello"), "--trust")
    assert trusted.err == "" and (machine.project / "pwned").exists()


def test_invalid_settings_stop_the_command_with_a_line(machine: Any) -> None:
    file = machine.settings('{\n  "permissions": {"deny": "Bash"}\n}')
    ended = machine("-p", "hi", machine.says("x"))
    assert ended.code == 2 and f"{file}:2: permissions.deny" in ended.err


def test_every_action_of_sessions(machine: Any, calls: Call) -> None:
    assert "No sessions" in machine("sessions", "list").out
    machine("-p", "find the needle", machine.says(calls("glob", pattern="*"), "no needle"), "--session-id", "s-1")
    listed = machine("sessions", "list", "--json").document
    assert [(entry["session_id"], entry["title"]) for entry in listed] == [("s-1", "find the needle")]
    shown = machine("sessions", "show", "s-").out
    assert "> find the needle" in shown and "● glob *" in shown and "no needle" in shown
    assert "s-1" in machine("sessions", "search", "needle").out
    copy = machine("sessions", "fork", "s-1").out.strip()
    assert "> find the needle" in machine("sessions", "show", copy).out
    exported = machine("sessions", "export", "s-1").out.splitlines()
    assert len(exported) >= 4 and all(json.loads(line) for line in exported)
    assert machine("sessions", "delete", "s-1").code == 0
    assert machine("sessions", "show", "s-1").code == 2


@pytest.mark.parametrize("action", ["show", "fork", "export", "delete"])
def test_empty_session_id_names_no_session(machine: Any, action: str) -> None:
    machine("-p", "hi", machine.says("x"), "--session-id", "s1")
    ended = machine("sessions", action, "")
    assert ended.code == 2 and "ID is empty; see callwright sessions list" in ended.err and ended.out == ""
    assert [each["session_id"] for each in machine("sessions", "list", "--json").document] == ["s1"]


def test_stats_without_sessions(machine: Any) -> None:
    assert machine("stats").out == "No sessions in this project. Run callwright to start one.\n"


def test_stats_sum_up_the_sessions(machine: Any, calls: Call) -> None:
    machine("-p", "go", machine.says(calls("glob", pattern="*"), calls("read", path="nope"), "ok"))
    figures = machine("stats", "--json").document
    assert figures["sessions"] == 1
    assert {tool["name"]: tool["outcomes"] for tool in figures["tools"]} == {
        "glob": {"completed": 1},
        "read": {"tool_failed": 1},
    }
    assert "glob" in machine("stats").out


def test_stats_count_what_a_fork_has_copied_once(machine: Any, calls: Call) -> None:
    machine("-p", "go", machine.says(calls("glob", pattern="*"), "ok"), "--session-id", "s1")
    before = machine("stats", "--json").document
    machine("sessions", "fork", "s1")
    assert machine("stats", "--json").document == {**before, "sessions": 2}
    machine("-p", "go", machine.says(calls("glob", pattern="*"), "ok"), "--resume", "s1", "--fork-session")
    assert machine("stats", "--json").document["tools"][0]["calls"] == 2


def test_stats_count_sessions_that_are_written_at_the_same_time(machine: Any) -> None:
    locations = Locations.of(machine.project)
    locations.record.mkdir(parents=True)
    said = Said(AssistantMessage((), usage=Usage(100), model="m"))

    async def write_all() -> None:
        async with SqliteStore(locations.sessions) as store:
            holds = [await store.hold(f"s{number}") for number in range(20)]
            for _ in range(2):
                await asyncio.gather(*(hold.append(said) for hold in holds))
            await asyncio.gather(*(hold.release() for hold in holds))
            await store.fork("s3", "copy")
            copy = await store.hold("copy")
            await copy.append(said)
            await copy.release()

    asyncio.run(write_all())
    found = machine("stats", "--json").document
    assert (found["sessions"], found["tokens"]["input"]) == (21, 20 * 2 * 100 + 100)


def test_skills_list_and_check(machine: Any) -> None:
    assert "No skills found" in machine("skills", "list").out
    folder = machine.project / ".callwright" / "skills" / "brew-tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: brew-tea\ndescription: Makes tea.\n---\nBoil water.\n")
    assert "brew-tea" in machine("skills", "list").out
    assert machine("skills", "check").code == 0
    (folder / "SKILL.md").write_text("---\nname: Brew Tea\n---\n")
    broken = machine("skills", "check")
    assert broken.code == 1 and "SKILL.md:" in broken.out
    for listed in (machine("skills", "list"), machine("skills", "list", "--json")):
        assert listed.code == 0 and "cannot be used" in listed.err and f"{folder / 'SKILL.md'}:" in listed.err
        assert "No skills found" not in listed.out


def test_arguments_on_stdin_that_are_no_text_are_refused(machine: Any) -> None:
    given = machine.home / "given"
    given.write_bytes(b'{"path": "\xff"}')
    with given.open(encoding="utf-8") as stdin:
        machine.patch.setattr(sys, "stdin", stdin)
        assert run(["call", "read", "-"]) == 1
    assert "expected valid Unicode" in machine.capture.readouterr().err


def test_doctor_reports_findings_and_advice(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.app.models._SERVERS", (("none", 9),))
    shown = machine("doctor")
    assert shown.code == 0 and "model" in shown.out and "do: export ANTHROPIC_API_KEY" in shown.out
    assert not (machine.home / "projects").exists()  # it changes nothing
    (machine.project / "x").write_text('["hello"]')
    monkeypatch.setenv("CALLWRIGHT_MODEL", "script:x")
    found = {finding["about"]: finding for finding in machine("doctor", "--json").document}
    assert found["model"]["text"] == "script:x (configured by CALLWRIGHT_MODEL)"
    monkeypatch.setenv("CALLWRIGHT_MODEL", "http://me:hunter2@127.0.0.1:9/v1#x")
    assert "http://me:[redacted]@127.0.0.1:9/v1#x" in machine("doctor").out
    machine.settings("{")
    broken = machine("doctor")
    assert broken.code == 1 and "FAIL" in broken.out


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("gpt-4", "unknown model 'gpt-4'"),
        ("anthropic:x", "set ANTHROPIC_API_KEY"),
        ("script:nowhere", "no such file"),
        ("local:nowhere.gguf", "no such file"),
        ("local:.", "is a directory"),
        ("http://127.0.0.1:9/v1", "names no model"),
    ],
)
def test_doctor_fails_for_a_model_that_cannot_be_used(
    machine: Any, monkeypatch: pytest.MonkeyPatch, model: str, reason: str
) -> None:
    monkeypatch.setenv("CALLWRIGHT_MODEL", model)
    shown = machine("doctor")
    assert shown.code == 1 and f"FAIL  model       {model} (configured by CALLWRIGHT_MODEL)" in shown.out
    assert reason in shown.out


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        ({"permissions": {"deny": ["Bash("]}}, 1, "FAIL  settings"),
        ({"permissions": {"defaultMode": "bypass", "disableBypassPermissionsMode": "disable"}}, 1, "FAIL  settings"),
        ({"permissions": {"deny": ["Bsh(x)"]}}, 0, "note  settings    deny rule Bsh(x)"),
        ({"hooks": {"Sessionstart": [{"hooks": [{"command": "true"}]}]}}, 0, "did you mean SessionStart?"),
        ({"mcpServers": {"a": {"comand": "x"}}}, 0, "settings.json:1: MCP server 'a' needs either a command or a url"),
    ],
)
def test_doctor_reports_rules_hooks_and_servers(machine: Any, settings: dict[str, Any], code: int, told: str) -> None:
    machine.user_settings(settings)
    shown = machine("doctor")
    assert shown.code == code and told in shown.out


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"tools": "reed"}, "tools 'reed': expected all, compact, none or names of tools (read, write,"),
        ({"tools": "web_search"}, "tools 'web_search': expected"),
        ({"limits": {"usd": 3}}, "a limit in USD needs the price of scripted"),
        ({"webSearch": "hosted"}, "the model scripted hosts no web search; use one of anthropic:…, openai:…, google:…"),
    ],
)
def test_doctor_reports_settings_that_do_not_fit_the_model_or_the_tools(
    machine: Any, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], told: str
) -> None:
    (machine.project / "x").write_text('["hello"]')
    monkeypatch.setenv("CALLWRIGHT_MODEL", "script:x")
    assert machine("doctor").code == 0
    machine.user_settings(settings)
    assert told in machine("-p", "hello").err
    shown = machine("doctor")
    assert shown.code == 1 and shown.out.count("FAIL  settings") == 1 and told in shown.out
    machine.user_settings({"tools": "web_search", "webSearch": {"command": ["find-it"]}})
    assert machine("doctor").code == 0


def test_doctor_reads_the_environment_of_the_settings(machine: Any) -> None:
    machine.user_settings({"model": "anthropic:x", "env": {"ANTHROPIC_API_KEY": "k"}})
    found = {finding["about"]: finding for finding in machine("doctor", "--json").document}
    assert found["model"]["level"] == "ok"
    machine.user_settings({"env": {"PLACE": "x"}, "mcpServers": {"a": {"command": "${PLACE}", "args": ["${NOWHERE}"]}}})
    shown = machine("doctor").out
    assert "$NOWHERE is not set" in shown and "$PLACE" not in shown


def test_doctor_names_a_missing_program(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = machine.home / "programs"
    programs.mkdir()
    (programs / "bash").symlink_to(shutil.which("bash") or "/bin/bash")
    monkeypatch.setenv("PATH", str(programs))
    found = {finding["about"]: finding for finding in machine("doctor", "--json").document}
    assert found["programs"]["level"] == "note" and found["programs"]["text"].endswith("; not found: git")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device without room")
def test_doctor_notices_a_full_disk(machine: Any) -> None:
    found = {finding["about"]: finding for finding in machine("doctor", "--json").document}
    probe = Path(found["sessions"]["text"]).parent / ".probe"
    probe.parent.mkdir(parents=True)
    probe.symlink_to("/dev/full")
    ended = machine("doctor")
    assert ended.code == 1 and "No space left on device" in ended.out and "do: free some space" in ended.out
    assert not probe.is_symlink()


def test_doctor_reports_a_home_that_cannot_be_looked_at(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLWRIGHT_HOME", str(machine.home / ("x" * 300)))
    shown = machine("doctor")
    assert shown.code == 1 and "ok    programs" in shown.out and "FAIL  sessions    cannot write to" in shown.out


def damage_file(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[100:3000] = bytes(2900)
    file.write_bytes(content)


def damage_index(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name LIKE '%autoindex_sessions%'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    content[(root - 1) * size : root * size] = bytes(size)
    file.write_bytes(content)


def replace_content(file: Path) -> None:
    file.write_bytes(b"no database" * 99)


@pytest.mark.parametrize("damage", [damage_file, damage_index, replace_content])
def test_doctor_fails_for_a_damaged_session_file(machine: Any, damage: Callable[[Path], object]) -> None:
    machine("-p", "hi", machine.says("hello"))
    (file,) = machine.home.glob("projects/*/sessions.db")
    assert machine("doctor").code == 0
    damage(file)
    before = file.read_bytes()
    shown = machine("doctor")
    assert shown.code == 1 and f"FAIL  sessions    the session file {file} failed: it is damaged" in shown.out
    assert "restore a backup, or move it away" in shown.out and file.read_bytes() == before


def test_doctor_leaves_a_file_of_an_earlier_version_as_it_is(machine: Any) -> None:
    file = Locations.of().sessions
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT, title TEXT, created_at REAL)")
        connection.execute("PRAGMA user_version=1")
    before = file.read_bytes()
    shown = machine("doctor")
    assert shown.code == 0 and "note  sessions    the file has the format of an earlier version" in shown.out
    assert (file.read_bytes(), [each.name for each in file.parent.iterdir()]) == (before, [file.name])


def test_doctor_names_damaged_sessions(machine: Any) -> None:
    machine("-p", "hi", machine.says("hello"), "--session-id", "broken")
    (file,) = machine.home.glob("projects/*/sessions.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE records SET body = '{}' WHERE position = 1")
    shown = machine("doctor")
    assert shown.code == 0 and "note  sessions    session 'broken' is damaged: record 1 cannot be read" in shown.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_valid_script(machine: Any, shell: str) -> None:
    script = machine("completion", shell).out
    assert "sessions" in script and "output-format" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_commands_and_actions(machine: Any) -> None:
    script = machine("completion", "bash").out
    probe = 'COMP_WORDS=(callwright sess); COMP_CWORD=1; _callwright; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{probe}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sessions"]


def test_every_command_has_help(machine: Any) -> None:
    for name in ("call", "tools", "trust", "sessions", "stats", "skills", "doctor", "demo", "completion"):
        ended = machine(name, "--help")
        assert ended.code == 0 and f"callwright {name}" in ended.out
    assert "exit codes" in machine("-p", "--help").out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nosuch", "unknown command 'nosuch'"),
        ("-p hi --output-format xml", "--output-format: invalid value 'xml'; choose from text, json, stream-json"),
        ("-p hi --max-turns 0", "--max-turns: expected a number of at least 1, got '0'"),
        ("-p hi --max-turns", "--max-turns: expected a value"),
        ("-p hi --max-budget-usd -1", "--max-budget-usd: expected an amount above 0, got '-1'"),
        ("-p hi --modle x", "unknown option --modle; did you mean --model?"),
        ("-p fix the bug", "unexpected arguments: the bug (did you forget quotes?)"),
        ("-p hi --permission-mode foo", "there is no mode 'foo'; use one of plan"),
        ("-p hi --resume a --continue", "--resume and --continue cannot be combined"),
        ("-p hi --fork-session", "--fork-session needs --resume"),
        ("-p --answers allow", "--answers needs --resume"),
        ("-p hi --resume a --session-id b", "--session-id is for a new session"),
        ("-p hi --include-partial-messages", "needs --output-format stream-json"),
        ("-p hi --input-format stream-json", "reads prompts from stdin"),
        ("-p --input-format stream-json", "found no message on stdin"),
        ("--output-format json", "--output-format needs -p"),
        ("--json-schema {}", "--json-schema needs -p"),
        ("-p hi --json-schema nofile.json", "no such file or directory; give a file name or the schema itself"),
        ("-p hi --json-schema [1]", "expected a JSON object"),
        ('-p hi --json-schema {"type":"nonsense"}', "not a valid JSON Schema"),
        ('-p hi --json-schema {"type":', "not valid JSON"),
        ('-p hi --json-schema {"$ref":"http://127.0.0.1:9/x"}', "schemas are not fetched, so the reference http://127"),
        ("-p hi --add-dir nofolder", "nofolder: not a folder"),
        ("-p hi --allowedTools Bash(", "the allow rule 'Bash(' is not of the form"),
        ("sessions", "missing ACTION"),
        ("sessions show", "missing ID"),
        ("sessions resume", "resume: missing ID"),
        ("permissions test", "missing TOOL and ARGUMENT"),
        ("permissions tset bash ls", "did you mean test?"),
        ("sessions lst", "did you mean list?"),
        ("sessions list --limit -1", "--limit: expected a number of at least 1"),
        ("stats --limit x", "--limit: expected a number of at least 1"),
        ("trust foo", "choose from show, give, take"),
        ("completion powershell", "choose from bash, zsh, fish"),
        ("doctor extra", "unexpected argument: extra (did you forget quotes?)"),
        ("call", "missing TOOL"),
        ("skills", "skills: missing ACTION"),
        ("mcp list --seconds nan", "--seconds: expected a number of seconds above 0, got 'nan'"),
        ("mcp test x --seconds 1e400", "--seconds: expected a number of seconds above 0, got '1e400'"),
        ("web --port 65536", "--port: expected a port from 0 to 65535, got '65536'"),
        ("worker desk:agent --ui-port x", "--ui-port: expected a port from 0 to 65535, got 'x'"),
        ("doctor --yolo", "unknown option --yolo (see callwright doctor --help)"),
    ],
)
def test_invalid_command_line_gives_one_line(machine: Any, line: str, told: str) -> None:
    arguments = line.split(" ")
    spoken = [*arguments, machine.says("x")] if arguments[0].startswith("-") and "--model" not in line else arguments
    ended = machine(*spoken)
    assert ended.code == 2 and told in ended.err and ended.out == ""
    assert len(ended.err.splitlines()) <= 2 and "Traceback" not in ended.err


def test_number_of_thousands_of_digits_is_refused(machine: Any) -> None:
    ended = machine("-p", "hi", machine.says("x"), "--max-turns", "9" * 5000)
    assert ended.code == 2 and "--max-turns: expected a number of at least 1, got '999" in ended.err
    assert len(ended.err) < 400
    ended = machine("web", "--port", "9" * 5000)
    assert ended.code == 2 and "--port: expected a port from 0 to 65535, got '999" in ended.err
    assert len(ended.err) < 400


def test_name_of_a_log_with_a_nul_is_reported(machine: Any) -> None:
    ended = machine("-p", "hi", machine.says("x"), "--log", "a\0b")
    assert ended.code == 0 and "cannot write the log a\\x00b: embedded null byte; choose another file" in ended.err


def test_schema_file_is_read_as_utf8_with_or_without_a_mark(machine: Any) -> None:
    schema = machine.project / "schema.json"
    schema.write_bytes(b'\xef\xbb\xbf{"type": "object"}')
    assert machine("-p", "hi", machine.says("{}"), "--json-schema", str(schema)).code == 0
    schema.write_bytes(b'{"title": "\xe9"}')
    ended = machine("-p", "hi", machine.says("{}"), "--json-schema", str(schema))
    assert ended.code == 2 and f"--json-schema {schema}: " in ended.err and "give a file name" in ended.err


def test_unwritable_file_is_named(machine: Any) -> None:
    machine("-p", "hi", machine.says("x"), "--session-id", "s1")
    absent = machine.project / "absent" / "x"
    ended = machine("sessions", "export", "s1", "-o", str(absent))
    assert ended.code == 2 and f"{absent}: no such file or directory; name another file" in ended.err


def test_readable_records_of_a_damaged_session_are_exported(machine: Any, calls: Call) -> None:
    machine("-p", "hi", machine.says(calls("glob", pattern="*"), "x"), "--session-id", "s1")
    whole = machine("sessions", "export", "s1").out.splitlines()
    with closing(sqlite3.connect(Locations.of(machine.project).sessions)) as connection:
        connection.execute("UPDATE records SET body = '{' WHERE position = 1")
        connection.commit()
    ended = machine("sessions", "export", "s1")
    assert ended.code != 0 and "record 1 cannot be read" in ended.err
    assert ended.out.splitlines() == [whole[0], *whole[2:]]


def test_stats_count_the_readable_records_of_a_damaged_session(machine: Any, calls: Call) -> None:
    for name in ("s1", "s2"):
        machine("-p", "hi", machine.says(calls("glob", pattern="*"), "x"), "--session-id", name)
    with closing(sqlite3.connect(Locations.of(machine.project).sessions)) as connection:
        connection.execute("UPDATE records SET body = '{' WHERE position = 0")
        connection.execute(
            "DELETE FROM records WHERE session = (SELECT key FROM sessions WHERE id = 's1') AND position = 0"
        )
        connection.commit()
    ended = machine("stats", "--json")
    assert ended.code == 0 and ended.document["sessions"] == 2 and ended.document["tools"][0]["calls"] == 2
    assert "session 's1' is damaged" in ended.err and "session 's2' is damaged" in ended.err


def test_session_id_must_be_new(machine: Any) -> None:
    machine("-p", "hi", machine.says("x"), "--session-id", "s1")
    again = machine("-p", "hi", machine.says("x"), "--session-id", "s1")
    assert again.code == 2 and "use --resume s1 to continue it" in again.err


def test_search_finds_what_was_said_and_done(machine: Any, calls: Call) -> None:
    (machine.project / "a.txt").write_text("tea\n")
    machine("-p", "read it", machine.says(calls("read", path="a.txt"), 'It says\n"tea".'), "--session-id", "s1")
    globs = [calls("glob", pattern=f"{number}.tea") for number in range(30)]
    machine("-p", "go", machine.says(*globs, "nothing"), "--session-id", "s2")
    assert machine("sessions", "search", '"TEA"').out == 's1  It says⏎"tea".\n'
    assert machine("sessions", "search", "a.txt").out == "s1  a.txt\n"
    rows = machine("sessions", "search", "tea").out.splitlines()  # although more records of s2 have it
    assert [row.partition(" ")[0] for row in rows] == ["s2", "s1"]
    for word in ("kind", "usage", "pattern", "call-1"):
        assert f"contains '{word}'" in machine("sessions", "search", word).err


def test_search_without_results_is_reported(machine: Any) -> None:
    machine("-p", "hi", machine.says("x"))
    assert "no session of this project contains 'needle'" in machine("sessions", "search", "needle").err
    nothing = machine("tools", "search", "zzzqqq")
    assert nothing.code == 1 and "no tool matches 'zzzqqq'" in nothing.err


@pytest.mark.parametrize("name", ["call", "tools", "trust", "sessions", "stats", "doctor", "demo", "completion"])
def test_help_has_an_example_or_explanation(machine: Any, name: str) -> None:
    page = machine(name, "--help")
    assert page.code == 0 and page.out == machine("help", name).out
    assert page.out.startswith(f"usage: callwright {name}") and len(page.out.splitlines()) >= 6
    assert all(len(line) <= 120 for line in page.out.splitlines())


@pytest.mark.parametrize("option", ["--settings", "--mcp-config", "--add-dir", "--system-prompt-file"])
def test_option_that_names_the_home_of_nobody_is_a_clear_error(machine: Any, option: str) -> None:
    ended = machine("-p", "hi", machine.says("ok"), option, "~no-such-user/x")
    assert ended.code == 2 and "~no-such-user/x" in ended.err and "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "expected an object with mcpServers in it"),
        ({"servers": {"a": {"command": "x"}}}, "expected an object with mcpServers in it"),
        ({"mcpServers": {"a": {"comand": "x"}}}, "MCP server 'a' needs either a command or a url"),
    ],
)
def test_named_configuration_of_servers_that_is_broken_stops(machine: Any, content: object, said: str) -> None:
    file = machine.home / "servers.json"
    file.write_text(json.dumps(content))
    ended = machine("-p", "hi", machine.says("ok"), "--mcp-config", str(file))
    assert ended.code == 2 and f"--mcp-config {file}: {said}" in ended.err
    assert machine("tools", "--mcp-config", json.dumps(content)).code == 2


def test_named_configuration_may_leave_a_server_out(machine: Any) -> None:
    off = json.dumps({"mcpServers": {"a": {"command": "x", "disabled": True}}})
    ended = machine("-p", "hi", machine.says("ok"), "--mcp-config", off)
    assert ended.code == 0 and "a: left out, it is disabled" in ended.err


def test_unknown_tool_set_is_named_where_it_is_written(machine: Any) -> None:
    machine.user_settings({"tools": "nope"})
    ended = machine("-p", "hi", machine.says("x"))
    assert ended.code == 2 and f"{machine.home / 'settings.json'}:1: tools 'nope': expected all" in ended.err
    given = machine("-p", "hi", machine.says("x"), "--tools", "other")
    assert given.code == 2 and "--tools 'other': expected all" in given.err


def test_setting_is_saved_beside_an_unknown_key(machine: Any) -> None:
    machine.home.joinpath("model-user").mkdir()
    locations = Locations.of(home=machine.home / "model-user")
    locations.user_settings.write_text('{"statusLine": {}}')
    save_setting(locations, "model", "anthropic:x")
    save_setting(locations, "terminal.theme", "light")
    assert json.loads(locations.user_settings.read_text()) == {
        "statusLine": {},
        "model": "anthropic:x",
        "terminal": {"theme": "light"},
    }
    for key in ("modle", "permissions.alow"):
        with pytest.raises(UsageError, match="is not a known setting; callwright permissions schema lists them"):
            save_setting(locations, key, "x")


def test_setting_that_cannot_be_saved_is_an_error_of_the_command_alone(tmp_path: Path) -> None:
    locations = Locations.of(tmp_path, home=tmp_path / "home")
    (tmp_path / "home").symlink_to(tmp_path / "missing")  # neither a folder nor one that can be made
    with pytest.raises(UsageError, match=r"cannot write .*settings.json: file exists"):
        save_setting(locations, "terminal.theme", "light")


def test_part_of_a_setting_does_not_replace_the_word_that_it_is(tmp_path: Path) -> None:
    locations = Locations.of(tmp_path, home=tmp_path / "home")
    save_setting(locations, "sandbox", "require")
    with pytest.raises(UsageError, match=r'sandbox is "require" now; give it whole: /config sandbox'):
        save_setting(locations, "sandbox.passEnvironment", ["A"])
    save_setting(locations, "sandbox", {"mode": "require"})
    save_setting(locations, "sandbox.passEnvironment", ["A"])
    saved = json.loads(locations.user_settings.read_text())
    assert saved == {"sandbox": {"mode": "require", "passEnvironment": ["A"]}}
