"""`callwright -p`: one run for a script. stdout carries the document and nothing else; nobody is waited for."""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from callwright.agent.recall import Recalled
from callwright.agent.result import AgentEvent, Done, Paused, Result, Stopped
from callwright.app.assemble import App
from callwright.app.conversation import Conversation
from callwright.app.skilled import STDIN_BEGINS
from callwright.cli import wire
from callwright.cli.answering import open_questions, read_answers
from callwright.cli.attach import Attaching
from callwright.cli.exits import DENIED, DONE, ERROR, INTERRUPTED, LIMIT, PAUSED, TERMINATED
from callwright.cli.given import messages_on_stdin, prompt_with_stdin
from callwright.cli.session import begin
from callwright.cli.show import tell, visible
from callwright.cli.start import start
from callwright.core.call import Answers, Completed, Failed
from callwright.core.errors import UsageError
from callwright.core.event import CallEnded, Event
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, Provider, TextDelta, ThinkingDelta
from callwright.providers.overhear import Overheard
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
            from callwright.cli.shape import shape_of

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
            waiting = Recalled(await app.agent.sessions.read(self._session_id)).open
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
        return Overheard(provider, self._overheard)

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
