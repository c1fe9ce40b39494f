"""What a bash line would do: proven to allow, over-approximated to deny."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.shell.analysis import analyse as analyse
    from callwright.shell.pins import SAFE_ENVIRONMENT as SAFE_ENVIRONMENT
    from callwright.shell.plan import ShellPlan as ShellPlan
    from callwright.shell.plan import SimpleCommand as SimpleCommand
    from callwright.shell.plan import Verdict as Verdict
    from callwright.shell.plan import worst as worst

__all__ = ["SAFE_ENVIRONMENT", "ShellPlan", "SimpleCommand", "Verdict", "analyse", "worst"]

_HOMES = {"analysis": "analyse", "pins": "SAFE_ENVIRONMENT", "plan": "ShellPlan SimpleCommand Verdict worst"}

__getattr__ = loader(__name__, _HOMES)
