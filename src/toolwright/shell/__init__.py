"""What a bash line would do: proven to allow, over-approximated to deny."""

from toolwright.shell.analyse import analyse
from toolwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst

__all__ = ["ShellPlan", "SimpleCommand", "Verdict", "analyse", "worst"]
