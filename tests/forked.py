"""Runs scripts in forks of a process that has imported the package: importing takes longer than most scripts.

    test ── socket ──► warm process ── fork ──► monitor, reports the end ── fork ──► the script

A script sees what `python script.py ARGUMENTS` would show it, and can be killed as any process. The warm processes
serve all tests of a worker and end with it.
"""

import atexit
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, cast

AGENTS = (
    "asyncio, sqlite3, callwright.agent.agent, callwright.agent.loop, callwright.agent.transcript,"
    "callwright.codemode.code_mode, callwright.executor.executor, callwright.hooks.base, callwright.policy.standard,"
    "callwright.sessions.sqlite, callwright.system.atomic_write, callwright.testing.fakes, callwright.tool.decorator,"
    "pydantic"
)
COMMANDS = (
    f"{AGENTS}, mcp, callwright.app.assembly, callwright.cli.commands.serve, callwright.cli.headless.run,"
    "callwright.cli.main, callwright.cli.terminal.app, callwright.serve.stdio"
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


def start_script(path: Path, *arguments: str, env: Mapping[str, str] | None = None, preload: str = AGENTS) -> Script:
    """Start a script as `python path arguments` would, without the time for the imports."""
    out, err = (TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # noqa: SIM115 - closed by `wait`
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        descriptors = [nothing.fileno(), out.fileno(), err.fileno()]
        replies = _order(_start_warm_process(preload), [str(path), *arguments], descriptors, env)
    return Script(int(replies.readline()), replies, out, err)


def run_script(
    path: Path, *arguments: str, env: Mapping[str, str] | None = None, preload: str = AGENTS
) -> "subprocess.CompletedProcess[str]":
    """Run a script to its end."""
    return start_script(path, *arguments, env=env, preload=preload).wait()


def warm_command(*arguments: str, preload: str = COMMANDS) -> list[str]:
    """Return a command that does what `python arguments` does, for what starts processes itself.

    Its process hands its streams and its environment to a fork of a process that has imported the commands.
    """
    return [sys.executable, "-S", __file__, "relay", _start_warm_process(preload), *arguments]


@cache
def _start_warm_process(preload: str) -> str:
    """Start it once for this process, which ends it; return its address."""
    folder = TemporaryDirectory()
    address = f"{folder.name}/socket"
    command = [sys.executable, __file__, "serve", address, preload]
    warm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert warm.stdout is not None
    with warm.stdout as answers:
        assert answers.readline() == b"ready\n"

    @atexit.register
    def _end() -> None:
        warm.communicate()
        folder.cleanup()

    return address


def _order(
    address: str, arguments: Sequence[str], descriptors: Sequence[int], env: Mapping[str, str] | None = None
) -> IO[bytes]:
    """Send what to run and its three streams; return where its process id and its exit code are reported."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        order = {"arguments": arguments, "cwd": str(Path.cwd()), "env": dict(env or os.environ)}
        socket.send_fds(connection, [json.dumps(order).encode() + b"\n"], list(descriptors))
        return connection.makefile("rb")


def _serve(address: str) -> dict[str, Any] | None:
    """Fork for each order; return the order in the process that has to run it, and nothing at the end."""
    listener, ready = socket.socket(socket.AF_UNIX), selectors.DefaultSelector()
    listener.bind(address)
    listener.listen()
    ready.register(listener, selectors.EVENT_READ)
    ready.register(0, selectors.EVENT_READ)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system collects the monitors
    print("ready", flush=True)
    while any(key.fileobj is listener for key, _ in ready.select()):
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            ready.close()
            listener.close()
            return _monitor(connection)
        connection.close()
    ready.close()
    listener.close()
    return None


def _monitor(connection: socket.socket) -> dict[str, Any]:
    """Fork once more: the child gets the order, and this process waits for it and reports its end."""
    message, descriptors, *_ = socket.recv_fds(connection, 1 << 16, 3)
    while not message.endswith(b"\n"):
        message += connection.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup ignore it
        connection.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return json.loads(message)
    for descriptor in (0, 1, 2, *descriptors):
        os.close(descriptor)
    with suppress(OSError):  # the test may be gone
        connection.sendall(b"%d\n" % pid)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _run(arguments: list[str]) -> None:
    """Do what `python arguments` does: they begin with a path, with -c and a program, or with -m and a module."""
    if arguments[0] == "-m":
        sys.argv, sys.path[:0] = arguments[1:], [""]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv, sys.path[:0] = ["-c", *arguments[2:]], [""]
        exec(arguments[1], {"__name__": "__main__"})
    else:
        sys.argv, sys.path[:0] = arguments, [str(Path(arguments[0]).parent)]
        runpy.run_path(arguments[0], run_name="__main__")


def _relay(address: str, arguments: list[str]) -> int:
    """Have the warm process run it with our streams; return its exit code."""
    replies = _order(address, arguments, [0, 1, 2])
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    pid = int(replies.readline())

    def pass_on(number: int, frame: object) -> None:
        os.kill(pid, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGWINCH):
        signal.signal(number, pass_on)
    code = int(replies.readline())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        os._exit(_relay(sys.argv[2], sys.argv[3:]) & 0xFF)
    sys.path.pop(0)  # the folder of this file, which is not that of the script
    for name in sys.argv[3].split(","):
        with suppress(ImportError):  # an extra that is not installed here
            importlib.import_module(name.strip())
    if (script := _serve(sys.argv[2])) is not None:
        os.environ.clear()
        os.environ.update(script["env"])
        if os.environ.get("PYTHONWARNINGS") == "error":
            warnings.simplefilter("error")
        os.chdir(script["cwd"])
        cast(TextIOWrapper, sys.stdout).reconfigure(line_buffering=os.isatty(1))
        _run(script["arguments"])
