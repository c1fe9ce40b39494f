"""A draft rule, replayed over the calls of past sessions: which questions it would have answered, and what else."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from callwright.app.app import App
from callwright.app.permission_test import DECISION_NAMES, find_strictest
from callwright.core.access import Access, Allow, Ask, Decision, RunCommand
from callwright.core.calls import Approve, Question, Reply, ToolCall
from callwright.core.errors import CallwrightError
from callwright.core.json import FrozenDict
from callwright.core.messages import AssistantMessage
from callwright.policy import Policies
from callwright.policy.dry_run import DryRunCall, accesses_to_judge
from callwright.policy.rules.loading import check_rules
from callwright.policy.rules.rule import RuleKind, parse_rule
from callwright.providers.encoding import read_arguments
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.records import Answered, Asked, Record, Said

_MOST_SESSIONS = 200
_MOST_CALLS = 5_000
_MOST_CHANGED = 200
Fields = dict[str, Any]


@dataclass(slots=True)
class _Past:
    """One call of a past session, with the question about it if the user was asked."""

    session_id: str
    position: int
    call: ToolCall
    question: Question | None = None
    reply: Reply | None = None


async def replay_rule(store: SessionStore | None, before: App, after: App, kind: RuleKind, text: str) -> Fields:
    """Judge the calls of past sessions with and without a rule.

    Args:
        store: The sessions; None if there are none.
        before: The app without the rule.
        after: The app with the rule.
        kind: Whether the rule allows, asks or denies.
        text: The rule.

    Raises:
        UsageError: It is not a rule.
    """
    rule = parse_rule(kind, text, written_in="the draft")
    problems = [f"{problem.kind}: {problem.text}" for problem in check_rules([rule])]
    sessions, past = 0, list[_Past]()
    for entry in () if store is None else await store.list(limit=_MOST_SESSIONS):
        try:
            records = await store.read(entry.session_id) if store is not None else ()
        except SessionError:  # a damaged session cannot be replayed
            continue
        sessions += 1
        past += list(_find_calls(entry.session_id, records))
        if len(past) > _MOST_CALLS:
            break
    figures = await asyncio.to_thread(_compare, past[:_MOST_CALLS], before, after)
    return {"sessions": sessions, "calls": min(len(past), _MOST_CALLS), **figures, "problems": problems}


def _find_calls(session_id: str, records: Sequence[Record]) -> Iterator[_Past]:
    opened: dict[str, _Past] = {}
    questions: dict[str, str] = {}
    for position, record in enumerate(records):
        match record:
            case Said(AssistantMessage() as message):
                yield from opened.values()
                opened = {call.id: _Past(session_id, position, call) for call in message.calls}
            case Asked(asked):
                for question in asked:
                    if question.kind == "approval" and not question.running and question.call_id in opened:
                        opened[question.call_id].question = question
                        questions[question.id] = question.call_id
            case Answered(replies):
                for question_id, reply in replies.items():
                    past = opened.get(questions.get(question_id, ""))
                    if past is not None:
                        past.reply = reply
            case _:
                pass
    yield from opened.values()


def _compare(past: Sequence[_Past], before: App, after: App) -> Fields:
    asked = [each for each in past if each.question is not None]
    figures = {"questions": len(asked), "answered": 0, "approved": 0, "declined": 0}
    changed: list[Fields] = []
    for each in past:
        found = _judge_both(each, before, after)
        if found is None:
            continue
        old, new, line = found
        if each.question is not None and isinstance(old, Ask) and not isinstance(new, Ask):
            figures["answered"] += 1
            figures["approved"] += isinstance(each.reply, Approve)
            figures["declined"] += each.reply is not None and not isinstance(each.reply, Approve)
            differs = isinstance(new, Allow) is not isinstance(each.reply, Approve)
        else:
            differs = type(old) is not type(new)
        if differs and len(changed) < _MOST_CHANGED:
            names = {"before": DECISION_NAMES[type(old)], "after": DECISION_NAMES[type(new)]}
            where = {"session": each.session_id, "position": each.position, "call": each.call.id}
            changed.append({**where, "tool": each.call.name, "line": line, **names})
    return {**figures, "changed": changed}


def _judge_both(past: _Past, before: App, after: App) -> tuple[Decision, Decision, str] | None:
    """Return the decisions without and with the rule; None if the call cannot be bound any more."""
    tool = before.registry.snapshot().get(past.call.name)
    if past.question is not None:
        accesses: Sequence[Access] = past.question.accesses
        arguments: Any = past.question.arguments
    else:
        arguments = read_arguments(past.call)
        if tool is None or not isinstance(arguments, dict):
            return None
        try:
            accesses = accesses_to_judge(tool.spec, tool.bind(cast("Fields", arguments)).accesses())
        except (CallwrightError, ValueError, LookupError, OSError):
            return None
    if tool is None:
        return None
    given = cast("Fields", arguments)
    subject = DryRunCall(tool.spec, FrozenDict(given))
    commands = [each.line for each in accesses if isinstance(each, RunCommand)]
    line = commands[0] if commands else str(given.get("path", ""))
    return (
        _decide(before.executor.policies, accesses, subject),
        _decide(after.executor.policies, accesses, subject),
        line,
    )


def _decide(policies: Policies, accesses: Sequence[Access], subject: DryRunCall) -> Decision:
    return find_strictest([(access, policies.decide(access, subject)) for access in accesses])[1]
