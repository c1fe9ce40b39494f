"""Builds bubblewrap command lines: everything is readable, the workspace is writable, the network is off."""

import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

_PROBE_SECONDS = 10.0
# sockets of services under /run would be a way out; name resolution must stay visible
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
_MASKED = ("/run/", "/var/run/")

_placeholders: dict[Path, int] = {}
_lock = threading.Lock()


@cache
def find_problem() -> str:
    """Try bubblewrap once and return why it does not work here; empty if it works."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    argv = [program, *_base_options(network=False), "--", "true"]
    try:
        tried = subprocess.run(argv, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()}"


@contextmanager
def wrap_command(
    argv: Sequence[str], *, cwd: str, writable: Sequence[Path], protected: Sequence[Path], network: bool
) -> Generator[tuple[str, ...], None, None]:
    """Yield the command line that runs `argv` in bubblewrap; leave the block only when the command has ended."""
    with ExitStack() as held:
        options = [*_base_options(network=network), *_bind_resolvers(), *_hide_sockets(writable)]
        for root in writable:
            options += ["--bind", str(root), str(root)]
        for path in protected:
            options += held.enter_context(_protect_path(path, writable))
        yield (shutil.which("bwrap") or "bwrap", *options, "--chdir", cwd, "--", *argv)


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


def _bind_resolvers() -> Iterator[str]:
    for path in _RESOLVERS:
        if os.path.exists(path):  # noqa: PTH110 - plain text in, plain text out
            yield from ("--ro-bind", path, path)


def _hide_sockets(writable: Sequence[Path]) -> Iterator[str]:
    # a socket can be connected to on a read-only disk, and its daemon may run anything
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]:
            path = line.split(maxsplit=7)[-1]
            inside = path.startswith(_MASKED) or any(Path(path).is_relative_to(root) for root in writable)
            if path.startswith("/") and not inside and _is_socket(path):
                yield from ("--ro-bind", "/dev/null", path)


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode) and os.path.realpath(path) == path
    return False


@contextmanager
def _protect_path(path: Path, writable: Sequence[Path]) -> Generator[list[str], None, None]:
    root = next((root for root in writable if path.is_relative_to(root)), None)
    if root is None:
        yield []
        return
    options: list[str] = []
    here = root
    for name in path.relative_to(root).parts:
        here = here / name
        if here == path or not here.is_dir():
            break
        # a parent folder becomes its own mount, or it could be moved away together with the protected path
        options += ["--bind", str(here), str(here)]
    with _keep_existing(here):
        yield [*options, "--ro-bind", str(here), str(here)]


@contextmanager
def _keep_existing(path: Path) -> Generator[None, None, None]:
    # a missing path is held by an empty folder: git ignores it, and rmdir removes nothing else
    with _lock:
        if path in _placeholders or not os.path.lexists(path):
            path.mkdir(exist_ok=True)
            _placeholders[path] = _placeholders.get(path, 0) + 1
        ours = path in _placeholders
    try:
        yield
    finally:
        if ours:
            with _lock:
                _placeholders[path] -= 1
                if not _placeholders[path]:
                    del _placeholders[path]
                    with suppress(OSError):
                        path.rmdir()
