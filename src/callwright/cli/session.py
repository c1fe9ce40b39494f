"""Which session a command line means: a new one, the last one, one by name, or a copy of it."""

import argparse
import uuid

from callwright.app.assemble import App
from callwright.core.errors import UsageError
from callwright.sessions.base import SessionStore


async def begin(options: argparse.Namespace, app: App) -> tuple[str, str]:
    """Return the session's id and how it begins: `startup` or `resume`."""
    store = app.agent.sessions
    found = await _named(options, store)
    new = options.session_id or str(uuid.uuid4())
    if options.session_id and any(entry.session_id == new for entry in await store.list(limit=10_000)):
        raise UsageError(f"there is a session {new!r} already; --resume {new} goes on with it")
    if found is None:
        return new, "startup"
    if options.fork_session:
        copy = new
        await store.fork(found, copy)
        return copy, "resume"
    return found, "resume"


async def _named(options: argparse.Namespace, store: SessionStore) -> str | None:
    if options.resume:
        return await find_session(store, options.resume)
    if not options.last:
        return None
    newest = await store.list(limit=1)
    if not newest:
        raise UsageError("there is no session in this folder to continue; leave out --continue")
    return newest[0].session_id


async def find_session(store: SessionStore, wanted: str) -> str:
    """The session whose id is, or alone begins with, what was typed."""
    known = [entry.session_id for entry in await store.list(limit=10_000)]
    if wanted in known:
        return wanted
    fitting = [session_id for session_id in known if session_id.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    why = f"{len(fitting)} sessions begin with it" if fitting else "callwright sessions list names those there are"
    raise UsageError(f"there is no session {wanted!r}; {why}")
