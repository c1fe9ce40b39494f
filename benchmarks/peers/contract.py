"""What an adapter offers the harness: the few calls of a package that the workloads need."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Figures = dict[str, Any]
Function = Callable[..., Any]
Call = tuple[str, str]
"""A tool's name and its arguments as the JSON text a model wrote."""


@dataclass(frozen=True, slots=True)
class Session:
    """A package ready to serve calls, with everything built that is built once."""

    call: Callable[[str, str], Awaitable[object]]
    """The narrowest documented way to run one call: parse, validate where the package does, run."""
    turn: Callable[[Sequence[Call]], Awaitable[Sequence[str]]]
    """One model message with these calls, through the package's own loop; returns what the model is told."""
    bare: Callable[[str, str], Awaitable[object]] | None = None
    """The same call with everything left out that is on by default and may be."""


class Adapter(Protocol):
    """The module of one package."""

    DISTRIBUTION: str
    PACKAGE: str
    IMPORT: str
    """The names a person needs who writes tools and runs them."""
    CALL: str
    """The name of what `Session.call` measures."""
    TURN: str
    """The name of what `Session.turn` measures."""
    TUNING: str
    """What `opened(..., tuned=True)` changes; empty where there is nothing to change."""
    ASYNC: bool
    NESTED: bool
    """Takes a model as a parameter; where not, a plain dict stands in."""

    def define(self, functions: Sequence[Function]) -> list[Any]:
        """Make tools of plain functions."""
        ...

    def payloads(self, tools: list[Any]) -> Mapping[str, Callable[[], Any]]:
        """What a later turn does again to list its tools, by name; may be awaitable."""
        ...

    def opened(self, tools: list[Any], *, tuned: bool = False) -> AbstractAsyncContextManager[Session]:
        """Build what lives as long as an agent or a connection."""
        ...


@runtime_checkable
class ApprovingAdapter(Protocol):
    """The module of a package that can stop at a call until a person approves it."""

    async def approve(self, function: Function, asked: Call, stored: Call, times: int) -> str:
        """Ask for a call, save the question with `stored` as its call, and approve it that many times.

        Returns what came of the last approval; `ASKED_AGAIN` where it was not accepted and the question came back.
        """
        ...


ASKED_AGAIN = "asked again"
