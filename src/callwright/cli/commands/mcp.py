"""`callwright mcp`: which MCP servers there are, how they are doing, one more, one less."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from callwright.cli.parsing import Parser

_DESCRIPTION = """\
MCP servers are other programs whose tools the agent can use, as mcp__SERVER__TOOL, behind the same permissions as its
own. They are named in files of the shape other programs use, {"mcpServers": {"NAME": {"command": …} or {"url": …}}}:

  scope    file                                   for
  user     ~/.callwright/settings.json            you, in every folder
  project  .mcp.json                              everybody who works on this project
  local    .callwright/settings.local.json        you, in this project

Of two entries of one name the later scope counts. What a project's files name is started only once you trust the
folder (callwright trust).

  list     connect to every server and say how it is doing
  add      name a server in one of the files
  remove   name it no more
  test     connect to one server; say what it offers, or precisely what is wrong

callwright mcp list --help explains list, and so on."""
_EXITS = """\
exit codes: 0 all well, 1 a server is not ready, 2 usage, 3 the folder is not trusted, 4 somebody has to sign in
"""
_ADD = """\
A command follows after --, so that its options stay its own. ${NAME} and ${NAME:-default} in any value are filled in
from the environment when the server is started, which keeps secrets out of the file. A server inherits PATH, HOME and
a few more variables and nothing else: what it needs is given with -e."""
_ADD_EXAMPLES = """\
examples:
  callwright mcp add time -- uvx mcp-server-time
  callwright mcp add db --scope project -e 'DB_URL=${DB_URL}' -- npx -y db-server --read-only
  callwright mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
"""
_REMOVE = """\
Takes the entry out of the file it stands in and leaves the rest of the file alone. Where several files name the server,
--scope chooses. What you accepted of its tools is forgotten with the last entry."""
_LIST = """\
Connects to every server at once and says how each is doing. Servers of a folder that is not trusted are named and not
started."""
_TEST = """\
Connects for real: starts or reaches the server, tells how long it took, which version of MCP it speaks and what its
tools are taken to do, or precisely what is wrong: a program that is not there, one that ends at once, with the end of
what it wrote, one that hangs, an address where nobody answers, a sign-in. In a terminal it waits for you to sign in,
and the sign-in is kept.

The effect of a tool is what permissions go by. What a server says of its own tools is shown beside it and not
believed. A tool that changed after you first saw it is denied until you accept it."""


def run(arguments: Sequence[str]) -> int:
    """Carry out the subcommand."""
    action, *rest = arguments or [""]
    if action not in _ACTIONS:
        _top().parse_args(arguments)  # ends the process: with help, or with what is wrong
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
            parser.error(f"what is {options.name}? give an address, or -- and a command")
    return _carry_out(action, options)


def _carry_out(action: str, options: argparse.Namespace) -> int:
    if action in ("add", "remove"):
        from callwright.cli.commands.mcp_config import add, remove

        return add(options) if action == "add" else remove(options)
    from callwright.cli.commands.mcp_status import list_servers, try_server

    return list_servers(options) if action == "list" else try_server(options)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What comes after `--` is a server's command and none of ours."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _top() -> Parser:
    parser = _parser("", _DESCRIPTION, _EXITS)
    parser.add_argument("action", choices=tuple(_ACTIONS))
    return parser


def _listing() -> Parser:
    return _looking(_parser(" list", _LIST, _EXITS))


def _adding() -> Parser:
    parser = _parser(" add", _ADD, _ADD_EXAMPLES)
    parser.usage = "callwright mcp add NAME [OPTIONS] (URL | -- COMMAND [ARGUMENTS])"
    parser.add_argument("name", help="letters, digits, '-' and single '_' inside")
    parser.add_argument("target", nargs="*", help="an address, or a command without options of its own")
    parser.add_argument("-s", "--scope", choices=("user", "project", "local"), default="local", help="by default local")
    parser.add_argument("-t", "--transport", choices=("stdio", "http"), help="told by the target if it is not given")
    parser.add_argument("-e", "--env", action="append", default=[], metavar="KEY=VALUE", help="a variable; repeatable")
    parser.add_argument("-H", "--header", action="append", default=[], metavar="'NAME: VALUE'", help="repeatable")
    parser.add_argument("--force", action="store_true", help="replace an entry of the same name")
    return parser


def _removing() -> Parser:
    parser = _parser(" remove", _REMOVE, "")
    parser.add_argument("name")
    parser.add_argument("-s", "--scope", choices=("user", "project", "local"), help="which entry, if there are several")
    return parser


def _testing() -> Parser:
    parser = _parser(" test", _TEST, _EXITS)
    parser.add_argument("name")
    parser.add_argument("--accept", action="store_true", help="take tools that changed as they are now")
    return _looking(parser)


def _looking(parser: Parser) -> Parser:
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument(
        "--config", action="append", type=Path, default=[], metavar="FILE", help="these .mcp.json files and no others"
    )
    parser.add_argument("--trust", action="store_true", help="trust this folder's files for this run")
    parser.add_argument(
        "--seconds", type=float, default=30.0, metavar="N", help="how long a server has to be ready; by default 30"
    )
    parser.set_defaults(settings=[])
    return parser


def _parser(name: str, description: str, epilog: str) -> Parser:
    return Parser(f"callwright mcp{name}", description=description, epilog=epilog)


_ACTIONS: dict[str, Callable[[], Parser]] = {
    "list": _listing,
    "add": _adding,
    "remove": _removing,
    "test": _testing,
}
