"""`callwright web`: serves the local page that watches agents, answers their questions and tries tools and rules."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.models import choose_model
from callwright.app.run_context import RunOptions
from callwright.app.settings import Settings, load_settings
from callwright.cli.commands.call import NoModel
from callwright.cli.commands.demo import TASK, make_project
from callwright.cli.main import DONE
from callwright.cli.options import add_agent_options
from callwright.cli.parsing import Parser, port_number
from callwright.cli.render.text import print_notice, print_text
from callwright.cli.startup import run_options, settings_for, start
from callwright.core._lazy import install_command
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.hooks.builtin import Redact
from callwright.providers.base import Provider
from callwright.testing.fakes import ScriptedProvider

if TYPE_CHECKING:
    from callwright.web.server import WebServer

_DESCRIPTION = """\
Serves a local page for this folder: watch agents at work, answer their questions, try tools and rules, see what it
cost. The page is served on this machine only, unless --host names another interface, and needs the token in the
printed link. Ctrl-C ends it; agents in terminals go on."""
_EPILOG = """\
examples:
  callwright web
  callwright web --read-only --port 8800
  callwright web --demo                 a scripted agent in a temporary folder; needs no model, key or network
  callwright web --host 192.168.1.20    for the phone, in a network you trust: the connection is not encrypted
"""
INSTALL = "callwright web needs the extra web: " + install_command("'callwright[web]'")


def run(arguments: list[str]) -> int:
    """Serve the page until Ctrl-C."""
    parser = Parser("callwright web", usage="callwright web [OPTIONS]", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--port", type=port_number, metavar="N", help="the port; default: 4870, or any free one")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--read-only", action="store_true", help="only watch: no answers, prompts, runs or changes")
    parser.add_argument("--demo", action="store_true", help="show a scripted agent in a temporary folder")
    add_agent_options(parser)
    options = parser.parse_args(arguments)
    with _open_server(options) as server:
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # a closed window; under nohup it is ignored
            signal.signal(signal.SIGHUP, lambda sent, frame: signal.raise_signal(signal.SIGTERM))
        try:
            asyncio.run(server.run(lambda link: _print_link(link, options)))
        except KeyboardInterrupt:
            print_text("")
    return DONE


@contextmanager
def _open_server(options: argparse.Namespace) -> "Generator[WebServer, None, None]":
    try:
        from callwright.web.server import LOOPBACK, WebOptions, WebServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11"):
            raise
        raise UsageError(INSTALL) from None
    served = WebOptions(options.host, options.port, options.read_only)
    if options.host not in LOOPBACK:
        print_notice(
            f"the page is reachable from other machines at {options.host}, and the connection is not encrypted"
        )
    if not options.demo:
        locations = Locations.of()
        bare = _BareApps(locations, lambda: settings_for(options, locations), run_options(options))
        yield WebServer(locations, partial(start, options), bare, replace(served, model=_model_name(options)))
        return
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        demo = _Demo(Path(folder).resolve())
        bare = _BareApps(demo.locations, demo.load_settings, RunOptions())
        shown = replace(served, demo=True, model="scripted", prompt=TASK)
        yield WebServer(demo.locations, demo.open_app, bare, shown)


def _model_name(options: argparse.Namespace) -> str | None:
    choice = choose_model(settings_for(options, Locations.of()), asked=options.model)
    return None if choice is None else Redact().clean(choice.name)  # an address may hold a password


class _BareApps:
    """Builds apps without a model."""

    def __init__(self, locations: Locations, load: Callable[[], Settings], asked: RunOptions) -> None:
        self._locations = locations
        self._load = load
        self._asked = replace(asked, keep=False)

    def __call__(
        self, *, mode: str = "", allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()
    ) -> App:
        asked = self._asked
        rules = {"allow": (*asked.allow, *allow), "ask": (*asked.ask, *ask), "deny": (*asked.deny, *deny)}
        return assemble(NoModel(), self._load(), self._locations, replace(asked, mode=mode or asked.mode, **rules))


class _Demo:
    """A temporary project with a scripted model."""

    def __init__(self, folder: Path) -> None:
        self.locations, self._script = make_project(folder)

    def open_app(
        self, *, report: Callable[[str], None], wrap: Callable[[Provider], Provider], observe: Callable[[Event], None]
    ) -> App:
        """Build an app whose model follows the script from its start."""
        provider = wrap(ScriptedProvider.from_file(self._script))
        return assemble(provider, self.load_settings(), self.locations, RunOptions(), report=report, observe=observe)

    def load_settings(self) -> Settings:
        """Read the settings."""
        return load_settings(self.locations, trusted=True)


def _print_link(link: str, options: argparse.Namespace) -> None:
    what = "watching only" if options.read_only else "the demo" if options.demo else "this folder"
    print_text(f"callwright web: {what}, Ctrl-C ends it\n  {link}")
    sys.stdout.flush()  # a program that started this one waits for the link
