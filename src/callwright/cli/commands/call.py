"""`callwright call`: runs one tool with the same hooks, rules and guards as calls of the agent."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.cli.main import DENIED, DONE, ERROR, PAUSED
from callwright.cli.options import add_agent_options
from callwright.cli.parsing import Parser
from callwright.cli.render.text import print_json, print_notice, print_text
from callwright.cli.startup import run_options, settings_for
from callwright.core.calls import Answers, Completed, Failed, Outcome, Question, ToolCall
from callwright.core.errors import InvalidArguments, ToolError, UnknownTool
from callwright.executor.turn_context import Turn
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError

_DESCRIPTION = """\
Runs one tool and prints its output. Hooks, rules and guards apply as they do to calls of the agent. A call that needs
approval does not run (exit code 4) unless --yes is given. Control characters and invisible characters in the output
are escaped; --json prints it exactly."""
_EPILOG = """\
exit codes: 0 done, 1 the tool failed, 2 usage error, 3 denied, 4 approval needed (--yes)

examples:
  callwright call read '{"path": "README.md"}'
  callwright call bash '{"command": "git status"}'
  callwright call write '{"path": "a.txt", "content": "hello"}' --yes
"""


class NoModel:
    """A provider for commands that use an app without its model."""

    model = ""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Raise `ProviderError`."""
        raise ProviderError("this command has no model", fault="invalid")
        yield  # makes it a generator, as the protocol requires


def app_without_model(options: argparse.Namespace, folder: Path | None = None) -> App:
    """Return the app of a folder, by default the working folder, without a model and without stored sessions."""
    locations = Locations.of(folder)
    settings = settings_for(options, locations)
    return assemble(NoModel(), settings, locations, replace(run_options(options), keep=False), report=print_notice)


def run(arguments: list[str]) -> int:
    """Run the call, print its outcome and return the exit code."""
    parser = Parser(
        "callwright call",
        usage="callwright call TOOL [JSON] [OPTIONS]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("tool", metavar="TOOL", help="the name of the tool; callwright tools lists them")
    parser.add_argument(
        "arguments", metavar="JSON", nargs="?", default="{}", help="the arguments as a JSON object; - reads stdin"
    )
    parser.add_argument("--yes", action="store_true", help="approve every question")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_agent_options(parser)
    options = parser.parse_args(arguments)
    text = options.arguments
    if text == "-":
        # before the event loop, which takes the first Ctrl-C for itself and cannot act on it while stdin is read;
        # bytes that are no text stay what they are, and are refused with the arguments
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    return asyncio.run(_perform(options, text))


async def _perform(options: argparse.Namespace, text: str) -> int:
    async with app_without_model(options) as app:
        for problem in app.problems:
            print_notice(problem)
        # without `ask` a question comes back as Interrupted, which is exit code 4
        turn = Turn(ask=_approve_all if options.yes else None)
        (outcome,) = await app.executor.execute([ToolCall("call-1", options.tool, text)], turn=turn)
        return _report(options, outcome)


async def _approve_all(questions: Sequence[Question]) -> Answers:
    return Answers.approving(questions)


def _advise_user(error: ToolError) -> ToolError:
    """Return an error with the next step of the user: the advice for models is to search with a tool of theirs."""
    if isinstance(error, UnknownTool):
        return UnknownTool(error.name, error.nearest, advice="callwright tools lists the tools")
    plain = error.__cause__
    if isinstance(error, InvalidArguments) and isinstance(plain, InvalidArguments):  # of a tool that models search for
        return plain.with_message(f"{plain.message}; callwright tools --json shows the parameters of every tool")
    return error


def _report(options: argparse.Namespace, outcome: Outcome) -> int:
    if isinstance(outcome, Completed):
        fields = {"status": "completed", "output": outcome.text, "structured": outcome.output.structured}
        if options.json:
            print_json(fields)
        else:
            print_text(outcome.text)
        return DONE
    if isinstance(outcome, Failed):
        error = _advise_user(outcome.error)
        fields = {"status": "failed", "code": error.code, "message": error.message, "started": outcome.started}
        if options.json:
            print_json(fields)
        else:
            print_notice(f"{options.tool}: {error}")
        return DENIED if outcome.error.code == "denied" else ERROR
    asked = [
        (question.summary, "only a conversation can reply to it")
        if question.kind == "input"  # its summary ends with the reason
        else (f"{question.summary} {question.reason}", "--yes approves it")
        for question in outcome.questions
    ]
    if options.json:
        print_json({"status": "interrupted", "questions": [question for question, _ in asked]})
    for question, advice in asked:
        print_notice(f"{question}; {advice}")
    return PAUSED
