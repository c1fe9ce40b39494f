"""Links in a repository must not extend the user's trust or approvals to another place."""

import json
from pathlib import Path

import pytest

from callwright.app.locations import Locations
from callwright.app.permissions import ProjectGrants
from callwright.app.skills.grants import ActiveSkills, requesting_skills
from callwright.app.trust import Trust
from callwright.core.access import RunCommand
from callwright.core.calls import Approve, Question
from callwright.policy.paths import PathContext
from callwright.skills import Skills


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return Locations.of(project, home=tmp_path / "home")


def always(locations: Locations) -> None:
    accesses = (RunCommand("npm test", str(locations.cwd)),)
    question = Question("c1", "bash", {"command": "npm test"}, "digest", "Allow it?", accesses=accesses)
    ProjectGrants(PathContext.of(locations.cwd), locations).remember(question, Approve(scope="always"), session="s")


@pytest.mark.parametrize("folder", [False, True])
def test_always_is_not_saved_through_a_link_out_of_project(locations: Locations, folder: bool) -> None:
    locations.home.mkdir()
    if folder:
        (locations.project / ".callwright").symlink_to(locations.home)
    else:
        (locations.project / ".callwright").mkdir()
        locations.local_settings.symlink_to(locations.user_settings)
    always(locations)
    assert not locations.user_settings.exists() and not (locations.home / "settings.local.json").exists()


def test_always_is_saved_through_a_link_inside_the_project(locations: Locations) -> None:
    (locations.project / "config").mkdir()
    (locations.project / ".callwright").symlink_to(locations.project / "config")
    always(locations)
    kept = json.loads((locations.project / "config" / "settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(npm test)"] and Trust(locations).given


def test_link_below_the_root_gets_no_grants_of_a_skill(locations: Locations) -> None:
    skill = locations.project / ".callwright" / "skills" / "tidy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: Tidy.\nallowed-tools: Edit(/docs/**)\n---\nTidy up.\n")
    deeper = locations.project / "vendored" / ".callwright" / "skills"
    deeper.mkdir(parents=True)
    (deeper / "other").symlink_to(skill)
    skills = Skills(locations.project)
    (found,) = skills.visit(locations.project / "vendored" / "file")
    active = ActiveSkills(PathContext.of(locations.cwd), requesting_skills(locations))
    trusted = skills.get("tidy")
    assert trusted is not None and active.trusts(trusted)
    assert found.file == trusted.file and not active.trusts(found)
