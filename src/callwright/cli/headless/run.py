"""`callwright -p`: one run for a script. stdout holds the result only, and the run never waits for a user."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from callwright.agent.replay import SessionReplay
from callwright.agent.results import LIMIT_KINDS, AgentEvent, Done, Paused, Result, Stopped
from callwright.app.app import App
from callwright.app.attachments import Attachments
from callwright.app.conversation import Conversation
from callwright.app.live import LiveAgent
from callwright.app.locations import Locations
from callwright.app.prompts import UserPrompt
from callwright.app.questions import find_last_questions
from callwright.cli.headless import stream_json
from callwright.cli.headless.approvals import tool_approvals
from callwright.cli.headless.control import NEEDS_STREAM, ControlChannel
from callwright.cli.headless.host import Host
from callwright.cli.headless.input import check_skill_call, parse_user_message, prompt_with_stdin, read_answers
from callwright.cli.headless.output_schema import load_output_schema
from callwright.cli.main import DENIED, DONE, ERROR, INTERRUPTED, LIMIT, PAUSED, TERMINATED
from callwright.cli.render.text import print_json, print_notice, visible
from callwright.cli.startup import enter_app, resolve_session, start
from callwright.core.calls import Answers, Completed, Failed
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.events import CallEnded, Event
from callwright.core.run_events import RequestEnded
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.process import HookRun
from callwright.providers.base import CallDelta, MessageDone, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.streaming import TappedProvider
from callwright.repairs.names import repair_name
from callwright.tool.base import Cancellation

_EXIT_CODES = {
    **dict.fromkeys(LIMIT_KINDS, LIMIT),
    "halted": DENIED,
    "cancelled": INTERRUPTED,
}

_READS_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
"""Set by the SDK, which closes our input once no further turn follows."""


def run(options: argparse.Namespace) -> int:
    """Run the prompts of a headless command and return its exit code."""
    headless = _HeadlessRun(options)
    # before the event loop, which takes the first Ctrl-C for itself and cannot act on it while stdin is read
    headless.read_input()
    return asyncio.run(headless.perform())


class _HeadlessRun:
    """One headless run: its prompts, its output lines and its exit code."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._streaming = options.output_format == "stream-json"
        self._cancellation = Cancellation()
        self._terminated = False
        self._leaving = asyncio.Event()
        self._channel: ControlChannel | None = None
        self._host: Host | None = None
        self._totals = stream_json.RunTotals()
        self._calls: set[str] = set()
        self._denials: list[dict[str, Any]] = []
        self._session_id = ""
        self._live = LiveAgent(Locations.of().live, "headless")
        self._output_type: object = None
        self._prompt: UserPrompt | None = None
        """None to resume a session without a prompt, or if the prompts come one by one."""

    def read_input(self) -> None:
        """Read the schema of the answer and the prompt, before the app starts: a missing one costs no server start.

        Raises:
            UsageError: There is no prompt, or the schema is not valid.
        """
        options = self._options
        if options.json_schema:
            self._output_type = load_output_schema(options.json_schema)
        if options.input_format != "stream-json":
            self._prompt = self._read_prompt()

    async def perform(self) -> int:
        """Run every prompt; return the exit code of the last one that ran."""
        options = self._options
        if options.input_format == "stream-json":
            await self._open_channel()
        self._handle_signals()
        host = self._host
        try:
            program = None if host is None else host.program
            tap = partial(TappedProvider, tell=self._on_model_event)
            app = start(options, report=print_notice, wrap=tap, observe=self._observe, host=program)
        except CallwrightError as error:
            if host is not None:
                host.refuse(str(error))
            raise
        async with enter_app(app, self._leaving) as ready, self._live:
            if not ready:
                return self._leave_early()
            for problem in app.problems:
                print_notice(problem)
            conversation = Conversation(app, *await resolve_session(options, app))
            self._session_id = conversation.session_id
            self._live.model, self._live.stop = app.agent.provider.model, self._stop
            self._live.open_session(self._session_id)
            conversation.attach = Attachments(app, self._session_id, print_notice)
            self._set_approvals(app)
            if self._streaming:
                _print(stream_json.init_line(app, self._session_id))
            if self._channel is not None:
                return await self._run_channel(conversation, self._channel)
            return await self._run_prompt(app, conversation)

    async def _open_channel(self) -> None:
        self._channel = ControlChannel(_print, answers=self._streaming)
        self._channel.start()
        initialize = await self._channel.wait_for_initialize()
        if initialize is None:
            return
        if not self._streaming:
            raise UsageError(NEEDS_STREAM)
        self._host = Host(self._channel, initialize, asks=self._options.permission_prompt_tool == "stdio")

    def _set_approvals(self, app: App) -> None:
        tool = self._options.permission_prompt_tool
        if self._host is not None:
            if self._options.include_hook_events:
                self._host.trace_to = self._trace
            self._host.connect(app, self._session_id)
        elif tool == "stdio":
            raise UsageError("--permission-prompt-tool stdio: the input does not start with an initialize request")
        if tool and tool != "stdio":
            app.agent.ask = tool_approvals(
                app, self._session_id, tool, lambda: self._cancellation.cancel("interrupted")
            )

    def _trace(self, hook: ShellHook, run: HookRun | None) -> None:
        _print(stream_json.hook_line(hook, run, self._session_id))

    async def _run_channel(self, conversation: Conversation, channel: ControlChannel) -> int:
        """Run the prompts of the channel until it ends; a driving program may interrupt one and send another."""
        code, controlled = DONE, self._host is not None
        while (line := await channel.next_prompt()) is not None:
            prompt = parse_user_message(line[1], line[0])
            self._cancellation = Cancellation()
            if self._host is not None:
                self._host.cancellation = self._cancellation
            self._report_state("running")
            code = await self._run_one(conversation.say(prompt, **self._run_arguments()))
            if not channel.waiting:
                self._report_state("idle")
            if self._terminated or (not controlled and (self._cancellation.requested or code == PAUSED)):
                break  # another prompt would decline the pending questions
        channel.end()
        await conversation.end()
        if controlled and code == DENIED:  # the program decided it, or read of it in the result
            code = DONE
        return TERMINATED if self._terminated else code

    def _report_state(self, state: str) -> None:
        if self._host is not None and os.environ.get(_READS_STATE):
            _print(stream_json.state_line(state, self._session_id))

    async def _run_prompt(self, app: App, conversation: Conversation) -> int:
        check_skill_call(self._options.prompt, app.skills)
        answers, arguments, prompt = None, self._run_arguments(), self._prompt
        if prompt is None or self._options.answers is not None:
            waiting = SessionReplay(await app.agent.sessions.read(self._session_id)).open
            # their outcomes belong to the stream, although no model message of this run made the calls
            self._calls.update(call.id for call in (waiting.calls if waiting is not None else ()))
            answers = await self._answers(app)
        if prompt is None:
            code = await self._run_one(conversation.go_on(answers, **arguments))
        else:
            code = await self._run_one(conversation.say(prompt, answers=answers, **arguments))
        await conversation.end()
        return TERMINATED if self._terminated else code

    def _run_arguments(self) -> dict[str, Any]:
        return {"output": self._output_type, "cancellation": self._cancellation}

    def _read_prompt(self) -> UserPrompt | None:
        """Return the prompt to run; None resumes the session."""
        options = self._options
        if not options.prompt and (options.answers is not None or options.resume or options.last):
            return None
        prompt = prompt_with_stdin(options.prompt)
        if not prompt.text.strip():
            raise UsageError("no prompt: give one after -p, or pipe it in")
        return prompt

    async def _answers(self, app: App) -> Answers | None:
        if self._options.answers is None:
            return None
        questions = await find_last_questions(app.agent.sessions, self._session_id)
        if not questions:
            raise UsageError(f"session {self._session_id} has no pending question; leave out --answers")
        outer = SessionReplay(await app.agent.sessions.read(self._session_id)).open
        names = {} if outer is None else {call.id: call.name for call in outer.calls}
        for name in {names[question.within] for question in questions if question.within in names}:
            # shown, or to be found by a search; otherwise the answers would be lost
            catalogs = (app.agent.registry.snapshot(), app.registry.snapshot())
            if not any(catalog.get(name) or repair_name(name, catalog.spellings) for catalog in catalogs):
                raise UsageError(f"{name}, which asks, is not among the tools now; resume with the settings it had")
        return read_answers(self._options.answers, questions)

    async def _run_one(self, events: AsyncGenerator[AgentEvent, None]) -> int:
        began = time.monotonic()
        self._denials = []
        self._totals = stream_json.RunTotals()
        result: Result | None = None
        async with aclosing(events):
            async for event in events:
                if isinstance(event, (Done, Paused, Stopped)):
                    result = event
        if result is None:
            raise UsageError("the run ended without a result")
        code = TERMINATED if self._terminated else _exit_code(result, denied=bool(self._denials))
        seconds = time.monotonic() - began
        line = stream_json.result_line(result, code=code, seconds=seconds, denials=self._denials, totals=self._totals)
        self._conclude(result, line)
        return code

    def _stop(self) -> bool:
        self._cancellation.cancel("stopped from another program")
        return True

    def _observe(self, event: Event) -> None:
        if isinstance(event, RequestEnded) and event.began.session_id == self._session_id:
            self._totals.add(event)
        self._live.observe(event)
        if not isinstance(event, CallEnded):
            return
        outcome = event.outcome
        if isinstance(outcome, Failed) and outcome.error.code == "denied":
            self._denials.append(stream_json.denial_entry(outcome))
        # calls of sub-agents and attachments end here too, and are not part of the stream
        if self._options.verbose and not self._streaming:
            print_notice(f"{outcome.call.name}: {'failed' if isinstance(outcome, Failed) else 'done'}")
        if self._streaming and outcome.call.id in self._calls and isinstance(outcome, (Completed, Failed)):
            try:
                _print(stream_json.outcome_line(outcome, self._session_id))
            except OSError:  # its reader has gone; an observer's error is only logged, and that of the result ends all
                self._cancellation.cancel("the output cannot be written")

    def _on_model_event(self, event: ModelEvent) -> None:
        self._live.on_model_event(event)
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
        _print(stream_json.partial_line(delta, self._session_id))

    def _conclude(self, result: Result, line: dict[str, Any]) -> None:
        if self._options.output_format != "text":
            _print(line)
        elif self._output_type is not None:
            self._conclude_checked(result)
        elif not isinstance(result, Paused) and result.text:
            text = visible(result.text) if sys.stdout.isatty() else result.text  # scripts receive it unchanged
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        if isinstance(result, Paused):
            for question in result.questions:
                reason = "" if question.reason in question.summary else f" {question.reason}"
                print_notice(f"{question.summary}{reason} (call {question.call_id})")
            print_notice(f"paused; {self._how_to_go_on(result)}")
        elif isinstance(result, Stopped):
            print_notice(f"stopped: {result.reason}")
        for denied in self._denials:
            print_notice(f"denied: {denied['tool_name']}: {denied['reason']}")

    def _conclude_checked(self, result: Result) -> None:
        """Print the answer as the JSON that was checked; what did not match is for people, not for the next program."""
        if isinstance(result, Done):
            print_json(result.output)
            sys.stdout.flush()
        elif isinstance(result, Stopped) and result.text:
            print_notice(f"the last answer: {result.text}")

    def _how_to_go_on(self, result: Paused) -> str:
        if self._options.no_session_persistence:
            return "the session was not stored and cannot be continued: run without --no-session-persistence"
        asks = any(question.kind == "input" for question in result.questions)
        form = '\'{"CALL": {"reply": "…"}}\'' if asks else "allow|deny"
        return f"continue with: callwright -p --resume {result.session_id} --answers {form}"

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the window was closed; nohup lets the run go on
            loop.add_signal_handler(signal.SIGHUP, self._terminate)

    def _interrupt(self, reason: str = "interrupted") -> None:
        if self._channel is not None:
            self._channel.end()
        self._leaving.set()
        self._cancellation.cancel(reason)

    def _terminate(self) -> None:
        self._terminated = True
        self._interrupt("terminated")

    def _leave_early(self) -> int:
        """End before the run has begun."""
        reason = self._cancellation.reason
        if self._host is not None:
            self._host.refuse(reason)
        print_notice(f"stopped: {reason}")
        return TERMINATED if self._terminated else INTERRUPTED


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
