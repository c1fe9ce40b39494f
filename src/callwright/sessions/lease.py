"""Says who may write a session: a lock the kernel takes back when its process dies, however it dies."""

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
    """One process's, and in it one run's, sole right to write a session.

    A POSIX record lock: a forked child does not inherit it, so a worker that outlives us does not keep it. It knows
    processes only; inside one, the set of held paths decides, and no lock file is ever opened twice.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: Path, session_id: str) -> "Lease":
        """Take the lock or raise `SessionBusy`; never waits."""
        path = folder / f"{sha256(session_id.encode(errors='surrogatepass')).hexdigest()[:32]}.lock"
        with _guard:
            if path in _held:
                raise SessionBusy(f"session {session_id!r} is being written by another run in this process")
            try:
                lease = cls(path, _lock(path, session_id))
            except OSError as error:
                raise SessionError(f"session {session_id!r} cannot be locked in {folder}: {error}") from error
            _held.add(path)
            return lease

    def release(self) -> None:
        """Give the lock back; the file goes first, so that nobody takes the lock on a file that is gone."""
        with _guard, suppress(OSError):
            _held.discard(self._path)
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)


def _lock(path: Path, session_id: str) -> int:
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # made on the way, it would not be private
    path.parent.mkdir(mode=0o700, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SessionBusy(
                f"session {session_id!r} is being written by another process; wait for it, or end it"
            ) from None
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its holder removed the file between our opening and our locking it


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
