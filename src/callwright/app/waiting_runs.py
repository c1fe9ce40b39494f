"""Runs of workers that wait for the user: found and answered in their store, without a worker or a server.

The commands, the terminal and the page use the same functions. The store is the one that the agents of the workers use;
`CALLWRIGHT_STORE` names it.
"""

import getpass
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from callwright.app.questions import question_fields, read_reply
from callwright.core.calls import Answers, Question, Reply
from callwright.core.errors import UsageError, describe_exception
from callwright.core.escaping import visible_line
from callwright.registry import Registry
from callwright.sessions.base import SessionStore
from callwright.sessions.waiting import QuestionClosed, WaitingRun, list_waiting, read_questions, record_answers

STORE_VARIABLE = "CALLWRIGHT_STORE"


def find_run_store() -> str:
    """Return the address of the store of the workers, from the environment; empty if none is named."""
    return os.environ.get(STORE_VARIABLE, "")


@asynccontextmanager
async def open_run_store(address: str, *, create: bool = False) -> AsyncGenerator[SessionStore]:
    """Open the store of the workers.

    Args:
        address: `postgresql://user@host/name`, or an SQLite file.
        create: Whether a file that does not exist is created.

    Raises:
        UsageError: No store is named, its kind is not known, or there is no such file.
        SessionError: The database cannot be used.
    """
    if not address:
        raise UsageError(
            f"name the store of the agents: --store postgresql://user@host/name or --store FILE, or ${STORE_VARIABLE}"
        )
    if address.startswith(("postgresql://", "postgres://")):
        from callwright.sessions import PostgresStore

        async with PostgresStore(address) as database:
            yield database
        return
    if "://" in address:  # it may hold a password, and is no name of a file
        kind = visible_line(address.partition("://")[0])
        raise UsageError(f"the store {kind}://…: expected postgresql://user@host/name, or an SQLite file")
    try:
        if not create and not Path(address).exists():  # noqa: ASYNC240 - one look
            raise UsageError(f"the store {visible_line(address)}: there is no such file")
    except OSError as error:  # a name that is too long, or in a folder that must not be entered
        raise UsageError(f"the store {visible_line(address)}: {describe_exception(error)}") from None
    from callwright.sessions import SqliteStore

    async with SqliteStore(address) as file:
        yield file


async def list_waiting_runs(store: SessionStore, *, limit: int = 100) -> list[dict[str, Any]]:
    """Return the runs that wait, with everything a place needs to show their questions, as JSON. Texts are not escaped.

    Args:
        store: The store of the workers.
        limit: The most runs to return.

    Raises:
        SessionError: The store cannot be read.
    """
    return [_run_fields(run) for run in await list_waiting(store, limit=limit)]


def _run_fields(run: WaitingRun) -> dict[str, Any]:
    """Return a waiting run as JSON; its tools, and the files that they would change, are on another machine."""
    questions = [
        question_fields(question, run.session_id, Registry(), run.updated_at, preview=False)
        for question in run.questions
    ]
    return {"session": run.session_id, "title": run.title, "updated_at": run.updated_at, "questions": questions}


async def answer_run(
    store: SessionStore, session_id: str, question_id: str, given: Mapping[str, Any], *, place: str
) -> Question:
    """Answer a question that a place has shown: the answer is written into the session, and a worker takes it.

    Args:
        store: The store of the workers.
        session_id: The session of the run.
        question_id: The id of the question; it is bound to exactly what was shown.
        given: `approved`, and perhaps `scope`, `arguments` and `reason`. Only the value True approves.
        place: Where the user answered, for the record.

    Raises:
        QuestionClosed: It has an answer already, has expired, or is not a question of this session.
        SessionError: The answer cannot be stored.
        UsageError: A part of the reply does not fit the question, which stays open.
    """
    asked = await read_questions(store, session_id)
    question = next((each for each in asked if each.id == question_id or each.matches(question_id)), None)
    if question is None:
        raise QuestionClosed("the question waits no longer: it was answered, has expired, or was asked in another way")
    reply = read_reply(question, given, Registry(), place)
    (answered,) = await record_answers(store, session_id, Answers({question_id: sign_reply(reply, place)}))
    return answered


def sign_reply(reply: Reply, place: str) -> Reply:
    """Return a reply with who gave it and where."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        user = ""
    return replace(reply, by=f"{user} in {place}" if user else place)
