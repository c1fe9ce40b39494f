"""Prompts on their way through Temporal: kept in the session store, so that only references travel."""

import secrets
from typing import Protocol, cast

from callwright.agent.run_request import Prompt
from callwright.core.errors import UsageError, check_members
from callwright.core.messages import UserMessage
from callwright.sessions.base import BlobStore, SessionStore
from callwright.sessions.records import Said


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
        return found.message.content
    return None
