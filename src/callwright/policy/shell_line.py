"""Splits a shell line into the parts that policies judge: its commands and what each of them touches."""

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from callwright.core._fast import field, frozen, replace
from callwright.core.access import Access, DeletePath, Reach, RunCommand, WritePath
from callwright.core.json import JsonObject
from callwright.core.spec import Effect, ToolSpec
from callwright.policy.base import LinePart, Subject, make_printable
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst

if TYPE_CHECKING:  # otherwise loaded with the first path
    from callwright.policy.paths import PathContext, PossiblePaths


@frozen
class PartOfLine(LinePart):
    """The call that is being judged, seen from one command inside its shell line."""

    call: Subject
    access: RunCommand
    plan: ShellPlan
    command: SimpleCommand | None = None
    """None: the line as a whole, or a redirect that belongs to no command."""
    resolved: "dict[tuple[str, PathContext], PossiblePaths]" = field(
        default_factory=dict[tuple[str, "PathContext"], "PossiblePaths"]
    )
    """Paths of the line that are resolved already: every policy needs them, and resolving takes system calls."""
    named: dict[SimpleCommand, tuple[str, ...]] = field(default_factory=dict[SimpleCommand, tuple[str, ...]])
    """The files that words of its commands name, likewise."""
    after_git: dict[SimpleCommand, bool] = field(default_factory=dict[SimpleCommand, bool])
    """Whether a command runs after git may have brought other files, likewise."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's spec."""
        return self.call.spec

    @property
    def arguments(self) -> JsonObject:
        """The arguments of the whole call."""
        return self.call.arguments

    @property
    def session_id(self) -> str:
        """The session the call belongs to."""
        return self.call.session_id

    @property
    def verdict(self) -> Verdict:
        """How much this part can change; unknown wherever the line as a whole is not understood."""
        if not self.plan.proven:
            return Verdict.UNKNOWN
        if self.command is None:
            return self.plan.verdict
        if self.command.verdict is Verdict.WRITES and self.command.redirected and _writes_somewhere(self.command):
            return plan_without_redirects(self.command).verdict  # the target of the redirect is a part of its own
        return self.command.verdict

    @property
    def reason(self) -> str:
        """The reason of the verdict, with the command it is about."""
        if self.command is None or not self.plan.proven:
            return self.plan.problem or self.plan.reason
        return f"{make_printable(self.command.text)}: {self.command.reason}"

    @property
    def only_reads(self) -> bool:
        """Whether this part needs no wall: its line is understood, and it only reads."""
        verdict = self.plan.verdict if self.command is None else self.command.verdict
        return self.plan.proven and verdict in (Verdict.READ_ONLY, Verdict.READS_NETWORK)

    @property
    def reads_network(self) -> bool:
        """Whether this part reads over the network, and does nothing worse."""
        return self.verdict is Verdict.READS_NETWORK

    @property
    def destroys(self) -> bool:
        """Whether any command of the line is destructive."""
        return any(command.verdict is Verdict.DESTRUCTIVE for command in self.plan.commands)

    def effect_on(self, access: Access) -> Effect | None:
        """Return how much this part can change by an access; None if that is what the access says itself."""
        verdict = self.verdict
        match access:
            case RunCommand():
                # a command that writes to unknown places cannot be confined to the workspace
                return Effect.DESTROY if verdict is Verdict.WRITES and not _stays_here(self) else _EFFECTS[verdict]
            case DeletePath() if verdict is Verdict.WRITES and _moves(self):
                return Effect.WRITE  # a moved file still exists in its new place
            case _:
                return None


_EFFECTS = {
    Verdict.READ_ONLY: Effect.READ,
    Verdict.READS_NETWORK: Effect.READ,
    Verdict.WRITES: Effect.WRITE,
    Verdict.DESTRUCTIVE: Effect.DESTROY,
    Verdict.UNKNOWN: Effect.DESTROY,
}


def _stays_here(part: PartOfLine) -> bool:
    """Whether a command's writes are all listed, and it reaches no network."""
    touched = part.plan.accesses if part.command is None else part.command.accesses
    writes = any(isinstance(access, (WritePath, DeletePath)) for access in touched)
    return writes and not any(isinstance(access, Reach) for access in touched)


def _moves(part: PartOfLine) -> bool:
    """Whether a command that removes a file also writes one, other than by a redirect: `rm a > log` moves nothing."""
    command = part.command
    if command is None or not _writes_somewhere(command):
        return False
    if not command.redirected:
        return True
    return any(isinstance(access, WritePath) for access in plan_without_redirects(command).accesses)


def _writes_somewhere(command: SimpleCommand) -> bool:
    return any(isinstance(access, WritePath) for access in command.accesses)


def command_of(subject: Subject) -> SimpleCommand | None:
    """Return the command of a shell line that is being judged; None for any other call, and for a line as a whole."""
    return subject.command if isinstance(subject, PartOfLine) else None


def real_folder(command: SimpleCommand, here: "PathContext") -> str:
    """Return the real folder a command runs in: programs look upward from there, not from a link to it."""
    return os.path.realpath(command.cwd or here.cwd)


def is_unclear(subject: Subject) -> bool:
    """Whether it is a line as a whole that could not be read, so that what it names is not known."""
    return isinstance(subject, PartOfLine) and subject.command is None and bool(subject.plan.problem)


def plan_without_redirects(command: SimpleCommand) -> ShellPlan:
    """Analyze a literal command without its redirects."""
    return _plan(command.words, command.cwd or "/nowhere")


@lru_cache(maxsize=1024)
def _plan(words: tuple[str, ...], cwd: str) -> ShellPlan:
    import shlex

    from callwright.shell import analyze  # the parser is loaded when a line is judged, not before

    return analyze(shlex.join(words), cwd)


def paths_for_call(path: str, subject: Subject, here: "PathContext") -> "PossiblePaths":
    """Resolve a path of the call that is being judged; paths of a shell line are resolved once."""
    from callwright.policy.paths import declared_paths, possible_paths

    if not isinstance(subject, PartOfLine):
        return declared_paths(path, here, subject)
    found = subject.resolved.get((path, here))
    if found is None:
        found = subject.resolved[path, here] = possible_paths(path, here, shell=True)
    return found


def iterate_parts(access: RunCommand, subject: Subject, plan: ShellPlan) -> Iterator[tuple[Access, PartOfLine]]:
    """Yield every part of a line that needs its own decision; the line runs only if all parts may."""
    owned = set[Access]()
    whole = PartOfLine(subject, access, plan)
    for command in dict.fromkeys(plan.commands):
        part = replace(whole, command=command)
        yield access, part
        for touched in command.accesses:
            owned.add(touched)
            yield touched, part
    if _needs_whole(plan, loose=len(owned) < len(plan.accesses)):
        yield access, whole
    for touched in plan.accesses:
        if touched not in owned:
            yield touched, whole


def _needs_whole(plan: ShellPlan, *, loose: bool) -> bool:
    """Whether the line as a whole needs a decision too, for example because it was not fully parsed."""
    if not plan.proven or plan.dangers or not plan.commands:
        return True
    if plan.verdict is Verdict.WRITES and loose:  # a redirect, judged by where it leads
        return False
    return plan.verdict.rank > worst(*(command.verdict for command in plan.commands)).rank
