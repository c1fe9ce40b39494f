"""The standard set of policies, and a function that judges one shell line with it."""

from collections.abc import Iterable
from os import PathLike, fspath

from callwright.core.access import Decision, RunCommand
from callwright.policy.base import Policy
from callwright.policy.decide import Policies
from callwright.policy.dry_run import dry_run_line
from callwright.policy.fence import Fence
from callwright.policy.guards import Guards
from callwright.policy.modes import AutoAllow, ByMode, ModeSwitch, NetworkReads
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
    filtered: bool = False,
) -> Policies:
    """Return guards, rules, fence and mode for one workspace: the policies of the terminal agent.

    Args:
        workspace: The folders that may be written to.
        mode: The mode, or the switch that holds the current one.
        rules: Deny, ask and allow rules, from `rules_of` or `load_rules(…).rules`.
        cwd: The folder that relative paths start from; the workspace's first folder by default.
        by_mode: A mode policy to use instead of one made from `mode`.
        more: Further policies.
        filtered: The tools leave out what rules hide, as in `Rules`.
    """
    space = Workspace.of(workspace)
    here = PathContext.within(space, cwd)
    by_mode = by_mode or ByMode(mode)
    by_mode.fenced = True
    walled = by_mode.auto_allow == "walled"
    judged = Rules(rules, here, filtered=filtered)
    return Policies(Guards(here, masked=walled), judged, Fence(space, here, walled=walled), by_mode, *more)


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
    auto_allow: AutoAllow = "proven",
) -> Decision:
    """Decide whether a shell line may run, needs approval or must not run. Runs nothing; no line makes it raise.

    Args:
        line: The shell line.
        cwd: The folder it would run in.
        workspace: The folders that may be written to.
        mode: The permission mode.
        allow: Rules that allow, such as `Bash(npm run *)`.
        ask: Rules that ask.
        deny: Rules that deny.
        reads: Whether paths outside the workspace may be read.
        network_reads: Whether reading over the network asks.
        auto_allow: "walled" also allows what a complete read-only wall makes harmless, as the command does.

    Raises:
        UsageError: A rule, `auto_allow` or the mode is not valid.
    """
    space = workspace if isinstance(workspace, Workspace) else Workspace(workspace, reads=reads, outside="ask")
    rules = rules_of(allow=allow, ask=ask, deny=deny)
    by_mode = ByMode(mode, network_reads=network_reads, auto_allow=auto_allow)
    policies = standard_policies(space, by_mode=by_mode, rules=rules, cwd=cwd)
    return policies.decide(RunCommand(line, fspath(cwd)), dry_run_line(line))
