"""Accesses, what a call will touch, and the decisions of policies about them."""

from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.spec import Effect


@dataclass(frozen=True, slots=True)
class ReadPath:
    """Reads a file or lists a folder."""

    path: str


@dataclass(frozen=True, slots=True)
class WritePath:
    """Creates or changes a file or folder."""

    path: str


@dataclass(frozen=True, slots=True)
class DeletePath:
    """Removes a file or folder."""

    path: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Runs a shell line in a folder."""

    line: str
    cwd: str
    effect: Effect = Effect.DESTROY
    """The tool's own claim, used for scheduling only: policies analyse the line themselves."""
    touches: tuple["ReadPath | WritePath | DeletePath | Reach", ...] = ()
    """The accesses the tool found in the line, for scheduling and display: policies analyse the line themselves."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Sends a request to a network address."""

    url: str
    effect: Effect = Effect.READ


@dataclass(frozen=True, slots=True)
class ReadResource:
    """Reads a thing that is not a file: a database row, a ticket, a bucket."""

    uri: str


@dataclass(frozen=True, slots=True)
class WriteResource:
    """Creates or changes a thing that is not a file."""

    uri: str


@dataclass(frozen=True, slots=True)
class DeleteResource:
    """Removes a thing that is not a file, with everything below its URI."""

    uri: str


@dataclass(frozen=True, slots=True)
class UseTool:
    """The whole tool, for a call that declares nothing more precise."""

    name: str
    effect: Effect


Access: TypeAlias = (
    ReadPath | WritePath | DeletePath | RunCommand | Reach | ReadResource | WriteResource | DeleteResource | UseTool
)


@dataclass(frozen=True, slots=True)
class Allow:
    """The access may happen."""

    reason: str = ""
    source: str = ""
    """What decided: a guard, a rule with its file, an answer, the mode."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The user has to decide."""

    reason: str = ""
    source: str = ""
    firm: bool = False
    """No mode may answer in the user's place."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The access must not happen."""

    reason: str = ""
    source: str = ""


Decision: TypeAlias = Allow | Ask | Deny
