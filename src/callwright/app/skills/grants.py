"""Permissions of skills: what they request, and the rules that hold while a skill is active."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from callwright.app.locations import Locations
from callwright.core.access import Access, Decision
from callwright.core.errors import ToolFailed, UsageError
from callwright.policy.base import Policy, Subject, Tier
from callwright.policy.paths import PathContext
from callwright.policy.rules.matching import Rules
from callwright.policy.rules.rule import Rule, RuleKind, parse_rule
from callwright.skills import Skill, Skills

OWN_MODEL = frozenset({"", "inherit", "default"})
"""Values of the field `model` that mean the model of the conversation."""


def requesting_skills(locations: Locations) -> tuple[Skill, ...]:
    """Return the skills at the project's root that request something; skills in deeper folders are never granted it."""
    own = (skill for skill in Skills(locations.project) if skill.scope == "project")
    return tuple(skill for skill in own if any(describe_requests((skill,))))


def describe_requests(skills: Iterable[Skill]) -> Iterator[str]:
    """Yield what skills request, as text for the user."""
    for skill in skills:
        yield from (f"allow {rule} in the skill {skill.name}" for rule in skill.allowed_tools)
        if skill.model not in OWN_MODEL:
            yield f"model {skill.model} in the skill {skill.name}"


def fingerprints(skills: Iterable[Skill]) -> Sequence[Sequence[str]]:
    """Identify exactly what skills request: the user's trust covers this and nothing new."""
    return [[str(skill.file), str(skill.base), skill.model, *skill.allowed_tools] for skill in skills]


class ActiveSkills(Policy):
    """The rules of skills, in the session that uses them, from the first use until the run ends.

    `allowed-tools` count for the user's own skills, and for the project's once its folder is trusted;
    `disallowed-tools` always count. The tier is that of a rule, so ask and deny rules override a skill.
    """

    tier = Tier.RULE

    def __init__(self, here: PathContext, agreed: Iterable[Skill] = ()) -> None:
        self._here = here
        self._agreed = {tuple(fingerprint) for fingerprint in fingerprints(agreed)}
        self._active: dict[str, dict[str, Skill]] = {}
        self._rules = Rules((), here)

    def trusts(self, skill: Skill) -> bool:
        """Return whether a skill gets what it requests: it is the user's own, or the user agreed to exactly this."""
        (fingerprint,) = fingerprints([skill])
        return skill.scope == "user" or tuple(fingerprint) in self._agreed

    def activate(self, skill: Skill, session: str) -> None:
        """Apply a skill's rules in a session from now on; without a session nothing is applied.

        Raises:
            ToolFailed: One of its rules is not valid, so the skill cannot be used.
        """
        if not session:  # a rule without a session would hold in all of them
            return
        try:
            list(self._rules_of(skill, session))
        except UsageError as error:
            raise ToolFailed(f"the skill {skill.name} cannot be used ({skill.file}): {error}") from None
        self._active.setdefault(session, {})[skill.name] = skill
        self._rebuild()

    def release(self, session: str, name: str | None = None) -> None:
        """Remove the rules of one skill, or of all skills, from a session."""
        if session in self._active:
            used = self._active[session].items()
            self._active[session] = {other: skill for other, skill in used if name not in (None, other)}
            if not self._active[session]:
                del self._active[session]
            self._rebuild()

    @contextmanager
    def during(self, skill: Skill, session: str) -> Generator[None]:
        """Apply a skill's rules while its own session lasts; skills used in it end with it."""
        self.activate(skill, session)
        try:
            yield
        finally:
            self.release(session)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return self._rules.judge(access, subject)

    def _rebuild(self) -> None:
        used = ((skill, session) for session, skills in self._active.items() for skill in skills.values())
        # rebuilt at once, because judging is far more frequent than using a skill
        self._rules = Rules((rule for skill, session in used for rule in self._rules_of(skill, session)), self._here)

    def _rules_of(self, skill: Skill, session: str) -> Iterator[Rule]:
        requested: list[tuple[RuleKind, tuple[str, ...]]] = [("deny", skill.disallowed_tools)]
        if self.trusts(skill):
            requested.append(("allow", skill.allowed_tools))
        for kind, texts in requested:
            for text in texts:
                where = {"written_in": str(skill.file), "base": str(skill.base)}
                yield parse_rule(kind, text, **where, session=session, scope=skill.scope)
