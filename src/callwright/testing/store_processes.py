"""The rules of a session store that only several processes can break: they are run against two real ones."""

import asyncio
import os
import signal
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from typing import Any

from callwright.core.messages import UserMessage
from callwright.sessions.base import SessionBusy, SessionError, SessionHold, SessionStore
from callwright.sessions.records import Record, Said

_REPLY_SECONDS = 120.0
_ROUNDS = 8
_STILL_SECONDS = 0.3
"""The least time that a process stands still while another one tries to take its session."""
MakeStore = Callable[[], SessionStore]


class StoreProcess:
    """Another process that opens the store and does what this one tells it.

    It is a fork, so that the function that opens the store may be a lambda. Make it before the store is opened here:
    connections and threads do not survive a fork.
    """

    def __init__(self, make: MakeStore) -> None:
        context = get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(make, self._pipe, theirs), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of the caller: none is used in the fork
            self._process.start()
        theirs.close()

    async def do(self, action: str, *given: object) -> Any:
        """Have an action of `_Actor` done; return its result, or the `SessionError` that it raised."""
        self._pipe.send((action, given))
        return await asyncio.to_thread(self._receive, action)

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self._process.pid or 0, number)

    def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._pipe.close()

    def _receive(self, action: str) -> Any:
        if not self._pipe.poll(_REPLY_SECONDS):
            raise AssertionError(f"{action} did not return within {_REPLY_SECONDS:g} s in another process")
        try:
            done, value = self._pipe.recv()
        except EOFError:
            raise AssertionError(f"the process ended during {action}") from None
        if not done:
            raise AssertionError(f"{action} failed in another process: {value}")
        return value


def can_fork() -> bool:
    """Whether this system has forks."""
    return "fork" in get_all_start_methods()


def find_obstacle(store: SessionStore, *, reopened: bool) -> str:
    """Return why the rules cannot be run in several processes; empty if they can."""
    if not store.durable:
        return f"{type(store).__name__} is not durable: its sessions are in one process only"
    if not reopened:
        return "check_store was given a store, which another process cannot open; give a function that opens it"
    if not can_fork():
        return "this system has no fork"
    return ""


async def check_processes(processes: Sequence[StoreProcess], store: SessionStore, takeover_seconds: float) -> None:
    """Check what must hold between processes.

    Args:
        processes: Three of them; the last one is killed.
        store: The store as this process opened it.
        takeover_seconds: Within this time the session of a killed process must be free.

    Raises:
        AssertionError: The store breaks a rule; the message begins with its name.
    """
    first, second, victim = processes
    await _check_exclusive(first, second)
    await _check_updates(first, second, store)
    await _check_fencing(first, second, store, owner="worker", seconds=0.0)
    freed = await _check_death(victim, second, takeover_seconds)
    # A store with leases that expire frees the session of a process that stands still as that of a dead one.
    await _check_fencing(first, second, store, owner="", seconds=max(3 * freed, _STILL_SECONDS))


async def _check_exclusive(first: StoreProcess, second: StoreProcess) -> None:
    rule = "exclusive lease"
    _expect_done(rule, await first.do("hold", "check-lease", ""))
    _expect_done(rule, await first.do("append", "a1"))
    busy = await second.do("hold", "check-lease", "")
    assert isinstance(busy, SessionBusy), (
        f"{rule}: while one process holds a session, hold() in another must raise SessionBusy, got {busy!r}"
    )
    _expect_done(rule, await first.do("release"))
    seen = await second.do("hold", "check-lease", "")
    assert seen == ["a1"], f"{rule}: after release() another process must get the session with its records, got {seen}"
    _expect_done(rule, await second.do("release"))
    _expect_done(rule, await second.do("delete", "check-lease"))


async def _check_updates(first: StoreProcess, second: StoreProcess, store: SessionStore) -> None:
    rule = "lost update"
    # one after the other first: of two that run at once, either may end before the other begins
    begun = [await each.do("take_turns", "check-turns", name, 0, 1) for each, name in ((first, "a"), (second, "b"))]
    rest = await asyncio.gather(
        first.do("take_turns", "check-turns", "a", 1, _ROUNDS), second.do("take_turns", "check-turns", "b", 1, _ROUNDS)
    )
    for reply in (*begun, *rest):
        _expect_done(rule, reply)
    both = [[*one, *more] for one, more in zip(begun, rest, strict=True)]
    confirmed = [text for each in both for text in each]
    found = _read_texts(await store.read("check-turns"))
    lost, doubled = set(confirmed) - set(found), len(found) - len(set(found))
    assert not lost and not doubled, (
        f"{rule}: two processes took turns; of {len(confirmed)} confirmed records {len(lost)} are missing and "
        f"{doubled} are stored twice"
    )
    for name, mine in zip("ab", both, strict=True):
        assert [text for text in found if text.startswith(name)] == mine, f"{rule}: records must keep their order"
    _expect_done(rule, await second.do("delete", "check-turns"))


async def _check_fencing(
    first: StoreProcess, second: StoreProcess, store: SessionStore, *, owner: str, seconds: float
) -> None:
    """Let a holder stand still while another process takes its session, and go on after that."""
    rule, session = "fencing rule", f"check-fence-{owner}"
    _expect_done(rule, await first.do("hold", session, owner))
    _expect_done(rule, await first.do("append", "a1"))
    first.signal(signal.SIGSTOP)
    try:
        seen = await second.do("wait_for", session, owner, seconds)
    finally:
        first.signal(signal.SIGCONT)
    if isinstance(seen, SessionError):  # the store lets none take over while the holder lives
        _expect_done(f"{rule}: a hold that was not taken over goes on", await first.do("append", "a2"))
        _expect_done(rule, await first.do("release"))
    else:
        assert seen == ["a1"], f"{rule}: who takes a session over must see its records, got {seen}"
        _expect_done(rule, await second.do("append", "b1"))
        refused = await first.do("append", "a2")
        assert isinstance(refused, SessionError), (
            f"{rule}: a holder whose session was taken over must not write, but its append() returned after another "
            f"process had taken the session {f'as owner {owner!r}' if owner else 'while it stood still'}"
        )
        await first.do("note", "a3")
        await first.do("release")
        busy = await _try(store.hold(session))
        assert isinstance(busy, SessionBusy), f"{rule}: a lost hold must not release the session of its successor"
        _expect_done(rule, await second.do("append", "b2"))
        _expect_done(rule, await second.do("release"))
        found = _read_texts(await store.read(session))
        assert found == ["a1", "b1", "b2"], f"{rule}: only the successor's records may follow, got {found}"
    _expect_done(rule, await second.do("delete", session))


async def _check_death(first: StoreProcess, second: StoreProcess, takeover_seconds: float) -> float:
    """Kill a holder; return after how many seconds its session was free."""
    _expect_done("death of a holder", await first.do("hold", "check-death", ""))
    _expect_done("death of a holder", await first.do("append", "a1"))
    first.kill()
    began = time.monotonic()
    seen = await second.do("wait_for", "check-death", "", takeover_seconds)
    assert not isinstance(seen, SessionError), (
        f"death of a holder: the session of a killed process must be free within {takeover_seconds:g} s, and it is "
        f"not: {seen}"
    )
    assert seen == ["a1"], f"durable append: a record whose append() returned must survive kill -9, got {seen}"
    await second.do("release")
    await second.do("delete", "check-death")
    return time.monotonic() - began


class _Actor:
    """What a `StoreProcess` can do with the store; one session at a time."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._held: SessionHold | None = None

    async def hold(self, session: str, owner: str) -> list[str]:
        """Take a session; return the texts of its records."""
        self._held = await (self._store.hold(session, owner=owner) if owner else self._store.hold(session))
        return _read_texts(self._held.records)

    async def wait_for(self, session: str, owner: str, seconds: float) -> list[str]:
        """Take a session that may be busy for some time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return await self.hold(session, owner)
            except SessionBusy:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(0.01)

    async def append(self, text: str) -> None:
        await self._get_hold().append(_make_record(text))

    async def note(self, text: str) -> None:
        self._get_hold().note(_make_record(text))

    async def release(self) -> None:
        await self._get_hold().release()

    async def delete(self, session: str) -> None:
        await self._store.delete(session)

    async def take_turns(self, session: str, name: str, start: int, end: int) -> list[str]:
        """Take the session, add a record and release it, several times; return what was confirmed."""
        confirmed: list[str] = []
        for number in range(start, end):
            await self.wait_for(session, "", _REPLY_SECONDS / 2)
            await self.append(f"{name}{number}")
            confirmed.append(f"{name}{number}")
            await self.release()
            await asyncio.sleep(0.002)  # so that the other one gets a turn
        return confirmed

    def _get_hold(self) -> SessionHold:
        assert self._held is not None, "nothing is held"
        return self._held


def _serve(make: MakeStore, outer: Connection, pipe: Connection) -> None:
    """Run in the other process until it is killed, or the first one is gone."""
    outer.close()
    asyncio.run(_carry_out(make, pipe))


async def _carry_out(make: MakeStore, pipe: Connection) -> None:
    actor: _Actor | None = None
    while True:
        try:
            action, given = await asyncio.to_thread(pipe.recv)  # the loop goes on: a store may have to renew its lease
        except EOFError:
            os._exit(0)
        try:
            actor = actor or _Actor(make())
            pipe.send((True, await getattr(actor, action)(*given)))
        except SessionError as error:
            pipe.send((True, SessionBusy(str(error)) if isinstance(error, SessionBusy) else SessionError(str(error))))
        except Exception as error:  # noqa: BLE001 - told to the process that asked
            pipe.send((False, f"{type(error).__name__}: {error}"))


def _expect_done(rule: str, reply: object) -> None:
    assert not isinstance(reply, SessionError), f"{rule}: {reply}"


async def _try(work: Awaitable[object]) -> object:
    try:
        return await work
    except SessionError as error:
        return error


def _make_record(text: str) -> Record:
    return Said(UserMessage(text))


def _read_texts(records: Iterable[Record]) -> list[str]:
    said = (record.message for record in records if isinstance(record, Said))
    return [str(message.content) for message in said if isinstance(message, UserMessage)]
