"""The durable record of conversations: what was said, what was begun, what was asked."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.sessions.base import SessionBusy as SessionBusy
    from callwright.sessions.base import SessionEntry as SessionEntry
    from callwright.sessions.base import SessionError as SessionError
    from callwright.sessions.base import SessionHit as SessionHit
    from callwright.sessions.base import SessionHold as SessionHold
    from callwright.sessions.base import SessionStore as SessionStore
    from callwright.sessions.base import export_jsonl as export_jsonl
    from callwright.sessions.memory import MemoryStore as MemoryStore
    from callwright.sessions.sqlite import SqliteStore as SqliteStore

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

_HOMES = {
    "base": "SessionBusy SessionEntry SessionError SessionHit SessionHold SessionStore export_jsonl",
    "memory": "MemoryStore",
    "sqlite": "SqliteStore",
}

__getattr__ = loader(__name__, _HOMES)
