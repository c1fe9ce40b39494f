"""Undo in the terminal and by `callwright sessions undo`: what the screen shows and what the disk holds."""

import json
import stat
from collections.abc import Callable
from typing import Any

Call = Callable[..., dict[str, object]]


def prepare(machine: Any, calls: Call) -> tuple[str, ...]:
    """A model that edits one file, then makes another and removes the first."""
    (machine.project / "notes.txt").write_text("alpha\n")
    model = machine.says(
        calls("write", path="notes.txt", content="beta\n", overwrite=True),
        "changed it",
        calls("bash", command="rm notes.txt; mkdir new; echo text > new/file"),
        "removed it",
        "third answer",
    )
    return model, "--permission-mode=bypass"


def run_two_prompts(machine: Any, calls: Call) -> None:
    options = prepare(machine, calls)
    assert machine("-p", "change the notes", *options).code == 0
    (script,) = machine.home.glob("script-*")
    script.write_text(json.dumps(json.loads(script.read_text())[2:]))
    assert machine("-p", "remove the notes", "--continue", *options).code == 0
    assert not (machine.project / "notes.txt").exists()


def test_undo_redo_and_rewind_in_the_terminal(machine: Any, tmux: Any, calls: Call) -> None:
    notes = machine.project / "notes.txt"
    tmux.start(machine.project, *prepare(machine, calls))
    tmux.shows("bypass mode")
    tmux.type("/undo", "Enter")
    tmux.shows("this session has no messages yet")
    tmux.type("change the notes", "Enter")
    tmux.shows("changed it")
    tmux.type("remove the notes", "Enter")
    tmux.shows("removed it")
    tmux.type("/undo", "Enter")
    tmux.shows("undone: conversation and files, back to before: remove the notes")
    assert notes.read_text() == "beta\n" and not (machine.project / "new").exists()
    tmux.type("/redo", "Enter")
    tmux.shows("redone: conversation and files")
    assert not notes.exists() and (machine.project / "new" / "file").read_text() == "text\n"
    tmux.type("/rewind", "Enter")
    shown = tmux.shows("rewind to before >")
    assert "❯ remove the notes" in shown and "2 files changed · " in shown and "1 file changed · " in shown
    tmux.type("Escape")
    tmux.shows("nothing was changed")
    tmux.type("/rewind", "Enter")
    tmux.shows("prompts · 2 of 2")
    tmux.type("remove")
    tmux.shows("prompts · 1 of 2")
    tmux.type("C-u", "Down", "Enter")
    assert "❯ conversation and files" in tmux.shows("return >")
    tmux.type("Down", "Down", "Enter")
    tmux.shows("undone: files, back to before: change the notes")
    assert notes.read_text() == "alpha\n" and not (machine.project / "new").exists()
    tmux.type("go on", "Enter")
    tmux.shows("third answer")


def test_foreign_change_is_asked_about(machine: Any, tmux: Any, calls: Call) -> None:
    notes = machine.project / "notes.txt"
    tmux.start(machine.project, *prepare(machine, calls))
    tmux.shows("bypass mode")
    tmux.type("change the notes", "Enter")
    tmux.shows("changed it")
    notes.write_text("mine\n")
    tmux.type("/undo", "Enter")
    tmux.shows("overwrite them? y/n")
    tmux.type("n", "Enter")
    tmux.shows("nothing was changed")
    assert notes.read_text() == "mine\n"
    tmux.type("/undo", "Enter")
    tmux.shows("overwrite them? y/n")
    tmux.type("y", "Enter")
    tmux.shows("restored notes.txt")
    assert notes.read_text() == "alpha\n"
    tmux.type("/redo", "Enter")
    tmux.shows("redone: conversation and files")
    assert notes.read_text() == "mine\n"


def test_sessions_undo_lists_shows_and_undoes(machine: Any, calls: Call) -> None:
    run_two_prompts(machine, calls)
    notes = machine.project / "notes.txt"
    points = machine("sessions", "undo", "--list", "--json").document
    assert [point["label"] for point in points] == ["change the notes", "remove the notes"]
    planned = machine("sessions", "undo", "--dry-run")
    assert "would restore notes.txt" in planned.out and "would remove new/file" in planned.out
    assert not notes.exists()
    assert machine("sessions", "undo").code == 0
    assert notes.read_text() == "beta\n" and not (machine.project / "new").exists()
    assert machine("sessions", "redo").code == 0
    assert not notes.exists()
    assert machine("sessions", "undo", "--to", "1").code == 0
    assert notes.read_text() == "alpha\n"
    assert "change the notes" not in machine("sessions", "show", _session(machine)).out


def test_sessions_undo_keeps_foreign_changes(machine: Any, calls: Call) -> None:
    run_two_prompts(machine, calls)
    (machine.project / "notes.txt").write_text("mine\n")
    refused = machine("sessions", "undo")
    assert refused.code == 2 and "changed by another program" in refused.err and "--overwrite" in refused.err
    assert (machine.project / "notes.txt").read_text() == "mine\n"
    assert (machine.project / "new" / "file").exists()  # nothing of the turn was undone
    assert machine("sessions", "undo", "--overwrite").code == 0
    assert (machine.project / "notes.txt").read_text() == "beta\n"


def test_kept_contents_are_private_and_deleted_with_the_session(machine: Any, calls: Call) -> None:
    run_two_prompts(machine, calls)
    (kept,) = machine.home.glob("projects/*/undo")
    found = [*kept.rglob("*")]
    assert found
    for path in (kept, *found):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert machine("sessions", "delete", _session(machine)).code == 0
    assert not [*kept.iterdir()]


def test_undo_can_be_switched_off(machine: Any, calls: Call) -> None:
    machine.user_settings({"undo": "off"})
    run_two_prompts(machine, calls)
    assert not [*machine.home.glob("projects/*/undo")]
    ended = machine("sessions", "undo")
    assert ended.code != 0 and "nothing to undo" in ended.err


def _session(machine: Any) -> str:
    return machine("sessions", "list", "--json").document[0]["session_id"]
