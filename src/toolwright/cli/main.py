"""Finds the command that was asked for and gives it the rest of the line."""

import sys
from difflib import get_close_matches
from importlib import import_module

COMMANDS = {
    "demo": "watch one turn of five calls run for real: parallel reads, a conflict, an unknown tool, bad arguments",
    "permissions": "test what a rule set says to a call, and list the rules in force",
}
USAGE_ERROR = 2


def usage() -> str:
    """The page `--help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "toolwright: the tool runtime for AI agents",
            "",
            "usage: toolwright COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            "toolwright COMMAND --help explains a command; toolwright --version tells the version.",
        ]
    )


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        print(f"toolwright: there is no command {name!r}; {hint}", file=sys.stderr)
        return USAGE_ERROR
    return import_module(f"toolwright.cli.commands.{name}").run(rest)
