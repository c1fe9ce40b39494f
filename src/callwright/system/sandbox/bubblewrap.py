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
_END = "--"
# bubblewrap follows links. A command in the background may have put one in the place of a folder since the folder was
# looked at, and a mount would lead somewhere else. Names and places of mounts have their spaces escaped.
_CHECK = f"""
_end='
'; _seen=$_end; _open=$_end; _ours=
while [ "$1" != {_END} ]; do _open=$_open$1$_end; shift; done; shift
while read -r _ _ _ _root _place _options _; do
  if [ "$_ours" ]; then
    _seen="$_seen$_root $_place$_end. $_place$_end"
    case $_options,$_open in ro,*|*"$_end$_root $_place$_end"*|*"$_end. $_place$_end"*) ;;
    *) echo "bwrap: a folder was replaced while the sandbox was built" >&2; exit 1 ;; esac
  elif [ "$_place" = {GIT_ATTRIBUTES_PLACE} ]; then
    _ours=yes  # the mounts that follow lie in folders of the workspace
  fi
done </proc/self/mountinfo
while [ "$1" != {_END} ]; do
  case $_seen in *"$_end$1$_end"*) shift ;;
  *) echo "bwrap: a path was replaced while the sandbox was built" >&2; exit 1 ;; esac
done; shift
exec "$@"
"""


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
        OSError: A mask cannot be made, or a folder on the way to it was closed meanwhile.
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
        if caches.is_symlink() or not caches.is_dir():  # as a command that writes may have left it
            caches.unlink(missing_ok=True)
        caches.mkdir(mode=0o700, exist_ok=True)
        options += ["--ro-bind", str(caches), f"/tmp/{SHARED_CACHES}"]
    options += ["--ro-bind", git_attributes_file(), GIT_ATTRIBUTES_PLACE]
    for path in wall.visible:
        options += ["--ro-bind-try", path, path]
    for path in sorted(wall.writable):  # a folder of the settings need not exist
        options += ["--bind-try", path, path]
    around = wall.folders_around()  # mounts of their own cannot be moved
    options += _protect_paths(wall, around)
    sockets = _find_reachable_sockets(wall)
    for path in sockets:
        options += ["--ro-bind", "/dev/null", path]
    options += _mask_paths(wall)
    covered = [path for path in (*sockets, *wall.masked) if is_below(path, avoided) and os.path.exists(path)]
    checked = _check_mounts(wall, around, covered)
    return (find_program(avoided), *options, "--chdir", wall.cwd, "--", *checked, *argv)


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


def _protect_paths(wall: Wall, around: Sequence[str]) -> list[str]:
    """Mount the folders around protected paths, then cover the paths.

    Every folder is mounted once and before anything inside it: mounted again, it would uncover what lies in it.
    """
    options: list[str] = []
    for folder in around:
        options += ["--bind", folder, folder]
    for path in sorted(wall.protected):
        options += ["--ro-bind", path, path]
    return options


def _check_mounts(wall: Wall, around: Sequence[str], covered: Sequence[str]) -> Iterator[str]:
    """Yield what runs before the command, and starts it if every mount in a folder that commands change is in place.

    Args:
        wall: The wall.
        around: The folders around its protected paths.
        covered: Its masked paths and hidden sockets in folders that commands may write to.
    """
    own = _read_own_mounts()
    writable = [_escape(path) for path in wall.writable]
    yield from ("/bin/sh", "-c", _CHECK, "sh")
    yield from (f". {place}" for place in writable)  # what lies above them cannot be replaced
    yield from (f"{root} {place}" for root, place in own if is_below(place, writable))  # they come with the folder
    yield from (_describe_mount(path, own) for path in (*around, wall.cwd))
    yield _END
    yield from (_describe_mount(path, own) for path in (*around, *wall.protected))
    yield from (f". {_escape(path)}" for path in covered)
    yield _END


def _read_own_mounts() -> list[tuple[str, str]]:
    """Return where the mounts that we see come from and where they are, in the order in which they were made."""
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").split("\n")
    return [(fields[3], fields[4]) for line in lines if len(fields := line.split(" ")) > 4]


def _describe_mount(path: str, mounts: Sequence[tuple[str, str]]) -> str:
    """Return what a mount of a path on itself looks like: its path in its file system, and its place."""
    place = _escape(path)
    # a later mount covers an earlier one; where none is seen, as in a changed root, any origin counts
    found = next(((root, at) for root, at in reversed(mounts) if is_below(place, (at,))), None)
    return f". {place}" if found is None else f"{found[0].rstrip('/')}/{place[len(found[1]) :].lstrip('/')} {place}"


def _escape(path: str) -> str:
    """Write a path as the kernel lists it."""
    return "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in path)


def _mask_paths(wall: Wall) -> Iterator[str]:
    for path in wall.masked:
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:  # nothing is left to be read
            continue
        if stat.S_ISDIR(mode):
            yield from ("--tmpfs", path)
            for shown in shown_of_ours():
                if is_below(shown, (path,)):
                    yield from ("--ro-bind", shown, shown)
            if is_below(wall.cwd, (path,)):  # a workspace inside a masked folder stays the workspace
                option = "--bind" if is_below(wall.cwd, wall.writable) else "--ro-bind"
                yield from (option, wall.cwd, wall.cwd)
            yield from ("--remount-ro", path)
        elif stat.S_ISREG(mode):
            yield from ("--ro-bind", mask_file(path), path)
        else:  # a pipe or a device can hand out secrets as well
            yield from ("--ro-bind", "/dev/null", path)


def _find_reachable_sockets(wall: Wall) -> list[str]:
    """Return the sockets to hide: one can be connected to on a read-only disk, and its daemon may run anything."""
    reachable = (*wall.visible, *wall.writable)
    found = _find_sockets((wall.cwd, *reachable))
    return [path for path in found if not is_below(path, _HIDDEN) or is_below(path, reachable)]


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
