"""Builds bubblewrap command lines: the disk is read-only but for what a wall opens, secrets are covered."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from callwright.core.access import is_below
from callwright.system.sandbox.wall import (
    GIT_ATTRIBUTES_PLACE,
    SHARED_CACHES,
    Wall,
    git_attributes_file,
    mask_file,
    shown_of_ours,
)

_PROBE_SECONDS = 10.0
# sockets of services under /run would be a way out; name resolution must stay visible
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
_HIDDEN = ("/run", "/tmp", "/var/tmp", "/dev")
_SYSTEM = ("/usr", "/bin")


def find_problem(avoided: Sequence[str] = ()) -> str:
    """Try bubblewrap once and return why it does not work here; empty if it works.

    Args:
        avoided: Folders whose programs do not count.
    """
    program = find_program(avoided)
    return _try_program(program) if program else "bubblewrap is not installed"


@cache
def _try_program(program: str) -> str:
    argv = [program, *_base_options(network=False), "--", "true"]
    try:
        tried = subprocess.run(argv, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()}"


def find_program(avoided: Sequence[str] = ()) -> str:
    """Return the path of bubblewrap; empty if it is not installed. Relative folders of PATH do not count.

    Args:
        avoided: Folders that commands may write to: one could put a program there that starts the next without a wall.
    """
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("bwrap", path=folder) if folder.startswith("/") else None
        if found and (is_below(found, _SYSTEM) or not any(is_below(path, avoided) for path in _places(found))):
            return found
    return ""


def _places(program: str) -> tuple[str, str, str]:
    folder, name = os.path.split(os.path.abspath(program))
    return f"{folder}/{name}", f"{os.path.realpath(folder)}/{name}", os.path.realpath(program)


def wrap_command(argv: Sequence[str], wall: Wall, avoided: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command line that runs `argv` behind a wall.

    bubblewrap applies its options in order, and a later mount covers an earlier one. So folders come before what lies
    in them: temporary folders, what stays visible in them, writable folders, protected paths, masks.

    Args:
        argv: The command.
        wall: What it may use.
        avoided: Folders whose bubblewrap is not used.

    Raises:
        OSError: A mask cannot be made.
    """
    temporary = wall.scratch / "tmp"
    lasting = wall.scratch / "var-tmp"
    for folder in (temporary, lasting):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = _base_options(network=wall.network)
    for path in _RESOLVERS:
        options += ["--ro-bind-try", path, path]
    options += ["--bind", str(temporary), "/tmp", "--bind", str(lasting), "/var/tmp"]
    if not wall.writable:
        caches = temporary / SHARED_CACHES
        caches.mkdir(mode=0o700, exist_ok=True)
        options += ["--ro-bind", str(caches), f"/tmp/{SHARED_CACHES}"]
    options += ["--ro-bind", git_attributes_file(), GIT_ATTRIBUTES_PLACE]
    for path in wall.visible:
        options += ["--ro-bind-try", path, path]
    for path in sorted(wall.writable):  # a folder of the settings need not exist
        options += ["--bind-try", path, path]
    options += _protect_paths(wall)
    options += _hide_sockets(wall)
    options += _mask_paths(wall)
    return (find_program(avoided), *options, "--chdir", wall.cwd, "--", *argv)


def _base_options(*, network: bool) -> list[str]:
    options = ["--die-with-parent", "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
    if not network:
        options.append("--unshare-net")
    # bubblewrap leaves the kernel's settings writable for root, and one of them names a program to run on a crash
    settings = [
        "--ro-bind-try",
        "/proc/sys",
        "/proc/sys",
        "--ro-bind-try",
        "/proc/sysrq-trigger",
        "/proc/sysrq-trigger",
    ]
    return [*options, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *settings, "--tmpfs", "/run"]


def _protect_paths(wall: Wall) -> list[str]:
    """Make the folders around protected paths mounts of their own, or they could be moved away, then cover the paths.

    Every folder is mounted once and before anything inside it: mounted again, it would uncover what lies in it.
    """
    around: set[str] = set()
    for path in wall.protected:
        folder = os.path.dirname(path)
        while is_below(folder, wall.writable) and folder not in wall.writable:
            around.add(folder)
            folder = os.path.dirname(folder)
    options: list[str] = []
    for folder in sorted(around):
        options += ["--bind", folder, folder]
    for path in sorted(wall.protected):
        options += ["--ro-bind", path, path]
    return options


def _mask_paths(wall: Wall) -> Iterator[str]:
    for path in wall.masked:
        if os.path.isdir(path):
            yield from ("--tmpfs", path)
            for shown in shown_of_ours():
                if is_below(shown, (path,)):
                    yield from ("--ro-bind", shown, shown)
            if is_below(wall.cwd, (path,)):  # a workspace inside a masked folder stays the workspace
                option = "--bind" if is_below(wall.cwd, wall.writable) else "--ro-bind"
                yield from (option, wall.cwd, wall.cwd)
            yield from ("--remount-ro", path)
        elif os.path.isfile(path):
            yield from ("--ro-bind", mask_file(path), path)
        elif os.path.exists(path):  # a pipe or a device can hand out secrets as well
            yield from ("--ro-bind", "/dev/null", path)


def _hide_sockets(wall: Wall) -> Iterator[str]:
    # a socket can be connected to on a read-only disk, and its daemon may run anything
    reachable = (*wall.visible, *wall.writable)
    for path in _find_sockets((wall.cwd, *reachable)):
        if not is_below(path, _HIDDEN) or is_below(path, reachable):
            yield from ("--ro-bind", "/dev/null", path)


def _find_sockets(folders: Sequence[str]) -> set[str]:
    """Return the paths of the machine's sockets; names that are not absolute are looked for in the folders."""
    found: set[str] = set()
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines():
            for name in line.split(maxsplit=7)[7:]:
                found.update(os.path.join(folder, name) for folder in folders)
    return set(filter(_is_socket, map(os.path.realpath, found)))


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.stat(path).st_mode)
    return False
