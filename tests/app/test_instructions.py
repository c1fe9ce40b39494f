"""Instructions of a repository, which are read before the user trusts it."""

from dataclasses import replace

import pytest

from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.prompts import instruction_files, instructions_for, unread_instructions
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.testing.fakes import ScriptedProvider


def names(locations: Locations) -> list[str]:
    return [file.name for file, _, _ in instruction_files(locations)]


def test_circular_imports_are_read_once(locations: Locations) -> None:
    every = [f"{number}.md" for number in range(40)]
    for name in ("AGENTS.md", *every):  # followed along every path this would be millions of them
        (locations.project / name).write_text(" ".join(f"@{other}" for other in every))
    assert names(locations) == ["AGENTS.md", *every]


def test_imports_end_at_four_levels(locations: Locations) -> None:
    for number in range(6):
        (locations.project / f"{number}.md").write_text(f"@{number + 1}.md")
    (locations.project / "AGENTS.md").write_text("@0.md")
    assert names(locations) == ["AGENTS.md", "0.md", "1.md", "2.md", "3.md"]


def test_number_of_imported_files_is_limited(locations: Locations) -> None:
    every = [f"{number}.md" for number in range(500)]
    for name in ("AGENTS.md", *every):
        (locations.project / name).write_text(" ".join(f"@{other}" for other in every))
    assert len(names(locations)) < 100


def test_endless_file_is_cut(locations: Locations) -> None:
    with (locations.project / "AGENTS.md").open("wb") as file:
        file.write(b"Be brief.")
        file.truncate(1 << 40)
    assert "Be brief." in instructions_for(locations)


def test_imports_that_cannot_be_files_are_ignored(locations: Locations) -> None:
    (locations.project / "loop.md").symlink_to("loop.md")
    (locations.project / "rest.md").write_text("Be brief.")
    (locations.project / "AGENTS.md").write_text(f"@loop.md @nul\0.md @{'x' * 5000}.md @rest.md")
    assert names(locations) == ["AGENTS.md", "rest.md"]


def test_own_instructions_import_files_beside_them(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLWRIGHT_HOME", str(locations.home))  # which commands do not see, as a secret
    locations.home.mkdir()
    (locations.home / "AGENTS.md").write_text("@style.md")
    (locations.home / "style.md").write_text("Be brief.")
    assert "Be brief." in instructions_for(locations)


def test_import_below_the_home_folder_is_expanded(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(locations.home.parent))
    locations.home.mkdir()
    (locations.home / "AGENTS.md").write_text(f"@~/{locations.home.name}/style.md")
    (locations.home / "style.md").write_text("Be brief.")
    assert "Be brief." in instructions_for(locations) and not list(unread_instructions(locations))


def test_instructions_that_are_not_read_are_named(locations: Locations) -> None:
    project = locations.project
    locations = replace(locations, claude=project.parent / "claude")
    (project / "AGENTS.md").write_text("# Notes")
    for nothing_more in ("See @AGENTS.md", "# Notes\n"):
        (project / "CLAUDE.md").write_text(nothing_more)
        assert not list(unread_instructions(locations))
    (project / "CLAUDE.md").write_text("Use tabs.")
    (project / ".claude" / "rules").mkdir(parents=True)
    assert list(unread_instructions(locations)) == [
        f"{project}/CLAUDE.md is not read, because there is {project}/AGENTS.md; write @CLAUDE.md there to import it",
        f"{project}/.claude/rules is not read; import the rules with @ in AGENTS.md or CLAUDE.md",
    ]
    (project / "AGENTS.md").write_text("@CLAUDE.md " + "x" * 32_768)
    (problem,) = (text for text in unread_instructions(locations) if "rules" not in text)
    assert problem.endswith("bytes or more; the model gets the first 32768")


def test_instructions_that_are_no_utf8_text_are_named(locations: Locations) -> None:
    file = locations.project / "AGENTS.md"
    file.write_bytes("Le café".encode("latin-1"))
    assert list(unread_instructions(locations)) == [
        f"{file} is not UTF-8 text, and the model does not get some of its characters; save it as UTF-8"
    ]
    file.write_text("x" * (32 * 1024 - 1) + "é", encoding="utf-8")  # cut inside of a character
    (told,) = unread_instructions(locations)
    assert told.startswith("the instructions have 32769 bytes or more")


def test_folder_in_the_place_of_instructions_is_named(locations: Locations) -> None:
    (locations.project / "AGENTS.md").mkdir()
    (told,) = unread_instructions(locations)
    assert told.startswith(f"{locations.project / 'AGENTS.md'} is not read: it is a folder")


def test_instructions_that_lie_elsewhere_are_named(locations: Locations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(locations.project.parent))
    other = locations.project.parent / "notes.md"
    other.write_text("from elsewhere")
    (locations.project / "AGENTS.md").write_text("@~/notes.md @missing.md someone@~/notes.md")
    (locations.project / "CLAUDE.local.md").symlink_to(other)
    app = assemble(ScriptedProvider(), load_settings(locations, trusted=False), locations, RunOptions(keep=False))
    assert "from elsewhere" not in app.agent.system
    assert [text for text in app.problems if "is not read" in text] == [
        f"{locations.project}/CLAUDE.local.md is not read: it is a link out of the project",
        f"{locations.project}/AGENTS.md: @~/notes.md is not read: it lies outside of {locations.project}",
    ]


def test_link_to_a_secret_is_no_instruction(locations: Locations) -> None:
    (locations.project / ".env").write_text("TOKEN=hunter2")
    (locations.project / "AGENTS.md").symlink_to(".env")
    assert "hunter2" not in instructions_for(locations)


def test_imports_that_the_model_may_not_read_are_left_out(locations: Locations) -> None:
    for name in ("private/plan.md", "config/.env.txt", "rest.md"):
        (locations.project / name).parent.mkdir(exist_ok=True)
        (locations.project / name).write_text(f"content of {name}")
    (locations.project / "AGENTS.md").write_text("@private/plan.md @config/.env.txt @rest.md")
    settings = load_settings(locations, trusted=False, given=['{"permissions": {"deny": ["Read(private/**)"]}}'])
    system = assemble(ScriptedProvider(), settings, locations, RunOptions(keep=False)).agent.system
    assert [line for line in system.splitlines() if "content of" in line] == ["content of rest.md"]


def test_invisible_characters_are_left_out_and_named(locations: Locations) -> None:
    file, hidden = locations.project / "AGENTS.md", "".join(chr(0xE0000 + ord(letter)) for letter in "run it")
    file.write_bytes(f"\ufeffBe brief.{hidden}\u202e\r\nمی\u200cخواهم 👩🏽‍🚀\n".encode())
    assert instructions_for(locations).endswith("Be brief.\nمی\u200cخواهم 👩🏽‍🚀")
    (told,) = unread_instructions(locations)
    assert told == f"{file} has invisible characters, which the model does not get; remove them"
    file.write_bytes("\ufeff# Notes\r\n\n\tcafé\u00a0!\n".encode())
    assert not list(unread_instructions(locations))
