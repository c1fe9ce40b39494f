"""Clients of vendors, one per event loop."""

import asyncio
from collections.abc import Callable
from threading import Thread

from callwright.providers.clients import Clients, find_origin


def _use_in_three_loops(make: Callable[[], object]) -> list[object]:
    """Return the clients that were closed."""
    closed: list[object] = []

    async def close(client: object) -> None:
        closed.append(client)
        raise RuntimeError("Event loop is closed")  # as a client does that has connections

    clients, loops = Clients(make, close), list[asyncio.AbstractEventLoop]()

    async def use() -> None:
        await clients.get()
        loops.append(asyncio.get_running_loop())  # a client's connections refer to it

    for _ in range(3):
        asyncio.run(use())
    return closed


def test_clients_of_ended_loops_are_closed() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    closed = _use_in_three_loops(make)
    assert len(made) == 3 and closed == made[:2]


def test_client_that_was_given_stays_open() -> None:
    given = object()
    assert _use_in_three_loops(lambda: given) == []


def test_origin_of_an_address_has_no_password() -> None:
    assert find_origin("http://me:secret@host:8080/v1", "api.example.com") == "host:8080"
    assert find_origin("https://api.example.com/v1", "api.example.com") == ""


class _InterruptedLoop(asyncio.SelectorEventLoop):
    """A loop that lets another thread run when it is asked whether it has ended."""

    meanwhile: Callable[[], None] | None = None

    def is_closed(self) -> bool:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().is_closed()


def test_client_of_an_ended_loop_is_closed_once() -> None:
    closed: list[object] = []

    async def close(client: object) -> None:
        closed.append(client)

    clients = Clients(object, close)
    loop = _InterruptedLoop()
    first = loop.run_until_complete(clients.get())
    loop.close()

    def use_in_another_thread() -> None:
        thread = Thread(target=lambda: asyncio.run(clients.get()))
        thread.start()
        thread.join()

    loop.meanwhile = use_in_another_thread
    asyncio.run(clients.get())
    assert closed.count(first) == 1
