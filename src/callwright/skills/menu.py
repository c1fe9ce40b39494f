"""The list of skills a prompt carries: enough to choose by, within a budget."""

from collections.abc import Iterable
from pathlib import Path

from callwright.core.tokens import estimate_tokens
from callwright.skills.skill import Skill

_LONGEST_ENTRY = 1536
_SHORTEST_ENTRY = 40


def listing(skills: Iterable[Skill], *, budget_tokens: int = 2_000, touched: Iterable[Path] = ()) -> str:
    """Name the skills a model may load, one line each; too many for the budget are described more and more briefly.

    Skills that are for certain `paths` are left out until a file that fits was `touched`.
    """
    files = list(touched)
    fitting = (skill for skill in skills if not skill.paths or any(map(skill.fits, files)))
    offered = sorted((skill for skill in fitting if skill.model_invocable), key=lambda skill: skill.name)
    if not offered:
        return ""
    chars = _LONGEST_ENTRY
    while chars >= _SHORTEST_ENTRY:
        text = _lines(offered, chars)
        if estimate_tokens(text) <= budget_tokens:
            return text
        chars = chars * 3 // 4
    return _names(offered, budget_tokens)


def _lines(skills: list[Skill], chars: int) -> str:
    return "\n".join(f"- {skill.name}: {_about(skill, chars)}" for skill in skills)


def _about(skill: Skill, chars: int) -> str:
    """On one line: a description must not be able to add entries."""
    said = " ".join(f"{skill.description} {skill.when_to_use}".split())
    return said if len(said) <= chars else f"{said[: chars - 1].rstrip()}…"


def _names(skills: list[Skill], budget_tokens: int) -> str:
    names = [skill.name for skill in skills]
    kept = len(names)
    while kept and estimate_tokens(_cut(names, kept)) > budget_tokens:
        kept -= 1
    return _cut(names, kept)


def _cut(names: list[str], kept: int) -> str:
    left = len(names) - kept
    return ", ".join(names[:kept]) + (f" and {left} more" if left else "")
