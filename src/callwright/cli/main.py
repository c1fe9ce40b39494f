"""Finds the command that was asked for and gives it the rest of the line.

How the command ends: one number for each thing a script may want to know.
"""

import sys
from importlib import import_module

DONE, ERROR, USAGE, DENIED, PAUSED, LIMIT = 0, 1, 2, 3, 4, 5
INTERRUPTED = 130
TERMINATED = 143


COMMANDS = {
    "call": "run one tool with JSON arguments, behind the same permissions",
    "tools": "list the tools, or search them by what they do",
    "permissions": "test what a rule set says to a call, and list the rules in force",
    "trust": "see what this folder's files ask for, and let them have it",
    "sessions": "list, show, resume, fork, export or delete conversations",
    "skills": "list and check the skills found here",
    "mcp": "list, add, remove and try MCP servers",
    "serve": "offer these tools to any MCP client",
    "stats": "what tools and tokens the sessions here took",
    "doctor": "what is installed, which model, which sandbox, what to do next",
    "demo": "watch the agent do a small task in a temporary folder; needs no model, key or network",
    "completion": "print completion for bash, zsh or fish",
}


def usage() -> str:
    """The page `--help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "callwright: an agent for your files, and the tool runtime behind it",
            "",
            "usage: callwright [PROMPT]                 talk in the terminal",
            "       callwright -p PROMPT [OPTIONS]      answer once, for scripts",
            "       callwright COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            "callwright -p --help lists the options of a conversation, callwright COMMAND --help explains a command,",
            "callwright --version tells the version. Start with: callwright demo",
        ]
    )


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    if arguments[:1] == ["help"] and arguments[1:2] and arguments[1] in COMMANDS:
        arguments = [arguments[1], "--help"]
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name, rest = _command(arguments)
    if name not in COMMANDS and name != "chat":
        return _no_command(name)
    from callwright.cli.render.calls import tell
    from callwright.core.errors import CallwrightError, UsageError, plainly

    try:
        return import_module(f"callwright.cli.commands.{name}").run(rest)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stdout = None  # type: ignore[assignment] - or flushing it on exit would fail again
        return ERROR
    except CallwrightError as error:
        tell(str(error))
        return USAGE if isinstance(error, UsageError) else ERROR
    except OSError as error:  # a full disk, a folder that may not be written
        named = f"{error.filename}: " if error.filename else ""
        tell(f"{named}{plainly(error)}")
        return ERROR


def _command(arguments: list[str]) -> tuple[str, list[str]]:
    """A line that begins with an option, or with a sentence, is said to the agent."""
    if not arguments or arguments[0].startswith("-") or " " in arguments[0].strip():
        return "chat", arguments
    return arguments[0], arguments[1:]


def _no_command(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
    print(f"callwright: there is no command {name!r}; {hint}", file=sys.stderr)
    print(f"to say it to the agent: callwright -p {name}", file=sys.stderr)
    return USAGE
