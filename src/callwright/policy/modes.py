"""Permission modes: what happens to accesses that no rule decides about.

        READ    WRITE   DESTROY   asks become
plan    allow   deny    deny
default allow   ask     ask
auto    allow   allow   ask
dontAsk allow   ask     ask       denials
bypass  allow   allow   allow     allows, unless firm
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard, get_args

from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Confinement,
    Decision,
    DeletePath,
    DeleteResource,
    Deny,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.errors import UsageError
from callwright.core.spec import UNCONFINED, Effect
from callwright.policy.base import LinePart, Policy, Subject, Tier, make_printable

if TYPE_CHECKING:  # otherwise loaded with the first shell line: most programs that use a mode have none
    from callwright.policy.shell_line import PartOfLine

Mode: TypeAlias = Literal["plan", "default", "auto", "dontAsk", "bypass"]
NetworkReads: TypeAlias = Literal["ask", "allow"]
AutoAllow: TypeAlias = Literal["proven", "walled"]
_ALIASES: dict[str, Mode] = {"acceptEdits": "auto", "bypassPermissions": "bypass", "manual": "default"}


def mode_named(name: str) -> Mode:
    """Return the mode of a name, which may be another product's name for it.

    Raises:
        UsageError: There is no such mode.
    """
    for mode in get_args(Mode):
        if name == mode:
            return mode
    if name in _ALIASES:
        return _ALIASES[name]
    raise UsageError(f"there is no mode {name!r}; use one of {', '.join((*get_args(Mode), *_ALIASES))}")


def effect_of(access: Access) -> Effect:
    """Return how much an access can change, by its kind; the effect a command claims does not count."""
    if isinstance(access, UseTool):
        return access.effect
    if isinstance(access, Reach):  # data that was sent out cannot be taken back
        return Effect.DESTROY if access.effect > Effect.READ else Effect.READ
    return _EFFECT_OF_KIND.get(type(access), Effect.DESTROY)  # an unknown kind counts as the worst


_EFFECT_OF_KIND = {
    ReadPath: Effect.READ,
    WritePath: Effect.WRITE,
    DeletePath: Effect.DESTROY,
    RunCommand: Effect.DESTROY,
    ReadResource: Effect.READ,
    WriteResource: Effect.WRITE,
    DeleteResource: Effect.DESTROY,
}


class ModeSwitch:
    """The current mode, which the user or the plan tools may change between calls.

    Args:
        mode: The mode to start in.
        barred: Modes that cannot be switched to.
    """

    __slots__ = ("_before", "barred", "mode")

    def __init__(self, mode: str = "default", *, barred: Collection[Mode] = ()) -> None:
        self.barred = frozenset(barred)
        self._before: Mode = "default"
        self.mode: Mode = mode_named(mode)

    def __setattr__(self, name: str, value: object) -> None:
        # on every assignment, because the terminal sets `mode` directly
        if name == "mode":
            value = mode_named(str(value))  # what is no mode must not become one that allows reading
            if value in self.barred:
                raise UsageError(f"the mode {value} is switched off by the settings")
            self._before = "default"  # what the user chooses ends an earlier mode, such as bypass, for good
        super().__setattr__(name, value)

    def enter_plan(self) -> None:
        """Switch to plan mode; entering it twice has no further effect."""
        if self.mode != "plan":
            before, self.mode = self.mode, "plan"
            self._before = before

    def exit_plan(self) -> Mode:
        """Return to the mode before plan mode, and return its name."""
        if self.mode == "plan":
            self.mode = self._before
        return self.mode


class ByMode(Policy):
    """Decides by the current mode and the effect of an access.

    It knows no workspace: alone, the mode `auto` runs a write to any path. `standard_policies` adds a fence and guards.

    Args:
        mode: A mode, or the switch that holds the current one.
        network_reads: Whether reading over the network asks.
        sandboxed: Whether commands run in a sandbox that confines them to the workspace, without network.
        auto_allow: Which shell lines run unasked: those that are proven to read, or also those that a complete
            read-only wall makes harmless. Use "walled" only with a bash tool whose sandbox is complete and which does
            not give the network to every command.

    Raises:
        UsageError: The mode or `auto_allow` is not valid.
    """

    tier = Tier.MODE

    def __init__(
        self,
        mode: str | ModeSwitch = "default",
        *,
        network_reads: NetworkReads = "ask",
        sandboxed: bool = False,
        auto_allow: AutoAllow = "proven",
    ) -> None:
        if auto_allow not in get_args(AutoAllow):
            raise UsageError(f'auto_allow: expected "proven" or "walled", got {auto_allow!r}')
        self.switch = mode if isinstance(mode, ModeSwitch) else ModeSwitch(mode)
        self.network_reads = network_reads
        self.sandboxed = sandboxed
        self.auto_allow: AutoAllow = auto_allow
        self.fenced = False
        """A `Fence` beside this policy guards the workspace; otherwise the folder a shell line runs in counts as it."""

    @property
    def cache_key(self) -> str | None:
        return self.switch.mode

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        mode = self.switch.mode
        effect = _effect(access, subject)
        if self._runs_walled(access, subject) and not (mode == "auto" and self.sandboxed):
            return _allow_walled(mode)
        if mode == "plan" and effect > Effect.READ:
            return Deny("plan mode runs only what reads; leave plan mode to do this", source="mode plan")
        # after plan mode, so that approving such a tool cannot change anything there
        if subject.spec.annotations.needs_approval:
            return Ask("this tool needs approval every time", source=f"tool {subject.spec.name}", firm=True)
        if effect is Effect.READ and self.network_reads == "ask" and _reads_network(access, subject):
            return Ask(f"reads over the network: {_network_target(access, subject)}", source=f"mode {mode}")
        if effect is Effect.READ:
            return _allow_reading(mode, network=_reads_network(access, subject))
        if effect is Effect.WRITE and mode == "auto":
            return self._beyond(access, subject) or _WRITES
        if mode == "auto" and self.sandboxed and _is_confined(access, subject):
            return Allow("it runs inside the sandbox", "mode auto", Confinement.WORKSPACE)
        return Ask(_reason(access, subject, effect), source=f"mode {mode}")

    def _runs_walled(self, access: Access, subject: Subject) -> bool:
        if (
            self.auto_allow != "walled"
            or self.switch.mode == "bypass"  # which never confines more than it must
            or not _is_part_of_line(subject)
            or subject.spec.metadata.get(UNCONFINED)
            or subject.spec.annotations.needs_approval
        ):
            return False
        from callwright.policy.walled import is_walled  # with the tables of programs: for shell lines only

        return (
            isinstance(access, (RunCommand, ReadPath, WritePath)) and not subject.only_reads and is_walled(subject.plan)
        )

    def _beyond(self, access: Access, subject: Subject) -> Decision | None:
        if self.fenced or not _is_part_of_line(subject):
            return None  # other tools check their workspace themselves
        from callwright.policy.fence import Fence  # as above
        from callwright.system.paths import Workspace

        return Fence(Workspace(subject.access.cwd, reads="anywhere", outside="ask")).judge(access, subject)

    def settle(self, ask: Ask) -> Decision:
        match self.switch.mode:
            case "dontAsk":
                return Deny(f"{ask.reason}, and this mode never asks", source="mode dontAsk")
            case "bypass" if not ask.firm:
                return _BYPASSED
            case _:
                return ask


class ExcludedCommands(Policy):
    """Asks about commands that run outside the sandbox, in every mode; a rule or an approval lets them run there.

    Args:
        beginnings: The beginnings of the commands, such as `docker` or `git push`: the setting
            `sandbox.excludedCommands`, and `excluded` of the bash tool.
    """

    tier = Tier.MODE

    def __init__(self, beginnings: Iterable[str]) -> None:
        self.beginnings = tuple(beginnings)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        if not isinstance(access, RunCommand) or not _is_part_of_line(subject) or subject.command is None:
            return None
        from callwright.shell.plan import starts_with

        found = starts_with(subject.command, self.beginnings)
        if not found:
            return None
        # firm, so that no other reason of the modes hides this one from the user
        reason = f"{make_printable(subject.command.text)}: would run outside the sandbox"
        return Ask(reason, f"excluded {found}", firm=True)


def _is_part_of_line(subject: Subject) -> TypeGuard[PartOfLine]:
    return isinstance(subject, LinePart)


def _effect(access: Access, subject: Subject) -> Effect:
    seen = subject.effect_on(access) if _is_part_of_line(subject) else None
    return effect_of(access) if seen is None else seen


def _is_confined(access: Access, subject: Subject) -> bool:
    """Whether a sandbox makes a command safe. Not a destructive one: the workspace is inside the sandbox with it."""
    if not isinstance(access, RunCommand) or not _is_part_of_line(subject) or subject.spec.metadata.get(UNCONFINED):
        return False
    from callwright.policy.walled import uncovers_secrets  # as above

    return not subject.destroys and not uncovers_secrets(subject.plan)


def _reads_network(access: Access, subject: Subject) -> bool:
    if isinstance(access, RunCommand):
        return _is_part_of_line(subject) and subject.reads_network
    return isinstance(access, Reach)


def _network_target(access: Access, subject: Subject) -> str:
    if isinstance(access, Reach):
        return make_printable(access.url)
    return make_printable(subject.command.text) if _is_part_of_line(subject) and subject.command else ""


def _reason(access: Access, subject: Subject, effect: Effect) -> str:
    match access:
        case RunCommand() if _is_part_of_line(subject) and subject.reason:
            return subject.reason
        case WritePath(target) | WriteResource(target):
            return f"would write to {make_printable(target)}"
        case DeletePath(target):
            return f"would remove {make_printable(target)}"
        case DeleteResource(target):
            return f"would delete {make_printable(target)}"
        case _:
            return _REASONS[effect]


_WRITES = Allow("", "mode auto", Confinement.WORKSPACE)
_BYPASSED = Allow("", "mode bypass", Confinement.APPROVED)
_REASONS = {Effect.WRITE: "it changes something", Effect.DESTROY: "it may destroy something"}


@cache
def _allow_reading(mode: Mode, *, network: bool) -> Allow:
    return Allow("", f"mode {mode}", Confinement.NETWORK if network else Confinement.READ_ONLY)


@cache
def _allow_walled(mode: Mode) -> Allow:
    return Allow("it can change nothing in the read-only sandbox", f"mode {mode}", Confinement.READ_ONLY, walled=True)
