"""Ask rules about files hold for what reads or changes them without naming them, as deny rules do."""

import json
import shutil
from pathlib import Path

import pytest

from callwright import Answers, Completed, Interrupted
from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.testing.fakes import ScriptedProvider

SHOW = """python3 -c "print(open('private/x.txt').read())" """


def make_app(locations: Locations, *rules: str, mode: str = "auto", allow: tuple[str, ...] = ()) -> App:
    content = json.dumps({"permissions": {"ask": rules, "allow": allow}})
    settings = load_settings(locations, trusted=False, given=[content])
    return assemble(ScriptedProvider(), settings, locations, RunOptions(keep=False, mode=mode))


@pytest.fixture
def private(locations: Locations) -> Path:
    folder = locations.project / "private"
    folder.mkdir()
    (folder / "x.txt").write_text("needle\n")
    (locations.project / "open.txt").write_text("needle\n")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "grep -r needle .",
        "grep -r needle private",
        "find . -name x.txt -exec cat {} +",
        "cp -r private copy",
        "mv private copy",
        "mv private/x.txt copy",
        "tar cf - private",
        "perl -pe 1 private/x.txt",
    ],
)
@pytest.mark.usefixtures("private")
async def test_line_that_reads_or_moves_asked_files_asks(locations: Locations, line: str) -> None:
    outcome = await make_app(locations, "Read(private/**)").executor.run("bash", {"command": line})
    assert isinstance(outcome, Interrupted) and "Read(private/**)" in outcome.questions[0].reason
    assert isinstance(await make_app(locations).executor.run("bash", {"command": "grep -r needle ."}), Completed)


async def test_tools_ask_before_they_move_or_remove_an_asked_file(locations: Locations, private: Path) -> None:
    executor = make_app(locations, "Read(private/**)").executor
    for source in ("private", "private/x.txt"):
        assert isinstance(await executor.run("move", {"source": source, "destination": "copy"}), Interrupted)
        assert isinstance(await executor.run("delete", {"path": source, "recursive": True}), Interrupted)
    assert (private / "x.txt").read_text() == "needle\n"


@pytest.mark.usefixtures("private")
async def test_search_leaves_out_asked_files_that_it_does_not_name(locations: Locations) -> None:
    executor = make_app(locations, "Read(private/**)").executor
    for arguments in ({}, {"path": "private"}, {"ignored": True}):
        found = await executor.run("grep", {"pattern": "needle", "mode": "content", **arguments})
        assert isinstance(found, Completed) and "x.txt" not in found.text and "only if path names one" in found.text
    named = {"pattern": "needle", "path": "private/x.txt", "mode": "content"}
    asked = await executor.run("grep", named)
    assert isinstance(asked, Interrupted)
    answers = Answers().approve(asked.questions[0])
    shown = await executor.run("grep", named, answers=answers)
    assert isinstance(shown, Completed) and "needle" in shown.text


@pytest.mark.usefixtures("private")
async def test_rules_that_ask_about_no_file_change_no_search(locations: Locations) -> None:
    app = make_app(locations, "Bash(npm publish *)", "Edit(private/**)", "WebFetch(domain:a.example)", "Read")
    found = await app.executor.run("grep", {"pattern": "needle", "path": "open.txt"})
    assert isinstance(found, Interrupted)  # Read asks about every read
    app = make_app(locations, "Bash(npm publish *)", "Edit(private/**)", "WebFetch(domain:a.example)")
    found = await app.executor.run("grep", {"pattern": "needle", "mode": "content"})
    assert isinstance(found, Completed) and "x.txt" in found.text and "path names" not in found.text


@pytest.mark.parametrize("mode", ["default", "auto"])
@pytest.mark.usefixtures("private")
async def test_sandbox_masks_asked_files_until_the_user_approves(locations: Locations, mode: str) -> None:
    executor = make_app(locations, "Read(private/**)", mode=mode).executor
    outcome = await executor.run("bash", {"command": SHOW})
    if isinstance(outcome, Interrupted):
        pytest.skip("no complete sandbox on this machine")
    assert isinstance(outcome, Completed) and "needle" not in outcome.text
    writing = {"command": f"{SHOW} > seen.txt; cat private/x.txt"}
    asked = await executor.run("bash", writing)
    assert isinstance(asked, Interrupted)
    shown = await executor.run("bash", writing, answers=Answers().approve(asked.questions[0]))
    assert isinstance(shown, Completed) and "needle" in shown.text
    assert "needle" in (locations.project / "seen.txt").read_text()


async def test_sandbox_keeps_files_whose_change_asks(locations: Locations, private: Path) -> None:
    (locations.project / "change.sh").write_text("echo y > private/x.txt; rm -f private/x.txt; echo y > other")
    executor = make_app(locations, "Edit(private/**)").executor
    outcome = await executor.run("bash", {"command": "bash change.sh"})
    if isinstance(outcome, Interrupted):
        pytest.skip("no complete sandbox on this machine")
    assert (private / "x.txt").read_text() == "needle\n" and (locations.project / "other").exists()


async def test_what_an_allowed_command_makes_is_left_in_its_place(locations: Locations) -> None:
    (locations.project / "make.sh").write_text("mkdir -p made; echo x > made/a.txt")
    for allow, left in ((("Bash(bash make.sh)",), True), ((), False)):
        executor = make_app(locations, "Edit(made/**)", allow=allow).executor
        outcome = await executor.run("bash", {"command": "bash make.sh"})
        if isinstance(outcome, Interrupted):
            pytest.skip("no complete sandbox on this machine")
        assert (locations.project / "made").exists() is left
        assert ("a rule is about it" in outcome.text) is not left
        shutil.rmtree(locations.project / "made", ignore_errors=True)


async def test_command_that_a_rule_allows_does_not_read_asked_files(locations: Locations, private: Path) -> None:
    executor = make_app(locations, "Read(private/**)", allow=("Bash(python3 show.py)",)).executor
    (locations.project / "show.py").write_text("print(open('private/x.txt').read())")
    outcome = await executor.run("bash", {"command": "python3 show.py"})
    if isinstance(outcome, Interrupted):
        pytest.skip("no complete sandbox on this machine")
    assert "needle" not in outcome.text


async def test_instructions_import_no_asked_file(locations: Locations, private: Path) -> None:
    (private / "notes.md").write_text("content of the notes")
    (locations.project / "AGENTS.md").write_text("Build with make. @private/notes.md\n")
    assert "content of the notes" in make_app(locations).agent.system
    assert "content of the notes" not in make_app(locations, "Read(private/**)").agent.system
