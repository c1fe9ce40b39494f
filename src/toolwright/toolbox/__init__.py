"""Built-in tools, one file each; `coding_tools` puts the six of a coding agent together."""

from toolwright.toolbox.bash import Bash
from toolwright.toolbox.delete import Delete
from toolwright.toolbox.edit import Edit
from toolwright.toolbox.glob import Glob
from toolwright.toolbox.grep import Grep
from toolwright.toolbox.jobs import BashKill, BashOutput
from toolwright.toolbox.list import List
from toolwright.toolbox.move import Move
from toolwright.toolbox.read import Read
from toolwright.toolbox.suite import coding_tools
from toolwright.toolbox.web_fetch import WebFetch
from toolwright.toolbox.write import Write

__all__ = [
    "Bash",
    "BashKill",
    "BashOutput",
    "Delete",
    "Edit",
    "Glob",
    "Grep",
    "List",
    "Move",
    "Read",
    "WebFetch",
    "Write",
    "coding_tools",
]
