"""The tools of a coding agent, put together."""

from os import PathLike

from toolwright.system.paths import Workspace
from toolwright.tool.base import Tool
from toolwright.toolbox.bash import Bash
from toolwright.toolbox.edit import Edit
from toolwright.toolbox.glob import Glob
from toolwright.toolbox.grep import Grep
from toolwright.toolbox.read import Read
from toolwright.toolbox.write import Write


def coding_tools(workspace: Workspace | str | PathLike[str] = ".") -> list[Tool]:
    """Return the six tools a coding agent needs, all confined to one workspace."""
    place = Workspace.of(workspace)
    return [Read(place), Write(place), Edit(place), Bash(place), Glob(place), Grep(place)]
