"""The control channel of a headless run: lines of JSON on stdin and stdout, shared with the program that drives it.

stdin                                          stdout
  user messages, taken one after the other       the stream of the run
  control_request: initialize, interrupt, …      control_response to it, exactly one
  control_response to our requests               control_request: can_use_tool, hook_callback, mcp_message
"""

import asyncio
import os
import sys
import threading
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

from callwright.core.errors import CallwrightError, UsageError
from callwright.core.json import parse_strictly, read_object

Message: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Message], Awaitable[Mapping[str, Any]]]
_MOST_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 16
NEEDS_STREAM = "control messages on stdin need --output-format stream-json"
_IGNORED = ("keep_alive", "control_cancel_request")


class ControlError(CallwrightError):
    """The driving program answered a request with an error, or cannot answer any more."""


class ControlChannel:
    """Reads stdin from a thread, and correlates requests with their responses.

    Args:
        write: Writes one message to stdout.
        answers: Whether stdout is a stream of messages, so that requests can be answered in it.
    """

    def __init__(self, write: Callable[[Message], None], *, answers: bool = True) -> None:
        self._write = write
        self._answers = answers
        self._loop = asyncio.get_running_loop()
        self._handler: Handler | None = None
        self._early: list[Message] = []
        """Requests that came before there was a handler."""
        self._prompts: deque[tuple[int, str]] = deque()
        self._changed = asyncio.Event()
        self._first: asyncio.Future[Message | None] = self._loop.create_future()
        self._open: dict[str, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._line_number = 0
        self._ended = False
        self._fault = ""

    def start(self) -> None:
        """Begin to read."""
        # a daemon thread on the bare descriptor: a blocked read must not hold up the end of the process
        threading.Thread(target=self._read, args=(_descriptor(),), name="stdin", daemon=True).start()

    async def wait_for_initialize(self) -> Message | None:
        """Return the `initialize` request that the input starts with; None if it starts with anything else."""
        return await self._first

    def serve(self, handler: Handler) -> None:
        """Answer requests with this handler from now on."""
        self._handler = handler
        early, self._early = self._early, []
        for message in early:
            self._start_answer(message)

    @property
    def waiting(self) -> bool:
        """Whether a prompt waits to be taken."""
        return bool(self._prompts)

    async def next_prompt(self) -> tuple[int, str] | None:
        """Return the next line that is not part of the control protocol, with its number; None at the end."""
        while not self._prompts and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if self._prompts:
            return self._prompts.popleft()
        if self._fault:
            raise UsageError(self._fault)
        if not self._line_number:
            raise UsageError("no prompt: --input-format stream-json found no message on stdin")
        return None

    def end(self) -> None:
        """Take no further prompts."""
        self._prompts.clear()
        self._ended = True
        self._changed.set()

    async def request(self, request: Mapping[str, Any]) -> Message:
        """Send a request and return its response.

        Raises:
            ControlError: The response is an error or not an object, or the input has ended.
        """
        request_id = f"cw-{uuid.uuid4()}"
        future: asyncio.Future[Message] = self._loop.create_future()
        self._open[request_id] = future
        try:
            if self._ended:
                raise ControlError("the program that drives this one has closed its input")
            self._write({"type": "control_request", "request_id": request_id, "request": dict(request)})
            return await future
        except asyncio.CancelledError:
            self._write({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            self._open.pop(request_id, None)

    def respond(self, request_id: str, response: Mapping[str, Any]) -> None:
        """Answer a request with success."""
        body = {"subtype": "success", "request_id": request_id, "response": dict(response)}
        self._write({"type": "control_response", "response": body})

    def refuse(self, request_id: str, error: str) -> None:
        """Answer a request with an error."""
        body = {"subtype": "error", "request_id": request_id, "error": error}
        self._write({"type": "control_response", "response": body})

    def _read(self, descriptor: int) -> None:
        data = bytearray()
        fault = ""
        try:
            while chunk := os.read(descriptor, _CHUNK_BYTES):
                data += chunk
                if b"\n" in chunk:
                    *lines, rest = data.split(b"\n")
                    data = bytearray(rest)
                    self._hand_over([bytes(line).decode("utf-8", "replace") for line in lines])
                if len(data) > _MOST_BYTES:
                    fault = f"stdin has a line of more than {_MOST_BYTES} bytes"
                    break
        except OSError as error:
            fault = f"stdin cannot be read: {error.strerror or error}"
        if data and not fault:
            self._hand_over([data.decode("utf-8", "replace")])
        self._call(self._finish, fault)

    def _hand_over(self, lines: list[str]) -> None:
        self._call(self._take_all, lines)

    def _call(self, function: Callable[[Any], None], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, value)
        except RuntimeError:  # the run has ended, and its loop with it
            return

    def _take_all(self, lines: list[str]) -> None:
        for line in lines:
            self._line_number += 1
            if line.strip() and not self._fault:
                self._take(line)

    def _take(self, line: str) -> None:
        message = _parse(line)
        kind = message.get("type")
        if kind == "control_response":
            self._settle(message.get("response"))
        elif kind == "control_request":
            self._take_request(message)
        elif kind not in _IGNORED:
            if not message:  # it may have been the answer to an open request, which must not wait for ever
                self._fail_open(f"stdin line {self._line_number} is not a message")
            self._open_with(None)
            self._prompts.append((self._line_number, line))
            self._changed.set()

    def _open_with(self, message: Message | None) -> None:
        if not self._first.done():
            self._first.set_result(message)

    def _take_request(self, message: Message) -> None:
        request: object = message.get("request")
        kind = read_object(request).get("subtype")
        if kind == "initialize" and not self._first.done():
            self._first.set_result(message)
        elif not self._first.done() or self._first.result() is None:
            # at once: a program that waits for the answer would send nothing else
            self._refuse_uncontrolled(message)
        elif self._handler is None:
            self._early.append(message)
        else:
            self._start_answer(message)

    def _refuse_uncontrolled(self, message: Message) -> None:
        kind = read_object(message.get("request")).get("subtype")
        if not self._answers:
            self._finish(f"stdin line {self._line_number}: {NEEDS_STREAM}")
            return
        self.refuse(
            str(message.get("request_id")),
            f"{kind}: the input must start with an initialize request; send it before user messages and other requests",
        )

    def _settle(self, response: object) -> None:
        given = read_object(response)
        future = self._open.get(str(given.get("request_id")))
        if future is None or future.done():
            return  # an answer to nothing that is open: answered already, or given up
        body: object = given.get("response", {})
        if given.get("subtype") != "success":
            future.set_exception(ControlError(str(given.get("error") or "the request failed without a reason")))
        elif not isinstance(body, dict):
            future.set_exception(ControlError(f"expected an object as the response, got {body!r:.80}"))
        else:
            future.set_result(cast("Message", body))

    def _start_answer(self, message: Message) -> None:
        task = asyncio.ensure_future(self._answer(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Message) -> None:
        request_id, request = message.get("request_id"), message.get("request")
        if not isinstance(request_id, str) or not isinstance(request, dict) or self._handler is None:
            self.refuse(str(request_id), "a control_request needs a request_id and a request with a subtype")
            return
        try:
            response = await self._handler(cast("Message", request))
        except CallwrightError as error:
            self.refuse(request_id, str(error))
        else:
            self.respond(request_id, response)

    def _finish(self, fault: str) -> None:
        self._ended, self._fault = True, self._fault or fault
        self._open_with(None)
        self._changed.set()
        self._fail_open("the program that drives this one has closed its input")

    def _fail_open(self, reason: str) -> None:
        for future in self._open.values():
            if not future.done():
                future.set_exception(ControlError(reason))


def _descriptor() -> int:
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        raise UsageError("--input-format stream-json needs stdin, which is closed") from None


def _parse(line: str) -> Message:
    """Return the message of a line; an empty one if it is not an object, which is reported as a prompt."""
    try:
        message = parse_strictly(line)
    except (ValueError, RecursionError):
        return {}
    return cast("Message", message) if isinstance(message, dict) else {}
