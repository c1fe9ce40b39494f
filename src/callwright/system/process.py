"""Running commands: streamed, bounded in time and memory, and outlived by nothing they start."""

import asyncio
import atexit
import json
import os
import secrets
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO
from typing import Literal, TypeAlias
from weakref import WeakSet

from callwright.core.errors import ToolFailed
from callwright.system.output_capture import Caps, OutputCapture
from callwright.system.supervisor import KEEPER
from callwright.system.supervisor_process import BEGAN, ENDED, NOTE, SIZE

Reason: TypeAlias = Literal["exited", "timed_out", "stopped", "flooded", "lost"]

_MARK = "CALLWRIGHT_COMMAND"
_CHUNK = 64 * 1024
_LAST_WORDS = 8 * 1024
_TICK_SECONDS = 0.5
_DRAIN_SECONDS = 0.1
_STOP_SECONDS = 2.0
_EXIT_SECONDS = 1.0

_alive: "WeakSet[Running]" = WeakSet()


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, where, and with which environment; nothing of ours is added but a mark."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; by then no process of it is left."""

    exit_code: int
    """As a shell counts: 128 and the signal's number for what a signal ended."""
    reason: Reason
    transcript: OutputCapture
    leftovers: int = 0
    """Processes that outlived the command by more than a moment and were ended."""
    last_words: str = ""
    """What it wrote to the descriptor `reap.REPORT_FD`."""
    seconds: float = 0.0


async def run(
    command: Command,
    *,
    seconds: float | None = None,
    on_output: Callable[[str], None] | None = None,
    caps: Caps | None = None,
) -> Ended:
    """Run a command to its end. However this is left, cancellation included, no process stays behind.

    `on_output` is called from another thread.
    """
    running = Running(command, seconds=seconds, on_output=on_output, caps=caps)
    try:
        return await running.wait()
    except asyncio.CancelledError:
        running.stop()
        await running.wait()  # a second cancellation leaves at once: the warden needs nobody to finish its work
        raise


class Running:
    """A command under way. It is ended, with all it started, when it is stopped or when our process dies."""

    def __init__(
        self,
        command: Command,
        *,
        seconds: float | None = None,
        on_output: Callable[[str], None] | None = None,
        caps: Caps | None = None,
    ) -> None:
        self.command = command
        self.transcript = OutputCapture(caps)
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._on_output = on_output
        self._mark = secrets.token_hex(16)
        self._control, self._far_control = socket.socketpair()
        self._lock = threading.Lock()
        self._reason: Reason = "exited"
        self._stopped_at: float | None = None
        self._listening = self._gone = False
        self._warden = self._leftovers = 0
        self._exit_code: int | None = None
        self._notes = b""
        self._future: Future[Ended] = Future()
        self._future.set_running_or_notify_cancel()
        # a thread, not the loop: a background command outlives the loop it was started in, and disks can be slow
        threading.Thread(target=self._follow, name="callwright-command", daemon=True).start()
        _alive.add(self)

    @property
    def ended(self) -> Ended | None:
        """How it ended, or None while it runs."""
        return self._future.result() if self._future.done() else None

    async def wait(self) -> Ended:
        """Wait for the end. Cancelling the wait does not stop the command."""
        return await asyncio.wrap_future(self._future)

    async def wait_at_most(self, seconds: float) -> Ended | None:
        """Wait for the end, but no longer than that."""
        waiting = asyncio.wrap_future(self._future)
        await asyncio.wait({waiting}, timeout=seconds)
        waiting.cancel()
        return self.ended

    def when_ended(self, call: Callable[[], None]) -> None:
        """Have something done after the end, from another thread."""
        self._future.add_done_callback(lambda _: call())

    def wait_blocking(self, seconds: float | None = None) -> Ended:
        """Wait for the end in the caller's thread."""
        return self._future.result(seconds)

    def stop(self, reason: Reason = "stopped") -> None:
        """Ask for the end: TERM to every process, KILL after a moment. Asking twice changes nothing."""
        with self._lock:
            if self._stopped_at is not None or self._exit_code is not None:
                return
            self._reason, self._stopped_at = reason, time.monotonic()
            if self._listening:
                self._say_stop()

    def forget(self) -> None:
        """Let go of a command of our parent's after a fork: it is no longer ours to stop."""
        self._control.close()
        self._exit_code = 0
        self._future = Future()
        self._future.set_exception(ToolFailed("the command belongs to another process"))

    def _say_stop(self) -> None:
        with suppress(OSError):
            self._control.send(b"!")

    def _follow(self) -> None:
        began = time.monotonic()
        try:
            with self._control:
                words = self._hold()
            self.transcript.close()
            if self._exit_code is None:
                self._lose()
            ended = Ended(
                exit_code=128 + signal.SIGKILL if self._exit_code is None else self._exit_code,
                reason=self._reason,
                transcript=self.transcript,
                leftovers=self._leftovers,
                last_words=words,
                seconds=time.monotonic() - began,
            )
            self._future.set_result(ended)
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
            self._future.set_exception(error)

    def _hold(self) -> str:
        with ExitStack() as ends:
            output, far_output = _pipe(ends)
            words, far_words = _pipe(ends)
            with self._far_control, far_output, far_words:
                KEEPER.lend([self._far_control.fileno(), far_output.fileno(), far_words.fileno()])
            self._send_request()
            self._watch(output.fileno())
            with suppress(BlockingIOError):
                return os.read(words.fileno(), _LAST_WORDS).decode("utf-8", "surrogateescape")
            return ""

    def _send_request(self) -> None:
        request = {
            "argv": self.command.argv,
            "cwd": self.command.cwd,
            "env": {**self.command.environment, _MARK: self._mark},
        }
        body = json.dumps(request).encode()
        with suppress(OSError):  # where nobody reads it, the end of the socket tells
            self._control.sendall(SIZE.pack(len(body)) + body)
        with self._lock:
            self._listening = True
            if self._stopped_at is not None:
                self._say_stop()

    def _watch(self, output: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self._control, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(self._patience())}
                if output in ready and not self._take(output):
                    selector.unregister(output)
                    output = -1
                if self._control.fileno() in ready and not self._listen():
                    break
                if self._is_hopeless():
                    return
            self._drain(selector, output)

    def _patience(self) -> float:
        if self._deadline is None or self._stopped_at is not None:
            return _TICK_SECONDS
        return max(0.0, min(_TICK_SECONDS, self._deadline - time.monotonic()))

    def _take(self, output: int) -> bool:
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return True
        text = self.transcript.feed(data)
        if text and self._on_output is not None:
            self._on_output(text)
        if self.transcript.flooded:
            self.stop("flooded")
        return bool(data)

    def _listen(self) -> bool:
        data = b""
        with suppress(ConnectionError):
            data = self._control.recv(4096)
        self._notes += data
        while len(self._notes) >= NOTE.size:
            kind, value = NOTE.unpack_from(self._notes)
            self._notes = self._notes[NOTE.size :]
            if kind == BEGAN:
                self._warden = value
            elif kind == ENDED:
                status = os.waitstatus_to_exitcode(value)
                with self._lock:
                    self._exit_code = status if status >= 0 else 128 - status
            else:
                self._leftovers, self._gone = value, True
        return bool(data) and not self._gone

    def _is_hopeless(self) -> bool:
        now = time.monotonic()
        if self._stopped_at is None:
            if self._deadline is not None and now >= self._deadline:
                self.stop("timed_out")
            return False
        overdue = now - self._stopped_at
        if overdue > _STOP_SECONDS and self._warden:
            # a command can freeze its warden; without one, its processes fall to the keeper, which ends them
            with suppress(OSError):
                os.kill(self._warden, signal.SIGKILL)
            self._warden = 0
        return overdue > 2 * _STOP_SECONDS

    def _drain(self, selector: selectors.BaseSelector, output: int) -> None:
        # all writers are gone, so the end comes at once, unless a descriptor was sent to a stranger
        if output < 0:
            return
        selector.unregister(self._control)
        deadline = time.monotonic() + _DRAIN_SECONDS
        while selector.select(max(0.0, deadline - time.monotonic())) and self._take(output):
            if time.monotonic() > deadline:
                return

    def _lose(self) -> None:
        if not self._warden and self._stopped_at is None and not self._notes and not self.transcript.bytes:
            raise ToolFailed("the machine has no room for another process; wait for others to end")
        if self._reason == "exited":
            self._reason = "lost"
        _hunt(self._mark)


def _pipe(ends: ExitStack) -> tuple[FileIO, FileIO]:
    near, far = os.pipe()
    os.set_blocking(near, False)
    return ends.enter_context(FileIO(near, "rb")), ends.enter_context(FileIO(far, "wb"))


def _hunt(mark: str) -> None:
    # the last resort, when a command has killed both its warden and the keeper: whoever carries its mark
    wanted = f"{_MARK}={mark}".encode()
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are all that is needed
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:  # noqa: PTH123 - as above
                if wanted in environ.read().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)


def _stop_all() -> None:
    # commands would end with us anyway; stopping them first spares the keeper a wait
    deadline = time.monotonic() + _EXIT_SECONDS
    running = [each for each in _alive if each.ended is None]
    for each in running:
        each.stop()
    for each in running:
        with suppress(Exception):  # nobody is left to be told
            each.wait_blocking(max(0.0, deadline - time.monotonic()))


def _forget_all() -> None:
    for each in list(_alive):
        each.forget()
    _alive.clear()


atexit.register(_stop_all)
os.register_at_fork(after_in_child=_forget_all)
