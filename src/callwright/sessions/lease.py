"""Locks a session for one writer; the kernel releases the lock when the process dies."""

import os
import re
import threading
from contextlib import suppress
from pathlib import Path

from callwright.core.json import hash_text
from callwright.sessions.base import SessionBusy, SessionError
from callwright.system.platforms import lock_file, on_fork

_held: dict[Path, "Lease"] = {}
_guard = threading.Lock()
_ATTEMPT = re.compile(r"(.*?)(?: attempt (\d+))?", re.DOTALL)


def name_attempt(owner: str, number: int) -> str:
    """Return the name under which one of several attempts at the same work owns sessions.

    Args:
        owner: Who works.
        number: Grows from attempt to attempt.
    """
    return f"{owner} attempt {number}"


def may_take_over(owner: str, holder: str) -> bool:
    """Whether an owner may take a session from a holder that has not released it.

    The same owner may. Of owners named by `name_attempt`, a later attempt may take it from an earlier one and never the
    other way round: an attempt that stood still must not take the session back when it goes on.

    Args:
        owner: Who wants the session; empty takes over from none.
        holder: The owner as which it is held.
    """
    wanted, held = _ATTEMPT.fullmatch(owner), _ATTEMPT.fullmatch(holder)
    if not owner or wanted is None or held is None:
        return False
    return wanted[1] == held[1] and int(wanted[2] or 0) >= int(held[2] or 0)


class Lease:
    """The exclusive right of one run in one process to write a session.

    It is a `flock`, which belongs to its descriptor: unlike a POSIX record lock it is not dropped when other code of
    this process opens and closes the file, as a search through the folder does. Children made by `fork` would inherit
    the descriptor and keep the lock alive, so they close it at once.
    """

    __slots__ = ("_descriptor", "_path", "_process", "lost", "owner", "released")

    def __init__(self, path: Path, descriptor: int, owner: str = "") -> None:
        self._path = path
        self._descriptor = descriptor
        self.owner = owner
        self.lost = False
        """Whether another run of the same owner in this process has taken it over."""
        self.released = False
        self._process = os.getpid()

    @property
    def inherited(self) -> bool:
        """Whether it was taken by the parent of this forked process, so that it gives this one no right."""
        return self._process != os.getpid()

    @classmethod
    def take(cls, folder: Path, session_id: str, owner: str = "") -> "Lease":
        """Take the lock without waiting.

        The same owner takes it over from itself within this process. From another process it cannot: the kernel keeps
        the lock until that process ends.

        Args:
            folder: Holds the lock files; its path has no links, because two names would be two locks in this process.
            session_id: The session to lock.
            owner: Who takes it; empty takes over from none.

        Raises:
            SessionBusy: Another run or process holds it.
            SessionError: The lock file cannot be used.
        """
        name = f"{hash_text(session_id)[:32]}.lock"
        with _guard:
            try:
                path = folder / name
                held = _held.get(path)
                if held is not None and not may_take_over(owner, held.owner):
                    raise SessionBusy(f"session {session_id!r} is being written by another run in this process")
                lease = cls(path, _lock(folder, path, session_id) if held is None else held.hand_over(), owner)
            except OSError as error:
                raise SessionError(f"session {session_id!r} cannot be locked in {folder}: {error}") from error
            _held[path] = lease
            return lease

    def hand_over(self) -> int:
        """Give the descriptor to a new lease; this one is lost."""
        self.lost = True
        return self._descriptor

    def release(self) -> None:
        """Release the lock and remove its file; does nothing in a forked child, or if it is lost."""
        if self.inherited or self.lost:
            return
        self.released = True
        # Unlink first: after closing, another process could lock a file that is about to disappear.
        with _guard:
            if _held.get(self._path) is not self:  # released before; another run may have it now
                return
            del _held[self._path]
            with suppress(OSError):  # a file that stays is no lock
                self._path.unlink(missing_ok=True)
            self.abandon()

    def abandon(self) -> None:
        """Close the descriptor; the lock ends with it, unless a forked child does this: the parent keeps it then."""
        with suppress(OSError):
            os.close(self._descriptor)


def _open(folder: Path, path: Path) -> int:
    """Open a lock file. Its folder is made only if it is missing, because almost always it is there."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        # `parents=True` ignores the mode, so create the parent with its own
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _lock(folder: Path, path: Path, session_id: str) -> int:
    while True:
        descriptor = _open(folder, path)
        try:
            lock_file(descriptor)
            if _is_at(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise SessionBusy(
                f"session {session_id!r} is being written by another process; wait for it or stop it"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the previous holder removed the file between open and lock


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _forget_leases() -> None:
    """In a forked child: give up the parent's leases."""
    for lease in _held.values():
        lease.abandon()
    _held.clear()
    _guard.release()


# The lock is held across a fork: a lease being taken by another thread would be inherited without being known.
on_fork(before=_guard.acquire, in_parent=_guard.release, in_child=_forget_leases)
