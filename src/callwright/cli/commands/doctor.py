"""`callwright doctor`: checks the installation, the settings, the model and the sandbox."""

import asyncio
import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Literal

from callwright import __version__
from callwright.app.hook_settings import read_hooks
from callwright.app.locations import Locations
from callwright.app.mcp_servers import describe_replacement, find_entries, find_unused_servers, load_servers
from callwright.app.models import ModelChoice, Models, check_model, choose_model, fallback_names, model_options
from callwright.app.run_context import (
    RunOptions,
    SandboxOptions,
    WorkspaceContext,
    agent_tools,
    choose_tools,
    run_limits,
    workspace_context,
)
from callwright.app.settings import Settings
from callwright.app.settings_file import SettingsLayer
from callwright.app.task_tool import open_tasks
from callwright.app.trust import Trust, load_trusted_settings
from callwright.app.web_search import is_own_server, web_search_tool
from callwright.cli.parsing import Parser
from callwright.cli.render.text import print_json, print_text, visible_line
from callwright.core.errors import UsageError
from callwright.core.json import freeze
from callwright.hooks.builtin import Redact
from callwright.providers.base import Provider
from callwright.sessions import SessionError, SqliteStore
from callwright.sessions.base import read_readable
from callwright.sessions.sqlite_connection import check_file
from callwright.skills import Skills
from callwright.system.sandbox.sandbox import INSTALL, find_sandbox
from callwright.system.search.ripgrep import find_ripgrep
from callwright.tool.base import Tool

_DESCRIPTION = """\
Checks settings, trust, model, sandbox, skills, programs, extras and sessions. Changes nothing. A line with FAIL means
that the agent cannot work (exit code 1); "do:" tells how to fix it."""
_EXTRAS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google.genai",
    "mcp": "mcp",
    "acp": "acp",
    "local": "xllamacpp",
    "pdf": "pypdf",
    "semantic": "onnxruntime",
    "otel": "opentelemetry",
    "code": "pydantic_monty",
    "web": "starlette",
    "postgres": "asyncpg",
    "temporal": "temporalio",
}
_PROBE_BYTES = 100_000
"""A new session file takes about as much."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_SESSIONS = 1_000
_EARLIER = (
    "the file has the format of an earlier version; opening it would convert it, so its sessions were not checked"
)
_MARKS = {"ok": "ok  ", "note": "note", "fail": "FAIL"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    about: str
    level: Literal["ok", "note", "fail"]
    text: str
    advice: str = ""


def run(arguments: list[str]) -> int:
    """Run every check; return 1 if the agent cannot work."""
    parser = Parser("callwright doctor", description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print a JSON list of results")
    options = parser.parse_args(arguments)
    results = list(examine(Locations.of()))
    if options.json:
        print_json([asdict(result) for result in results], indent=2)
    else:
        for result in results:
            print_text(f"{_MARKS[result.level]}  {result.about:<10}  {result.text}")
            if result.advice:
                print_text(f"{'':<18}do: {result.advice}")
    return 1 if any(result.level == "fail" for result in results) else 0


def examine(locations: Locations) -> Iterator[CheckResult]:
    """Yield the result of every check; nothing is changed."""
    yield CheckResult(
        "version", "ok", f"callwright {__version__}, Python {platform.python_version()}, {platform.system()}"
    )
    # the other checks still run with the defaults if the settings are broken
    settings, context = Settings(), None
    try:
        settings = load_trusted_settings(locations)
        sources = ", ".join(layer.source for layer in settings.layers) or "none; using the defaults"
        found = _workspace_context(settings, locations)
        problems = [*settings.problems, *_find_problems(settings, locations, found)]
        context = found
        yield CheckResult("settings", "ok", sources)
        yield from (CheckResult("settings", "note", problem) for problem in problems)
    except UsageError as error:
        yield CheckResult("settings", "fail", str(error), "correct the file; callwright does not start without it")
    yield _trust(locations)
    yield from _servers(locations)
    result, opened = _model(settings)
    yield result
    if context is not None and opened is not None:
        yield from _choices(settings, locations, context, opened)
    yield _sandbox(settings, locations)
    yield _skills(locations)
    yield _search()
    yield _extras()
    yield from _record(locations)


def _workspace_context(settings: Settings, locations: Locations) -> WorkspaceContext:
    # the sandbox has a check of its own, and one that is required may be missing
    without_sandbox = SettingsLayer("command line", "callwright doctor", freeze({"sandbox": "off"}))
    return workspace_context(Settings((*settings.layers, without_sandbox)), locations, RunOptions())


def _find_problems(settings: Settings, locations: Locations, context: WorkspaceContext) -> list[str]:
    """Return what is wrong with rules, hooks and servers; raises `UsageError` where it stops every start."""
    found = list[str]()
    replacing = [describe_replacement(server) for server in load_servers(settings, (), found, locations)]
    servers = [problem for problem in found if problem not in replacing]  # those have a check of their own
    return [*map(str, context.loaded.problems), *read_hooks(settings)[1], *servers]


def _trust(locations: Locations) -> CheckResult:
    try:
        trust = Trust(locations)
        if trust.complete:
            return CheckResult("trust", "ok", f"{locations.project} is trusted, or requests nothing")
        return CheckResult(
            "trust", "note", f"{locations.project} is not trusted", "callwright trust, then callwright trust give"
        )
    except UsageError as error:
        return CheckResult("trust", "fail", str(error))


def _servers(locations: Locations) -> Iterator[CheckResult]:
    """Report servers of Claude Code that are not used, and a project's that take the name of one of the user's."""
    with suppress(UsageError):  # an unreadable file is reported above
        entries = find_entries(locations)
        unused = find_unused_servers(locations, [entry.name for entry in entries])
        if unused is not None:
            names = visible_line(", ".join(unused[1]))
            yield CheckResult("mcp", "note", f"{unused[0]}: not used here: {names}", "callwright mcp add-json adds one")
        for entry in entries:
            if entry.conflict:
                yield CheckResult(
                    "mcp", "note", f"{entry.name} in {entry.place}: {entry.conflict}", "rename or remove one of the two"
                )


@dataclass(frozen=True, slots=True)
class _OpenedModel:
    choice: ModelChoice
    provider: Provider
    fallbacks: tuple[str, ...]


def _model(settings: Settings) -> tuple[CheckResult, _OpenedModel | None]:
    variables = {**os.environ, **settings.merged("env")}
    choice = choose_model(settings, environment=variables)
    if choice is None:
        return CheckResult(
            "model",
            "note",
            "none: no setting, no API key in the environment, no server on this machine",
            "export ANTHROPIC_API_KEY=…, or run ollama serve, or use --model local:FILE.gguf",
        ), None
    shown = Redact().clean(f"{choice.name} ({choice.why})")  # an address may hold a password
    try:
        options = model_options(settings)
        provider = check_model(choice, options, environment=variables)
        others = [
            check_model(ModelChoice(name, "a fallback"), options, environment=variables).model
            for name in fallback_names(settings)
        ]
    except UsageError as error:
        return CheckResult("model", "fail", f"{shown} cannot be used", Redact().clean(str(error))), None
    return CheckResult("model", "ok", shown), _OpenedModel(choice, provider, tuple(others))


def _choices(
    settings: Settings, locations: Locations, context: WorkspaceContext, model: _OpenedModel
) -> Iterator[CheckResult]:
    """Report settings that depend on the model, or name tools, and that stop every start."""
    models, searches = Models(model.provider), list[Tool]()

    def check_search() -> None:
        found = web_search_tool(settings, models, locations.cwd, own_server=is_own_server(model.choice))
        searches.extend([found] if found is not None else [])

    def check_limits() -> None:
        run_limits(settings, RunOptions(fallbacks=model.fallbacks), model.provider.model)

    def check_tools() -> None:
        tools = agent_tools(context.workspace, context.switch, bash=context.bash, hidden=context.hidden)
        tasks, _ = open_tasks(settings, locations, models, print_text, keep=False)
        choose_tools([*tools, tasks.tool(), *searches], settings.last("tools") or "", settings)

    for check in (check_search, check_limits, check_tools):
        try:
            check()
        except UsageError as error:
            yield CheckResult("settings", "fail", str(error), "correct the settings; callwright does not start")


def _sandbox(settings: Settings, locations: Locations) -> CheckResult:
    offered = find_sandbox("prefer", roots=[locations.cwd])
    chosen = SandboxOptions.of(settings).mode
    if chosen == "require" and not offered.complete:
        return CheckResult("sandbox", "fail", f'"require", but {offered.describe()}', INSTALL)
    if not offered.confines:
        return CheckResult("sandbox", "note", f"only a short list of programs runs unasked: {offered.describe()}")
    if chosen == "off":
        return CheckResult(
            "sandbox", "note", f"{offered.kind} is available but off", 'set "sandbox" to "prefer" in the settings'
        )
    if unsearched := offered.find_unsearched():
        return CheckResult(
            "sandbox",
            "note",
            f"only lines that are proven to read run unasked: {unsearched}",
            "start callwright in a smaller folder",
        )
    return CheckResult("sandbox", "note" if offered.gaps else "ok", offered.describe(), INSTALL if offered.gaps else "")


def _skills(locations: Locations) -> CheckResult:
    skills = Skills(locations.cwd, claude=locations.own_claude)
    broken = sum(problem.fatal for problem in skills.problems)
    text = f"{len(skills)} usable" + (f", {broken} broken" if broken else "")
    if not skills.problems:
        return CheckResult("skills", "ok", text)
    return CheckResult("skills", "note", text, "callwright skills check")


def _search() -> CheckResult:
    missing = [name for name in ("git", "bash") if shutil.which(name) is None]
    text = f"file search uses {'ripgrep' if find_ripgrep() else 'Python (slower than ripgrep)'}"
    if not missing:
        return CheckResult("programs", "ok", text)
    names = " and ".join(missing)
    level = "fail" if "bash" in missing else "note"
    return CheckResult("programs", level, f"{text}; not found: {names}", f"install {names}")


def _extras() -> CheckResult:
    installed = [extra for extra, package in _EXTRAS.items() if _is_installed(package)]
    missing = [extra for extra in _EXTRAS if extra not in installed]
    text = f"{', '.join(installed) or 'none'} installed" + (f"; not installed: {', '.join(missing)}" if missing else "")
    return CheckResult("extras", "ok", text)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # raised if the parent of a dotted name is missing
        return False


def _record(locations: Locations) -> Iterator[CheckResult]:
    problem = _find_write_problem(locations)
    if problem is not None:
        yield problem
        return
    notes = list[str]()
    try:
        if locations.sessions.exists():
            if check_file(locations.sessions):
                notes = asyncio.run(_find_damaged_sessions(locations))
            else:
                notes.append(_EARLIER)
    except SessionError as error:  # its text says what to do
        yield CheckResult("sessions", "fail", str(error))
        return
    yield CheckResult("sessions", "ok", str(locations.sessions))
    yield from (CheckResult("sessions", "note", text) for text in notes)


async def _find_damaged_sessions(locations: Locations) -> list[str]:
    """Return what is wrong with single sessions; the agent works, but cannot continue these."""
    found: list[str] = []
    async with SqliteStore(locations.sessions) as store:
        for entry in await store.list(limit=_MOST_SESSIONS):
            await read_readable(store, entry.session_id, report=found.append)
    return found


def _find_write_problem(locations: Locations) -> CheckResult | None:
    folder = locations.record
    try:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        # mode bits do not tell: the file system may be read-only, or full
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = folder / ".probe"
            try:
                probe.write_bytes(bytes(_PROBE_BYTES))
            finally:
                probe.unlink(missing_ok=True)
        finally:
            for each in missing:
                with suppress(OSError):  # it was not made, or an agent that starts meanwhile uses it
                    each.rmdir()
    except OSError as error:
        advice = "free some space, or set CALLWRIGHT_HOME" if error.errno in _FULL else "set CALLWRIGHT_HOME"
        return CheckResult("sessions", "fail", f"cannot write to {locations.record}: {error.strerror}", advice)
    return None
