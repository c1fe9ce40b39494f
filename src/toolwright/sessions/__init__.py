"""The durable record of conversations: what was said, what was begun, what was asked."""

from toolwright.sessions.base import (
    SessionBusy,
    SessionEntry,
    SessionError,
    SessionHit,
    SessionHold,
    SessionStore,
    export_jsonl,
)
from toolwright.sessions.memory import MemoryStore
from toolwright.sessions.sqlite import SqliteStore

__all__ = [
    "MemoryStore",
    "SessionBusy",
    "SessionEntry",
    "SessionError",
    "SessionHit",
    "SessionHold",
    "SessionStore",
    "SqliteStore",
    "export_jsonl",
]
