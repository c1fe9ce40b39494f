"""The options of a conversation, interactive or headless."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from callwright.cli.parsing import Parser, amount, at_least_one

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
