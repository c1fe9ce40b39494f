"""A shell line's decision in one call, and the policies that make it: the executor uses the very same ones."""

from collections.abc import Iterable
from os import PathLike, fspath

from callwright.core.access import Decision, RunCommand
from callwright.policy.base import Policy
from callwright.policy.decide import Policies
from callwright.policy.dry_run import dry_run_line
from callwright.policy.guards import Fence, Guards
from callwright.policy.modes import ByMode, ModeSwitch, NetworkReads
from callwright.policy.paths import PathContext
from callwright.policy.rules.matching import Rules
from callwright.policy.rules.rule import Rule, rules_of
from callwright.system.paths import Reads, Workspace


def standard_policies(
    workspace: Workspace | str | PathLike[str],
    *,
    mode: str | ModeSwitch = "default",
    rules: Iterable[Rule] = (),
    cwd: str | PathLike[str] | None = None,
    by_mode: ByMode | None = None,
    more: Iterable[Policy] = (),
) -> Policies:
    """Guards, rules, fence and mode over one workspace: what the terminal agent runs with."""
    space = Workspace.of(workspace)
    here = PathContext.within(space, cwd)
    by_mode = by_mode or ByMode(mode)
    by_mode.fenced = True
    return Policies(Guards(here), Rules(rules, here), Fence(space, here), by_mode, *more)


def judge_command(
    line: str,
    *,
    cwd: str | PathLike[str],
    workspace: Workspace | str | PathLike[str],
    mode: str = "default",
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    reads: Reads = "anywhere",
    network_reads: NetworkReads = "ask",
) -> Decision:
    """Say whether a shell line may run, must be asked about or must not run. Runs nothing; no line makes it raise."""
    space = workspace if isinstance(workspace, Workspace) else Workspace(workspace, reads=reads, outside="ask")
    rules = rules_of(allow=allow, ask=ask, deny=deny)
    policies = standard_policies(space, by_mode=ByMode(mode, network_reads=network_reads), rules=rules, cwd=cwd)
    return policies.decide(RunCommand(line, fspath(cwd)), dry_run_line(line))
