"""What the skills in use may do: granted while they are active, and never above an ask or deny rule.

What a project's skills ask for beyond being read; it counts once the folder is trusted.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from callwright.app.locations import Locations
from callwright.core.access import Access, Decision
from callwright.policy.base import Policy, Subject, Tier
from callwright.policy.paths import PathContext
from callwright.policy.rules.matching import Rules
from callwright.policy.rules.rule import Rule, RuleKind, parse_rule
from callwright.skills import Skill, Skills

OWN_MODEL = frozenset({"", "inherit", "default"})
"""What a skill says that is content with the model it is used by."""


def asking_skills(places: Locations) -> tuple[Skill, ...]:
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


class ActiveSkills(Policy):
    """Speaks for the skills of each session, from the moment one is used until its answer is there.

    `allowed-tools` of the user's own skills count, and the project's once its folder is trusted. `disallowed-tools`
    count whoever wrote them.
    """

    tier = Tier.RULE

    def __init__(self, here: PathContext, agreed: Iterable[Skill] = ()) -> None:
        self._here = here
        self._agreed = {tuple(mark) for mark in marks_of(agreed)}
        self._active: dict[str, dict[str, Skill]] = {}
        self._rules = Rules((), here)

    def trusts(self, skill: Skill) -> bool:
        """Whether what a skill asks for is granted: it is the user's own, or a person agreed to exactly this."""
        (mark,) = marks_of([skill])
        return skill.scope == "user" or tuple(mark) in self._agreed

    def activate(self, skill: Skill, session: str) -> None:
        """Let a skill's rules hold in a session from now on; outside of one there is nothing they could be held to."""
        if not session:  # a rule without a session holds in all of them
            return
        self._active.setdefault(session, {})[skill.name] = skill
        self._renew()

    def release(self, session: str, name: str | None = None) -> None:
        """Let one skill's rules, or those of all of them, hold in a session no longer."""
        if session in self._active:
            used = self._active[session].items()
            self._active[session] = {other: skill for other, skill in used if name not in (None, other)}
            if not self._active[session]:
                del self._active[session]
            self._renew()

    @contextmanager
    def during(self, skill: Skill, session: str) -> Generator[None]:
        """Let a skill's rules hold for as long as a session of its own lasts, and those of skills used in it."""
        self.activate(skill, session)
        try:
            yield
        finally:
            self.release(session)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return self._rules.judge(access, subject)

    def _renew(self) -> None:
        used = ((skill, session) for session, skills in self._active.items() for skill in skills.values())
        self._rules = Rules((rule for skill, session in used for rule in self._of(skill, session)), self._here)

    def _of(self, skill: Skill, session: str) -> Iterator[Rule]:
        wanted: list[tuple[RuleKind, tuple[str, ...]]] = [("deny", skill.disallowed_tools)]
        if self.trusts(skill):
            wanted.append(("allow", skill.allowed_tools))
        for kind, texts in wanted:
            for text in texts:
                yield parse_rule(kind, text, written_in=str(skill.file), base=str(skill.base), session=session)
