"""`callwright call`: run one tool, behind the same hooks, rules and guards as the agent's calls."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from callwright.app.app import App, assemble
from callwright.app.locations import Locations
from callwright.cli.main import DENIED, DONE, ERROR, PAUSED
from callwright.cli.options import add_agent_options
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import tell
from callwright.cli.startup import run_options, settings_for
from callwright.core.calls import Answers, Completed, Failed, Outcome, Question, ToolCall
from callwright.executor.turn import Turn
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError

_DESCRIPTION = """\
Run one tool and print what came of it. The call stands behind the same hooks, rules and guards as the agent's own:
what would be asked is not run (code 4), unless --yes says yes to it."""
_EPILOG = """\
exit codes: 0 done, 1 the tool failed, 2 usage, 3 denied, 4 somebody must say yes first (--yes)

examples:
  callwright call read '{"path": "README.md"}'
  callwright call bash '{"command": "git status"}'
  callwright call write '{"path": "a.txt", "content": "hello"}' --yes
"""


class NoModel:
    """Stands in where an app is wanted for its tools alone."""

    model = "none"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Refuse: nothing here talks to a model."""
        raise ProviderError("there is no model in this command", fault="invalid")
        yield  # makes it a generator, which is what is asked for


def app_without_model(options: argparse.Namespace, folder: Path | None = None) -> App:
    """The tools, rules and hooks of a folder, by default of the working one; nothing is kept of what they do."""
    locations = Locations.of(folder)
    settings = settings_for(options, locations)
    return assemble(NoModel(), settings, locations, replace(run_options(options), keep=False), report=tell)


def run(arguments: list[str]) -> int:
    """Make the call, print what came of it, return how it ended."""
    parser = Parser(
        "callwright call",
        usage="callwright call TOOL [JSON] [OPTIONS]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("tool", metavar="TOOL", help="its name; callwright tools lists them")
    parser.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="an object; - reads it from stdin")
    parser.add_argument("--yes", action="store_true", help="say yes to whatever is asked")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    add_agent_options(parser)
    options = parser.parse_args(arguments)
    return asyncio.run(_perform(options))


async def _perform(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.arguments == "-" else options.arguments
    async with app_without_model(options) as app:
        for problem in app.problems:
            tell(problem)
        turn = Turn(ask=_agree if options.yes else None)
        (outcome,) = await app.executor.execute([ToolCall("call-1", options.tool, text)], turn=turn)
        return _report(options, outcome)


async def _agree(questions: Sequence[Question]) -> Answers:
    return Answers.approving(questions)


def _report(options: argparse.Namespace, outcome: Outcome) -> int:
    if isinstance(outcome, Completed):
        shown = {"status": "completed", "output": outcome.text, "structured": outcome.output.structured}
        print(json.dumps(shown, ensure_ascii=False, default=str) if options.json else outcome.text)
        return DONE
    if isinstance(outcome, Failed):
        shown = {"status": "failed", "code": outcome.error.code, "message": outcome.text, "started": outcome.started}
        if options.json:
            print(json.dumps(shown, ensure_ascii=False))
        else:
            tell(f"{options.tool}: {outcome.error}")
        return DENIED if outcome.error.code == "denied" else ERROR
    questions = [f"{question.summary} {question.reason}" for question in outcome.questions]
    if options.json:
        print(json.dumps({"status": "interrupted", "questions": questions}, ensure_ascii=False))
    for question in questions:
        tell(f"{question}; --yes agrees")
    return PAUSED
