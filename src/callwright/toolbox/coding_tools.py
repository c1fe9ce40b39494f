"""`coding_tools`: the tools of a coding agent."""

from os import PathLike

from callwright.system.paths import Workspace
from callwright.tool.base import Tool
from callwright.toolbox.bash.bash_tool import Bash
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep
from callwright.toolbox.read import Read
from callwright.toolbox.write import Write


def coding_tools(workspace: Workspace | str | PathLike[str] = ".") -> list[Tool]:
    """Return read, write, edit, bash, glob and grep for one workspace.

    Args:
        workspace: The workspace, or the path of its folder.
    """
    workspace = Workspace.of(workspace)  # one object, so that its paths are resolved once
    return [Read(workspace), Write(workspace), Edit(workspace), Bash(workspace), Glob(workspace), Grep(workspace)]
