"""Who may touch what: modes, rules, guards, fences."""

from toolwright.policy.decide import AllowEverything, Policies, Policy, Subject, Tier
from toolwright.policy.mode import ByMode, Mode, ModeSwitch, mode_named

__all__ = ["AllowEverything", "ByMode", "Mode", "ModeSwitch", "Policies", "Policy", "Subject", "Tier", "mode_named"]
