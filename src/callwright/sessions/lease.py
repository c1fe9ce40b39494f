"""Locks a session for one writer; the kernel releases the lock when the process dies."""

import fcntl
import os
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from callwright.sessions.base import SessionBusy, SessionError

_held: set[Path] = set()
_guard = threading.Lock()


class Lease:
    """The exclusive right of one run in one process to write a session.

    It is a POSIX record lock. A forked child does not inherit it, so a worker that outlives this process cannot keep
    it. Such locks do not exclude each other inside a process; there the set of held paths decides.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path, session_id: str) -> "Lease":
        """Take the lock without waiting.

        Raises:
            SessionBusy: another run or process holds it.
            SessionError: the lock file cannot be used.
        """
        path = folder / f"{sha256(session_id.encode(errors='surrogatepass')).hexdigest()[:32]}.lock"
        with _guard:
            if path in _held:
                raise SessionBusy(f"session {session_id!r} is being written by another run in this process")
            # Never open a lock file twice: closing any descriptor of it drops the lock of the whole process.
            try:
                lease = cls(path, _lock(path, session_id))
            except OSError as error:
                raise SessionError(f"session {session_id!r} cannot be locked in {folder}: {error}") from error
            _held.add(path)
            return lease

    def release(self) -> None:
        """Release the lock and remove its file."""
        # Unlink first: after closing, another process could lock a file that is about to disappear.
        with _guard, suppress(OSError):
            _held.discard(self._path)
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)


def _lock(path: Path, session_id: str) -> int:
    path.parent.parent.mkdir(
        mode=0o700, parents=True, exist_ok=True
    )  # `parents=True` ignores the mode, so create the parent with its own
    path.parent.mkdir(mode=0o700, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SessionBusy(
                f"session {session_id!r} is being written by another process; wait for it or stop it"
            ) from None
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # the previous holder removed the file between open and lock


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
