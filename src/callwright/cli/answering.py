"""`--answers`: what a script says to the questions a paused session waits for."""

import json
from collections.abc import Sequence
from typing import Any, cast

from callwright.core.call import Answers, Question
from callwright.core.errors import UsageError
from callwright.sessions.base import SessionStore
from callwright.sessions.records import Asked, settled_length


async def open_questions(store: SessionStore, session_id: str) -> tuple[Question, ...]:
    """What a session waits for; empty if it waits for nothing."""
    records = await store.read(session_id)
    asked = [record for record in records[settled_length(records) :] if isinstance(record, Asked)]
    return asked[-1].questions if asked else ()


def read_answers(given: str, questions: Sequence[Question]) -> Answers:
    """Read `allow`, `deny`, or an object by call id: "allow", "deny", {"deny": why}, {"allow": arguments}."""
    choices = {"*": given} if given in ("allow", "deny") else _object(given)
    waiting = [question.call_id for question in questions]
    if waiting and choices.keys().isdisjoint({"*", *waiting, *(question.id for question in questions)}):
        raise UsageError(f"--answers names {', '.join(choices) or 'no call'}; what waits is {', '.join(waiting)}")
    answers = Answers()
    for question in questions:
        choice = choices.get(question.id, choices.get(question.call_id, choices.get("*")))
        match choice:
            case "allow":
                answers.approve(question)
            case {"allow": arguments} if isinstance(arguments, dict):
                answers.approve(question, arguments=cast("dict[str, Any]", arguments))
            case "deny":
                answers.decline(question)
            case {"deny": str() as reason}:
                answers.decline(question, reason)
            case None:
                pass
            case _:
                raise UsageError(f"--answers: {choice!r} is neither allow nor deny")
    return answers


def _object(given: str) -> dict[str, Any]:
    try:
        content: object = json.loads(given)
    except ValueError as error:
        raise UsageError(f"--answers {given!r} is neither allow, deny nor JSON: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"--answers: expected an object by call id, got {content!r}")
    return cast("dict[str, Any]", content)
