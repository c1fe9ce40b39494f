"""`callwright -p`: one run for a script. stdout carries the document and nothing else; nobody is waited for.

`--json-schema`: an answer held to a JSON Schema, by way of the types the agent understands.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from callwright.agent.results import AgentEvent, Done, Paused, Result, Stopped
from callwright.agent.transcript import SessionReplay
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.skills.service import STDIN_BEGINS
from callwright.cli.attachments import Attaching
from callwright.cli.headless import io as wire
from callwright.cli.headless.io import messages_on_stdin, open_questions, prompt_with_stdin, read_answers
from callwright.cli.main import DENIED, DONE, ERROR, INTERRUPTED, LIMIT, PAUSED, TERMINATED
from callwright.cli.parsing import begin
from callwright.cli.render.calls import tell, visible
from callwright.cli.startup import start
from callwright.core.calls import Answers, Completed, Failed
from callwright.core.errors import UsageError, plainly
from callwright.core.events import CallEnded, Event
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, Provider, TextDelta, ThinkingDelta
from callwright.providers.streaming import TappedProvider
from callwright.tool.base import Cancellation

_OF_KIND = {
    "turns": LIMIT,
    "tokens": LIMIT,
    "money": LIMIT,
    "seconds": LIMIT,
    "repeated": LIMIT,
    "halted": DENIED,
    "cancelled": INTERRUPTED,
}


def run(options: argparse.Namespace) -> int:
    """Carry out the run and return its exit code."""
    return asyncio.run(_Run(options).perform())


class _Run:
    """One headless run and what it has to report."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._streaming = options.output_format == "stream-json"
        self._cancellation = Cancellation()
        self._terminated = False
        self._calls: set[str] = set()
        self._denials: list[dict[str, Any]] = []
        self._session_id = ""
        self._shape: object = None

    async def perform(self) -> int:
        """Say every prompt there is; the last one's end is the run's, unless it was stopped or has to wait."""
        options = self._options
        if options.json_schema:
            self._shape = shape_of(options.json_schema)
        prompts = self._prompts()
        self._hear_signals()
        async with start(options, report=tell, wrap=self._overhear, observe=self._observe) as app:
            for problem in app.problems:
                tell(problem)
            conversation = Conversation(app, *await begin(options, app))
            self._session_id = conversation.session_id
            attaching = Attaching(app, self._session_id, tell)
            conversation.attach = lambda prompt: attaching(prompt.partition(STDIN_BEGINS)[0])
            if self._streaming:
                _print(wire.init_line(app, self._session_id))
            return await self._all(app, conversation, prompts)

    async def _all(self, app: App, conversation: Conversation, prompts: Iterator[str] | None) -> int:
        code = 0
        if prompts is None:
            waiting = SessionReplay(await app.agent.sessions.read(self._session_id)).open
            self._calls.update(call.id for call in (waiting.calls if waiting is not None else ()))
            code = await self._one(app, conversation.go_on(await self._answers(app), **self._how()))
        for prompt in prompts or ():
            code = await self._one(app, conversation.say(prompt, **self._how()))
            if self._cancellation.requested or code == PAUSED:  # going on would be a no to what is waited for
                break
        await conversation.end()
        return TERMINATED if self._terminated else code

    def _how(self) -> dict[str, Any]:
        return {"output": self._shape, "cancellation": self._cancellation}

    def _prompts(self) -> Iterator[str] | None:
        """What is to be said; None: nothing, the session goes on where it stands."""
        options = self._options
        if options.input_format == "stream-json":
            return messages_on_stdin()
        if options.answers is not None or ((options.resume or options.last) and not options.prompt):
            return None
        prompt = prompt_with_stdin(options.prompt)
        if not prompt.strip():
            raise UsageError("there is nothing to say: give a prompt after -p, or pipe one in")
        return iter([prompt])

    async def _answers(self, app: App) -> Answers | None:
        if self._options.answers is None:
            return None
        questions = await open_questions(app.agent.sessions, self._session_id)
        if not questions:
            raise UsageError(f"session {self._session_id} waits for no answer; leave out --answers")
        return read_answers(self._options.answers, questions)

    async def _one(self, app: App, events: AsyncGenerator[AgentEvent, None]) -> int:
        began = time.monotonic()
        result: Result | None = None
        async with aclosing(events):
            async for event in events:
                if isinstance(event, (Done, Paused, Stopped)):
                    result = event
        if result is None:
            raise UsageError("the run ended without a result")
        code = _exit_code(result, denied=bool(self._denials))
        seconds = time.monotonic() - began
        line = wire.result_line(result, code=code, seconds=seconds, denials=self._denials)
        self._conclude(result, line)
        return code

    def _observe(self, event: Event) -> None:
        if not isinstance(event, CallEnded):
            return
        outcome = event.outcome
        if isinstance(outcome, Failed) and outcome.error.code == "denied":
            self._denials.append(wire.denial(outcome))
        if self._streaming and outcome.call.id in self._calls and isinstance(outcome, (Completed, Failed)):
            _print(wire.outcome_line(outcome, self._session_id))

    def _overheard(self, event: ModelEvent) -> None:
        if isinstance(event, MessageDone):
            self._calls.update(call.id for call in event.message.calls)
            if self._streaming:
                _print(wire.assistant_line(event.message, self._session_id))
        elif self._streaming and self._options.include_partial_messages:
            self._partial(event)

    def _partial(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text):
                delta = {"type": "text_delta", "text": text}
            case ThinkingDelta(text):
                delta = {"type": "thinking_delta", "thinking": text}
            case CallDelta(call_id, name, arguments):
                delta = {"type": "input_json_delta", "id": call_id, "name": name, "partial_json": arguments}
            case _:
                return
        inner = {"type": "content_block_delta", "delta": delta}
        _print({"type": "stream_event", "event": inner, "session_id": self._session_id})

    def _conclude(self, result: Result, line: dict[str, Any]) -> None:
        if self._options.output_format != "text":
            _print(line)
        elif not isinstance(result, Paused) and result.text:
            text = visible(result.text) if sys.stdout.isatty() else result.text  # scripts get it as it was said
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        if isinstance(result, Paused):
            for question in result.questions:
                tell(f"{question.summary} {question.reason} (call {question.call_id})")
            tell(f"paused; go on with: callwright -p --resume {result.session_id} --answers allow|deny")
        elif isinstance(result, Stopped):
            tell(f"stopped: {result.reason}")
        for denied in self._denials:
            tell(f"denied: {denied['tool_name']}: {denied['reason']}")

    def _overhear(self, provider: Provider) -> Provider:
        return TappedProvider(provider, self._overheard)

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._cancellation.cancel, "interrupted")
        loop.add_signal_handler(signal.SIGTERM, self._terminate)

    def _terminate(self) -> None:
        self._terminated = True
        self._cancellation.cancel("terminated")


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def _exit_code(result: Result, *, denied: bool) -> int:
    """The number for a run's end; what was denied on the way shows only where nothing worse happened."""
    if isinstance(result, Paused):
        return PAUSED
    if isinstance(result, Done):
        return DENIED if denied else DONE
    return _OF_KIND.get(result.kind, ERROR)


def shape_of(given: str) -> object:
    """Read a schema from a file or from JSON and make it a type of which the answer must be."""
    source = given if given.lstrip().startswith(("{", "[")) else _read(given)
    where = "--json-schema" if source == given else f"--json-schema {given}"
    try:
        schema: object = json.loads(source)
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    try:
        shape = _Shape(schema)
    except ValueError as error:
        raise UsageError(f"{where} is no JSON Schema: {str(error).splitlines()[0]}") from None
    return Annotated[Any, shape]


def _read(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except OSError as error:
        raise UsageError(f"--json-schema {name}: {plainly(error)}; give a file, or the schema itself") from None


class _Shape:
    """Tells pydantic what a schema says."""

    def __init__(self, schema: object) -> None:
        import jsonschema_rs

        if not isinstance(schema, dict):
            raise UsageError(f"--json-schema: a schema is an object, not {schema!r}")
        self._schema = cast("dict[str, Any]", schema)
        self._validator = jsonschema_rs.validator_for(self._schema)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self._schema

    def _check(self, value: Any) -> Any:
        for error in self._validator.iter_errors(value):
            place = ".".join(map(str, error.instance_path)) or "the answer"
            raise PydanticCustomError("json_schema", "{place}: {message}", {"place": place, "message": error.message})
        return value
