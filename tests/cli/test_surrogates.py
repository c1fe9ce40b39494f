"""Texts that UTF-8 cannot encode: half of a surrogate pair from a model, bytes of a name that is not UTF-8."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.forked import warm_command

from callwright.app.locations import Locations
from callwright.app.trust import Trust

if TYPE_CHECKING:
    from tests.cli.conftest import Machine

HALF = "broken \ud83d emoji"


@pytest.fixture
def session(machine: "Machine") -> str:
    assert machine("-p", "go", machine.says(HALF), "--session-id", "s1", "--output-format", "json").code == 0
    return "s1"


def test_answer_is_printed_with_an_escape(machine: "Machine") -> None:
    command = [*warm_command("-m", "callwright"), "-p", "go", machine.says(HALF)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (ended.returncode, ended.stdout) == (0, "broken \\ud83d emoji\n") and "Traceback" not in ended.stderr


def test_session_is_exported_as_valid_json(machine: "Machine", session: str) -> None:
    lines = machine("sessions", "export", session).out
    assert "broken \\ud83d emoji" in lines
    target = machine.project / "out.jsonl"
    assert machine("sessions", "export", session, "-o", str(target)).code == 0
    assert target.read_text("utf-8") == lines and HALF in json.dumps(
        list(map(json.loads, lines.splitlines())), ensure_ascii=False
    )


@pytest.mark.parametrize("text", ["\ud83d", "\udcff"])
def test_search_takes_any_text(machine: "Machine", session: str, text: str) -> None:
    ended = machine("sessions", "search", text)
    assert ended.code == 0 and ("s1" in ended.out) is (text in HALF)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_folder_whose_name_is_not_utf8_can_be_trusted(machine: "Machine") -> None:
    folder = Path(os.fsdecode(os.fsencode(machine.project) + b"/caf\xe9"))
    (folder / ".callwright").mkdir(parents=True)
    (folder / ".callwright" / "settings.json").write_text('{"permissions": {"allow": ["Bash(make *)"]}}')
    machine.patch.chdir(folder)
    assert machine("trust").code == 3
    assert machine("trust", "give").code == 0 and machine("trust").code == 0
    assert Trust(Locations.of(folder)).given


def test_settings_with_an_escape_can_be_changed(machine: "Machine") -> None:
    machine.user_settings({"instructions": HALF})
    from callwright.cli.terminal.workspace_commands import save_setting
    from callwright.policy.rules.saving import save_rules

    locations = Locations.of()
    save_setting(locations, "model", "anthropic:x")
    save_rules(locations.user_settings, ["Bash(make *)"])
    written = json.loads(locations.user_settings.read_text("utf-8"))
    assert written["instructions"] == HALF and written["permissions"] == {"allow": ["Bash(make *)"]}


def test_log_takes_any_text(machine: "Machine", calls: Any) -> None:
    log = machine.project / "events.jsonl"
    script = machine.says(calls(f"no {HALF} tool"), "done")
    ended = machine("-p", "go", script, "--log", str(log))
    assert "Logging error" not in ended.err and log.read_text("utf-8")


def test_copy_and_export_go_on(machine: "Machine", tmux: Any) -> None:
    tmux.start(machine.project, machine.says(HALF, "next answer"))
    tmux.shows("default mode")
    tmux.enter("go")
    tmux.shows("emoji")
    for typed, shown in {
        "/copy": "copied 14 characters",
        "/export a.jsonl": "exported to",
        "on": "next answer",
    }.items():
        tmux.enter(typed)
        tmux.shows(shown)
    assert "broken \\ud83d emoji" in (machine.project / "a.jsonl").read_text("utf-8")
