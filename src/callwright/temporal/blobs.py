"""Prompts and answers on their way through Temporal: kept in the session store, so that only references travel."""

import secrets
from collections.abc import Sequence
from typing import Any, Protocol, cast

from callwright.agent.run_request import Prompt
from callwright.core.calls import Approve, Decline, Reply
from callwright.core.decisions import check_reply, make_reply
from callwright.core.errors import UsageError, check_members
from callwright.core.messages import UserMessage
from callwright.sessions.base import BlobStore, SessionStore
from callwright.sessions.records import Answered, Said

_LOST = "the answer could not be read"


class ClusterStore(SessionStore, BlobStore, Protocol):
    """A session store that several processes share, and that keeps blobs."""


def require_cluster_store(given: SessionStore) -> ClusterStore:
    """Return a store that runs on several machines can share.

    Raises:
        UsageError: its sessions end with the process, or it keeps no blobs.
    """
    check_members(given, BlobStore, "a store for workers", "use PostgresStore(address) or SqliteStore(path)")
    if not given.durable:
        raise UsageError(
            f"{type(given).__name__} keeps sessions in this process only; use PostgresStore(address), or "
            "SqliteStore(path) for workers on one machine"
        )
    return cast("ClusterStore", given)


async def keep_prompt(store: BlobStore, prompt: Prompt) -> str:
    """Store a prompt; return its reference."""
    reference = f"prompt-{secrets.token_hex(12)}"
    await store.keep_blob(reference, Said(UserMessage(prompt)))
    return reference


async def read_prompt(store: BlobStore, reference: str) -> Prompt | None:
    """Return a prompt; None if there is none under this reference."""
    found = await store.read_blob(reference)
    if isinstance(found, Said) and isinstance(found.message, UserMessage):
        content = found.message.content
        return content if isinstance(content, str) else tuple(content)
    return None


async def pack_answer(store: BlobStore, question_id: str, reply: Reply) -> dict[str, Any]:
    """Return the signal for an answer; arguments and reasons go into the store.

    Raises:
        UsageError: it is not an `Approve` or a `Decline`.
    """
    reply = check_reply(reply)
    signal: dict[str, Any] = {"question": question_id, "approved": isinstance(reply, Approve)}
    if reply in (make_reply(True), make_reply(False)):
        return signal
    signal["blob"] = f"answer-{secrets.token_hex(12)}"
    await store.keep_blob(signal["blob"], Answered({question_id: reply}))
    return signal


async def unpack_answer(store: BlobStore, signal: object) -> tuple[str, Reply] | None:
    """Return the question and the reply of a signal; None if it names no question.

    Anybody who reaches the server can send a signal: whatever is not an approval in every part declines.
    """
    fields = cast("dict[str, Any]", signal) if isinstance(signal, dict) else {}
    question_id, blob_id = fields.get("question"), fields.get("blob")
    if not isinstance(question_id, str):
        return None
    if blob_id is None:
        return question_id, make_reply(fields.get("approved"))
    found = await store.read_blob(blob_id) if isinstance(blob_id, str) else None
    reply = found.replies.get(question_id) if isinstance(found, Answered) else None
    if isinstance(reply, Decline):
        return question_id, reply
    if isinstance(reply, Approve) and fields.get("approved") is True:
        return question_id, reply
    return question_id, Decline(_LOST)


def find_references(signals: Sequence[object], prompt: object) -> list[str]:
    """Return the references that are not needed any more once these answers and this prompt are on record."""
    fields = [cast("dict[str, Any]", signal) for signal in signals if isinstance(signal, dict)]
    found = [prompt, *(each.get("blob") for each in fields)]
    return [reference for reference in found if isinstance(reference, str) and reference]
