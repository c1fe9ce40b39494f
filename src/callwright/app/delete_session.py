"""Deletes a session of a project with everything that was kept for it."""

from contextlib import suppress

from callwright.agent.subagent import name_inner_sessions
from callwright.app.locations import Locations
from callwright.sessions.base import SessionDamaged, SessionStore
from callwright.sessions.sqlite import SqliteStore
from callwright.system.undo.undo_store import UndoStore

_MOST_SESSIONS = 100_000


async def delete_session(store: SessionStore, session_id: str, locations: Locations) -> None:
    """Delete a session, what was kept to undo its changes, and the records of its sub-agents.

    Args:
        store: The sessions of the project.
        session_id: The session.
        locations: Where the rest is.

    Raises:
        SessionBusy: Another process is writing it, or a sub-agent of it; the session is still there.
        SessionError: There is no such session, or records cannot be deleted.
    """
    with suppress(SessionDamaged):  # one that cannot be read can be deleted
        await (await store.hold(session_id)).release()  # a run that is under way keeps its sub-agents
    if locations.agents.exists():
        start = name_inner_sessions(session_id)
        async with SqliteStore(locations.agents) as records:
            for entry in await records.list(limit=_MOST_SESSIONS):
                if entry.session_id.startswith(start):
                    await records.delete(entry.session_id)
    await store.delete(session_id)
    UndoStore(locations.undo).forget(session_id)
