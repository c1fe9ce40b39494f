"""The tools and arguments every package is given, and what the harness watches them do."""

import asyncio
import json
import threading
import time
from typing import Any

from pydantic import BaseModel

from benchmarks.peers.contract import Function

TEXT = json.dumps(
    {
        "path": "src/package/module.py",
        "pattern": "def [a-z]+_name",
        "limit": 25,
        "recursive": True,
        "options": {"deep": True, "limit": 5},
    }
)
WRONG = '{"path": "src", "limit": "many"}'
ANSWER = "3 hits"
PAUSE = 0.05


class Options(BaseModel):
    """More choices."""

    deep: bool = False
    limit: int = 10


def searches(count: int, *, asynchronous: bool = True, nested: bool = True) -> list[Function]:
    """Give that many functions of five parameters, each with a name of its own."""
    make = _search if asynchronous and nested else _plain_search
    return [_named(make(), f"search_{number}") for number in range(count)]


def _search() -> Function:
    async def search(path: str, pattern: str, limit: int, recursive: bool, options: Options) -> str:
        """Search files.

        Args:
            path: Where to look.
            pattern: What to look for.
            limit: How many hits.
            recursive: Also below.
            options: More choices.
        """
        return "3 hits"

    return search


def _plain_search() -> Function:
    def search(path: str, pattern: str, limit: int, recursive: bool, options: dict) -> str:  # type: ignore[type-arg] # what smolagents takes
        """Search files.

        Args:
            path: Where to look.
            pattern: What to look for.
            limit: How many hits.
            recursive: Also below.
            options: More choices.
        """
        return "3 hits"

    return search


def _named(function: Function, name: str) -> Function:
    function.__name__ = function.__qualname__ = name
    return function


class Watched:
    """Tools that pause, fail and count: what they saw is what the tables of behaviour say."""

    def __init__(self) -> None:
        self.limits: list[Any] = []
        self.rested = 0
        self.peak = 0
        self._running = 0
        self._lock = threading.Lock()

    def tools(self, *, asynchronous: bool = True) -> list[Function]:
        """Give `search_0`, `nap` where async tools are possible, `snore` (a nap that blocks), `boom` and `look`."""
        watched = self

        async def nap(number: int) -> str:
            """Rest without blocking.

            Args:
                number: Which nap this is.
            """
            with watched:
                await asyncio.sleep(PAUSE)
            return f"rested {number}"

        def snore(number: int) -> str:
            """Rest on a thread.

            Args:
                number: Which nap this is.
            """
            with watched:
                time.sleep(PAUSE)
            return f"rested {number}"

        def boom(number: int) -> str:
            """Fail.

            Args:
                number: Which failure this is.
            """
            raise ValueError("kaboom")

        def look(path: str, limit: int) -> str:
            """Look for files.

            Args:
                path: Where to look.
                limit: How many hits.
            """
            watched.limits.append(limit)
            return path

        return [*searches(1, asynchronous=asynchronous), *([nap] if asynchronous else []), snore, boom, look]

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            self.peak = max(self.peak, self._running)

    def __exit__(self, kind: object, *_: object) -> None:
        with self._lock:
            self._running -= 1
            self.rested += kind is None  # a cancelled nap is no rest
