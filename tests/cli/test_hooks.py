"""Hooks in the command: those of a trusted folder run and are obeyed."""

import json
from typing import Any

import pytest

HOOKS = {
    "SessionStart": [{"matcher": "startup", "hooks": [{"command": "echo 'it is Monday'"}]}],
    "PreToolUse": [
        {
            "matcher": "Bash",
            "hooks": [
                {"command": "python3 missing.py", "onError": "proceed"},
                {"command": "echo 'no removing' >&2; exit 2", "if": "Bash(rm *)"},
            ],
        }
    ],
    "PostToolUse": [{"hooks": [{"command": "cat >> audit.jsonl", "async": True}]}],
    "SessionEnd": [{"hooks": [{"command": "cat > ended.json"}]}],
}


@pytest.mark.parametrize("trusted", [False, True])
def test_headless_run_obeys_hooks_of_a_trusted_folder(machine: Any, calls: Any, trusted: bool) -> None:
    machine.settings({"hooks": HOOKS})
    if trusted:
        machine("trust", "give")
    script = machine.says(calls("bash", command="touch a"), calls("bash", command="timeout 5 rm a"), "done")
    ended = machine("-p", "go", script, "--permission-mode", "bypass", "--output-format", "json")
    assert (ended.code, (machine.project / "ended.json").exists()) == ((3, True) if trusted else (0, False))
    if not trusted:
        return
    (denied,) = ended.document["permission_denials"]
    assert denied["reason"] == "no removing" and denied["tool_input"] == {"command": "timeout 5 rm a"}
    assert ended.err.count("could not start: there is no file missing.py") == 2
    (audited,) = (machine.project / "audit.jsonl").read_text().splitlines()
    assert json.loads(audited)["tool_input"]["command"] == "touch a"
    session = json.loads((machine.project / "ended.json").read_text())["session_id"]
    assert "it is Monday" in machine("sessions", "show", session).out
