"""The contract of a session store: one writer at a time, append-only, durable when `append` returns."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Protocol

from callwright.core._fast import frozen
from callwright.core.errors import CallwrightError, UsageError, check_members, safe_repr
from callwright.sessions.record_encoding import dump_record
from callwright.sessions.records import Record, UndoPoint

_MAX_ID_CHARS = 256


class SessionError(CallwrightError):
    """A store operation failed; records stored before are not lost."""


class SessionMissing(SessionError):
    """There is no such session."""


class StoreTooNew(SessionError):
    """A later version of callwright wrote the store."""


class SessionBusy(SessionError):
    """Another run or process is writing this session."""


@frozen
class StoredRecord:
    """A record with its place in the session and the time it was stored."""

    position: int
    at: float
    """Unix time; 0 if it is not known."""
    record: Record


class SessionDamaged(SessionError):
    """Some records of a session cannot be read; the others are in `readable`.

    Args:
        session_id: The session.
        faults: What is wrong, by the position of the record.
        readable: The records that can be read.
    """

    def __init__(self, session_id: str, faults: Mapping[int, str], readable: Sequence[StoredRecord]) -> None:
        position, fault = next(iter(faults.items()))
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        super().__init__(
            f"session {session_id!r} is damaged: record {position}{more} cannot be read ({fault}); "
            f"`callwright sessions export` writes the other {len(readable)} records"
        )
        self.session_id = session_id
        self.faults = dict(faults)
        self.readable = tuple(readable)


@frozen
class SessionEntry:
    """One entry in the list of sessions."""

    session_id: str
    title: str
    created_at: float
    updated_at: float
    records: int


@frozen
class SessionHit:
    """A record that contains the searched text."""

    session_id: str
    position: int
    excerpt: str


class SessionHold(Protocol):
    """The exclusive right to write a session, until it is released or its process ends.

    A hold whose `append` always ends at once when it is cancelled may say so with a true attribute `interruptible`;
    the agent then does not have to watch over it.
    """

    @property
    def session_id(self) -> str: ...

    @property
    def records(self) -> Sequence[Record]:
        """The records of the session when it was taken."""
        ...

    async def append(self, *records: Record) -> None:
        """Add records, all or none; they are durable when this returns.

        Raises:
            SessionError: The records could not be stored.
        """
        ...

    def note(self, record: Record) -> None:
        """Add a record without waiting: it survives a killed process, but perhaps not a power cut."""
        ...

    def keep_output(self, output_id: str, text: str) -> None:
        """Store the whole of an output that was cut for the model, without waiting; safe like a note.

        A very long text may be cut in the middle.

        Args:
            output_id: The id that `read_output` finds it by.
            text: The whole output.
        """
        ...

    async def release(self) -> None:
        """Let others write, after pending notes are written."""
        ...


class SessionStore(Protocol):
    """Stores sessions."""

    @property
    def durable(self) -> bool:
        """Whether sessions survive the process, so that starts of calls are worth recording."""
        ...

    async def hold(self, session_id: str, *, owner: str = "") -> SessionHold:
        """Take the session for writing; a new one is created by its first record.

        One holder at a time, in all processes. The session of a process that died becomes free. The fencing rule: a
        holder whose session was taken over, by its owner or after a lease ran out, cannot write any more: its `append`
        raises, its notes are dropped, and its `release` changes nothing. `check_store` runs this in
        real processes.

        Args:
            session_id: The session.
            owner: Takes the session over from an earlier holder of the same owner, which cannot write any more:
                from a worker that stands still, for example. Empty takes over from none; see `may_take_over`.

        Raises:
            SessionBusy: Another run or process is writing it.
            SessionDamaged: Records of it cannot be read.
        """
        ...

    async def read(self, session_id: str) -> Sequence[Record]:
        """Return every record, in order.

        Raises:
            SessionError: There is no such session.
            SessionDamaged: Records of it cannot be read; the exception has the others.
        """
        ...

    async def read_from(
        self, session_id: str, position: int = 0, *, limit: int | None = None
    ) -> Sequence[StoredRecord]:
        """Return the records from a position on, with their times; none if the session has no more.

        Args:
            session_id: The session.
            position: The number of records to skip.
            limit: The most records to return; None for all.

        Raises:
            SessionError: There is no such session.
            SessionDamaged: Records from there on cannot be read; the exception has the others.
        """
        ...

    async def read_output(self, session_id: str, output_id: str) -> str | None:
        """Return an output that was kept with a session; None if there is none.

        Args:
            session_id: The session.
            output_id: The id it was kept under.
        """
        ...

    async def version(self) -> str:
        """Return a value that is different after any session was changed, by this process or another.

        Cheap enough to poll. Values of two store objects cannot be compared.
        """
        ...

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        """Return the sessions, most recently used first; the records themselves are not read.

        Args:
            limit: The most sessions to return.
            waiting: Return only those that wait for an answer to a question, whether a run holds them or not.
        """
        ...

    async def find(self, session_id: str) -> SessionEntry | None:
        """Return the entry of one session, as `list` has it; None if there is no such session.

        Its records are not read, so that a damaged session is found too.

        Args:
            session_id: The session.
        """
        ...

    async def search(self, text: str, *, limit: int = 50, session: str | None = None) -> Sequence[SessionHit]:
        """Find records that contain a text, ignoring the case of ASCII letters, most recently used sessions first.

        Args:
            text: The text to find.
            limit: The most hits to return.
            session: Search in this session only.
        """
        ...

    async def fork(self, session_id: str, new_id: str) -> None:
        """Copy a session without its open turn, if there is one.

        Args:
            session_id: The session to copy.
            new_id: The id of the copy.

        Raises:
            SessionError: There is no such session, or the new id is taken.
        """
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Change the title; the id stays.

        Args:
            session_id: The session.
            title: The title that lists show from now on.

        Raises:
            SessionError: There is no such session.
        """
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session.

        Raises:
            SessionBusy: It is being written.
        """
        ...


class BlobStore(Protocol):
    """A store that also keeps records outside of sessions, such as a prompt on its way to another machine."""

    async def keep_blob(self, blob_id: str, record: Record) -> None:
        """Store a record under an id; it is durable when this returns. One that exists under the id stays.

        Args:
            blob_id: The id.
            record: The record.

        Raises:
            SessionError: The record could not be stored.
        """
        ...

    async def read_blob(self, blob_id: str) -> Record | None:
        """Return a record; None if there is none under this id, or if it cannot be read."""
        ...

    async def delete_blobs(self, blob_ids: Sequence[str]) -> None:
        """Delete records; ids that do not exist are ignored."""
        ...


def require_store(given: SessionStore) -> SessionStore:
    """Return a session store unchanged.

    Raises:
        UsageError: It is not a store, or lacks some of its methods.
    """
    if isinstance(given, (str, PathLike)):
        raise UsageError(f"sessions={str(given)!r} is a path, not a store; use sessions=SqliteStore({str(given)!r})")
    check_members(given, SessionStore, "a session store", "write MemoryStore() or SqliteStore(path)")
    return given


def check_session_id(session_id: str) -> str:
    """Return a valid session id unchanged.

    Raises:
        UsageError: The id is empty, too long or not printable.
    """
    if not is_session_id(session_id):
        raise UsageError(f"invalid session id {safe_repr(session_id)}: use 1 to {_MAX_ID_CHARS} printable characters")
    return session_id


def is_session_id(given: object) -> bool:
    """Whether a session can have this id; databases cannot even be asked for some texts."""
    return isinstance(given, str) and 0 < len(given) <= _MAX_ID_CHARS and given.isprintable()


def no_such_session(session_id: str) -> SessionMissing:
    """Return the error for a session that does not exist."""
    return SessionMissing(f"there is no session {session_id!r}")


async def export_jsonl(store: SessionStore, session_id: str) -> str:
    """Return a session as JSON lines, one stored record per line.

    Args:
        store: The store that holds the session.
        session_id: The session to export.

    Raises:
        SessionError: There is no such session.
        SessionDamaged: Records of it cannot be read; the exception has the others.
    """
    return "".join(f"{dump_record(record)}\n" for record in await store.read(session_id))


async def list_undo_points(store: SessionStore, session_id: str) -> list[StoredRecord]:
    """Return the undo points of a session, oldest first, with their positions and times.

    Args:
        store: The store that holds the session.
        session_id: The session.

    Raises:
        SessionError: There is no such session, or records of it cannot be read.
    """
    return [stored for stored in await store.read_from(session_id) if isinstance(stored.record, UndoPoint)]


async def read_readable(
    store: SessionStore, session_id: str, position: int = 0, *, report: Callable[[str], object] = lambda text: None
) -> Sequence[StoredRecord]:
    """Return the records from a position on; of a damaged session those that can be read, and `report` is told."""
    try:
        return await store.read_from(session_id, position)
    except SessionDamaged as error:
        report(str(error))
        return error.readable
