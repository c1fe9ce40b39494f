"""Who may touch what: modes, rules, guards, fences."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.policy.check import Problem as Problem
    from toolwright.policy.check import check_rules as check_rules
    from toolwright.policy.command import judge_command as judge_command
    from toolwright.policy.command import standard_policies as standard_policies
    from toolwright.policy.decide import AllowEverything as AllowEverything
    from toolwright.policy.decide import Policies as Policies
    from toolwright.policy.decide import Policy as Policy
    from toolwright.policy.decide import Tier as Tier
    from toolwright.policy.fence import Fence as Fence
    from toolwright.policy.grants import Grants as Grants
    from toolwright.policy.grants import save_rules as save_rules
    from toolwright.policy.guards import Guards as Guards
    from toolwright.policy.load import LoadedRules as LoadedRules
    from toolwright.policy.load import load_rules as load_rules
    from toolwright.policy.mode import ByMode as ByMode
    from toolwright.policy.mode import Mode as Mode
    from toolwright.policy.mode import ModeSwitch as ModeSwitch
    from toolwright.policy.mode import mode_named as mode_named
    from toolwright.policy.places import Surroundings as Surroundings
    from toolwright.policy.proposal import Proposal as Proposal
    from toolwright.policy.proposal import propose as propose
    from toolwright.policy.rule import Rule as Rule
    from toolwright.policy.rule import parse_rule as parse_rule
    from toolwright.policy.rule import rules_of as rules_of
    from toolwright.policy.rules import Rules as Rules
    from toolwright.policy.subject import Subject as Subject
    from toolwright.shell.analysis import analyse as analyse

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
        from toolwright.shell import analyse

        return analyse
    return _load(name)
