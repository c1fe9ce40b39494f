"""Control characters from a repository's files reach the terminal escaped."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Machine

ESCAPE = "\x1b]52;c;cHduZWQ=\x07"


@pytest.fixture
def hostile(machine: "Machine") -> "Machine":
    folder = machine.project / ".callwright"
    (folder / "skills" / f"b{ESCAPE}").mkdir(parents=True)
    (folder / "skills" / f"b{ESCAPE}" / "SKILL.md").write_text("Do something.")
    rules = {"allow": [f"Bash(echo {ESCAPE})"], "deny": [f"Bash(ls {ESCAPE})"]}
    (folder / "settings.json").write_text(json.dumps({"permissions": rules, f"bad{ESCAPE}": 1}))
    (machine.project / ".mcp.json").write_text(json.dumps({"mcpServers": {f"s{ESCAPE}": {"command": "true"}}}))
    return machine


@pytest.mark.parametrize(
    "line",
    [
        ("mcp", "list"),
        ("mcp", "test", "other"),
        ("mcp", "test", f"s{ESCAPE}"),
        ("mcp", "remove", "other"),
        ("trust",),
        ("doctor",),
        ("skills", "list"),
        ("skills", "check"),
        ("tools",),
        ("permissions", "explain"),
        ("permissions", "test", "bash", "ls"),
        ("call", "list", "{}"),
        ("-p", f"look at @gone{ESCAPE}.py", "--model=script:gone"),
    ],
    ids=" ".join,
)
def test_commands_escape_control_characters(hostile: "Machine", line: tuple[str, ...]) -> None:
    ended = hostile(*line)
    assert "\x1b" not in ended.out + ended.err and "\x07" not in ended.out + ended.err


def test_notices_escape_control_characters(hostile: "Machine") -> None:
    ended = hostile("-p", f"look at @gone{ESCAPE}.py", hostile.says("done"))
    assert ended.out == "done\n" and "\x1b" not in ended.err
    assert "no such file" in ended.err and "not trusted" in ended.err
