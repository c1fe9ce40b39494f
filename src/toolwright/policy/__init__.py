"""Who may touch what: modes, rules, guards, fences."""

from typing import TYPE_CHECKING

from toolwright.policy.check import Problem, check_rules
from toolwright.policy.command import judge_command, standard_policies
from toolwright.policy.decide import AllowEverything, Policies, Policy, Tier
from toolwright.policy.fence import Fence
from toolwright.policy.grants import Grants, save_rules
from toolwright.policy.guards import Guards
from toolwright.policy.load import LoadedRules, load_rules
from toolwright.policy.mode import ByMode, Mode, ModeSwitch, mode_named
from toolwright.policy.places import Surroundings
from toolwright.policy.propose import Proposal, propose
from toolwright.policy.rule import Rule, parse_rule, rules_of
from toolwright.policy.rules import Rules
from toolwright.policy.subject import Subject

if TYPE_CHECKING:
    from toolwright.shell import analyse

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


def __getattr__(name: str) -> object:
    if name == "analyse":  # the parser behind it is loaded when somebody asks for it
        from toolwright.shell import analyse

        return analyse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
