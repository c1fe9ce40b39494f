"""The contract of a skill as a function: run it on your own."""

from os import PathLike
from pathlib import Path

from callwright.skills.check import examine
from callwright.skills.skill import Skill

_FILE = "SKILL.md"


def check_skill(folder: str | PathLike[str]) -> Skill:
    """Check that a folder, or the SKILL.md in it, is a sound skill by the open standard.

    Raises `AssertionError` with every mistake, by line.
    Everything is named at once: fields, lengths, names, fields nobody knows, instructions too long to load whole,
    links to files that are missing or outside, commands an argument cannot be put into safely.
    """
    place = Path(folder).resolve()
    place = place.parent if place.name == _FILE and place.is_file() else place
    file = place / _FILE
    assert file.is_file(), f"{place} holds no {_FILE}, spelt like that"
    skill, problems = examine(file)
    assert not problems, "\n".join(map(str, problems))
    assert skill is not None
    return skill
