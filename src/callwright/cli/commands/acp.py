"""`callwright acp`: the agent in editors that speak the Agent Client Protocol."""

import argparse
import asyncio
import copy
import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.app.app import App
from callwright.app.locations import Locations
from callwright.cli.approval_dialog import dialog_text
from callwright.cli.options import add_agent_options
from callwright.cli.parsing import Parser
from callwright.cli.render.text import Palette
from callwright.cli.startup import end_on_signal, start
from callwright.core._lazy import install_command
from callwright.core.calls import Question
from callwright.core.errors import UsageError
from callwright.mcp.config import servers_of

if TYPE_CHECKING:
    from callwright.acp import EditorAgent, OpenRequest, SessionParts

_DESCRIPTION = """\
Runs the agent for an editor: the Agent Client Protocol over standard input and output, one JSON message per line.
Settings, rules, hooks, trust, skills and MCP servers apply as they do in the terminal, and sessions are shared with it.
Calls that need approval are shown in the editor; anything but an option that was offered declines."""
_EPILOG = """\
exit codes: 0 the editor disconnected, 2 usage error

examples:
  callwright acp                                           as the command of a custom agent in the editor's settings
  callwright acp --model anthropic:NAME --permission-mode plan
  callwright acp --workspace /home/me/project              only for folders inside this one
"""
_COLUMNS = 10_000
"""The width of the description of a question: the editor breaks the lines itself."""


def run(arguments: Sequence[str]) -> int:
    """Serve one editor until it disconnects."""
    agent = open_agent(arguments)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(agent))
    return 0


def open_agent(arguments: Sequence[str]) -> "EditorAgent":
    """Return the agent that a command line asks for.

    Raises:
        UsageError: The extra is not installed, or the workspace is not a folder.
    """
    options = _parser().parse_args(arguments)
    if find_spec("acp") is None:
        raise UsageError(
            "callwright acp needs a package that is not installed: " + install_command("'callwright[acp]'")
        )
    if options.workspace is not None and not options.workspace.is_dir():
        raise UsageError(f"--workspace {options.workspace}: not a folder")
    from callwright.acp import EditorAgent

    within = options.workspace.resolve() if options.workspace is not None else None
    return EditorAgent(_Apps(options).open, _describe, within=within)


def _parser() -> argparse.ArgumentParser:
    parser = Parser("callwright acp", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="refuse sessions in folders outside of this one")
    add_agent_options(parser)
    return parser


async def _serve(agent: "EditorAgent") -> None:
    from callwright.acp import standard_streams

    end_on_signal()
    with suppress(asyncio.CancelledError):
        async with standard_streams() as transport:
            await agent.serve(transport)


class _Apps:
    """Builds the apps of sessions; all of them share the environment of this process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._project: Path | None = None
        self._changed: dict[str, str] = {}

    def open(self, request: "OpenRequest", parts: "SessionParts") -> App:
        """Build the app of a session.

        Raises:
            UsageError: No model is configured, settings are not valid, or they want an environment of their own.
        """
        options = copy.copy(self._options)
        options.add_dir = [*options.add_dir, *request.directories]
        usable, problems = _check_servers(request.servers)
        options.mcp_config = [*options.mcp_config, *usable]
        with self._lock:
            before = dict(os.environ)
            try:
                app = start(
                    options,
                    report=parts.report,
                    observe=parts.observe,
                    locations=request.locations,
                    files=parts.files,
                )
                self._check_environment(app, request.locations)
            except BaseException:  # the variables of a project that did not open must not reach another one
                _restore_environment(before)
                raise
            app.problems += problems
            return app

    def _check_environment(self, app: App, locations: Locations) -> None:
        """Refuse a project whose variables would reach the commands of another one."""
        wanted = {str(name): str(value) for name, value in app.settings.merged("env").items()}
        if self._project is None:
            self._project, self._changed = locations.project, wanted
        if wanted == self._changed:
            return
        app.close()
        raise UsageError(
            f"the settings of {locations.project} and of {self._project} set different environment variables;"
            " start another callwright acp for one of them"
        )


def _check_servers(servers: str) -> tuple[list[str], Sequence[str]]:
    """Return the editor's MCP servers that can be used, and what is wrong with the others: they stop no session."""
    if not servers:
        return [], ()
    given = json.loads(servers)
    loaded = servers_of(given)
    usable = {server.name: given["mcpServers"][server.name] for server in loaded.servers}
    return ([json.dumps({"mcpServers": usable})] if usable else []), loaded.problems


def _restore_environment(before: Mapping[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _describe(question: Question) -> list[str]:
    """Return everything a call would do, with control and look-alike characters made visible."""
    text = dialog_text(question, Palette(on=False), _COLUMNS)
    return [row.removeprefix("  ") for row in text.body]
