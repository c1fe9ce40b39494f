"""The stored sessions of a project, which the editor lists, loads, forks and deletes."""

from collections.abc import Sequence

from acp.exceptions import RequestError

from callwright.acp.requests import refuse
from callwright.agent.subagent import INNER_SESSION
from callwright.app.delete_session import delete_session
from callwright.app.locations import Locations
from callwright.sessions import SqliteStore
from callwright.sessions.base import SessionEntry, SessionError, check_session_id

_PAGE = 50
_MOST_LISTED = 10_000


async def require_stored(session_id: str, locations: Locations) -> None:
    """Check that a session is on record.

    Raises:
        RequestError: It is not.
    """
    check_session_id(session_id)
    missing = RequestError(-32002, f"there is no session {session_id!r} in {locations.project}")
    if not locations.sessions.exists():  # opening the store would create the file
        raise missing
    async with SqliteStore(locations.sessions) as store:
        try:
            await store.read_from(session_id, limit=1)
        except SessionError:
            raise missing from None


async def list_stored(locations: Locations, cursor: str) -> tuple[Sequence[SessionEntry], str | None]:
    """Return a page of the sessions, most recent first, and the cursor of the next page.

    Raises:
        RequestError: The cursor is not one that was given out.
    """
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > len(str(_MOST_LISTED)):
        raise refuse(f"the cursor {cursor[:100]!r} is not one of this agent")
    if not locations.sessions.exists():
        return (), None
    async with SqliteStore(locations.sessions) as store:
        found = await store.list(limit=_MOST_LISTED)
    entries = [entry for entry in found if not entry.session_id.startswith(INNER_SESSION)]
    start, end = int(cursor), int(cursor) + _PAGE
    return entries[start:end], str(end) if end < len(entries) else None


async def fork_stored(session_id: str, copy: str, locations: Locations) -> None:
    """Copy a session under another id."""
    async with SqliteStore(locations.sessions) as store:
        await store.fork(session_id, copy)


async def delete_stored(session_id: str, locations: Locations) -> None:
    """Delete a session, and everything that was kept for it.

    Raises:
        SessionBusy: Another process is writing it.
    """
    async with SqliteStore(locations.sessions) as store:
        await delete_session(store, session_id, locations)
