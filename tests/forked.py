"""Runs scripts in forks of one process that has imported the package: importing takes longer than most scripts.

    test ── socket ──► warm process ── fork ──► monitor, reports the end ── fork ──► the script

A script sees what `python script.py ARGUMENTS` would show it, and can be killed as any process. One warm process serves
all tests of a worker and ends with it.
"""

import atexit
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

_PRELOADED = (
    "asyncio, sqlite3, callwright.agent.agent, callwright.agent.loop, callwright.agent.transcript,"
    "callwright.codemode.code_mode, callwright.executor.executor, callwright.hooks.base, callwright.policy.standard,"
    "callwright.sessions.sqlite, callwright.testing.fakes, callwright.tool.function, pydantic"
)


@dataclass(frozen=True, slots=True)
class Script:
    """A script that runs."""

    pid: int
    _replies: IO[bytes]
    _out: IO[str]
    _err: IO[str]

    def wait(self) -> "subprocess.CompletedProcess[str]":
        """Wait for its end and return what it printed; the code is negative for a signal."""
        with self._replies, self._out, self._err:
            code = int(self._replies.readline())
            self._out.seek(0)
            self._err.seek(0)
            return subprocess.CompletedProcess([], code, self._out.read(), self._err.read())


def start_script(path: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Script:
    """Start a script as `python path arguments` would, without the time for the imports."""
    out, err = (TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # noqa: SIM115 - closed by `wait`
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_start_warm_process(), [b"\n"], [theirs.fileno(), out.fileno(), err.fileno()])
    order = {"path": str(path), "arguments": arguments, "cwd": str(Path.cwd()), "env": dict(env or os.environ)}
    with ours:
        ours.sendall(json.dumps(order).encode() + b"\n")
        replies = ours.makefile("rb")
    return Script(int(replies.readline()), replies, out, err)


def run_script(path: Path, *arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a script to its end."""
    return start_script(path, *arguments, env=env).wait()


@cache
def _start_warm_process() -> socket.socket:
    """Start it once for this process; it ends when the socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        warm = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])

    @atexit.register
    def _end() -> None:
        ours.close()
        warm.wait()

    return ours


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for each order; return the order in the process that has to run it, and nothing at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects the monitors
    while (received := socket.recv_fds(control, 1, 3))[0]:
        connection, out, err = received[1]
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            return _monitor(socket.socket(fileno=connection), out, err)
        for descriptor in (connection, out, err):
            os.close(descriptor)
    return None


def _monitor(connection: socket.socket, out: int, err: int) -> dict[str, Any]:
    """Fork once more: the child gets the order, and this process waits for it and reports its end."""
    with connection.makefile("rb") as orders:
        order = json.loads(orders.readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return order
    with suppress(OSError):  # the test may be gone
        connection.sendall(b"%d\n" % pid)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, which is not that of the script
    exec(f"import {_PRELOADED}")
    if (script := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        os.environ.clear()
        os.environ.update(script["env"])
        os.chdir(script["cwd"])
        sys.argv = [script["path"], *script["arguments"]]
        sys.path.insert(0, str(Path(script["path"]).parent))
        runpy.run_path(script["path"], run_name="__main__")
