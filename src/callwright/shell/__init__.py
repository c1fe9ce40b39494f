"""What a bash line would do: proven to allow, over-approximated to deny."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.shell.analyze import analyse as analyse
    from callwright.shell.git_env import SAFE_ENVIRONMENT as SAFE_ENVIRONMENT
    from callwright.shell.plan import (
        ShellPlan as ShellPlan,
        SimpleCommand as SimpleCommand,
        Verdict as Verdict,
        worst as worst,
    )

__getattr__ = lazy_exports(
    __name__,
    {
        "analyze": "analyse",
        "git_env": "SAFE_ENVIRONMENT",
        "plan": "ShellPlan SimpleCommand Verdict worst",
    },
)
