"""`callwright runs`: starts, lists, answers, cancels and watches runs on a Temporal server."""

import argparse
import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from callwright.agent.results import LIMIT_KINDS, Done, Stopped
from callwright.app.waiting_runs import STORE_VARIABLE, find_run_store, open_run_store, sign_reply
from callwright.cli.approval_dialog import dialog_text
from callwright.cli.commands.worker import add_server_options
from callwright.cli.main import DONE, ERROR, INTERRUPTED, LIMIT
from callwright.cli.parsing import Parser, positive_int
from callwright.cli.render.text import Palette, print_json, print_notice, print_text, visible_line
from callwright.core.calls import Answers, Question
from callwright.core.decisions import make_reply
from callwright.core.errors import UsageError, shorten
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.sessions.base import SessionError, SessionStore, StoredRecord, check_session_id
from callwright.sessions.records import Answered, Asked, Said
from callwright.sessions.waiting import list_waiting, read_questions, record_answers

if TYPE_CHECKING:
    from callwright.temporal import Run, Runs

_LINE_CHARS = 200
_COLUMNS = 110
_CODE_CHARS = 8
_UNSERVED_SECONDS = 3.0
_LATER = ("watch", "cancel")
"""What can be done with a run that the command does not wait for."""
_HOW_TO_REPLY = "reply with /runs inside callwright"
_DESCRIPTION = """\
Starts runs of agents on the workers of a Temporal server, and looks after them. Questions are listed from the store and
answered in it: neither a worker nor the server needs to run for that."""
_EPILOG = f"""\
The store of the agents is named with --store, or in ${STORE_VARIABLE}: postgresql://user@host/name, or an SQLite file.

exit codes: 0 done, 1 failed, 2 usage error, 5 a limit was reached, 130 cancelled

examples:
  callwright runs ask desk 'Pay invoice 42' --session invoice-42
  callwright runs waiting
  callwright runs approve invoice-42
  callwright runs decline invoice-42 --reason 'not this month'
"""


def run(arguments: list[str]) -> int:
    """Run the subcommand and return its exit code."""
    return asyncio.run(_perform(_parser().parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    usage = "callwright runs ACTION [ARGUMENTS]"
    parser = Parser("callwright runs", usage=usage, description=_DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog="callwright runs")
    for name, what in (
        ("ask", "start a run and wait for its result"),
        ("list", "list the runs that the server knows"),
        ("waiting", "list the questions that wait for an answer"),
        ("approve", "approve the question of a run"),
        ("decline", "decline the question of a run"),
        ("cancel", "cancel a run"),
        ("watch", "print what a run records, until it ends"),
    ):
        action = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        add = action.add_argument
        if name == "ask":
            add("agent", metavar="AGENT", help="the name of the agent")
            add("prompt", metavar="PROMPT")
            add("--session", metavar="ID", help="the session to continue, or the id of the new one")
            add("--no-wait", action="store_true", help="print the id of the session and return")
        elif name in ("list", "waiting"):
            add("--json", action="store_true", help="print a JSON list")
            add("--limit", type=positive_int, default=50, metavar="N", help="default: 50")
        else:
            add("session", metavar="SESSION", help="the session of the run")
        if name in ("approve", "decline"):
            add("--number", type=positive_int, metavar="N", help="the question of this number in `waiting`")
            add("--all", action="store_true", help="every question of the run")
            add("--question", default="", metavar="CODE", help="only the question with this code in `waiting`")
        if name == "decline":
            add("--reason", default="", metavar="TEXT", help="the model reads it")
        if name == "watch":
            add("--from", dest="position", type=int, default=0, metavar="POSITION", help="begin with this record")
        add("--store", default=find_run_store(), metavar="ADDRESS|FILE", help=f"default: ${STORE_VARIABLE}")
        add_server_options(action)
    return parser


async def _perform(options: argparse.Namespace) -> int:
    if options.action == "ask" and not options.prompt.strip():  # as -p and the page refuse it; models would too
        raise UsageError("no prompt: give one after the name of the agent")
    if (session := getattr(options, "session", None)) is not None:  # an empty one is a variable that was not set
        check_session_id(session)
    async with open_run_store(options.store, create=options.action == "ask") as store:
        if options.action in _STORE_ACTIONS:
            return await _STORE_ACTIONS[options.action](store, options)
        from callwright.temporal import Runs
        from callwright.temporal.client import silence_core

        silence_core()
        runs = await Runs.connect(options.address, sessions=store, namespace=options.namespace, queue=options.queue)
        return await _ACTIONS[options.action](runs, options)


async def _ask(runs: "Runs", options: argparse.Namespace) -> int:
    started = await runs.start(options.agent, options.prompt, session=options.session)
    if options.no_wait:
        print_text(started.session_id)
        return DONE
    from callwright.temporal import TemporalError

    print_notice(f"session {visible_line(started.session_id)}")
    telling = [
        asyncio.ensure_future(each) for each in (_print_questions(started, options), _warn_unserved(started, options))
    ]
    try:
        return _print_result(await started.result())
    except (asyncio.CancelledError, TemporalError):  # Ctrl-C, or the server is away
        how = (_make_command(action, started.session_id, options, _server_options(options)) for action in _LATER)
        print_notice("the run goes on. To see it, or to end it:\n  " + "\n  ".join(how))
        raise
    finally:
        for each in telling:
            each.cancel()


async def _warn_unserved(run: "Run", options: argparse.Namespace) -> None:
    """Say that the run waits for a worker, if none has taken it by now."""
    from callwright.temporal import TemporalError

    await asyncio.sleep(_UNSERVED_SECONDS)
    try:
        taken = await run.is_taken()
    except TemporalError:  # who waits for the result says so
        return
    if not taken:
        print_notice(
            f"no worker of queue {options.queue!r} at {visible_line(options.address)} has taken the run yet. "
            f"Start one with: callwright worker MODULE:AGENT {_server_options(options)}"
        )


def _server_options(options: argparse.Namespace) -> str:
    given = ("--address", options.address, "--namespace", options.namespace, "--queue", options.queue)
    return visible_line(shlex.join(given))


def _make_command(action: str, session_id: str, options: argparse.Namespace, *more: str) -> str:
    """Return a command to copy; it leaves out the address of a database, which may hold a password."""
    if options.store != find_run_store():
        more = (*more, "--store " + ("ADDRESS" if "://" in options.store else shlex.quote(options.store)))
    return visible_line(" ".join(("callwright runs", action, shlex.quote(session_id), *more)))


async def _print_questions(run: "Run", options: argparse.Namespace) -> None:
    """Say once of each question that the run waits for it."""
    told: set[str] = set()
    questions: Sequence[Question] = ()
    while True:
        with suppress(SessionError):  # a database that does not answer for a moment
            questions = await run.questions()
        for question in questions:
            if question.id not in told:  # not its digest: the model may want the same again
                told.add(question.id)
                command = _make_command("approve", run.session_id, options, f"--question {_code(question)}")
                how = _HOW_TO_REPLY if question.kind == "input" else command
                print_notice(f"waiting: {_line(question.summary)}  ({how})")
        await asyncio.sleep(0.5)


def _print_result(result: Done | Stopped) -> int:
    print_text(result.text)
    if isinstance(result, Done):
        return DONE
    print_notice(f"stopped: {visible_line(result.reason)}")
    if result.kind == "cancelled":
        return INTERRUPTED
    return LIMIT if result.kind in LIMIT_KINDS else ERROR


async def _list(runs: "Runs", options: argparse.Namespace) -> int:
    found = await runs.list(limit=options.limit)
    if options.json:
        print_json([{"session": each.session_id, "agent": each.agent, "status": each.status} for each in found])
        return DONE
    for each in found:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.started_at))
        print_text(f"{at}  {each.status:<10}  {visible_line(each.agent):<16}  {visible_line(each.session_id)}")
    if not found:
        print_text("No runs. Start one with: callwright runs ask AGENT PROMPT")
    return DONE


async def _waiting(store: SessionStore, options: argparse.Namespace) -> int:
    found = await list_waiting(store, limit=options.limit)
    if options.json:
        shown = [
            {
                "session": each.session_id,
                "number": number,
                "question": _code(question),
                "tool": question.tool,
                "summary": question.summary,
                "reason": question.reason,
                "arguments": thaw(question.arguments),
                "expires_at": question.expires_at,
            }
            for each in found
            for number, question in enumerate(each.questions, 1)
        ]
        print_json(shown)
        return DONE
    for each in found:
        print_text(f"{visible_line(each.session_id)}  {_line(each.title)}")
        for number, question in enumerate(each.questions, 1):
            print_text(f"  {number}. {_line(question.summary)}  [{_code(question)}]")
            print_text("\n".join(f"   {row}" for row in dialog_text(question, Palette(False), _COLUMNS).body))
    if not found:
        print_text("No questions are waiting.")
    return DONE


async def _answer(store: SessionStore, options: argparse.Namespace) -> int:
    reply = make_reply(options.action == "approve", reason=getattr(options, "reason", ""))
    chosen = _choose(await read_questions(store, options.session), options)
    if options.action == "approve" and any(question.kind == "input" for question in chosen):
        raise UsageError(
            f"session {visible_line(options.session)} asks for a reply, which is not an approval: {_HOW_TO_REPLY}, or "
            "decline it"
        )
    answers = Answers({question.id: sign_reply(reply, "the command line") for question in chosen})
    for question in await record_answers(store, options.session, answers):
        print_text(f"{options.action}d: {_line(question.summary)}")
    return DONE


def _choose(questions: Sequence[Question], options: argparse.Namespace) -> Sequence[Question]:
    """Return the questions to answer; several are never answered by accident, nor one that was not meant."""
    session = visible_line(options.session)
    if options.question:
        code = options.question.lower()
        questions = [each for each in questions if len(code) >= _CODE_CHARS and each.digest.startswith(code)]
        if not questions:
            raise UsageError(
                f"session {session} does not wait for question {visible_line(code)}; callwright runs waiting lists "
                "what waits now"
            )
    if not questions:
        raise UsageError(f"session {session} waits for no answer; callwright runs waiting lists those that do")
    if options.all:
        return questions
    if options.number is not None:
        if options.number > len(questions):
            raise UsageError(f"--number {options.number}: session {session} has {len(questions)} questions")
        return questions[options.number - 1 : options.number]
    if len(questions) > 1:
        raise UsageError(f"session {session} has {len(questions)} questions: choose one with --number, or --all")
    return questions


async def _cancel(runs: "Runs", options: argparse.Namespace) -> int:
    await runs.get(options.session).cancel()
    print_text("cancelled; a worker closes its turn")
    return DONE


async def _watch(runs: "Runs", options: argparse.Namespace) -> int:
    async for stored in runs.get(options.session).watch(options.position):
        print_text(f"{stored.position:>5}  {_describe(stored)}")
    return DONE


def _describe(stored: StoredRecord) -> str:
    match stored.record:
        case Said(AssistantMessage() as message):
            calls = " ".join(f"[{call.name}]" for call in message.calls)
            return _line(f"model: {calls} {message.text}")
        case Said(ToolMessage(outcomes)):
            return _line("outcomes: " + "; ".join(f"{outcome.call.name}: {outcome.text}" for outcome in outcomes))
        case Said(UserMessage(content)):
            return _line(f"user: {content if isinstance(content, str) else '(parts)'}")
        case Asked(questions):
            return _line("asked: " + "; ".join(question.summary for question in questions))
        case Answered(replies):
            return _line("answered: " + ", ".join(type(reply).__name__ for reply in replies.values()))
        case record:
            return type(record).__name__.lower()


def _code(question: Question) -> str:
    """Return what names a question on the command line: the start of its digest, so that a changed call has another."""
    return visible_line(question.digest[:_CODE_CHARS])


def _line(text: str) -> str:
    return shorten(visible_line(" ".join(text.split())), _LINE_CHARS)


_ACTIONS: "dict[str, Callable[[Runs, argparse.Namespace], Awaitable[int]]]" = {
    "ask": _ask,
    "list": _list,
    "cancel": _cancel,
    "watch": _watch,
}
_STORE_ACTIONS: "dict[str, Callable[[SessionStore, argparse.Namespace], Awaitable[int]]]" = {
    "waiting": _waiting,
    "approve": _answer,
    "decline": _answer,
}
"""What needs the store only."""
