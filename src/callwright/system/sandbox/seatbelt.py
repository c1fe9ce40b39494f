"""Builds the profile of macOS's sandbox-exec. Tested as text: it has not been run on a Mac yet."""

import shutil
import sys
from collections.abc import Iterable, Sequence

from callwright.core.access import is_below
from callwright.system.sandbox.wall import SHARED_CACHES, Wall

_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/dtracehelper", "/dev/ptmx")


def find_problem() -> str:
    """Return why sandbox-exec cannot be used here; empty if it can."""
    if sys.platform != "darwin":
        return "sandbox-exec exists on macOS only"
    return "" if shutil.which("sandbox-exec", path="/usr/bin:/bin") else "sandbox-exec is missing"


def wrap_command(argv: Sequence[str], wall: Wall) -> tuple[str, ...]:
    """Return the command line that runs `argv` behind a wall."""
    return ("/usr/bin/sandbox-exec", "-p", make_profile(wall), *argv)


def make_profile(wall: Wall) -> str:
    """Write a wall as a profile. The last rule that matches decides, so general rules come first."""
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {_paths('literal', _DEVICES)} {_paths('subpath', (*wall.writable, str(wall.scratch)))})",
    ]
    if not wall.writable:
        lines.append(f"(deny file-write* {_paths('subpath', (f'{wall.scratch}/tmp/{SHARED_CACHES}',))})")
    # our temporary folder may lie in the workspace; here it holds no masks
    protected = [path for path in wall.protected if not is_below(str(wall.scratch), (path,))]
    if protected:
        lines.append(f"(deny file-write* {_paths('subpath', protected)})")
    if wall.masked:
        lines.append(f"(deny file-read* file-write* {_paths('subpath', wall.masked)})")
    if around := wall.folders_around():  # a folder that is moved takes what is denied out of the rules
        lines.append(f"(deny file-write-unlink {_paths('literal', around)})")
    if not wall.network:
        lines.append("(deny network*)")
    # a daemon reached by a message or a signal would act outside the wall
    lines += ["(deny appleevent-send)", "(deny lsopen)", "(deny signal (target others))"]
    return "\n".join(lines)


def _paths(kind: str, paths: Iterable[str]) -> str:
    return " ".join(f"({kind} {_quote(path)})" for path in paths)


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
