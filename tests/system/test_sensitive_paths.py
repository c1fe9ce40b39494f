"""Names of secrets, protected files and our own folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from callwright.core.access import Allow, Ask
from callwright.policy import judge_command
from callwright.system.sensitive_paths import comparable, is_protected, is_secret


@pytest.mark.parametrize("line", ["cat {}/mcp-tokens/server.json", "head -1 {}/trust.json", "ls {}"])
def test_own_folder_is_secret_wherever_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str):
    home = tmp_path / "elsewhere" / "agent-home"
    monkeypatch.setenv("CALLWRIGHT_HOME", str(home))
    workspace = tmp_path / "ws"
    workspace.mkdir()
    assert isinstance(judge_command(line.format(home), cwd=workspace, workspace=workspace), Ask)


def test_own_skills_stay_readable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "home"))
    line = f"cat {tmp_path}/home/skills/x/SKILL.md"
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path), Allow)


def test_own_folder_in_the_workspace_is_not_written_unasked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "agent-home"))
    line = "echo x > agent-home/trust.json"
    assert isinstance(judge_command(line, cwd=tmp_path, workspace=tmp_path, mode="auto"), Ask)


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "sub/agents.md", ".github/copilot-instructions.md"])
def test_instruction_files_are_protected(name: str):
    assert is_protected(comparable(f"/ws/{name}"))
    assert not is_secret(comparable(f"/ws/{name}"))


_WRITE_ON_A_FULL_DISK = """
import resource
from callwright.system.sandbox.wall import git_attributes_file
from callwright.system.output_capture import output_folder
from callwright.system.sensitive_paths import GIT_ATTRIBUTES

output_folder()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
try:
    git_attributes_file()
except OSError:
    print("failed")
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
with open(git_attributes_file()) as file:
    print(file.read() == GIT_ATTRIBUTES)
"""


def test_attributes_that_hide_secrets_are_written_whole_or_not_at_all() -> None:
    ended = subprocess.run([sys.executable, "-c", _WRITE_ON_A_FULL_DISK], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["failed", "True"], ended.stdout
