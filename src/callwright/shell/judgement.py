"""The answer to "what would this call do?", shared by everything that judges calls."""

from typing import NamedTuple

from callwright.core.access import Access
from callwright.shell.plan import Verdict
from callwright.shell.wrappers import Layer


class Judgement(NamedTuple):
    """One call's verdict, why, and what it touches."""

    verdict: Verdict
    reason: str
    accesses: tuple[Access, ...] = ()
    layers: tuple[Layer, ...] = ()
    """Programs the call runs in turn (find -exec), to be judged like any other."""


def unknown(reason: str, accesses: tuple[Access, ...] = (), layers: tuple[Layer, ...] = ()) -> Judgement:
    """Judge a call nobody can vouch for."""
    return Judgement(Verdict.UNKNOWN, reason, accesses, layers)
