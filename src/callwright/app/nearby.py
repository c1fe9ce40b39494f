"""Skills that belong to certain files: offered when the conversation comes to one of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from callwright.core.call import Completed, Outcome
from callwright.core.content import Output, Text
from callwright.hooks import Hook
from callwright.hooks.base import PendingCall
from callwright.skills import Skill, Skills, listing

_PATHS = ("path", "source", "destination")
_MOST_SESSIONS = 256


class NearbySkills(Hook):
    """Adds to the outcome of a call on files which skills there are for them, once per session and skill."""

    def __init__(self, skills: Skills, found: Callable[[], None]) -> None:
        """`found` is called when folders on the way turned out to hold skills nobody knew."""
        self._skills = skills
        self._found = found
        self._offered: dict[str, set[str]] = {}

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        """Say what fits; failures and calls that touch no file stay as they are."""
        if pending.spec.group != "file" or not isinstance(outcome, Completed):
            return None
        try:
            return self._noted(pending, outcome)
        except (OSError, RuntimeError):  # a folder that cannot be looked into must not cost the call its outcome
            return None

    def _noted(self, pending: PendingCall, outcome: Completed) -> Outcome | None:
        touched = [Path(self._skills.cwd, path) for path in _touched(pending)]
        fresh = [skill for path in touched for skill in self._skills.visit(path)]
        if fresh:
            self._found()
        offered = self._unoffered(pending.session_id, touched, fresh)
        said = listing(offered, touched=touched)
        return replace(outcome, output=_with_note(outcome.output, said)) if said else None

    def _unoffered(self, session_id: str, touched: list[Path], fresh: list[Skill]) -> list[Skill]:
        if session_id not in self._offered and len(self._offered) >= _MOST_SESSIONS:
            del self._offered[next(iter(self._offered))]
        known = self._offered.setdefault(session_id, set())
        fitting = {skill.name: skill for skill in self._skills if any(map(skill.fits, touched))}
        fitting |= {skill.name: skill for skill in fresh if not skill.paths}
        new = [skill for name, skill in fitting.items() if name not in known]
        known.update(skill.name for skill in new)
        return new


def _touched(pending: PendingCall) -> Iterator[str]:
    for name in _PATHS:
        value = pending.arguments.get(name)
        if isinstance(value, str) and value and "\0" not in value:
            yield value


def _with_note(output: Output, said: str) -> Output:
    note = f"[skills for what is here, to be loaded with the tool skill when they fit:\n{said}]"
    if isinstance(output.content, str):
        return replace(output, content=f"{output.content}\n\n{note}")
    return replace(output, content=(*output.content, Text(note)))
