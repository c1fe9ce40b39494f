"""Our side of the keeper: started with the first command, one per process, gone when we are."""

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from callwright.core.errors import ToolFailed
from callwright.system import supervisor_process as reap

_EXIT_SECONDS = 1.0
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class Supervisor:
    """The door through which commands are handed to the process that keeps them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def lend(self, ends: Sequence[int]) -> None:
        """Hand over the far ends of one command's control socket and pipes. Blocks for some milliseconds once."""
        with self._lock:
            for _ in range(2):  # the second time because a command may have killed the keeper
                try:
                    door = self._door or self._open()
                except OSError as error:
                    raise ToolFailed(f"commands cannot run here: {sys.executable!r} does not start: {error}") from None
                with suppress(OSError):
                    socket.send_fds(door, [b"+"], ends)
                    return
                self._close()
        raise ToolFailed("commands cannot run here: the process that watches over them does not stay alive")

    def close(self) -> None:
        """Let the keeper go; it ends what still runs, then itself."""
        with self._lock:
            self._close()

    def forget(self) -> None:
        """Drop what belongs to the parent after a fork."""
        if self._process is not None:
            self._process.returncode = 0  # it is not our child: neither wait for it nor complain
        if self._door is not None:
            self._door.close()
        self._lock = threading.Lock()  # the old one may be held by a thread that does not exist here
        self._door = self._process = None

    def _open(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", str(Path(reap.__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",  # so that it keeps no folder busy
                env={name: os.environ[name] for name in _LOADER if name in os.environ},
                start_new_session=True,
            )
        self._door = ours
        return ours

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_SECONDS)
            self._process = None


KEEPER = Supervisor()
atexit.register(KEEPER.close)
os.register_at_fork(after_in_child=KEEPER.forget)
