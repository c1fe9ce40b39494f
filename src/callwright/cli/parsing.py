"""Command lines: how they are read, and what is said where one makes no sense.

The options of a conversation, interactive or headless.

Which session a command line means: a new one, the last one, one by name, or a copy of it.
"""

import argparse
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from callwright.app.app import App
from callwright.core.errors import UsageError
from callwright.sessions.base import SessionStore

_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: (?P<value>'.*?') \(choose from (?P<known>.*)\)", re.DOTALL
)
_ARGUMENT = re.compile(r"argument (?P<name>[^:]+): (?P<what>.*)", re.DOTALL)
_NO_VALUE = re.compile(r"expected (one|at least one) argument")
_MISSING = "the following arguments are required: "
_UNKNOWN = "unrecognized arguments: "
_ELSEWHERE = {
    "--dangerously-skip-permissions": "--permission-mode bypass",
    "--yolo": "--permission-mode bypass",
    "--full-auto": "--permission-mode auto",
}
"""What other agents' options are here."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with which word, and where to read on."""

    def __init__(self, prog: str, **named: object) -> None:
        named = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **named}
        super().__init__(prog, **named)  # type: ignore[arg-type] - passed on as they came

    def error(self, message: str) -> NoReturn:
        """End the process with code 2."""
        page = "callwright -p --help" if self.prog == "callwright" else f"{self.prog} --help"
        self.exit(2, f"{self.prog}: {self._said(message)}; {page} explains\n")

    def _said(self, message: str) -> str:
        if message.startswith(_UNKNOWN):
            return self._unknown(message.removeprefix(_UNKNOWN).split())
        if message.startswith(_MISSING):
            return self._missing(message.removeprefix(_MISSING).split(", "))
        if found := _CHOICE.fullmatch(message):
            return self._no_choice(found["name"], found["value"].strip("'"), re.findall(r"'([^']*)'", found["known"]))
        if found := _ARGUMENT.fullmatch(message):
            needs = "needs a value" if _NO_VALUE.fullmatch(found["what"]) else found["what"]
            return f"{found['name'].split('/')[-1]} {needs}"
        return message

    def _no_choice(self, name: str, value: str, known: Sequence[str]) -> str:
        return f"{name} cannot be {value!r}; {_nearest(value, known) or 'there are ' + ', '.join(known)}"

    def _missing(self, names: Sequence[str]) -> str:
        optional = [action for action in self._actions if action.nargs in ("*", "?", argparse.REMAINDER)]
        free = {action.metavar or action.dest for action in optional}  # argparse says that these are required too
        needed = [name.upper() for name in names if name not in free]
        return f"{' and '.join(needed)} {'is' if len(needed) == 1 else 'are'} missing"

    def _unknown(self, words: Sequence[str]) -> str:
        option = next((word for word in words if word.startswith("-")), "")
        if option:
            known = [name for action in self._actions for name in action.option_strings]
            name = option.partition("=")[0]
            meant = _ELSEWHERE.get(name, "")
            hint = f"did you mean {meant}?" if meant.split(" ")[0] in known else _nearest(name, known)
            return f"there is no option {option}" + (f"; {hint}" if hint else "")
        more = " ".join(words)
        return f"nobody knows what to do with {more!r}: put what belongs together in quotes"


def _nearest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else ""


def at_least_one(text: str) -> int:
    """Read a count."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)


def amount(text: str) -> float:
    """Read a sum of money."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be an amount above 0, not {text!r}")
    return value


_DESCRIPTION = "Talk to the agent. Without -p in a terminal; with -p once, for scripts, never waiting for input."
_EPILOG = """\
exit codes: 0 done, 1 error, 2 usage, 3 done but something was denied, 4 paused for approval (go on with --resume),
5 a limit was reached, 130 interrupted

examples:
  callwright                                            talk
  callwright -p 'why does the build fail?' < build.log  ask once, with a file as context
  callwright -p 'fix the tests' --permission-mode auto --output-format json
  callwright -p --resume ID --answers allow             go on after a pause, with a yes
"""


def parser() -> argparse.ArgumentParser:
    """The parser of `callwright` without a command."""
    made = Parser("callwright", usage="callwright [-p] [OPTIONS] [PROMPT]", description=_DESCRIPTION, epilog=_EPILOG)
    made.add_argument(
        "prompt", nargs="?", default="", help="what to say; @FILE attaches a file, with -p stdin comes after it"
    )
    made.add_argument("-p", "--print", dest="headless", action="store_true", help="answer once on stdout and exit")
    _of_output(made.add_argument_group("headless"))
    _of_session(made.add_argument_group("session"))
    add_common(made)
    return made


def _of_output(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument(
        "--output-format",
        choices=("text", "json", "stream-json"),
        default="text",
        metavar="FORMAT",
        help="text (the answer), json (one document at the end) or stream-json (a line for everything as it happens)",
    )
    group.add_argument(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        metavar="FORMAT",
        help="text, or stream-json: user messages on stdin, one a line, said one after the other",
    )
    group.add_argument("--include-partial-messages", action="store_true", help="with stream-json: deltas as they come")
    group.add_argument("--json-schema", metavar="FILE|JSON", help="the answer must be JSON of this schema")
    group.add_argument("--max-turns", type=at_least_one, metavar="N", help="stop after so many turns (code 5)")
    group.add_argument(
        "--max-budget-usd", type=amount, metavar="USD", help="stop when it cost that (code 5); the price must be known"
    )
    group.add_argument(
        "--answers",
        metavar="allow|deny|JSON",
        help='what a paused session waits for: for all, or by call id {"ID": "allow", "*": {"deny": "why"}}',
    )


def _of_session(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument("-c", "--continue", dest="last", action="store_true", help="go on with the last session here")
    group.add_argument("-r", "--resume", metavar="ID", help="go on with a session")
    group.add_argument("--fork-session", action="store_true", help="go on in a copy")
    group.add_argument("--session-id", metavar="ID", help="the id of a new session")
    group.add_argument("--no-session-persistence", action="store_true", help="write nothing to disk")


def add_common(made: argparse.ArgumentParser) -> None:
    """Add what every command that makes tools ready understands."""
    group = made.add_argument_group("agent")
    group.add_argument("--model", default="", help="provider:name, local:FILE or script:FILE")
    group.add_argument("--permission-mode", default="", metavar="MODE", help="plan, default, auto, dontAsk or bypass")
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    group.add_argument(
        "--allowedTools",
        "--allowed-tools",
        dest="allow",
        metavar="RULE",
        help="what needs no yes: 'Bash(git log *),Edit'",
        **many,
    )
    group.add_argument(
        "--disallowedTools", "--disallowed-tools", dest="deny", metavar="RULE", help="what is refused", **many
    )
    group.add_argument("--add-dir", metavar="FOLDER", help="another folder to work in", **many)
    group.add_argument("--mcp-config", metavar="FILE|JSON", help="MCP servers beside those of the settings", **many)
    group.add_argument(
        "--settings", action="append", default=[], metavar="FILE|JSON", help="settings above those of the files"
    )
    group.add_argument("--system-prompt", default="", metavar="TEXT", help="instead of ours")
    group.add_argument("--append-system-prompt", default="", metavar="TEXT", help="after ours")
    group.add_argument("--log", default="", metavar="FILE", help="write one JSON line per event; - for stderr")
    group.add_argument("--trust", action="store_true", help="trust this folder's files for this run")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line; ends the process with code 2 where it makes no sense."""
    made = parser()
    options = made.parse_args(arguments)
    wrong = next((words for wrong, words in _contradictions(options) if wrong), None)
    if wrong is not None:
        made.error(wrong)
    return options


def _contradictions(options: argparse.Namespace) -> Iterator[tuple[bool, str]]:
    """What options cannot mean together: it would be wrong to guess, and worse to leave one out silently."""
    headless, resuming = options.headless, bool(options.resume or options.last)
    for name in ("output_format", "input_format", "json_schema", "answers", "include_partial_messages"):
        given = getattr(options, name) not in (None, "text", False)
        yield given and not headless, f"--{name.replace('_', '-')} needs -p"
    yield bool(options.resume and options.last), "--resume and --continue name two sessions; give one"
    yield options.fork_session and not resuming, "--fork-session needs --resume ID or --continue"
    yield options.answers is not None and not resuming, "--answers needs --resume ID or --continue"
    yield options.answers is not None and bool(options.prompt), "--answers goes without a prompt: give one of them"
    yield (
        bool(options.session_id and resuming and not options.fork_session),
        "--session-id names a new session: leave it out, or add --fork-session",
    )
    yield options.session_id is not None and not options.session_id.strip(), "--session-id cannot be empty"
    streaming = options.input_format == "stream-json"
    yield (
        streaming and bool(options.prompt),
        "--input-format stream-json reads prompts from stdin: leave the prompt out",
    )
    partial = options.include_partial_messages and options.output_format != "stream-json"
    yield partial, "--include-partial-messages needs --output-format stream-json"


def split_rules(texts: Sequence[str]) -> list[str]:
    """Part `Bash(git log *),Edit Read` into rules: commas and spaces inside parentheses belong to the rule."""
    found: list[str] = []
    for text in texts:
        depth, current = 0, ""
        for character in text:
            depth += (character == "(") - (character == ")")
            if character in ", " and depth == 0:
                found.append(current)
                current = ""
            else:
                current += character
        found.append(current)
    return [rule.strip() for rule in found if rule.strip()]


async def begin(options: argparse.Namespace, app: App) -> tuple[str, str]:
    """Return the session's id and how it begins: `startup` or `resume`."""
    store = app.agent.sessions
    found = await _named(options, store)
    new = options.session_id or str(uuid.uuid4())
    if options.session_id and any(entry.session_id == new for entry in await store.list(limit=10_000)):
        raise UsageError(f"there is a session {new!r} already; --resume {new} goes on with it")
    if found is None:
        return new, "startup"
    if options.fork_session:
        copy = new
        await store.fork(found, copy)
        return copy, "resume"
    return found, "resume"


async def _named(options: argparse.Namespace, store: SessionStore) -> str | None:
    if options.resume:
        return await find_session(store, options.resume)
    if not options.last:
        return None
    newest = await store.list(limit=1)
    if not newest:
        raise UsageError("there is no session in this folder to continue; leave out --continue")
    return newest[0].session_id


async def find_session(store: SessionStore, wanted: str) -> str:
    """The session whose id is, or alone begins with, what was typed."""
    known = [entry.session_id for entry in await store.list(limit=10_000)]
    if wanted in known:
        return wanted
    fitting = [session_id for session_id in known if session_id.startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    why = f"{len(fitting)} sessions begin with it" if fitting else "callwright sessions list names those there are"
    raise UsageError(f"there is no session {wanted!r}; {why}")
