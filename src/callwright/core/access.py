"""Accesses, what a call will touch, and the decisions of policies about them."""

import os
from collections.abc import Iterable
from enum import Flag
from typing import Any, TypeAlias, cast

from callwright.core._fast import frozen
from callwright.core.errors import UsageError, safe_repr
from callwright.core.spec import Effect


def _take_text(access: object, name: str) -> None:
    """Take a path object for its text, and refuse what is no text: policies would fail, or let it pass unjudged.

    Raises:
        UsageError: It is neither.
    """
    given: Any = getattr(access, name)
    text = cast(object, os.fspath(given) if hasattr(given, "__fspath__") else given)
    if not isinstance(text, str):
        raise UsageError(f"{type(access).__name__}.{name} must be text, got {safe_repr(given)}")
    object.__setattr__(access, name, str.__str__(text))


def _take_path(access: "ReadPath | WritePath | DeletePath") -> None:
    if type(access.path) is not str:
        _take_text(access, "path")


def _take_uri(access: "ReadResource | WriteResource | DeleteResource") -> None:
    if type(access.uri) is not str:
        _take_text(access, "uri")


@frozen
class ReadPath:
    """Reads a file or lists a folder."""

    path: str

    __post_init__ = _take_path


@frozen
class WritePath:
    """Creates or changes a file or folder."""

    path: str

    __post_init__ = _take_path


@frozen
class DeletePath:
    """Removes a file or folder."""

    path: str

    __post_init__ = _take_path


@frozen
class RunCommand:
    """Runs a shell line in a folder."""

    line: str
    cwd: str
    effect: Effect = Effect.DESTROY
    """The tool's own claim, used for scheduling only: policies analyse the line themselves."""
    touches: tuple["ReadPath | WritePath | DeletePath | Reach", ...] = ()
    """The accesses the tool found in the line, for scheduling and display: policies analyse the line themselves."""

    def __post_init__(self) -> None:
        if type(self.line) is not str or type(self.cwd) is not str:
            _take_text(self, "line")
            _take_text(self, "cwd")


@frozen
class Reach:
    """Sends a request to a network address."""

    url: str
    effect: Effect = Effect.READ

    def __post_init__(self) -> None:
        if type(self.url) is not str:
            _take_text(self, "url")


@frozen
class ReadResource:
    """Reads a thing that is not a file: a database row, a ticket, a bucket."""

    uri: str

    __post_init__ = _take_uri


@frozen
class WriteResource:
    """Creates or changes a thing that is not a file."""

    uri: str

    __post_init__ = _take_uri


@frozen
class DeleteResource:
    """Removes a thing that is not a file, with everything below its URI."""

    uri: str

    __post_init__ = _take_uri


@frozen
class UseTool:
    """The whole tool, for a call that declares nothing more precise."""

    name: str
    effect: Effect


Access: TypeAlias = (
    ReadPath | WritePath | DeletePath | RunCommand | Reach | ReadResource | WriteResource | DeleteResource | UseTool
)


class Confinement(Flag):
    """What a command may use while it runs; combine with `|`. The sandbox enforces it."""

    READ_ONLY = 0
    """Read the disk without secrets, and write only to a private `/tmp`."""
    NETWORK = 1
    WORKSPACE = 2
    """Write in the workspace, but for protected paths."""
    NAMED = 4
    """Use the paths that its line names, also secrets, protected paths and paths outside the workspace."""
    UNCONFINED = 8
    """No wall at all."""
    RULE = NETWORK | WORKSPACE
    """What a rule allows, or a policy without another opinion."""
    APPROVED = NETWORK | WORKSPACE | NAMED
    """What a user allows who has seen the line."""

    def describe(self) -> str:
        """Describe the wall of a command in a few words."""
        if Confinement.UNCONFINED in self:
            return "no wall"
        files = (
            "workspace writable but for protected paths" if Confinement.WORKSPACE in self else "everything read-only"
        )
        opened = "; paths that the line names opened" if Confinement.NAMED in self else ""
        network = "network" if Confinement.NETWORK in self else "no network"
        return f"{files}{opened}; {network}; secrets masked"


@frozen
class Allow:
    """The access may happen."""

    reason: str = ""
    source: str = ""
    """What decided: a guard, a rule with its file, an answer, the mode."""
    confinement: Confinement = Confinement.RULE
    """What a command that was allowed by this may use."""
    walled: bool = False
    """Whether only a read-only wall makes a command harmless: beside a part of its line that needs more, it asks."""


@frozen
class Ask:
    """The user has to decide."""

    reason: str = ""
    source: str = ""
    firm: bool = False
    """No mode may answer in the user's place."""


@frozen
class Deny:
    """The access must not happen."""

    reason: str = ""
    source: str = ""


Decision: TypeAlias = Allow | Ask | Deny


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of the folders or lies in one; compared as text, so resolve links first."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def target_of(access: Access) -> str:
    """Return what an access is about: a command line, path, address or URI, or the name of a whole tool."""
    match access:
        case ReadPath(target) | WritePath(target) | DeletePath(target) | RunCommand(target) | Reach(target):
            return target
        case ReadResource(target) | WriteResource(target) | DeleteResource(target) | UseTool(target):
            return target


def access_pairs(accesses: Iterable[Access]) -> list[tuple[str, str]]:
    """Return a verb and a target for every access; those of a command follow it."""
    touched: list[Access] = []
    for access in accesses:
        touched += [access, *access.touches] if isinstance(access, RunCommand) else [access]
    return [pair for pair in map(describe_access, touched) if pair is not None]


def describe_access(access: Access) -> tuple[str, str] | None:
    """Return a verb and the target of one access; None if the tool's name says it."""
    match access:
        case RunCommand(cwd=cwd):
            return "in", cwd
        case ReadPath(target) | ReadResource(target):
            return "reads", target
        case WritePath(target) | WriteResource(target):
            return "writes", target
        case DeletePath(target) | DeleteResource(target):
            return "deletes", target
        case Reach(url):
            return "reaches", url
        case UseTool():
            return None
