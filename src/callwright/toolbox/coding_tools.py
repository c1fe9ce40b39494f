"""The tools of a coding agent, put together."""

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
    """Return the six tools a coding agent needs, all confined to one workspace."""
    place = Workspace.of(workspace)
    return [Read(place), Write(place), Edit(place), Bash(place), Glob(place), Grep(place)]
