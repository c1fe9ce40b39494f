"""Runs commands: output is streamed, time and memory are limited, no process they start outlives them."""

import asyncio
import atexit
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
from callwright.system.output_capture import OutputCapture, OutputLimits
from callwright.system.platforms import on_fork
from callwright.system.supervisor import SUPERVISOR, encode_request, split_notes
from callwright.system.supervisor_process import BEGAN, ENDED, shell_exit_code

Reason: TypeAlias = Literal["exited", "timed_out", "stopped", "flooded", "lost"]

_MARK = "CALLWRIGHT_COMMAND"
_CHUNK = 64 * 1024
_REPORT_BYTES = 8 * 1024
_TICK_SECONDS = 0.5
_DRAIN_SECONDS = 0.1
_STOP_SECONDS = 2.0
_EXIT_SECONDS = 1.0

_alive: "WeakSet[Running]" = WeakSet()


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, where, and with which environment; only one marker variable is added to it."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended; by then no process of it is left."""

    exit_code: int
    """As a shell counts: 128 plus the signal's number if a signal ended it."""
    reason: Reason
    output: OutputCapture
    leftovers: int = 0
    """How many processes outlived the command by more than a moment and were ended."""
    report: str = ""
    """What it wrote to the descriptor `REPORT_FD`."""
    seconds: float = 0.0


async def run(
    command: Command,
    *,
    seconds: float | None = None,
    on_output: Callable[[str], None] | None = None,
    caps: OutputLimits | None = None,
) -> CommandResult:
    """Run a command to its end. No process of it is left afterwards, also after cancellation.

    Args:
        command: What to run.
        seconds: The time limit; None for no limit.
        on_output: Called with each piece of output, from another thread.
        caps: How much output is kept.

    Raises:
        ToolFailed: No process can be started.
    """
    running = Running(command, seconds=seconds, on_output=on_output, caps=caps)
    try:
        return await running.wait()
    except asyncio.CancelledError:
        running.stop()
        await running.wait()  # a second cancellation returns at once: the monitor cleans up without us
        raise


class Running:
    """A running command. It ends with everything it started when it is stopped or our process dies."""

    def __init__(
        self,
        command: Command,
        *,
        seconds: float | None = None,
        on_output: Callable[[str], None] | None = None,
        caps: OutputLimits | None = None,
    ) -> None:
        self.command = command
        self.output = OutputCapture(caps)
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._on_output = on_output
        self._mark = secrets.token_hex(16)
        self._control, self._far_control = socket.socketpair()
        self._lock = threading.Lock()
        self._reason: Reason = "exited"
        self._stopped_at: float | None = None
        self._request_sent = self._gone = False
        self._monitor = self._leftovers = 0
        self._exit_code: int | None = None
        self._notes = b""
        self._future: Future[CommandResult] = Future()
        self._future.set_running_or_notify_cancel()
        # a thread, not the event loop: a background command outlives the loop it was started in, and disks can be slow
        threading.Thread(target=self._run, name="callwright-command", daemon=True).start()
        _alive.add(self)

    @property
    def ended(self) -> CommandResult | None:
        """The result, or None while the command runs; a command that could not be started counts as lost."""
        if not self._future.done():
            return None
        if self._future.exception() is not None:
            return CommandResult(128 + signal.SIGKILL, "lost", self.output)
        return self._future.result()

    async def wait(self) -> CommandResult:
        """Wait for the end. Cancelling the wait does not stop the command."""
        return await asyncio.wrap_future(self._future)

    async def wait_at_most(self, seconds: float) -> CommandResult | None:
        """Wait for the end at most that long; return None if the command still runs."""
        if seconds <= 0:  # most polls: each wait would leave a callback behind until the command ends
            return self.ended
        waiting = asyncio.wrap_future(self._future)
        await asyncio.wait({waiting}, timeout=seconds)
        if waiting.done():
            waiting.exception()  # read here, or asyncio would log that it was not
        else:
            waiting.cancel()
        return self.ended

    def when_ended(self, call: Callable[[], None]) -> None:
        """Register a function to call after the end, from another thread."""
        self._future.add_done_callback(lambda _: call())

    def wait_blocking(self, seconds: float) -> CommandResult:
        """Wait for the end in the caller's thread, at most that long."""
        return self._future.result(seconds)

    def stop(self, reason: Reason = "stopped") -> None:
        """Stop the command: TERM to every process, KILL after a moment. A second call changes nothing."""
        with self._lock:
            if self._stopped_at is not None or self._exit_code is not None:
                return
            self._reason, self._stopped_at = reason, time.monotonic()
            if self._request_sent:
                self._send_stop()

    def abandon(self) -> None:
        """Give up a command after a fork: it belongs to the parent process."""
        self._control.close()
        self._exit_code = 0
        self._future = Future()
        self._future.set_exception(ToolFailed("the command belongs to another process"))

    def _send_stop(self) -> None:
        with suppress(OSError):
            self._control.send(b"!")

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with self._control:
                report = self._run_supervised()
            self.output.close()
            if self._exit_code is None:
                self._handle_lost_monitor()
            ended = CommandResult(
                exit_code=128 + signal.SIGKILL if self._exit_code is None else self._exit_code,
                reason=self._reason,
                output=self.output,
                leftovers=self._leftovers,
                report=report,
                seconds=time.monotonic() - began,
            )
            self._future.set_result(ended)
        except BaseException as error:  # noqa: BLE001 - any error must reach the waiting caller
            self._future.set_exception(error)

    def _run_supervised(self) -> str:
        with ExitStack() as ends:
            output, far_output = _pipe(ends)
            report, far_report = _pipe(ends)
            with self._far_control, far_output, far_report:
                SUPERVISOR.hand_over([self._far_control.fileno(), far_output.fileno(), far_report.fileno()])
            self._send_request()
            self._watch(output.fileno())
            with suppress(BlockingIOError):
                return os.read(report.fileno(), _REPORT_BYTES).decode("utf-8", "surrogateescape")
            return ""

    def _send_request(self) -> None:
        environment = {**self.command.environment, _MARK: self._mark}
        with suppress(OSError):  # if the monitor is gone, the closed socket is noticed later
            self._control.sendall(encode_request(self.command.argv, self.command.cwd, environment))
        with self._lock:
            self._request_sent = True
            if self._stopped_at is not None:
                self._send_stop()

    def _watch(self, output: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self._control, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(self._wait_seconds())}
                if output in ready and not self._read_output(output):
                    selector.unregister(output)
                    output = -1
                if self._control.fileno() in ready and not self._read_notes():
                    break
                if self._check_deadlines():
                    return
            self._drain(selector, output)

    def _wait_seconds(self) -> float:
        if self._deadline is None or self._stopped_at is not None:
            return _TICK_SECONDS
        return max(0.0, min(_TICK_SECONDS, self._deadline - time.monotonic()))

    def _read_output(self, output: int) -> bool:
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return True
        text = self.output.feed(data)
        if text and self._on_output is not None:
            self._on_output(text)
        if self.output.flooded:
            self.stop("flooded")
        return bool(data)

    def _read_notes(self) -> bool:
        data = b""
        with suppress(ConnectionError):
            data = self._control.recv(4096)
        notes, self._notes = split_notes(self._notes + data)
        for kind, value in notes:
            if kind == BEGAN:
                self._monitor = value
            elif kind == ENDED:
                with self._lock:
                    self._exit_code = shell_exit_code(value)
            else:
                self._leftovers, self._gone = value, True
        return bool(data) and not self._gone

    def _check_deadlines(self) -> bool:
        now = time.monotonic()
        if self._stopped_at is None:
            if self._deadline is not None and now >= self._deadline:
                self.stop("timed_out")
            return False
        overdue = now - self._stopped_at
        if overdue > _STOP_SECONDS and self._monitor:
            # a command can freeze its monitor; once it is killed, the supervisor ends the command's processes
            with suppress(OSError):
                os.kill(self._monitor, signal.SIGKILL)
            self._monitor = 0
        return overdue > 2 * _STOP_SECONDS

    def _drain(self, selector: selectors.BaseSelector, output: int) -> None:
        # all writers are gone, so the end comes at once, unless a descriptor was sent to another process
        if output < 0:
            return
        selector.unregister(self._control)
        deadline = time.monotonic() + _DRAIN_SECONDS
        while selector.select(max(0.0, deadline - time.monotonic())) and self._read_output(output):
            if time.monotonic() > deadline:
                return

    def _handle_lost_monitor(self) -> None:
        if not self._monitor and self._stopped_at is None and not self._notes and not self.output.bytes:
            raise ToolFailed("cannot start another process: the system is out of resources; wait for others to end")
        if self._reason == "exited":
            self._reason = "lost"
        _kill_marked(self._mark)


def _pipe(ends: ExitStack) -> tuple[FileIO, FileIO]:
    near, far = os.pipe()
    os.set_blocking(near, False)
    return ends.enter_context(FileIO(near, "rb")), ends.enter_context(FileIO(far, "wb"))


def _kill_marked(mark: str) -> None:
    # the last resort, when a command has killed both its monitor and the supervisor: kill processes by its marker
    wanted = f"{_MARK}={mark}".encode()
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - names are all that is needed
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:  # noqa: PTH123 - as above
                if wanted in environ.read().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)


def _stop_all() -> None:
    # commands would end with us anyway; stopping them first saves the supervisor a wait
    deadline = time.monotonic() + _EXIT_SECONDS
    running = [each for each in _alive if each.ended is None]
    for each in running:
        each.stop()
    for each in running:
        with suppress(Exception):  # the interpreter is exiting
            each.wait_blocking(max(0.0, deadline - time.monotonic()))


def _abandon_all() -> None:
    for each in list(_alive):
        each.abandon()
    _alive.clear()


atexit.register(_stop_all)
on_fork(in_child=_abandon_all)
