"""What a project's skills ask for beyond being read; it counts once the folder is trusted."""

from collections.abc import Iterable, Iterator, Sequence

from callwright.app.places import Places
from callwright.skills import Skill, Skills

OWN_MODEL = frozenset({"", "inherit", "default"})
"""What a skill says that is content with the model it is used by."""


def asking_skills(places: Places) -> tuple[Skill, ...]:
    """The skills at the project's root that ask for something; those in deeper folders are never granted anything."""
    return tuple(skill for skill in Skills(places.project) if skill.scope == "project" and any(wants_of((skill,))))


def wants_of(skills: Iterable[Skill]) -> Iterator[str]:
    """What skills ask for, in words to be shown."""
    for skill in skills:
        yield from (f"allow {rule} in the skill {skill.name}" for rule in skill.allowed_tools)
        if skill.model not in OWN_MODEL:
            yield f"model {skill.model} in the skill {skill.name}"


def marks_of(skills: Iterable[Skill]) -> Sequence[Sequence[str]]:
    """Name exactly what skills ask for: a person's word holds for this and for nothing new."""
    return [[str(skill.file), str(skill.base), skill.model, *skill.allowed_tools] for skill in skills]
