"""Links in a repository: none of them carries a person's word to where it was not given."""

import json
from pathlib import Path

import pytest

from callwright.app.locations import Locations
from callwright.app.permissions import ProjectGrants
from callwright.app.skills.grants import ActiveSkills, asking_skills
from callwright.app.trust import Trust
from callwright.core.access import RunCommand
from callwright.core.calls import Approve, Question
from callwright.policy.paths import PathContext
from callwright.skills import Skills


@pytest.fixture
def places(tmp_path: Path) -> Locations:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return Locations.of(project, home=tmp_path / "home")


def always(places: Locations) -> None:
    accesses = (RunCommand("npm test", str(places.cwd)),)
    question = Question("c1", "bash", {"command": "npm test"}, "digest", "Allow it?", accesses=accesses)
    ProjectGrants(PathContext.of(places.cwd), places).remember(question, Approve(scope="always"), session="s")


@pytest.mark.parametrize("folder", [False, True])
def test_always_in_one_project_is_never_written_where_a_link_leads_out_of_it(places: Locations, folder: bool) -> None:
    places.home.mkdir()
    if folder:
        (places.project / ".callwright").symlink_to(places.home)
    else:
        (places.project / ".callwright").mkdir()
        places.local_settings.symlink_to(places.user_settings)
    always(places)
    assert not places.user_settings.exists() and not (places.home / "settings.local.json").exists()


def test_always_is_kept_where_settings_lead_inside_the_project(places: Locations) -> None:
    (places.project / "config").mkdir()
    (places.project / ".callwright").symlink_to(places.project / "config")
    always(places)
    kept = json.loads((places.project / "config" / "settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(npm test)"] and Trust(places).given


def test_a_link_in_a_deeper_folder_does_not_move_what_a_trusted_skill_was_granted(places: Locations) -> None:
    skill = places.project / ".callwright" / "skills" / "tidy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: Tidy.\nallowed-tools: Edit(/docs/**)\n---\nTidy up.\n")
    deeper = places.project / "vendored" / ".callwright" / "skills"
    deeper.mkdir(parents=True)
    (deeper / "other").symlink_to(skill)
    skills = Skills(places.project)
    (found,) = skills.visit(places.project / "vendored" / "file")
    active = ActiveSkills(PathContext.of(places.cwd), asking_skills(places))
    trusted = skills.get("tidy")
    assert trusted is not None and active.trusts(trusted)
    assert found.file == trusted.file and not active.trusts(found)
