"""The policy that speaks for what a person wrote down beforehand: deny, ask and allow rules."""

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

from callwright.core.access import Access, Allow, Ask, Decision, Deny
from callwright.policy.decide import Policy, Subject, Tier
from callwright.policy.match import Match, hides, match
from callwright.policy.names import canonical, names_tool
from callwright.policy.places import Surroundings
from callwright.policy.rule import Rule


class Rules(Policy):
    """Speaks for a set of rules. Deny beats ask beats allow; their order and where they stand never matter."""

    tier = Tier.RULE

    def __init__(self, rules: Iterable[Rule], here: Surroundings | None = None) -> None:
        self.here = here or Surroundings.of(Path.cwd())
        self.rules = tuple(sorted(dict.fromkeys(rules), key=lambda rule: (rule.text, rule.written_in, rule.base)))
        self._by_kind = {
            kind: tuple(rule for rule in self.rules if rule.kind == kind) for kind in ("deny", "ask", "allow")
        }

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        found, sure = self._strictest(self._by_kind["deny"], access, subject)
        if found and sure:
            return Deny(f"the rule {found.text} forbids it", found.source)
        doubtful = found
        found, _ = self._strictest(self._by_kind["ask"], access, subject)
        if doubtful:
            return Ask(f"the rule {doubtful.text} may forbid it; nobody can tell what runs", doubtful.source, firm=True)
        if found:
            return Ask(f"the rule {found.text} wants to be asked", found.source)
        found, sure = self._strictest(self._by_kind["allow"], access, subject)
        return Allow(f"the rule {found.text} allows it", found.source) if found and sure else None

    def hides(self, path: str | PathLike[str]) -> bool:
        """Whether a deny rule keeps a file from being read: listings and searches leave it out."""
        return any(hides(rule, fspath(path), self.here) for rule in self._by_kind["deny"])

    def forbids_tool(self, name: str, group: str = "") -> bool:
        """Whether a deny rule without parentheses names the tool, which then need not be shown to the model at all."""
        return any(
            rule.specifier is None and names_tool(rule.tool, (canonical(name),), group)
            for rule in self._by_kind["deny"]
        )

    def _strictest(self, rules: tuple[Rule, ...], access: Access, subject: Subject) -> tuple[Rule | None, bool]:
        doubtful: Rule | None = None
        for rule in rules:
            if rule.session and rule.session != subject.session_id:
                continue
            result = match(rule, access, subject, self.here)
            if result is Match.YES:
                return rule, True
            if result is Match.MAYBE and doubtful is None:
                doubtful = rule
        return doubtful, False
