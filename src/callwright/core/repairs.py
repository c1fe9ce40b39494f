"""`Repair`: a change to a call that a model wrote almost right."""

from typing import Literal, TypeAlias

from callwright.core._fast import frozen

RepairKind: TypeAlias = Literal[
    "name",
    "json",
    "empty",
    "wrapped",
    "key",
    "nested",
    "null",
    "list",
    "command",
    "literal",
    "choice",
    "path",
    "text",
    "edited",
]


@frozen
class Repair:
    """One change to a call, made before the call was judged."""

    kind: str
    """One of `RepairKind`; a record of a later version may have others."""
    note: str
    """What was changed, in a few words for the model."""
