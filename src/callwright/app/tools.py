"""The tools of the command: everything a coding agent needs, over one workspace."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from callwright.policy.mode import ModeSwitch
from callwright.policy.plan import plan_tools
from callwright.system.paths import Workspace
from callwright.system.sandbox import Wish
from callwright.tool.base import Tool
from callwright.toolbox import (
    Bash,
    BashKill,
    BashOutput,
    Delete,
    Edit,
    Glob,
    Grep,
    List,
    Move,
    Read,
    WebFetch,
    Write,
)

Hidden = Callable[[Path], bool]


def shell_tool(workspace: Workspace, wish: Wish) -> Bash:
    """Return the shell, confined as was wished for."""
    return Bash(workspace, sandbox=wish, protected=(".git/hooks", ".git/config", ".callwright"))


def agent_tools(workspace: Workspace, switch: ModeSwitch, *, bash: Bash, hidden: Hidden | None) -> list[Tool]:
    """Return them; what `hidden` names is left out of listings and searches."""
    tools = [
        Read(workspace),
        Write(workspace),
        Edit(workspace),
        bash,
        BashOutput(),
        BashKill(),
        Glob(workspace, hidden=hidden),
        Grep(workspace, hidden=hidden),
        List(workspace, hidden=hidden),
        Delete(workspace),
        Move(workspace),
        WebFetch(),
        *plan_tools(switch),
    ]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say
