"""What a bash line would do: proven to allow, over-approximated to deny."""

from toolwright.shell.analyse import analyse
from toolwright.shell.pins import SAFE_ENVIRONMENT
from toolwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst

__all__ = ["SAFE_ENVIRONMENT", "ShellPlan", "SimpleCommand", "Verdict", "analyse", "worst"]
