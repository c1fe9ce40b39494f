"""The pages of docs/start, run as written in a real terminal; the screens must equal their pictures."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest
from docs.play.__main__ import PICTURES, draw_pictures
from docs.play.page import installs
from docs.play.reader import ROOT, CannotPlay, Played, play_page

START = ROOT / "docs" / "start"
Follow: TypeAlias = Callable[..., Played]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Run a page and compare its pictures with the screens."""
    with ExitStack() as pages:

        def follow(name: str, programs: Path = Path(sys.executable).parent) -> Played:
            page = START / f"{name}.md"
            try:
                seen = pages.enter_context(play_page(page, programs))
            except CannotPlay as reason:
                pytest.skip(str(reason))
            for picture, now in draw_pictures(page, seen).items():
                assert (PICTURES / picture).read_text(encoding="utf-8") == now, f"run scripts/pictures {name}"
            return seen

        yield follow


@pytest.mark.slow
def test_demo_page(follow: Follow) -> None:
    (seen,) = follow("install-and-demo").shown
    assert "deletes /tmp/callwright-demo-" in seen.text and "files: test_words.py, words.py" in seen.text


@pytest.mark.slow
def test_edit_page_writes_only_after_approval(follow: Follow) -> None:
    seen = follow("edit-with-approval")
    asked, done = seen.shown
    assert "╭ Edit greet.py" in asked.text and "● edit" not in asked.text
    assert (seen.home / "greeting" / "greet.py").read_text().count("Hello, ") == 1
    assert done.text.endswith("Hello, Ada\n$")


@pytest.mark.slow
def test_resume_page_continues_the_session(follow: Follow) -> None:
    seen = follow("resume")
    again, listed = seen.shown
    assert '> Put "water the plants" on my todo list.' in again.text and "● write todo.txt" in again.text
    assert (seen.home / "plans" / "todo.txt").read_text() == "water the plants\n"
    assert listed.text.count("Put ") == 1  # one session, not two


@pytest.mark.slow
def test_undo_page_restores_the_list_twice(follow: Follow) -> None:
    seen = follow("undo-a-change")
    undone, again = seen.shown
    assert "restored list.txt" in undone.text and "apples\nbread\n$ callwright sessions undo" in again.text
    assert (seen.home / "shopping" / "list.txt").read_text() == "milk\nbread\napples\n"
    assert not (seen.home / "shopping" / "sorted.txt").exists()


@pytest.mark.slow
def test_question_page_asks_and_keeps_a_list_of_steps(follow: Follow) -> None:
    seen = follow("answer-a-question")
    asked, done = seen.shown
    assert "╭ The model asks" in asked.text and "❯ Hello" in asked.text and "your reply >" in asked.text
    assert "todo: 2 of 2 done" in done.text and "☑ write greet.py" in done.text
    assert (seen.home / "hello" / "greet.py").read_text() == 'print("Hello")\n'


@pytest.mark.slow
def test_mcp_page_adds_tests_and_uses_a_server(follow: Follow) -> None:
    if find_spec("mcp") is None:
        pytest.skip("the package mcp is not installed")
    seen = follow("add-an-mcp-server")
    settings = json.loads((seen.home / "shop" / ".callwright" / "settings.local.json").read_text())
    assert settings["mcpServers"]["shop"]["args"] == ["server.py"]
    added, asked, done = seen.shown
    assert "shop: ready" in added.text and "Allow mcp__shop__in_stock?" in asked.text
    assert done.text.startswith('● mcp__shop__in_stock {"item": "pencil"}\n  12\n')


@pytest.mark.slow
def test_skill_page_writes_checks_and_runs_a_skill(follow: Follow) -> None:
    seen = follow("write-a-skill")
    checked, asked, _ = seen.shown
    assert "release-note" in checked.text and "╭ Write NOTES.md" in asked.text
    assert "(Ada)" in (seen.home / "site" / "NOTES.md").read_text()


@pytest.mark.slow
def test_block_page_names_rule_file_and_line(follow: Follow) -> None:
    tried, refused = follow("block-a-command").shown
    assert "deny" in tried.text and "settings.json:3" in tried.text
    assert "denied: the rule Bash(git push *) forbids it" in refused.text
    assert "/home/someone/work/.callwright/settings.json:3" in refused.text and "Allow" not in refused.text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fresh_install_follows_the_pages(tmp_path: Path, follow: Follow) -> None:
    clone = _clone(tmp_path / "callwright")
    command = re.findall(r"```\n(python3 -m venv .*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))[0]
    assert "files: test_words.py, words.py" in _run(command, clone)
    for name in ("install-and-demo", "add-an-mcp-server"):
        blocks = re.findall(r"```sh\n(.*?)```", (START / f"{name}.md").read_text(encoding="utf-8"), re.DOTALL)
        (installing,) = filter(installs, blocks)
        _run(installing, tmp_path)
        follow(name, clone / ".venv" / "bin")


def _clone(target: Path) -> Path:
    """Copy the files of a clone in their current state."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so the list of files is unknown")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def _run(script: str, folder: Path) -> str:
    """Run a script with this home folder and this machine's pip settings."""
    settings = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
    outside = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment = {**outside, "HOME": str(folder if folder.name != "callwright" else folder.parent)}
    # compiling all packages takes a quarter of the time; Python compiles what it imports
    environment |= {"XDG_CONFIG_HOME": settings, "PIP_RETRIES": "10", "PIP_COMPILE": "0"}
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
