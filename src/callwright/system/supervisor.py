"""Our side of the supervisor process: starts it with the first command and hands commands over to it."""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system import supervisor_process
from callwright.system.platforms import on_fork

_EXIT_SECONDS = 1.0
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def encode_request(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> bytes:
    """Return what is sent on a control socket: the command that the monitor starts."""
    body = json.dumps({"argv": [*argv], "cwd": cwd, "env": dict(environment)}).encode()
    return supervisor_process.SIZE.pack(len(body)) + body


def split_notes(received: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """Return the notes of a monitor in what was received, as kind and value, and the beginning of one behind them."""
    whole = len(received) - len(received) % supervisor_process.NOTE.size
    return [*supervisor_process.NOTE.iter_unpack(received[:whole])], received[whole:]


class Supervisor:
    """The connection to the supervisor process. There is one per process; `SUPERVISOR` holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handover: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def hand_over(self, descriptors: Sequence[int]) -> None:
        """Give one command's control socket and pipes to the supervisor, starting it first if needed.

        Blocks for some milliseconds when it starts the process.

        Raises:
            ToolFailed: The supervisor process does not start or does not stay alive.
        """
        with self._lock:
            for _ in range(2):  # a second time because a command may have killed the supervisor
                try:
                    handover = self._handover or self._start()
                except OSError as error:
                    raise ToolFailed(f"cannot run commands: {sys.executable!r} does not start: {error}") from None
                with suppress(OSError):
                    socket.send_fds(handover, [b"+"], descriptors)
                    return
                self._close()
        raise ToolFailed("cannot run commands: the supervisor process does not stay alive")

    def close(self) -> None:
        """Disconnect; the supervisor ends every command that still runs, then itself."""
        with self._lock:
            self._close()

    def reset_after_fork(self) -> None:
        """Drop the parent's supervisor in a forked child, which starts its own when it needs one."""
        if self._process is not None:
            self._process.returncode = 0  # not our child: without this Popen would wait for it or warn
        if self._handover is not None:
            self._handover.close()
        self._lock = threading.Lock()  # the old one may be held by a thread that does not exist here
        self._handover = self._process = None

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                # -I and -S: nothing from the user's environment or site-packages can change what it does
                [
                    sys.executable,
                    *("-I", "-S", "-X", "utf8"),
                    str(Path(supervisor_process.__file__)),
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",  # a working folder could not be unmounted or removed
                env={name: os.environ[name] for name in _LOADER if name in os.environ},
                start_new_session=True,
            )
        self._handover = ours
        return ours

    def _close(self) -> None:
        if self._handover is not None:
            self._handover.close()
            self._handover = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_SECONDS)
            self._process = None


SUPERVISOR = Supervisor()
atexit.register(SUPERVISOR.close)
on_fork(in_child=SUPERVISOR.reset_after_fork)
