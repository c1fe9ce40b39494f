"""Dispatches a command line to its command, and defines the exit codes."""

import errno
import sys
from collections.abc import Callable
from importlib import import_module

DONE, ERROR, USAGE, DENIED, PAUSED, LIMIT = 0, 1, 2, 3, 4, 5
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell reports of a program that SIGPIPE ended, as most programs end behind `| head`."""
TERMINATED = 143


COMMANDS = {
    "call": "run one tool with JSON arguments, behind the same permissions",
    "tools": "list the tools, or search them by description",
    "permissions": "test how the rules decide a call, and list the rules",
    "trust": "show what this folder's files request, and trust them",
    "sessions": "list, show, resume, fork, export or delete conversations",
    "skills": "list and check the skills of this folder",
    "mcp": "list, add, remove and test MCP servers",
    "serve": "serve these tools to any MCP client",
    "acp": "run the agent in an editor, over the Agent Client Protocol",
    "web": "watch, approve and try things on a local page in the browser",
    "worker": "run agents for a Temporal server, on one machine or many",
    "runs": "start, list, answer, cancel and watch runs on a Temporal server",
    "stats": "show calls, tokens and cost of this project's sessions",
    "doctor": "check the installation, the model and the sandbox",
    "demo": "watch the agent do a small task; needs no model, key or network",
    "completion": "print shell completion for bash, zsh or fish",
}


def usage() -> str:
    """Return the text of `--help`."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "callwright: an agent for your files, and the tool runtime behind it",
            "",
            "usage: callwright [PROMPT]                 start a conversation in the terminal",
            "       callwright -p PROMPT [OPTIONS]      answer once, for scripts",
            "       callwright COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            "callwright -p --help lists the options of a conversation, callwright COMMAND --help those of a command,",
            "callwright --version prints the version. Start with: callwright demo",
        ]
    )


def run(arguments: list[str], on_loaded: Callable[[], object] = lambda: None) -> int:
    """Run one command line and return its exit code; `on_loaded` is called before the command's first step."""
    if arguments[:1] == ["help"] and arguments[1:2] and arguments[1] in COMMANDS:
        arguments = [arguments[1], "--help"]
    if arguments and arguments[0] in ("-h", "--help", "help"):
        from callwright.cli.parsing import fill_help

        print(fill_help(usage()))
        return 0
    name, rest = _split_command(arguments)
    if name not in COMMANDS and name != "chat":
        return _reject_command(name, arguments)
    from callwright.cli.render.text import print_notice
    from callwright.core.errors import CallwrightError, UsageError, describe_exception
    from callwright.system.platforms import require_posix

    try:
        if name not in _ANYWHERE:
            require_posix("the agent of this command and its tools")
        command = import_module(f"callwright.cli.commands.{name}")
        on_loaded()
        return command.run(rest)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as head, has closed it
        sys.stdout = None  # type: ignore[assignment] - flushing it at exit would fail again
        return PIPE_CLOSED
    except CallwrightError as error:
        print_notice(str(error))
        return USAGE if isinstance(error, UsageError) else ERROR
    except OSError as error:  # such as a full disk or a folder without write permission
        file = f"{error.filename}: " if error.filename else ""
        advice = _ADVICE.get(error.errno or 0, "")
        print_notice(f"{file}{describe_exception(error)}{'; ' + advice if advice else ''}")
        return ERROR


_ANYWHERE = frozenset({"completion", "runs", "worker"})
"""Commands that need neither the files of a workspace nor a terminal."""
_ADVICE = {
    errno.EEXIST: "a file is where a folder is needed; move it, or set CALLWRIGHT_HOME to another folder",
    errno.ENOTDIR: "a file is where a folder is needed; move it, or set CALLWRIGHT_HOME to another folder",
    errno.EROFS: "set CALLWRIGHT_HOME to a folder that can be written",
    errno.EACCES: "check its permissions, or set CALLWRIGHT_HOME to a folder of your own",
}


def _split_command(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the command and its arguments; a line that starts with an option or a sentence is a conversation."""
    if not arguments or arguments[0].startswith("-") or " " in arguments[0].strip():
        return "chat", arguments
    return arguments[0], arguments[1:]


def _reject_command(name: str, arguments: list[str]) -> int:
    import shlex
    from difflib import get_close_matches

    from callwright.core.escaping import visible_line

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(COMMANDS)}"
    print(f"callwright: unknown command {visible_line(name)!r}; {hint}", file=sys.stderr)
    print(f"to send it to the agent: callwright -p {shlex.quote(visible_line(' '.join(arguments)))}", file=sys.stderr)
    return USAGE
