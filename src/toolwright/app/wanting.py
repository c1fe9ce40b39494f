"""What a project's skills ask for beyond being read, and whether a person agreed to it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import cast

from toolwright.app.places import Places
from toolwright.core.errors import UsageError
from toolwright.core.json import canonical
from toolwright.skills import Skill, Skills
from toolwright.system.replace import replace_file

OWN_MODEL = frozenset({"", "inherit", "default"})
"""What a skill says that is content with the model it is used by."""


def marks_of(skills: Iterable[Skill]) -> Sequence[Sequence[str]]:
    """Name exactly what skills ask for: a person's word holds for this and for nothing new."""
    return [[str(skill.file), skill.model, *skill.allowed_tools] for skill in skills]


class Agreement:
    """A person's word on the skills at one project's root; what lies in deeper folders is never granted anything."""

    def __init__(self, places: Places) -> None:
        self._file = places.home / "skills.json"
        self._project = places.project
        self.asking = tuple(
            skill for skill in Skills(places.project) if skill.scope == "project" and any(_wishes(skill))
        )
        """The project's skills that ask for something, agreed to or not."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """What they ask for, in words; empty: there is nothing to agree to."""
        return tuple(wish for skill in self.asking for wish in _wishes(skill))

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Those that get what they ask for: all of them where exactly this was agreed to, else none."""
        return self.asking if self._all().get(str(self._project)) == self._digest() else ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What a person should know: what the skills do not get before somebody agrees."""
        if not self.asking or self.skills:
            return ()
        waiting = ", ".join(self.wanted)
        return (
            f"nobody agreed to what skills here ask for, so it does not count (toolwright skills trust): {waiting}",
        )

    def give(self) -> None:
        """Agree to what the skills ask for as they are now."""
        self._write({**self._all(), str(self._project): self._digest()})

    def take(self) -> None:
        """Agree to nothing any more."""
        self._write({folder: mark for folder, mark in self._all().items() if folder != str(self._project)})

    def _digest(self) -> str:
        return sha256(canonical(marks_of(self.asking)).encode()).hexdigest()

    def _all(self) -> Mapping[str, str]:
        try:
            content: object = json.loads(self._file.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise UsageError(f"{self._file} is not valid JSON ({error}); correct or remove it") from None
        found = cast("dict[str, object]", content).get("projects") if isinstance(content, dict) else None
        return cast("dict[str, str]", found) if isinstance(found, dict) else {}

    def _write(self, projects: Mapping[str, str]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"projects": projects}, indent=2, ensure_ascii=False) + "\n"
        replace_file(self._file.resolve(), text.encode())


def _wishes(skill: Skill) -> Iterable[str]:
    yield from (f"allow {rule} in the skill {skill.name}" for rule in skill.allowed_tools)
    if skill.model not in OWN_MODEL:
        yield f"model {skill.model} in the skill {skill.name}"
