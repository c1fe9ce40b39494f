"""Builds the app a command line asks for, and finds the session it names.

The order matters: trust, settings, model, assembly.
"""

import argparse
import asyncio
import os
import signal
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.models import (
    NO_MODEL,
    ModelChoice,
    Models,
    choose_model,
    context_tokens,
    fallback_names,
    model_options,
    open_model,
    open_with_fallbacks,
)
from callwright.app.run_context import HostProgram, RunOptions, tool_set_for
from callwright.app.settings import REMOVABLE_SOURCES, Settings, load_settings
from callwright.app.settings_file import read_named
from callwright.app.trust import Trust
from callwright.app.web_search import is_own_server
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.providers.base import Provider
from callwright.providers.options import ModelOptions
from callwright.sessions.base import SessionStore
from callwright.skills.fields import split_list
from callwright.toolbox import FileAccess

_MOST_SESSIONS = 10_000
_SLOW_SECONDS = 2.0


def settings_for(options: argparse.Namespace, locations: Locations) -> Settings:
    """Load the settings; the project's own count only if its folder is trusted, by record or by `--trust`.

    Sets the environment variables of the settings.
    """
    trust = Trust(locations)
    review = trust.review()
    trusted = bool(options.trust) or trust.covers(review)
    # the files are not read again: they could have changed since they were compared
    settings = load_settings(
        locations,
        trusted=trusted,
        given=options.settings,
        repository=review.repository,
        own_trusted=bool(options.trust) or trust.covers_own(review),
        sources=_sources(vars(options).get("setting_sources")),
    )
    os.environ.update(settings.merged("env"))
    return settings


def _sources(given: str | None) -> tuple[str, ...] | None:
    """Return the sources of settings that `--setting-sources` names; None for all."""
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    unknown = next((name for name in names if name not in REMOVABLE_SOURCES), None)
    if unknown is not None:
        known = ", ".join(REMOVABLE_SOURCES)
        raise UsageError(f"--setting-sources: there is no source {unknown!r}; the sources are {known}")
    return names


def _system_prompt(given: Mapping[str, Any]) -> str | None:
    """Return the text that replaces the system prompt, which may be empty; None for the built-in one."""
    file = given.get("system_prompt_file")
    return given.get("system_prompt") if file is None else read_named("--system-prompt-file", file)


def run_options(options: argparse.Namespace) -> RunOptions:
    """Convert parsed options to run options; a command may offer only some of them."""
    given = vars(options)
    return RunOptions(
        mode="bypass" if given.get("dangerously_skip_permissions") else options.permission_mode,
        allow=_rules(options.allow),
        ask=_rules(given.get("ask", ())),
        deny=_rules(options.deny),
        directories=tuple(options.add_dir),
        servers=tuple(given.get("mcp_config", ())),
        turns=given.get("max_turns"),
        usd=given.get("max_budget_usd"),
        system=_system_prompt(given),
        more_system=given.get("append_system_prompt", ""),
        keep=not given.get("no_session_persistence", False),
        log=given.get("log", ""),
        tools=_tool_set(given),
        strict_servers=given.get("strict_mcp_config", False),
        agents=given.get("agents", ""),
        plugins=tuple(given.get("plugin_dir", ())),
    )


def _rules(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(rule for text in texts for rule in split_list(text, "()"))  # a brace may be part of a command


def _tool_set(given: Mapping[str, Any]) -> str:
    """Return the tool set a command line asks for; an empty text asks for no tools."""
    asked = given.get("tools")
    return "" if asked is None else asked.strip() or "none"


def start(
    options: argparse.Namespace,
    *,
    report: Callable[[str], None],
    wrap: Callable[[Provider], Provider] = lambda provider: provider,
    observe: Callable[[Event], None] | None = None,
    host: HostProgram | None = None,
    locations: Locations | None = None,
    files: FileAccess | None = None,
) -> App:
    """Build the app for a command line.

    Args:
        options: The parsed options, with at least those of `add_agent_options`.
        report: Shows a notice to the user.
        wrap: Wraps the model's provider, for example to show its text as it streams.
        observe: Receives the executor's events.
        host: The program that drives this one, if there is one.
        locations: The folders of the run; by default those of the working folder.
        files: Where tools load and store files; on disk if None.

    Raises:
        UsageError: No model is configured or found, or the settings are not valid.
    """
    if options.dangerously_skip_permissions:
        report("permissions are bypassed: calls run without being asked about; deny rules and firm guards still count")
    locations = locations or Locations.of()
    settings = settings_for(options, locations)
    choice = choose_model(settings, asked=options.model)
    if choice is None:
        raise UsageError(NO_MODEL)
    choice = replace(choice, tool_mode=options.tool_mode or settings.last("toolMode") or "auto")
    given = model_options(settings, _read_model_options(options))
    others = fallback_names(settings, options.fallback_model)
    own = open_with_fallbacks(choice, others, given, report)
    models = Models(
        own,
        lambda name: open_model(ModelChoice(name, "asked for", choice.base_url, choice.tool_mode), given),
    )
    asked = replace(
        run_options(options),
        max_tokens=given.max_tokens,
        context=context_tokens(choice, given),
        tools=_tool_set(vars(options)) or settings.last("tools") or tool_set_for(context_tokens(choice, given)),
        host=host,
        own_server=is_own_server(choice),
        fallbacks=tuple(each.model for each in getattr(own, "providers", ())[1:]),
    )
    provider = wrap(models.main)
    return assemble(provider, settings, locations, asked, report=report, observe=observe, models=models, files=files)


@asynccontextmanager
async def enter_app(
    app: App, leaving: asyncio.Event, show_waiting: Callable[[str], None] = lambda text: None
) -> AsyncGenerator[bool, None]:
    """Open an app, and close it at the end.

    Yields False if the user leaves before its MCP servers are connected: one that hangs takes half a minute, so
    `show_waiting` is told which ones are slow, and gets an empty text when the wait is over.
    """
    async with AsyncExitStack() as stack:
        stack.push_async_exit(app)
        slow = asyncio.get_running_loop().call_later(_SLOW_SECONDS, _name_slow_servers, app, show_waiting)
        connecting, left = asyncio.ensure_future(app.__aenter__()), asyncio.ensure_future(leaving.wait())
        try:
            await asyncio.wait({connecting, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            slow.cancel()
            show_waiting("")
            left.cancel()
            if not connecting.done():
                connecting.cancel()
                await asyncio.gather(connecting, return_exceptions=True)
        if not connecting.cancelled():
            connecting.result()
        yield not connecting.cancelled()


def _name_slow_servers(app: App, show_waiting: Callable[[str], None]) -> None:
    statuses = [] if app.servers is None else app.servers.status()
    names = [status.name for status in statuses if status.condition == "connecting"]
    if names:
        several = "s" if len(names) > 1 else ""
        show_waiting(f"waiting for the MCP server{several} {', '.join(names)} to connect; Ctrl-D leaves")


def _read_model_options(options: argparse.Namespace) -> ModelOptions:
    """Return the model options of a command line.

    Raises:
        UsageError: A value is not valid; the message names the option.
    """
    found: dict[str, Any] = {"stop": tuple(options.stop)} if options.stop else {}
    for name in ("temperature", "max_tokens", "effort", "context", "threads"):
        if getattr(options, name) is not None:
            found[name] = getattr(options, name)
    try:
        return ModelOptions(**found)
    except UsageError as error:
        name, _, rest = str(error).partition(" ")
        raise UsageError(f"--{name.replace('_', '-')} {rest}") from None


def end_on_signal() -> None:
    """Let SIGTERM cancel the present task, an ordinary end, so that MCP servers and commands started here stop too."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def resolve_session(options: argparse.Namespace, app: App) -> tuple[str, str]:
    """Return the id of the session the options name, and how it starts: `startup` or `resume`.

    Raises:
        UsageError: The named session does not exist, or a new one would take an existing id.
    """
    store = app.agent.sessions
    existing = await _existing_session(options, store)
    new = options.session_id or str(uuid.uuid4())
    if options.session_id and await store.find(new) is not None:
        raise UsageError(f"session {new!r} already exists; use --resume {new} to continue it")
    if existing is None:
        return new, "startup"
    if options.fork_session:
        await store.fork(existing, new)
        return new, "resume"
    return existing, "resume"


async def _existing_session(options: argparse.Namespace, store: SessionStore) -> str | None:
    if options.resume:
        return await find_session(store, options.resume)
    if not options.last:
        return None
    newest = await store.list(limit=1)
    if not newest:
        raise UsageError("no session to continue in this project; remove --continue to start one")
    return newest[0].session_id


async def find_session(store: SessionStore, prefix: str) -> str:
    """Return the session with this id, or the only one whose id starts with it.

    Raises:
        UsageError: No session matches, or several do.
    """
    if await store.find(prefix) is not None:
        return prefix
    listed = await store.list(limit=_MOST_SESSIONS)
    matching = [entry.session_id for entry in listed if entry.session_id.startswith(prefix)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"{len(matching)} sessions start with {prefix!r}; give more of the id")
    raise UsageError(f"no session {prefix!r}; see callwright sessions list")
