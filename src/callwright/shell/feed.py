"""Where the names come from that xargs is fed: only what the line itself names can be told beforehand."""

from collections.abc import Sequence
from typing import TypeAlias

from callwright.core.access import Access, ReadPath
from callwright.shell.folders import Folders, places
from callwright.shell.plan import SimpleCommand, Verdict

Feed: TypeAlias = tuple[Access, ...] | None
"""What a command may be told to read on its input; None when that is the content of some file."""

NOTHING: Feed = ()
_READ_ONLY = Verdict.READ_ONLY
_LISTERS = frozenset(("find", "fd", "fdfind", "ls"))
_LISTING = {
    "git": ("ls-files", "--name-only", "-l", "--files-with-matches"),
    "rg": ("-l", "--files", "--files-with-matches", "--files-without-match"),
    "grep": ("-l", "-rl", "-lr", "-L", "-Rl", "-ril", "-rli", "--files-with-matches", "--files-without-match"),
}
_FILTERS = frozenset(("sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "tac", "shuf"))


def handed_on(commands: Sequence[SimpleCommand], before: Feed, folders: Folders) -> Feed:
    """Tell what the next command of a pipeline is fed, from the commands that write into the pipe."""
    if len(commands) != 1 or commands[0].verdict is not _READ_ONLY or not commands[0].words:
        return None
    command = commands[0]
    name, rest = command.words[0], command.words[1:]
    if name in _LISTERS or any(flag in rest for flag in _LISTING.get(name, ())):
        return NOTHING  # the names lie below folders that the lister itself is charged with
    if name in ("echo", "printf") and command.literal:
        names = [part for word in rest for part in word.replace("\\n", " ").split()]
        return tuple([ReadPath(path) for part in names for path in places(part, folders)])
    if name in _FILTERS and not command.accesses:
        return before
    return None
