"""A person's yes that lasts: for this session or for always, never wider than what was shown."""

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from callwright.core.access import Access, Allow, Decision, RunCommand, UseTool
from callwright.core.call import Approve, Question, digest_of
from callwright.core.errors import UsageError
from callwright.policy.decide import Policy, Tier
from callwright.policy.line import PartOfLine
from callwright.policy.places import Surroundings
from callwright.policy.proposal import propose
from callwright.policy.rule import Rule, parse_rule
from callwright.policy.rules import Rules
from callwright.policy.subject import Subject


class Grants(Policy):
    """Remembers what a person allowed for a session: exact accesses, and rules that were shown to them."""

    tier = Tier.RULE

    def __init__(self, here: Surroundings, file: str | Path | None = None) -> None:
        self._here = here
        self._file = file
        self._exact: dict[str, set[Access]] = {}
        self._calls: set[str] = set()
        self._rules = Rules((), here)

    def grant(self, accesses: Iterable[Access], *, session: str) -> None:
        """Allow exactly these accesses for the rest of a session."""
        self._exact.setdefault(session, set()).update(_plain(access) for access in accesses)

    def grant_rules(
        self, texts: Iterable[str], *, session: str = "", written_in: str = "an answer"
    ) -> tuple[Rule, ...]:
        """Allow what the shown rules allow, in one session or in all of them."""
        added = tuple(parse_rule("allow", text, written_in=written_in, session=session) for text in texts)
        self._rules = Rules((*self._rules.rules, *added), self._here)
        return added

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> tuple[str, ...]:
        """Make a yes last as long as it was given for; returns the rules it became, which the file keeps for always.

        What cannot be written as a narrow rule is remembered for the session only.
        """
        if answer.scope == "once":
            return ()
        rules = propose(question.accesses).rules if answer.scope == "always" else ()
        if not rules:
            named = [access for access in question.accesses if not isinstance(access, UseTool)]
            self.grant(named, session=session)
            if len(named) < len(question.accesses):  # nothing but its arguments says what such a call would do
                self._calls.add(digest_of(question.tool, question.arguments, (), session_id=session))
            return ()
        if self._file is not None:
            save_rules(self._file, rules)
        self.grant_rules(rules)
        return rules

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        whole = subject.access if isinstance(subject, PartOfLine) else access
        if _plain(whole) in self._exact.get(subject.session_id, ()):
            return _GRANTED
        if isinstance(access, UseTool) and self._calls and _marked(subject) in self._calls:
            return _GRANTED
        return self._rules.judge(access, subject)


_GRANTED = Allow("a person allowed exactly this for the session", "answer for this session")


def _marked(subject: Subject) -> str:
    return digest_of(subject.spec.name, subject.arguments, (), session_id=subject.session_id)


def _plain(access: Access) -> Access:
    """A command's claim about itself is no part of what was allowed."""
    return RunCommand(access.line, access.cwd) if isinstance(access, RunCommand) else access


def save_rules(file: str | Path, texts: Sequence[str]) -> None:
    """Add allow rules to a settings file, keeping everything else in it; all of it or nothing is written."""
    path = Path(os.path.realpath(file))
    for text in texts:
        parse_rule("allow", text)
    settings = _settings(path)
    allowed = _allowed(settings, path)
    allowed.extend(text for text in dict.fromkeys(texts) if text not in allowed)
    _replace(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def _allowed(settings: dict[str, Any], path: Path) -> list[object]:
    permissions: object = settings.setdefault("permissions", {})
    if isinstance(permissions, dict):
        allowed: object = cast("dict[str, object]", permissions).setdefault("allow", [])
        if isinstance(allowed, list):
            return cast("list[object]", allowed)
    raise UsageError(f"permissions.allow in {path} is not a list; correct it by hand first")


def _settings(path: Path) -> dict[str, Any]:
    try:
        content: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON ({error}); correct it by hand first") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} does not hold an object; correct it by hand first")
    return cast("dict[str, Any]", content)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - both names are text from here on
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 - as above
        raise
