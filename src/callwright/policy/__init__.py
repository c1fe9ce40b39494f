"""Who may touch what: modes, rules, guards, fences."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.policy.check import Problem as Problem
    from callwright.policy.check import check_rules as check_rules
    from callwright.policy.command import judge_command as judge_command
    from callwright.policy.command import standard_policies as standard_policies
    from callwright.policy.decide import AllowEverything as AllowEverything
    from callwright.policy.decide import Policies as Policies
    from callwright.policy.decide import Policy as Policy
    from callwright.policy.decide import Tier as Tier
    from callwright.policy.fence import Fence as Fence
    from callwright.policy.grants import Grants as Grants
    from callwright.policy.grants import save_rules as save_rules
    from callwright.policy.guards import Guards as Guards
    from callwright.policy.load import LoadedRules as LoadedRules
    from callwright.policy.load import load_rules as load_rules
    from callwright.policy.mode import ByMode as ByMode
    from callwright.policy.mode import Mode as Mode
    from callwright.policy.mode import ModeSwitch as ModeSwitch
    from callwright.policy.mode import mode_named as mode_named
    from callwright.policy.places import Surroundings as Surroundings
    from callwright.policy.proposal import Proposal as Proposal
    from callwright.policy.proposal import propose as propose
    from callwright.policy.rule import Rule as Rule
    from callwright.policy.rule import parse_rule as parse_rule
    from callwright.policy.rule import rules_of as rules_of
    from callwright.policy.rules import Rules as Rules
    from callwright.policy.subject import Subject as Subject
    from callwright.shell.analysis import analyse as analyse

__all__ = [
    "AllowEverything",
    "ByMode",
    "Fence",
    "Grants",
    "Guards",
    "LoadedRules",
    "Mode",
    "ModeSwitch",
    "Policies",
    "Policy",
    "Problem",
    "Proposal",
    "Rule",
    "Rules",
    "Subject",
    "Surroundings",
    "Tier",
    "analyse",
    "check_rules",
    "judge_command",
    "load_rules",
    "mode_named",
    "parse_rule",
    "propose",
    "rules_of",
    "save_rules",
    "standard_policies",
]

_HOMES = {
    "check": "Problem check_rules",
    "command": "judge_command standard_policies",
    "decide": "AllowEverything Policies Policy Tier",
    "fence": "Fence",
    "grants": "Grants save_rules",
    "guards": "Guards",
    "load": "LoadedRules load_rules",
    "mode": "ByMode Mode ModeSwitch mode_named",
    "places": "Surroundings",
    "proposal": "Proposal propose",
    "rule": "Rule parse_rule rules_of",
    "rules": "Rules",
    "subject": "Subject",
}

_load = loader(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "analyse":  # the shell's own, offered here too because rules and lines are thought of together
        from callwright.shell import analyse

        return analyse
    return _load(name)
