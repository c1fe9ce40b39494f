"""From a command line to an app: trust, settings, model, assembly, in this order."""

import argparse
import os
from collections.abc import Callable

from callwright.app.app import App, RunOptions, assemble
from callwright.app.locations import Locations
from callwright.app.models import NO_MODEL, ModelChoice, Models, choose_model, open_model
from callwright.app.settings import Settings, load_settings
from callwright.app.trust import Trust
from callwright.cli.parsing import split_rules
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.providers.base import Provider


def settings_for(options: argparse.Namespace, places: Locations) -> Settings:
    """Read the settings; what the folder asks for counts if it is trusted, by record or by option."""
    trusted = bool(options.trust) or Trust(places).given
    settings = load_settings(places, trusted=trusted, given=options.settings)
    os.environ.update(settings.merged("env"))
    return settings


def wishes_of(options: argparse.Namespace) -> RunOptions:
    """The options as the assembly knows them; a command need not offer all of them."""
    given = vars(options)
    return RunOptions(
        mode=options.permission_mode,
        allow=tuple(split_rules(options.allow)),
        ask=tuple(split_rules(given.get("ask", ()))),
        deny=tuple(split_rules(options.deny)),
        directories=tuple(options.add_dir),
        servers=tuple(given.get("mcp_config", ())),
        turns=given.get("max_turns"),
        usd=given.get("max_budget_usd"),
        system=given.get("system_prompt", ""),
        more_system=given.get("append_system_prompt", ""),
        keep=not given.get("no_session_persistence", False),
        log=given.get("log", ""),
    )


def start(
    options: argparse.Namespace,
    *,
    report: Callable[[str], None],
    wrap: Callable[[Provider], Provider] = lambda provider: provider,
    observe: Callable[[Event], None] | None = None,
) -> App:
    """Make the app a command line asks for; `wrap` may listen in on the model, `observe` on the calls."""
    places = Locations.of()
    settings = settings_for(options, places)
    choice = choose_model(settings, asked=options.model)
    if choice is None:
        raise UsageError(NO_MODEL)
    models = Models(open_model(choice), lambda name: open_model(ModelChoice(name, "asked for", choice.base_url)))
    return assemble(
        wrap(models.main), settings, places, wishes_of(options), report=report, observe=observe, models=models
    )
