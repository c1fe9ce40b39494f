"""Sessions written down for hooks, which read files and not our store."""

from hashlib import sha256

from toolwright.sessions import SessionError, SessionStore, export_jsonl
from toolwright.system.transcript import private_folder


class WrittenSessions:
    """Writes a session as JSON lines when a hook is about to be told of it; the files go when the process does."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def __call__(self, session_id: str) -> str:
        """Write what is on record and name the file; empty where there is no record, or none is kept."""
        if not session_id or not self._store.durable:
            return ""
        try:
            text = await export_jsonl(self._store, session_id)
        except SessionError:  # nothing was said yet
            text = ""
        # a session's id may hold anything that can be printed, slashes included
        file = private_folder() / f"session-{sha256(session_id.encode()).hexdigest()[:16]}.jsonl"
        file.write_text(text, encoding="utf-8")
        return str(file)
