"""Splits a shell line into the parts that policies judge: its commands and what each of them touches."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from callwright.core._fast import field, frozen, replace
from callwright.core.access import Access, RunCommand, WritePath
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec
from callwright.policy.base import Subject
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst

if TYPE_CHECKING:  # otherwise loaded with the first path: this module is, with every policy
    from callwright.policy.paths import PathContext, PossiblePaths


@frozen
class PartOfLine:
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


def _writes_somewhere(command: SimpleCommand) -> bool:
    return any(isinstance(access, WritePath) for access in command.accesses)


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
    from callwright.policy.paths import possible_paths

    if not isinstance(subject, PartOfLine):
        return possible_paths(path, here, shell=False)
    found = subject.resolved.get((path, here))
    if found is None:
        found = subject.resolved[path, here] = possible_paths(path, here, shell=True)
    return found


def make_printable(text: str, *, chars: int = 120) -> str:
    """Escape control characters and cut long text in its middle, so that a question cannot hide anything."""
    from callwright.core.escaping import visible_line  # loaded with the first question

    shown = visible_line(text)
    return shown if len(shown) <= chars else f"{shown[: chars // 2]} … {shown[-chars // 2 :]}"


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
