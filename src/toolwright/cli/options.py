"""The options of a conversation, interactive or headless."""

import argparse
from collections.abc import Sequence

_DESCRIPTION = "Talk to the agent. Without -p in a terminal; with -p once, for scripts, never waiting for input."
_EPILOG = """\
exit codes: 0 done, 1 error, 2 usage, 3 done but something was denied, 4 paused for approval (go on with --resume),
5 a limit was reached, 130 interrupted

examples:
  toolwright                                            talk
  toolwright -p 'why does the build fail?' < build.log  ask once, with a file as context
  toolwright -p 'fix the tests' --permission-mode auto --output-format json
  toolwright -p --resume ID --answers allow             go on after a pause, with a yes
"""


def parser() -> argparse.ArgumentParser:
    """The parser of `toolwright` without a command."""
    made = argparse.ArgumentParser(
        "toolwright",
        usage="toolwright [-p] [OPTIONS] [PROMPT]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("prompt", nargs="?", default="", help="what to say; with -p also read from stdin")
    made.add_argument("-p", "--print", dest="headless", action="store_true", help="answer once on stdout and exit")
    _of_output(made.add_argument_group("headless"))
    _of_session(made.add_argument_group("session"))
    add_common(made)
    return made


def _of_output(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    group.add_argument("--input-format", choices=("text", "stream-json"), default="text")
    group.add_argument("--include-partial-messages", action="store_true", help="stream-json: deltas as they come")
    group.add_argument("--json-schema", metavar="FILE|JSON", help="the answer must be JSON of this schema")
    group.add_argument("--max-turns", type=_at_least_one, metavar="N")
    group.add_argument("--max-budget-usd", type=float, metavar="USD", help="needs a price: a known one, or yours")
    group.add_argument(
        "--answers", metavar="allow|deny|JSON", help='to a paused session: for all, or by call id {"ID": "allow"}'
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
    group.add_argument("--allowedTools", "--allowed-tools", dest="allow", nargs="+", action="extend", default=[])
    group.add_argument("--disallowedTools", "--disallowed-tools", dest="deny", nargs="+", action="extend", default=[])
    group.add_argument("--add-dir", nargs="+", action="extend", default=[], metavar="FOLDER")
    group.add_argument("--mcp-config", nargs="+", action="extend", default=[], metavar="FILE|JSON")
    group.add_argument("--settings", action="append", default=[], metavar="FILE|JSON")
    group.add_argument("--system-prompt", default="", metavar="TEXT", help="instead of ours")
    group.add_argument("--append-system-prompt", default="", metavar="TEXT")
    group.add_argument("--log", default="", metavar="FILE", help="write one JSON line per event; - for stderr")
    group.add_argument("--trust", action="store_true", help="trust this folder's files for this run")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line; ends the process with code 2 where it makes no sense."""
    made = parser()
    options = made.parse_args(arguments)
    options.allow, options.deny = split_rules(options.allow), split_rules(options.deny)
    if not options.headless and (options.output_format != "text" or options.input_format != "text"):
        made.error("--output-format and --input-format need -p")
    if options.resume and options.last:
        made.error("--resume and --continue name two sessions; give one")
    return options


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


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of at least 1, not {text!r}")
    return int(text)
