"""The live socket of a running agent: tells its events and open questions to the user's other programs, takes replies.

One JSON object per line in both directions. The first line is `hello` with the state so far, then events follow as they
happen. A request has an `id`, and its result comes as an event of type `result` with the same id:

    {"id": 1, "op": "answer", "question": ID, "reply": {"approved": true}, "by": "page"}
    {"id": 2, "op": "say", "text": "go on"}          {"id": 3, "op": "stop"}

Every question is open in all places at once. The first reply counts; the others learn who was first.
"""

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from callwright.agent.subagent import INNER_SESSION, InnerCalls
from callwright.app.app import App
from callwright.app.questions import question_fields, read_reply
from callwright.app.session_view import outcome_fields
from callwright.app.shared_questions import SharedQuestions
from callwright.core.calls import Question
from callwright.core.errors import UsageError, describe_exception, safe_str
from callwright.core.events import CallBegan, CallEnded, CallProgressed, CallRetried, CallWaits, Event
from callwright.core.json import parse_strictly
from callwright.core.run_events import RunBegan, RunEnded
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, TextDelta, ThinkingDelta
from callwright.registry import Toolset
from callwright.system.private_files import is_own_peer, make_socket_folder, socket_folder

_log = logging.getLogger("callwright")
_MOST_REQUEST_BYTES = 2 << 20
_MOST_UNSENT_BYTES = 8 << 20
"""A reader that is further behind is disconnected; it may connect again and start from the state of that moment."""
_MOST_PROGRESS_CHARS = 2_000
_MOST_WAITS = 500
Fields = dict[str, Any]


def _send(reader: asyncio.StreamWriter, line: bytes) -> None:
    if reader.transport.get_write_buffer_size() > _MOST_UNSENT_BYTES:
        reader.transport.abort()
    elif not reader.is_closing():
        reader.write(line)


class LiveAgent:
    """A running agent as the user's other programs see it.

    Use it as an async context manager: the socket exists inside. If it cannot be opened, the agent runs without.

    Args:
        folder: The folder of the project's live sockets, `Locations.live`.
        where: The agent's own place: `terminal`, `page`, `headless` or `editor`.
        toolset: The agent's tools, for previews.
    """

    def __init__(self, folder: Path, where: str, toolset: Toolset | None = None) -> None:
        self.where = where
        self.session_id = ""
        self.model = ""
        self.toolset = toolset
        self.problem = ""
        """Why there is no socket; empty if there is one."""
        self.mode: Callable[[], str] = lambda: ""
        self.say: Callable[[str], None] | None = None
        """Takes a prompt from another place."""
        self.stop: Callable[[], bool] | None = None
        """Stops the run; False if none is going on."""
        self.set_mode: Callable[[str], None] | None = None
        self.questions = SharedQuestions(where, self.publish)
        self.questions.describe = self._describe_question
        self._folder = socket_folder(folder)
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._readers: set[asyncio.StreamWriter] = set()
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[str, Fields] = {}
        self._running: dict[str, Fields] = {}
        self._waits: dict[str, list[str]] = {}
        self._inner_calls = InnerCalls()
        self._runs = 0
        self._end: Fields = {}
        self._told_mode = ""

    async def __aenter__(self) -> "LiveAgent":
        try:
            make_socket_folder(self._folder)
            name = f"{os.getpid()}-{secrets.token_hex(3)}"
            new, path = self._folder / f"{name}.new", self._folder / f"{name}.sock"
            self._server = await asyncio.start_unix_server(self._accept, new, limit=_MOST_REQUEST_BYTES)
            new.chmod(0o600)
            new.rename(path)  # found only now: one that does not listen yet is taken for a dead one, and removed
            self._path = path
        except OSError as error:
            self.problem = f"other programs cannot follow this agent: {describe_exception(error)}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await asyncio.sleep(0)  # the connections are closed in the next round of the loop

    def show_app(self, app: App) -> None:
        """Show the tools, the model and the mode of an app."""
        self.toolset, self.model, self.mode = app.executor.registry, app.agent.provider.model, lambda: app.switch.mode

    @property
    def state(self) -> str:
        """`waiting` for an answer, `running`, or `idle`."""
        return "waiting" if len(self.questions) else "running" if self._runs else "idle"

    @property
    def followed(self) -> bool:
        """Whether any program receives the events."""
        return bool(self._readers)

    def open_session(self, session_id: str) -> None:
        """Follow another session from now on."""
        if self.session_id and session_id != self.session_id:
            self.publish({"type": "agent", "state": "gone", "where": self.where, "pid": os.getpid()})
            self._end = {}
        self.session_id = session_id
        self._forget_message()
        self._publish_state()

    def publish(self, event: Fields) -> None:
        """Tell an event to everyone who listens."""
        if not self._readers:
            return
        line = _encode({"session": self.session_id, **event})
        for reader in list(self._readers):
            _send(reader, line)
        if event["type"] in ("asked", "settled"):
            self._publish_state()

    def observe(self, event: Event) -> None:
        """Tell an event of the executor or of the agent; an observer of both."""
        if self._inner_calls.has(event):
            return
        now = time.time()
        match event:
            case RunBegan(session_id) if not session_id.startswith(INNER_SESSION):
                self._runs += 1
                self._end = {}
                self.publish({"type": "run_began", "at": now})
                self._publish_state()
            case RunEnded(began=began, ended=ended, reason=reason, cost=cost) if not began.session_id.startswith(
                INNER_SESSION
            ):
                self._runs = max(self._runs - 1, 0)
                self._running.clear()
                self._forget_message()
                self._end = {"ended": ended, "reason": reason, "at": now}
                self.publish({"type": "run_ended", **self._end, "cost": cost})
                self._publish_state()
            case CallWaits(call, on):
                self._waits[call.id] = [other.id for other in on]
                if len(self._waits) > _MOST_WAITS:
                    del self._waits[next(iter(self._waits))]
                waits = {"call": call.id, "name": call.name, "on": self._waits[call.id]}
                self.publish({"type": "call_waits", **waits, "at": now})
            case CallBegan(call):
                self._running[call.id] = {"id": call.id, "name": call.name, "since": now, "progress": ""}
                self.publish({"type": "call_began", "call": call.id, "name": call.name, "at": now})
            case CallProgressed(call, progress):
                text = safe_str(progress)[-_MOST_PROGRESS_CHARS:]
                if call.id in self._running:
                    self._running[call.id]["progress"] = text
                self.publish({"type": "call_progressed", "call": call.id, "text": text, "at": now})
            case CallRetried(call, error, attempt, seconds):
                retry = {"call": call.id, "attempt": attempt, "delay_seconds": seconds, "error": str(error)}
                self.publish({"type": "call_retried", **retry, "at": now})
            case CallEnded(outcome):
                self._running.pop(outcome.call.id, None)
                if self._readers:  # describing a long output is not free
                    self.publish({"type": "call_ended", "outcome": outcome_fields(outcome), "at": now})
            case _:
                pass

    def on_model_event(self, event: ModelEvent) -> None:
        """Tell an event of the model; for the tap of its provider."""
        match event:
            case TextDelta(text):
                self._text.append(text)
                self.publish({"type": "text", "text": text})
            case ThinkingDelta(text):
                self._thinking.append(text)
                self.publish({"type": "thinking", "text": text})
            case CallDelta(call_id, name, arguments):
                known = self._calls.setdefault(call_id, {"id": call_id, "name": name, "arguments": ""})
                known["arguments"] += arguments
                self.publish({"type": "call_text", "call": call_id, "name": name, "text": arguments})
            case MessageDone():
                self._forget_message()
                self.publish({"type": "message"})

    def notice(self, text: str) -> None:
        """Tell a message for the user."""
        self.publish({"type": "notice", "text": text})

    def _forget_message(self) -> None:
        self._text, self._thinking, self._calls = [], [], {}

    def _describe_question(self, question: Question, at: float) -> Fields:
        if self.toolset is None:
            return {"id": question.id, "session": self.session_id}
        return question_fields(question, self.session_id, self.toolset, at)

    def tell_mode(self) -> None:
        """Tell the mode if it has changed."""
        if self.mode() != self._told_mode:
            self._publish_state()

    def _publish_state(self) -> None:
        self._told_mode = mode = self.mode()
        self.publish({"type": "agent", "state": self.state, "where": self.where, "pid": os.getpid(), "mode": mode})

    def hello(self) -> Fields:
        """Return the state so far, as the first line of a connection has it."""
        partial = {
            "text": "".join(self._text),
            "thinking": "".join(self._thinking),
            "calls": list(self._calls.values()),
        }
        return {
            "type": "hello",
            "session": self.session_id,
            "state": self.state,
            "where": self.where,
            "pid": os.getpid(),
            "model": self.model,
            "mode": self.mode(),
            "questions": self.questions.fields(),
            "partial": partial,
            "running": list(self._running.values()),
            "waits": self._waits,
            "end": self._end,
        }

    def _accept(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(stream, writer))
        self._serving[task] = writer
        task.add_done_callback(self._end_connection)

    def _end_connection(self, task: "asyncio.Task[None]") -> None:
        """Close a connection; here, because a task that is cancelled before it begins does nothing itself."""
        self._serving.pop(task).close()

    async def _serve(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_own_peer(writer.get_extra_info("socket")):
            writer.transport.abort()
            return
        try:
            writer.write(_encode(self.hello()))
            self._readers.add(writer)
            while line := await stream.readline():
                _send(writer, _encode({"type": "result", **self._perform(line)}))
        except (OSError, ValueError, asyncio.IncompleteReadError):  # the other side is gone, or sent too long a line
            pass
        finally:
            self._readers.discard(writer)

    def _perform(self, line: bytes) -> Fields:
        """Return the result of a request; what is not understood is refused and changes nothing."""
        request_id: object = None
        try:
            found = parse_strictly(line)
            if not isinstance(found, dict):
                raise UsageError("expected a JSON object")
            request = cast("Fields", found)
            request_id = request.get("id")
            return {"id": request_id, **self._dispatch(request)}
        except (UsageError, ValueError, RecursionError) as error:
            return {"id": request_id, "ok": False, "code": "invalid", "error": safe_str(error)}
        except Exception as error:  # noqa: BLE001 - a request must not end the connection
            _log.exception("a request to the live socket failed")
            return {"id": request_id, "ok": False, "code": "internal", "error": type(error).__name__}

    def _dispatch(self, request: Mapping[str, Any]) -> Fields:
        match request:
            case {"op": "answer", "question": str() as question, "reply": dict(), "by": str() as by}:
                return self._answer(question, cast("Fields", request["reply"]), by)
            case {"op": "say", "text": str() as text} if self.say is not None:
                if not text.strip() or text.lstrip().startswith(("!", "/")):
                    raise UsageError("expected a prompt; commands with ! and / are typed in the terminal")
                queued = self.state != "idle"
                self.say(text)
                return {"ok": True, "queued": queued}
            case {"op": "stop"} if self.stop is not None:
                return {"ok": True} if self.stop() else {"ok": False, "code": "gone", "error": "nothing is running"}
            case {"op": "mode", "mode": str() as mode} if self.set_mode is not None:
                self.set_mode(mode)
                self.tell_mode()
                return {"ok": True, "mode": self.mode()}
            case _:
                raise UsageError(f"this agent does not take {request.get('op')!r} from another place")

    def _answer(self, question_id: str, given: Fields, by: str) -> Fields:
        earlier = self.questions.find_settled(question_id)
        question = self.questions.find(question_id)
        if earlier is None and question is None:
            return {"ok": False, "code": "not_found", "error": "there is no such open question, or it has expired"}
        if question is not None:
            if self.toolset is None:
                raise UsageError("this agent does not take answers from another place")
            reply = read_reply(question, given, self.toolset, by or "another place")
            earlier = self.questions.settle(question_id, reply, by or "another place")
        if earlier is None:
            return {"ok": True}
        return {"ok": False, "code": "answered", "error": earlier.describe(), **earlier.fields()}


def _encode(event: Fields) -> bytes:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
