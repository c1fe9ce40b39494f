"""Permission policies: modes, rules, remembered approvals, guards and the workspace fence."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.core.access import (
        Access as Access,
        Confinement as Confinement,
        Decision as Decision,
        Reach as Reach,
        RunCommand as RunCommand,
        UseTool as UseTool,
    )
    from callwright.policy.base import Policy as Policy, Subject as Subject, Tier as Tier
    from callwright.policy.decide import AllowEverything as AllowEverything, Policies as Policies
    from callwright.policy.fence import Fence as Fence
    from callwright.policy.grants import Grants as Grants, Proposal as Proposal, propose as propose
    from callwright.policy.guards import Guards as Guards
    from callwright.policy.modes import (
        ByMode as ByMode,
        ExcludedCommands as ExcludedCommands,
        Mode as Mode,
        ModeSwitch as ModeSwitch,
        mode_named as mode_named,
    )
    from callwright.policy.paths import PathContext as PathContext
    from callwright.policy.rules.loading import (
        LoadedRules as LoadedRules,
        RuleProblem as RuleProblem,
        check_rules as check_rules,
        load_rules as load_rules,
    )
    from callwright.policy.rules.matching import Rules as Rules
    from callwright.policy.rules.rule import Rule as Rule, parse_rule as parse_rule, rules_of as rules_of
    from callwright.policy.rules.saving import remove_rule as remove_rule, save_rules as save_rules
    from callwright.policy.standard import judge_command as judge_command, standard_policies as standard_policies
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "base": "Access Decision Policy Subject Tier",
            "decide": "AllowEverything Confinement Policies Reach RunCommand",
            "fence": "Fence",
            "grants": "Grants Proposal propose",
            "guards": "Guards",
            "modes": "ByMode ExcludedCommands Mode ModeSwitch UseTool mode_named",
            "paths": "PathContext",
            "rules.loading": "LoadedRules RuleProblem check_rules load_rules",
            "rules.matching": "Rules",
            "rules.rule": "Rule parse_rule rules_of",
            "rules.saving": "remove_rule save_rules",
            "standard": "judge_command standard_policies",
        },
    )
