"""`callwright -p`: one run for a script. stdout holds the result only, and the run never waits for a user."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from callwright.agent.replay import SessionReplay
from callwright.agent.results import AgentEvent, Done, Paused, Result, Stopped
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.prompts import UserPrompt
from callwright.app.questions import open_questions
from callwright.cli.attachments import Attachments
from callwright.cli.headless import stream_json
from callwright.cli.headless.input import messages_on_stdin, prompt_with_stdin, read_answers
from callwright.cli.headless.output_schema import load_output_schema
from callwright.cli.main import DENIED, DONE, ERROR, INTERRUPTED, LIMIT, PAUSED, TERMINATED
from callwright.cli.render.text import print_json, print_notice, visible
from callwright.cli.startup import resolve_session, start
from callwright.core.calls import Answers, Completed, Failed
from callwright.core.errors import UsageError
from callwright.core.events import CallEnded, Event
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, Provider, TextDelta, ThinkingDelta
from callwright.providers.streaming import TappedProvider
from callwright.tool.base import Cancellation

_EXIT_CODES = {
    "turns": LIMIT,
    "tokens": LIMIT,
    "money": LIMIT,
    "seconds": LIMIT,
    "repeated": LIMIT,
    "halted": DENIED,
    "cancelled": INTERRUPTED,
}


def run(options: argparse.Namespace) -> int:
    """Run the prompts of a headless command and return its exit code."""
    return asyncio.run(_HeadlessRun(options).perform())


class _HeadlessRun:
    """One headless run: its prompts, its output lines and its exit code."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._streaming = options.output_format == "stream-json"
        self._cancellation = Cancellation()
        self._terminated = False
        self._calls: set[str] = set()
        self._denials: list[dict[str, Any]] = []
        self._session_id = ""
        self._output_type: object = None

    async def perform(self) -> int:
        """Run every prompt; return the exit code of the last one that ran."""
        options = self._options
        if options.json_schema:
            self._output_type = load_output_schema(options.json_schema)
        # before the app starts: a missing prompt should cost no server start
        prompts = self._prompts()
        self._handle_signals()
        async with start(options, report=print_notice, wrap=self._tap, observe=self._observe) as app:
            for problem in app.problems:
                print_notice(problem)
            conversation = Conversation(app, *await resolve_session(options, app))
            self._session_id = conversation.session_id
            conversation.attach = Attachments(app, self._session_id, print_notice)
            if self._streaming:
                _print(stream_json.init_line(app, self._session_id))
            return await self._run_all(app, conversation, prompts)

    async def _run_all(self, app: App, conversation: Conversation, prompts: Iterator[str | UserPrompt] | None) -> int:
        code = 0
        if prompts is None:
            waiting = SessionReplay(await app.agent.sessions.read(self._session_id)).open
            # their outcomes belong to the stream, although no model message of this run made the calls
            self._calls.update(call.id for call in (waiting.calls if waiting is not None else ()))
            code = await self._run_one(conversation.go_on(await self._answers(app), **self._run_arguments()))
        for prompt in prompts or ():
            code = await self._run_one(conversation.say(prompt, **self._run_arguments()))
            if self._cancellation.requested or code == PAUSED:  # another prompt would decline the pending questions
                break
        await conversation.end()
        return TERMINATED if self._terminated else code

    def _run_arguments(self) -> dict[str, Any]:
        return {"output": self._output_type, "cancellation": self._cancellation}

    def _prompts(self) -> Iterator[str | UserPrompt] | None:
        """Return the prompts to run; None resumes the session without one."""
        options = self._options
        if options.input_format == "stream-json":
            return messages_on_stdin()
        if options.answers is not None or ((options.resume or options.last) and not options.prompt):
            return None
        prompt = prompt_with_stdin(options.prompt)
        if not prompt.text.strip():
            raise UsageError("no prompt: give one after -p, or pipe it in")
        return iter([prompt])

    async def _answers(self, app: App) -> Answers | None:
        if self._options.answers is None:
            return None
        questions = await open_questions(app.agent.sessions, self._session_id)
        if not questions:
            raise UsageError(f"session {self._session_id} has no pending question; leave out --answers")
        return read_answers(self._options.answers, questions)

    async def _run_one(self, events: AsyncGenerator[AgentEvent, None]) -> int:
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
        line = stream_json.result_line(result, code=code, seconds=seconds, denials=self._denials)
        self._conclude(result, line)
        return code

    def _observe(self, event: Event) -> None:
        if not isinstance(event, CallEnded):
            return
        outcome = event.outcome
        if isinstance(outcome, Failed) and outcome.error.code == "denied":
            self._denials.append(stream_json.denial_entry(outcome))
        # calls of sub-agents and attachments end here too, and are not part of the stream
        if self._streaming and outcome.call.id in self._calls and isinstance(outcome, (Completed, Failed)):
            _print(stream_json.outcome_line(outcome, self._session_id))

    def _on_model_event(self, event: ModelEvent) -> None:
        if isinstance(event, MessageDone):
            self._calls.update(call.id for call in event.message.calls)
            if self._streaming:
                _print(stream_json.assistant_line(event.message, self._session_id))
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
            text = visible(result.text) if sys.stdout.isatty() else result.text  # scripts receive it unchanged
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        if isinstance(result, Paused):
            for question in result.questions:
                print_notice(f"{question.summary} {question.reason} (call {question.call_id})")
            asks = any(question.kind == "input" for question in result.questions)
            form = '\'{"CALL": {"reply": "…"}}\'' if asks else "allow|deny"
            print_notice(f"paused; continue with: callwright -p --resume {result.session_id} --answers {form}")
        elif isinstance(result, Stopped):
            print_notice(f"stopped: {result.reason}")
        for denied in self._denials:
            print_notice(f"denied: {denied['tool_name']}: {denied['reason']}")

    def _tap(self, provider: Provider) -> Provider:
        return TappedProvider(provider, self._on_model_event)

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._cancellation.cancel, "interrupted")
        loop.add_signal_handler(signal.SIGTERM, self._terminate)

    def _terminate(self) -> None:
        self._terminated = True
        self._cancellation.cancel("terminated")


def _print(line: dict[str, Any]) -> None:
    print_json(line)
    sys.stdout.flush()


def _exit_code(result: Result, *, denied: bool) -> int:
    """Return the exit code of a result; a denied call counts only if the run itself succeeded."""
    if isinstance(result, Paused):
        return PAUSED
    if isinstance(result, Done):
        return DENIED if denied else DONE
    return _EXIT_CODES.get(result.kind, ERROR)
