"""How certain it is that a rule is about an access."""

from enum import IntEnum


class Match(IntEnum):
    """How certain it is that a rule is about an access; only deny and ask rules act on `MAYBE`."""

    NO = 0
    MAYBE = 1
    YES = 2


def match_if(claim: bool) -> Match:
    """Return a certain match, or none."""
    return Match.YES if claim else Match.NO
