"""Sessions that wait for the user: listed from a store and answered in it, whether or not a process runs them."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from callwright.core.calls import Answers, Approve, Question, Reply
from callwright.core.decisions import check_answers
from callwright.core.errors import UsageError
from callwright.sessions.base import (
    SessionBusy,
    SessionDamaged,
    SessionEntry,
    SessionError,
    SessionHold,
    SessionMissing,
    SessionStore,
)
from callwright.sessions.records import (
    Answered,
    Asked,
    Compacted,
    Record,
    Rewound,
    Said,
    find_open_questions,
    follow_rewinds,
    list_asked_ids,
)

_log = logging.getLogger("callwright")
_LAST_RECORDS = 50
_BUSY_SECONDS = 10.0
_LOOK_SECONDS = 0.05


class QuestionClosed(SessionError):
    """A question takes no answer: it has one already, it has expired, or this session does not ask it."""


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A session that waits for answers."""

    session_id: str
    title: str
    questions: tuple[Question, ...]
    updated_at: float = 0.0
    """When it was last written; Unix time."""


async def list_waiting(store: SessionStore, *, limit: int = 100) -> Sequence[WaitingRun]:
    """Return the sessions of a store that wait for answers, without those whose questions have all expired.

    Args:
        store: The store.
        limit: The most sessions to return.

    Raises:
        SessionError: The store cannot be read.
    """
    found: list[WaitingRun] = []
    seen: set[str] = set()
    wanted = limit
    while True:  # sessions whose questions have expired must not hide others behind them
        listed = await store.list(limit=wanted, waiting=True)
        fresh = [entry for entry in listed if entry.session_id not in seen]
        found += [run for entry in fresh if (run := await _find_waiting(store, entry)) is not None]
        if len(found) >= limit or len(listed) < wanted:
            return found[:limit]
        seen.update(entry.session_id for entry in fresh)
        wanted *= 2


async def _find_waiting(store: SessionStore, entry: SessionEntry) -> WaitingRun | None:
    try:
        questions = _drop_expired(await _read_asked(store, entry))
    except SessionDamaged as error:  # it must not hide the others
        _log.warning("%s", error)
        return None
    return WaitingRun(entry.session_id, entry.title, questions, entry.updated_at) if questions else None


async def _read_asked(store: SessionStore, entry: SessionEntry) -> tuple[Question, ...]:
    """Return the open questions of a session from its last records: a long transcript is not read for them."""
    start = max(entry.records - _LAST_RECORDS, 0)
    try:
        last = [item.record for item in await store.read_from(entry.session_id, start)]
        # questions belong to the turn that the last message began; a rewind may lead anywhere
        begun = start == 0 or any(isinstance(record, (Said, Compacted)) for record in last)
        whole = not begun or any(isinstance(record, Rewound) for record in last)
        return find_open_questions(await store.read(entry.session_id) if whole else last)
    except SessionMissing:
        return ()  # deleted meanwhile


async def read_questions(store: SessionStore, session_id: str) -> tuple[Question, ...]:
    """Return the questions of a session that wait for an answer and have not expired; none if it does not exist.

    Args:
        store: The store.
        session_id: The session.

    Raises:
        SessionError: The session cannot be read.
    """
    try:
        records = await store.read(session_id)
    except SessionMissing:
        return ()
    return _drop_expired(find_open_questions(records))


def _drop_expired(questions: Sequence[Question]) -> tuple[Question, ...]:
    now = time.time()
    return tuple(question for question in questions if not question.is_expired(now))


async def record_answers(
    store: SessionStore, session_id: str, answers: Answers, *, busy_seconds: float = _BUSY_SECONDS
) -> tuple[Question, ...]:
    """Write answers into a session, for the process that runs it or the next one that resumes it.

    The first answer to a question counts. An answer is for exactly the call that was shown: a question that was asked
    again about the same call takes it, one about a changed call does not. Either all answers are written or none.

    Args:
        store: The store.
        session_id: The session.
        answers: The replies by the ids of its questions.
        busy_seconds: How long to wait while another process writes the session.

    Returns:
        The questions that are answered now.

    Raises:
        QuestionClosed: A question has an answer already, has expired, or is not one of this session.
        SessionBusy: Another process is writing the session: answer the question there.
        SessionError: There is no such session, or it cannot be written.
        UsageError: An answer is not an `Approve` or a `Decline`.
    """
    given = check_answers(answers)
    if not len(given):
        raise UsageError("expected at least one answer; answers.approve(question) adds one")
    await store.read(session_id)  # holding a session that does not exist would not fail
    hold = await _hold(store, session_id, busy_seconds)
    try:
        found = [(_find_open(hold.records, question_id), reply) for question_id, reply in given]
        await hold.append(Answered({question.id: reply for question, reply in reversed(found)}))
        return tuple(question for question, _ in found)
    finally:
        await asyncio.shield(asyncio.ensure_future(hold.release()))


def find_answered(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the ids of questions whose answers are the last of the record: no run has taken them up yet.

    Args:
        records: The records of the session.
    """
    found: list[str] = []
    for index in reversed(follow_rewinds(records)):
        match records[index]:
            case Answered(replies):
                found += replies
            case Asked():
                continue
            case _:
                break
    return tuple(found)


async def _hold(store: SessionStore, session_id: str, seconds: float) -> SessionHold:
    """Take a session; a run that has just paused needs a moment to release it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await store.hold(session_id)
        except SessionBusy:
            if time.monotonic() >= deadline:
                raise SessionBusy(
                    f"session {session_id!r} is being written by another process; answer its question there"
                ) from None
            await asyncio.sleep(_LOOK_SECONDS)


def _find_open(records: Sequence[Record], question_id: str) -> Question:
    """Return the open question that an answer is for."""
    for record in records:  # first: a later turn may ask the same about a call of the same id
        if isinstance(record, Answered) and question_id in record.replies:
            raise QuestionClosed(f"the question is answered already: {_describe(record.replies[question_id])}")
    shown = question_id in list_asked_ids(records)
    for question in find_open_questions(records) if shown else ():
        if question.id == question_id or question.matches(question_id):
            if question.is_expired():
                raise QuestionClosed(f"the question has expired: {question.summary}")
            return question
    raise QuestionClosed("this session does not wait for that question; list the waiting questions again")


def _describe(reply: Reply) -> str:
    verdict = "approved" if isinstance(reply, Approve) else "declined"
    return f"{verdict} by {reply.by}" if reply.by else verdict
