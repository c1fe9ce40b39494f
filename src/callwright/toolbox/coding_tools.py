"""`coding_tools`: the tools of a coding agent."""

from os import PathLike
from typing import cast

from callwright.system.paths import Workspace
from callwright.tool.base import Tool
from callwright.toolbox.bash.bash_tool import Bash
from callwright.toolbox.bash.jobs import BashKill, BashOutput
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep
from callwright.toolbox.read import Read
from callwright.toolbox.write import Write


def coding_tools(workspace: Workspace | str | PathLike[str] = ".") -> list[Tool]:
    """Return read, write, edit, bash with its background jobs, glob and grep for one workspace.

    Args:
        workspace: The workspace, or the path of its folder.
    """
    workspace = Workspace.of(workspace)  # one object, so that its paths are resolved once
    tools = [
        Read(workspace),
        Write(workspace),
        Edit(workspace),
        Bash(workspace),
        BashOutput(),  # without these two, a job that bash started could be neither read nor stopped
        BashKill(),
        Glob(workspace),
        Grep(workspace),
    ]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say
