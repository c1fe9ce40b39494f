"""Static analysis of bash lines: what is proven safe may be allowed, whatever might happen can be denied."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.shell.analyzer import analyze as analyze
    from callwright.shell.git_env import SAFE_ENVIRONMENT as SAFE_ENVIRONMENT
    from callwright.shell.plan import (
        ShellPlan as ShellPlan,
        SimpleCommand as SimpleCommand,
        Verdict as Verdict,
        worst as worst,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "analyzer": "analyze",
            "git_env": "SAFE_ENVIRONMENT",
            "plan": "ShellPlan SimpleCommand Verdict worst",
        },
    )
