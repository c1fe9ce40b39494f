"""Built-in tools, one file each; `coding_tools` puts the six of a coding agent together."""

from toolwright.toolbox.bash import Bash
from toolwright.toolbox.edit import Edit
from toolwright.toolbox.glob import Glob
from toolwright.toolbox.grep import Grep
from toolwright.toolbox.read import Read
from toolwright.toolbox.suite import coding_tools
from toolwright.toolbox.write import Write

__all__ = ["Bash", "Edit", "Glob", "Grep", "Read", "Write", "coding_tools"]
