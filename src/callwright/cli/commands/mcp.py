"""`callwright mcp`: lists, adds, removes and tests MCP servers, and signs out of them."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from callwright.cli.parsing import Parser, positive_seconds

_DESCRIPTION = """\
MCP servers are programs whose tools the agent can use, as mcp__SERVER__TOOL, with the same permissions as its own
tools. They are configured in the format other agents use, {"mcpServers": {"NAME": {"command": …} or {"url": …}}}:

  scope    file                                   applies to
  user     ~/.callwright/settings.json            you, in every folder
  project  .mcp.json                              everyone who works on this project
  local    .callwright/settings.local.json        you, in this project

If two entries have the same name, the later scope wins. Servers in the files of a project are started only after you
trust the folder (callwright trust).

  list     connect to every server and print its status
  add      add a server to one of the files
  add-json add a server by its entry: callwright mcp add-json NAME '{"command": …}'
  remove   remove a server from its file
  test     connect to one server; print its tools, or the reason why it fails (also get, login)
  logout   remove the stored sign-in to a server

callwright mcp list --help describes list, and so on."""
_EXITS = """\
exit codes: 0 ready, 1 a server is not ready, 2 usage error, 3 the folder is not trusted, 4 sign-in needed
"""
_ADD = """\
Put the command of the server after --, so that its options are not read as options of callwright. ${NAME} and
${NAME:-default} in any value are replaced from the environment when the server starts, which keeps secrets out of the
file. A server inherits only PATH, HOME and a few other variables: pass what else it needs with -e."""
_ADD_EXAMPLES = """\
examples:
  callwright mcp add time -- uvx mcp-server-time
  callwright mcp add db --scope project -e 'DB_URL=${DB_URL}' -- npx -y db-server --read-only
  callwright mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
"""
_ADD_JSON = """\
Adds a server by its entry, as the documentation of servers and other agents' files have it. ${NAME} and
${NAME:-default} in any value are replaced from the environment when the server starts."""
_REMOVE = """\
Removes the entry from its file and leaves the rest of the file unchanged. If several files name the server, choose one
with --scope. When the last entry is removed, the accepted tool definitions are forgotten too. The sign-in stays, which
other projects may use: to remove it, run callwright mcp logout NAME first."""
_LOGOUT = """\
Removes what is stored of the sign-in to the server: its tokens, and the registration of this program. The next
connection asks you to sign in again, which also helps if the sign-in page does not know this program any more. The
server itself is not told: to end the tokens there, use its own settings."""
_LIST = """\
Connects to every server in parallel and prints its status. Servers of a folder that is not trusted are listed but not
started."""
_TEST = """\
Connects to the server and prints the connection time, the MCP version and its tools with their effects, or the reason
why it fails: the program is missing, exits (with the end of its log) or hangs, the address does not answer, or a
sign-in is needed. In a terminal it waits until you have signed in, and stores the tokens.

Permissions use the effect of a tool. What a server claims about its own tools is shown beside it and not trusted. A
tool that changed after you first saw it is denied until you accept it: test prints what it is now, and the digest for
--accept. If the server has changed it again by then, nothing is accepted."""


def run(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    action, *rest = arguments or [""]
    action = {"get": "test", "login": "test"}.get(action, action)  # the names of other agents
    if action not in _ACTIONS:
        _action_parser().parse_args(arguments)  # exits: prints the help, or the error
    ours, command = _split(rest)
    parser = _ACTIONS[action]()
    options, unknown = parser.parse_known_intermixed_args(ours)
    if unknown and action == "add":
        parser.error(f"unknown option {unknown[0]}; put the options of a server's command after --")
    if unknown:
        parser.reject(unknown)
    if action == "add":
        options.target = [*options.target, *command]
        if not options.target:
            parser.error(f"{options.name} has no target: give a URL, or -- and a command")
    return _dispatch(action, options)


def _dispatch(action: str, options: argparse.Namespace) -> int:
    if action in ("add", "add-json", "remove", "logout"):
        from callwright.cli.commands.mcp_config import add, logout, remove

        return {"remove": remove, "logout": logout}.get(action, add)(options)
    from callwright.cli.commands.mcp_status import list_servers, try_server

    return list_servers(options) if action == "list" else try_server(options)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split at `--`: what follows is the command of a server."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _action_parser() -> Parser:
    parser = _parser("", _DESCRIPTION, _EXITS)
    parser.add_argument("action", choices=tuple(_ACTIONS))
    return parser


def _list_parser() -> Parser:
    return _add_connect_options(_parser(" list", _LIST, _EXITS))


def _add_parser() -> Parser:
    parser = _parser(" add", _ADD, _ADD_EXAMPLES)
    parser.usage = "callwright mcp add NAME [OPTIONS] (URL | -- COMMAND [ARGUMENTS])"
    parser.add_argument("name", help="letters, digits, '-' and single '_' inside")
    parser.add_argument("target", nargs="*", help="a URL, or a command without options")
    _add_file_options(parser)
    parser.add_argument("-t", "--transport", choices=("stdio", "http"), help="default: chosen by the target")
    parser.add_argument(
        "-e", "--env", action="append", default=[], metavar="KEY=VALUE", help="an environment variable; repeatable"
    )
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="'NAME: VALUE'", help="an HTTP header; repeatable"
    )
    return parser


def _add_json_parser() -> Parser:
    parser = _parser(" add-json", _ADD_JSON, "")
    parser.add_argument("name", help="letters, digits, '-' and single '_' inside")
    parser.add_argument("entry", metavar="JSON", help='{"command": …, "args": […]} or {"type": "http", "url": …}')
    _add_file_options(parser)
    return parser


def _add_file_options(parser: Parser) -> None:
    parser.add_argument(
        "-s",
        "--scope",
        choices=("user", "project", "local"),
        default="local",
        help="which file to write; default: local",
    )
    parser.add_argument("--force", action="store_true", help="replace an entry of the same name")


def _remove_parser() -> Parser:
    parser = _parser(" remove", _REMOVE, "")
    parser.add_argument("name")
    parser.add_argument(
        "-s", "--scope", choices=("user", "project", "local"), help="which entry to remove, if there are several"
    )
    return parser


def _logout_parser() -> Parser:
    parser = _parser(" logout", _LOGOUT, "")
    parser.add_argument("name")
    parser.set_defaults(settings=[], trust=False)
    return parser


def _test_parser() -> Parser:
    parser = _parser(" test", _TEST, _EXITS)
    parser.add_argument("name")
    parser.add_argument(
        "--accept", nargs="?", const="", metavar="DIGEST", help="accept changed tools as test has shown them"
    )
    return _add_connect_options(parser)


def _add_connect_options(parser: Parser) -> Parser:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--config", action="append", type=Path, default=[], metavar="FILE", help="use only these .mcp.json files"
    )
    parser.add_argument("--trust", action="store_true", help="trust the files of this folder for this run")
    parser.add_argument(
        "--seconds",
        type=positive_seconds,
        default=30.0,
        metavar="N",
        help="time limit for a server to become ready; default: 30",
    )
    parser.set_defaults(settings=[])
    return parser


def _parser(name: str, description: str, epilog: str) -> Parser:
    return Parser(f"callwright mcp{name}", description=description, epilog=epilog)


_ACTIONS: dict[str, Callable[[], Parser]] = {
    "list": _list_parser,
    "add": _add_parser,
    "add-json": _add_json_parser,
    "remove": _remove_parser,
    "test": _test_parser,
    "logout": _logout_parser,
}
