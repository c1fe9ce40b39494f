"""Replies that are not an approval: hand-made ones, and random values of every plain type."""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest.mock import ANY

from callwright import Allow, Answers, Approve, Decline, Deny, Failed, UsageError


class LaterApprove(Approve):  # type: ignore[misc] - final for type checkers, and a subclass must not pass at run time
    """A subclass, which could override anything."""


@dataclass(frozen=True)
class ApproveLookalike:
    """Has the fields of an approval."""

    arguments: None = None
    scope: str = "once"


class EqualToAll:
    """Compares equal to anything, and claims to be an approval."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(Approve())

    def __bool__(self) -> bool:
        return True

    @property
    def __class__(self) -> type:  # type: ignore[override] - isinstance believes it
        return Approve

    scope = "once"
    arguments = None
    reason = ""


class Unprintable:
    """Cannot be shown in a message."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class TextSubclass(str):
    """Is a text, of a type of its own."""


def with_scope(scope: object) -> Approve:
    """Return an approval whose scope was changed behind its back."""
    approve = Approve()
    object.__setattr__(approve, "scope", scope)
    return approve


def with_arguments(arguments: object) -> Approve:
    approve = Approve()
    object.__setattr__(approve, "arguments", arguments)
    return approve


async def approve_later() -> Approve:
    return Approve()


def approve_soon() -> Approve:
    return Approve()


def hand_made() -> list[Callable[[], object]]:
    """Return makers, because a coroutine can be made and closed only once."""
    values: list[object] = [
        *(True, False, None, 0, 1, 1.0, "", "y", "yes", "approve", "Approve()", b"yes", "always", ...),
        *({}, {"approve": "once"}, {"type": "approve"}, [], [Approve()], (Approve(),), {Approve()}),
        *(Approve, Decline, Allow, Allow(), Deny("no"), Answers, Answers(), type, object()),
        *(LaterApprove(), ApproveLookalike(), EqualToAll(), ANY, Unprintable(), TextSubclass("yes")),
        *(with_scope("forever"), with_scope(EqualToAll()), with_scope(None), with_scope(TextSubclass("once"))),
        *(with_arguments(5), with_arguments("all"), with_arguments([("a", 1)]), with_arguments(False)),
        *(UsageError("x"), approve_soon, iter([Approve()]), Exception(Approve()), Failed, asyncio.CancelledError),
    ]
    return [*((lambda value=value: value) for value in values), approve_later]


_HAND_MADE = hand_made()
REPLIES = 2_500
"""For each way in; generated here, because drawing as many from hypothesis takes a minute."""


def make_replies(seed: int, count: int = REPLIES) -> Iterator[object]:
    """Yield replies that are not an approval: hand-made ones, and random values of every plain type."""
    source = random.Random(seed)
    for _ in range(count):
        yield source.choice(_HAND_MADE)() if source.random() < 0.5 else make_value(source, 0)


def make_value(source: random.Random, depth: int) -> object:
    match source.randrange(9 if depth < 3 else 6):
        case 0:
            return source.choice([True, False, None])
        case 1:
            return source.randrange(-(2**70), 2**70)
        case 2:
            return source.uniform(-1e300, 1e300)
        case 3 | 4:
            return "".join(source.choices("yesno aApprv.123\n\u200b\u0000", k=source.randrange(12)))
        case 5:
            return source.randbytes(source.randrange(8))
        case 6:
            return [Approve(), *(make_value(source, depth + 1) for _ in range(source.randrange(3)))]
        case 7:
            return tuple(make_value(source, depth + 1) for _ in range(source.randrange(3)))
        case _:
            return {str(make_value(source, 3)): make_value(source, depth + 1) for _ in range(source.randrange(1, 3))}
