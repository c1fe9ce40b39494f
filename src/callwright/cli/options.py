"""The options of a conversation, interactive or headless, and the checks of their combinations."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from callwright.cli.parsing import Parser, positive_amount, positive_int

_DESCRIPTION = "Talk to the agent: in the terminal, or with -p once, for scripts, never waiting for input."
_EPILOG = """\
exit codes: 0 done, 1 error, 2 usage, 3 done but something was denied, 4 paused for approval (continue with --resume),
5 a limit was reached, 130 interrupted, 141 the reader of the output closed it, 143 terminated

examples:
  callwright                                            talk
  callwright -p 'why does the build fail?' < build.log  ask once, with a file as context
  callwright -p 'fix the tests' --permission-mode auto --output-format json
  callwright -p --resume ID --answers allow             continue after a pause and allow
"""


_HEADLESS_ONLY = (
    *("output_format", "input_format", "json_schema", "answers", "include_partial_messages", "include_hook_events"),
    *("permission_prompt_tool",),
)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of `callwright` without a command."""
    parser = Parser("callwright", usage="callwright [-p] [OPTIONS] [PROMPT]", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "prompt", nargs="?", default="", help="the prompt; @FILE attaches a file, with -p stdin is appended"
    )
    parser.add_argument("-p", "--print", dest="headless", action="store_true", help="answer once on stdout and exit")
    _add_output_options(parser.add_argument_group("headless"))
    _add_session_options(parser.add_argument_group("session"))
    add_agent_options(parser)
    return parser


def _add_output_options(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument(
        "--output-format",
        choices=("text", "json", "stream-json"),
        default="text",
        metavar="FORMAT",
        help="text (the answer), json (one document at the end) or stream-json (one JSON line per event)",
    )
    group.add_argument(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        metavar="FORMAT",
        help="text, or stream-json: user messages on stdin, one per line, sent one after the other",
    )
    group.add_argument("--include-partial-messages", action="store_true", help="with stream-json: also text deltas")
    group.add_argument(
        "--include-hook-events", action="store_true", help="with stream-json: also starts and ends of hooks"
    )
    group.add_argument("--verbose", action="store_true", help="with -p and text output: one line per call on stderr")
    group.add_argument(
        "--permission-prompt-tool",
        default="",
        metavar="TOOL",
        help="asked for approvals: stdio (the program on stdin, with stream-json) or a tool of an MCP server",
    )
    group.add_argument("--json-schema", metavar="FILE|JSON", help="the answer must be JSON that matches this schema")
    group.add_argument("--max-turns", type=positive_int, metavar="N", help="stop after this many turns (code 5)")
    group.add_argument(
        "--max-budget-usd",
        type=positive_amount,
        metavar="USD",
        help="stop at this cost (code 5); needs a known price",
    )
    group.add_argument(
        "--answers",
        metavar="allow|deny|JSON",
        help='answers for a paused session: one for all, or by call id {"ID": "allow", "*": {"deny": "why"}}',
    )


def _add_session_options(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument("-c", "--continue", dest="last", action="store_true", help="continue the last session")
    group.add_argument(
        "-r", "--resume", metavar="ID", nargs="?", const="", help="continue a session; without ID, pick one"
    )
    group.add_argument("--fork-session", action="store_true", help="continue in a copy of the session")
    group.add_argument("--session-id", metavar="ID", help="the id of a new session")
    group.add_argument("--no-session-persistence", action="store_true", help="write nothing to disk")


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that assembles tools: model, permissions, folders, servers, settings."""
    group = parser.add_argument_group("agent")
    group.add_argument("--model", default="", help="provider:name, local:FILE or script:FILE")
    _add_model_options(group)
    group.add_argument(
        "--tool-mode",
        choices=("auto", "native", "schema"),
        default="",
        metavar="MODE",
        help="how tools are called: auto, native, or schema (JSON, for models without tool calling)",
    )
    group.add_argument(
        "--tools",
        metavar="SET",
        help="all, compact (five tools, for small models), none, or names: read,edit",
    )
    group.add_argument("--permission-mode", default="", metavar="MODE", help="plan, default, auto, dontAsk or bypass")
    group.add_argument(
        "--dangerously-skip-permissions", action="store_true", help="the same as --permission-mode bypass"
    )
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
    group.add_argument(
        "--allowedTools",
        "--allowed-tools",
        dest="allow",
        metavar="RULE",
        help="allow without asking: 'Bash(git log *),Edit'",
        **many,
    )
    group.add_argument("--disallowedTools", "--disallowed-tools", dest="deny", metavar="RULE", help="deny", **many)
    group.add_argument("--add-dir", metavar="FOLDER", help="another folder to work in", **many)
    group.add_argument("--mcp-config", metavar="FILE|JSON", help="MCP servers in addition to the settings", **many)
    group.add_argument("--strict-mcp-config", action="store_true", help="only the MCP servers of --mcp-config")
    group.add_argument(
        "--agents", default="", metavar="JSON", help='sub-agents by name: {"NAME": {"description", "prompt"}}'
    )
    group.add_argument(
        "--plugin-dir",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a plugin, for its skills and commands; may be repeated",
    )
    group.add_argument(
        "--setting-sources",
        metavar="SOURCES",
        help="which of user,project,local are read; of the others only deny and ask rules count",
    )
    group.add_argument(
        "--settings", action="append", default=[], metavar="FILE|JSON", help="settings that override the files"
    )
    group.add_argument("--system-prompt", metavar="TEXT", help="replaces the built-in system prompt")
    group.add_argument("--system-prompt-file", metavar="FILE", help="a file that replaces the built-in system prompt")
    group.add_argument("--append-system-prompt", default="", metavar="TEXT", help="appended to the system prompt")
    group.add_argument("--log", default="", metavar="FILE", help="write one JSON line per event; - for stderr")
    group.add_argument("--trust", action="store_true", help="trust this folder's files for this run")


def _add_model_options(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage] - argparse names no other
    group.add_argument(
        "--fallback-model",
        action="append",
        default=[],
        metavar="MODEL",
        help="asked when the model is overloaded, out of reach or too small; may be repeated",
    )
    group.add_argument("--temperature", type=float, metavar="N", help="how varied answers are, from 0 to 2")
    group.add_argument("--max-tokens", type=int, metavar="N", help="the most tokens of one answer")
    group.add_argument("--effort", metavar="LEVEL", help="how much the model thinks: low, medium, high, …")
    group.add_argument("--context", type=int, metavar="N", help="how many tokens the model can take in")
    group.add_argument("--threads", type=int, metavar="N", help="threads of a model file; default: physical cores")
    group.add_argument("--stop", action="append", default=[], metavar="TEXT", help="a text that ends an answer")


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the options of a conversation.

    Exits the process with code 2 if they are not valid or contradict each other.

    Args:
        arguments: The command line without the program's name.
    """
    parser = build_parser()
    options = parser.parse_args(arguments)
    # messages on stdin are for programs, and those of other agents' SDKs do not pass -p
    options.headless = options.headless or options.input_format == "stream-json"
    message = next((message for wrong, message in _contradictions(options) if wrong), None)
    if message is not None:
        parser.error(message)
    return options


def _contradictions(options: argparse.Namespace) -> Iterator[tuple[bool, str]]:
    """Yield every check of a combination of options, and the message if it fails.

    Contradictions are errors: to ignore one of the options silently would be worse.
    """
    headless, resuming = options.headless, bool(options.resume is not None or options.last)
    for name in _HEADLESS_ONLY:
        given = getattr(options, name) not in (None, "text", False, "")
        yield given and not headless, f"--{name.replace('_', '-')} needs -p"
    yield headless and options.resume == "", "--resume needs the ID of a session with -p; see callwright sessions list"
    yield (
        bool(options.resume is not None and options.last),
        "--resume and --continue cannot be combined; give one of them",
    )
    yield options.fork_session and not resuming, "--fork-session needs --resume ID or --continue"
    yield options.answers is not None and not resuming, "--answers needs --resume ID or --continue"
    yield (
        bool(options.session_id and resuming and not options.fork_session),
        "--session-id is for a new session: remove it, or add --fork-session",
    )
    for name in ("session_id", "json_schema"):
        given = getattr(options, name)
        yield given is not None and not given.strip(), f"--{name.replace('_', '-')} cannot be empty"
    streaming = options.input_format == "stream-json"
    yield (
        streaming and bool(options.prompt),
        "--input-format stream-json reads prompts from stdin: remove the prompt",
    )
    asks_host = options.permission_prompt_tool == "stdio"
    yield asks_host and not streaming, "--permission-prompt-tool stdio needs --input-format stream-json"
    yield (
        options.dangerously_skip_permissions and options.permission_mode not in ("", "bypass", "bypassPermissions"),
        f"--dangerously-skip-permissions contradicts --permission-mode {options.permission_mode}; give one of them",
    )
    yield (
        options.system_prompt is not None and options.system_prompt_file is not None,
        "--system-prompt and --system-prompt-file cannot be combined; give one of them",
    )
    hook_events = options.include_hook_events and options.output_format != "stream-json"
    yield hook_events, "--include-hook-events needs --output-format stream-json"
    partial = options.include_partial_messages and options.output_format != "stream-json"
    yield partial, "--include-partial-messages needs --output-format stream-json"
