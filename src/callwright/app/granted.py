"""Where a person's lasting yes goes, and what a hook's yes is worth."""

from callwright.app.places import Places
from callwright.app.trust import Trust
from callwright.core.access import Access, Allow, Decision
from callwright.core.call import Approve, Question, digest_of
from callwright.hooks.shell import ShellHooks
from callwright.policy.decide import Policy, Tier
from callwright.policy.grants import Grants
from callwright.policy.places import Surroundings
from callwright.policy.subject import Subject


class ProjectGrants(Grants):
    """Keeps "always" in the project's local settings, which stay trusted when we are the ones who added to them."""

    def __init__(self, here: Surroundings, places: Places) -> None:
        self._trust = Trust(places)
        # a saved rule would not count in a folder that is not trusted, and too far where a link leads out of it
        own = places.local_settings.resolve().is_relative_to(places.project)
        super().__init__(here, places.local_settings if own and self._trust.given else None)

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> tuple[str, ...]:
        trusted = self._trust.given
        rules = super().remember(question, answer, session=session)
        if rules and trusted:
            self._trust.give()
        return rules


class HookAllows(Policy):
    """Speaks for hooks that allowed a call: a rule's voice, so that every deny and ask rule is still stronger."""

    tier = Tier.RULE

    def __init__(self, hooks: ShellHooks) -> None:
        self._hooks = hooks

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        allowed = self._hooks.allowed | self._hooks.granted
        if not allowed:
            return None
        mark = digest_of(subject.spec.name, subject.arguments, (), session_id=subject.session_id)
        return Allow("a hook allowed it", "hook") if mark in allowed else None
