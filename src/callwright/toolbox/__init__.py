"""Built-in tools; `coding_tools` returns those of a coding agent."""

from callwright.toolbox._file_state import FileAccess, LoadedFile
from callwright.toolbox.ask_user import AskUser
from callwright.toolbox.bash.bash_tool import Bash
from callwright.toolbox.bash.jobs import BashKill, BashOutput
from callwright.toolbox.coding_tools import coding_tools
from callwright.toolbox.delete import Delete
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep
from callwright.toolbox.list import List
from callwright.toolbox.move import Move
from callwright.toolbox.read import Read
from callwright.toolbox.todo import Todo
from callwright.toolbox.web.fetch import WebFetch
from callwright.toolbox.write import Write

__all__ = [
    "AskUser",
    "Bash",
    "BashKill",
    "BashOutput",
    "Delete",
    "Edit",
    "FileAccess",
    "Glob",
    "Grep",
    "List",
    "LoadedFile",
    "Move",
    "Read",
    "Todo",
    "WebFetch",
    "Write",
    "coding_tools",
]
