"""From settings to an agent that can be talked to.

The tools of the command: everything a coding agent needs, over one workspace.

What one run asks for on top of the settings, and what it may take by both.

Where an agent works and what it may do there: folders, rules, mode and shell.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from callwright.agent import Agent, RunLimits
from callwright.app.costs import prices_in
from callwright.app.hook_transcripts import WrittenSessions
from callwright.app.locations import Locations
from callwright.app.mcp_servers import configured_servers, servers_into
from callwright.app.models import Models
from callwright.app.observability import Watching, watching
from callwright.app.permissions import Conditions, HookAllows, ProjectGrants, faulty_condition, rules_in
from callwright.app.prompts import system_prompt
from callwright.app.settings import Settings
from callwright.app.settings_file import Layer
from callwright.app.skills.grants import ActiveSkills
from callwright.app.skills.service import Skilled, SkilledAgent
from callwright.clip import Outputs
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.core.spec import ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn import TurnLimits
from callwright.hooks.base import Hook
from callwright.hooks.shell.config import parse_shell_hooks
from callwright.hooks.shell.dispatch import Setting
from callwright.hooks.shell.hooks import ShellHooks
from callwright.policy import ByMode, LoadedRules, Policies, Policy, Rules, standard_policies
from callwright.policy.modes import ModeSwitch
from callwright.policy.paths import PathContext
from callwright.policy.plan_tools import plan_tools
from callwright.providers.base import Provider
from callwright.providers.clients import close_provider
from callwright.registry import Deferred, Registry, Toolset, filtered
from callwright.sessions import MemoryStore, SessionStore, SqliteStore
from callwright.skills import Skills
from callwright.system.paths import Workspace
from callwright.system.sandbox.sandbox import Wish
from callwright.tool.base import Tool
from callwright.toolbox import Bash, BashKill, BashOutput, Delete, Edit, Glob, Grep, List, Move, Read, WebFetch, Write

if TYPE_CHECKING:
    from callwright.mcp import McpServers

Hidden = Callable[[Path], bool]


def shell_tool(workspace: Workspace, wish: Wish) -> Bash:
    """Return the shell, confined as was wished for."""
    return Bash(workspace, sandbox=wish, protected=(".git/hooks", ".git/config", ".callwright"))


def agent_tools(workspace: Workspace, switch: ModeSwitch, *, bash: Bash, hidden: Hidden | None) -> list[Tool]:
    """Return them; what `hidden` names is left out of listings and searches."""
    tools = [
        Read(workspace),
        Write(workspace),
        Edit(workspace),
        bash,
        BashOutput(),
        BashKill(),
        Glob(workspace, hidden=hidden),
        Grep(workspace, hidden=hidden),
        List(workspace, hidden=hidden),
        Delete(workspace),
        Move(workspace),
        WebFetch(),
        *plan_tools(switch),
    ]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command line."""

    mode: str = ""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """MCP configuration, each a file's name or JSON."""
    turns: int | None = None
    usd: float | None = None
    system: str = ""
    """Instead of our own prompt."""
    more_system: str = ""
    keep: bool = True
    """Sessions are written to disk."""
    log: str = ""
    """Where the structured log goes; `-` for stderr."""


def budget(settings: Settings, wishes: RunOptions, model: str) -> RunLimits:
    """What one run may take, by options first and settings second."""
    limits = settings.merged("limits")
    prices = prices_in(settings, model)
    money = wishes.usd if wishes.usd is not None else limits.get("usd")
    if money is not None and prices is None:
        raise UsageError(
            f"a limit in money needs the price of {model}: add"
            f' "prices": {{"{model}": {{"input": …, "output": …}}}} to the settings, in USD for a million tokens'
        )
    return RunLimits(
        turns=wishes.turns or limits.get("turns") or RunLimits().turns,
        tokens=limits.get("tokens"),
        seconds=limits.get("seconds"),
        money=money,
        prices=prices,
    )


@dataclass(frozen=True, slots=True)
class WorkspaceContext:
    """What tools, hooks and policies of one app stand on together."""

    workspace: Workspace
    here: PathContext
    loaded: LoadedRules
    """The rules with what is wrong with them."""
    rules: Rules
    switch: ModeSwitch
    bash: Bash

    @property
    def confined(self) -> bool:
        """Whether a sandbox keeps commands inside; a wall with holes answers no question."""
        sandbox = self.bash.sandbox
        return sandbox.kind != "none" and not sandbox.gaps

    def folder(self) -> str:
        """The folder the next command would run in."""
        return str(self.bash.bind({"command": "true"}).folder)


def ground_for(settings: Settings, places: Locations, wishes: RunOptions) -> WorkspaceContext:
    """Read it from the settings and from what this run asks for."""
    workspace = Workspace(places.cwd, *_directories(settings, wishes), reads="anywhere", outside="ask")
    here = PathContext.within(workspace, places.cwd)
    loaded = rules_in(settings, here, allow=wishes.allow, ask=wishes.ask, deny=wishes.deny)
    barred = ("bypass",) if settings.last("permissions", "disableBypassPermissionsMode") else ()
    switch = ModeSwitch(wishes.mode or settings.last("permissions", "defaultMode") or "default", barred=barred)
    bash = shell_tool(workspace, settings.last("sandbox") or "off")
    return WorkspaceContext(workspace, here, loaded, Rules(loaded.rules, here), switch, bash)


def _directories(settings: Settings, wishes: RunOptions) -> list[Path]:
    asked = [Path(folder).expanduser().absolute() for folder in wishes.directories]
    for folder in asked:
        if not folder.is_dir():
            raise UsageError(f"--add-dir {folder} is not a folder")
    return [*settings.directories(), *asked]


_PROMPT_TOKENS = 20_000
"""What the definitions of tools may take of a prompt; what is above is found by tool_search."""
_NO_WISHES = RunOptions()


def _silent(_: str) -> None:
    return None


@dataclass(slots=True)
class App:
    """An agent and everything around it. Inside `async with` its MCP servers are connected."""

    places: Locations
    settings: Settings
    agent: Agent
    registry: Registry
    executor: Executor
    switch: ModeSwitch
    hooks: ShellHooks
    skilled: Skilled
    rules: LoadedRules
    problems: list[str]
    """What a person should know before the first prompt."""
    connect: Callable[["App"], "McpServers | None"]
    watching: Watching
    servers: "McpServers | None" = None
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def skills(self) -> Skills:
        """The skills found here."""
        return self.skilled.skills

    async def __aenter__(self) -> "App":
        self.servers = self.connect(self)
        if self.servers is not None:
            await self._open.enter_async_context(self.servers)
            self.problems += [
                f"MCP server {status.name}: {status.condition}: {status.reason or '; '.join(status.problems)}"
                for status in self.servers.status()
                if status.reason or status.problems
            ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()
        await self.hooks.aclose()
        await close_provider(self.agent.provider)
        await self.skilled.models.aclose()
        self.close()

    def close(self) -> None:
        """Close the session file, and send off what observers have left."""
        self.watching.close()
        if isinstance(self.agent.sessions, SqliteStore):
            self.agent.sessions.close()


def assemble(
    provider: Provider,
    settings: Settings,
    places: Locations,
    wishes: RunOptions = _NO_WISHES,
    *,
    report: Callable[[str], None] = _silent,
    observe: Callable[[Event], None] | None = None,
    models: Models | None = None,
) -> App:
    """Make the agent these settings describe. Starts nothing: MCP servers are connected on entering the app.

    `report` is told what hooks have to say to people, `observe` what happens to calls, at the moment it does.
    `models` are those skills may ask for; its main one must be the model that `provider` speaks for.
    """
    if models is None:
        models = Models(provider, switching=False)
        provider = models.main
    ground = ground_for(settings, places, wishes)
    active = ActiveSkills(ground.here, settings.skills)
    skilled = Skilled(Skills(places.cwd), places, active, models, report)
    registry = _registry(ground)
    toolset = _toolset(registry, ground.rules, crowded=bool(wishes.servers or settings.merged("mcpServers")))
    store = _store(places) if wishes.keep else MemoryStore()
    hooks, hook_problems = _hooks(settings, _setting(ground, places, report, toolset, store))
    watched = watching(settings, wishes.log)
    watchers = [watcher for watcher in (*watched.observers, observe, _watching(hooks)) if watcher is not None]
    policies = _policies(ground, places, (ProjectGrants(ground.here, places), HookAllows(hooks), active))
    call_hooks = (*hooks.call_hooks(), skilled.attach(registry))
    executor = _executor(toolset, registry, call_hooks, watchers, policies)
    agent = SkilledAgent(
        provider,
        toolset,
        executor=executor,
        sessions=store,
        system=wishes.system or system_prompt(places, settings, skilled.skills, more=wishes.more_system),
        limits=budget(settings, wishes, provider.model),
    )
    agent.serve(skilled)
    rules, switch, connect = ground.loaded, ground.switch, partial(_connect, wishes.servers)
    problems = [*settings.problems, *map(str, rules.problems), *hook_problems, *skilled.problems, *watched.problems]
    return App(places, settings, agent, registry, executor, switch, hooks, skilled, rules, problems, connect, watched)


def _registry(ground: WorkspaceContext) -> Registry:
    rules = ground.rules
    hides = rules.hides if any(rule.kind == "deny" for rule in rules.rules) else None
    return Registry(*agent_tools(ground.workspace, ground.switch, bash=ground.bash, hidden=hides))


def _toolset(registry: Registry, rules: Rules, *, crowded: bool) -> Toolset:
    def kept(spec: ToolSpec) -> bool:
        return not rules.forbids_tool(spec.name, spec.group)

    forbidding = any(rule.kind == "deny" and rule.specifier is None for rule in rules.rules)
    toolset: Toolset = filtered(registry, kept) if forbidding else registry
    return Deferred(toolset, budget_tokens=_PROMPT_TOKENS if crowded else None)


def _setting(
    ground: WorkspaceContext, places: Locations, report: Callable[[str], None], toolset: Toolset, store: SessionStore
) -> Setting:
    return Setting(
        str(places.project),
        str(places.cwd),
        lambda: ground.switch.mode,
        report,
        Conditions(toolset, ground.here),
        ground.folder,
        WrittenSessions(store),
    )


def _hooks(settings: Settings, setting: Setting) -> tuple[ShellHooks, list[str]]:
    heard = settings.layers
    if settings.last("disableAllHooks"):
        heard = tuple(layer for layer in heard if layer.scope == "managed")
    found = [
        parse_shell_hooks(layer.section("hooks"), written_in=layer.source, line_of=partial(_hook_line, layer))
        for layer in heard
    ]
    hooks = ShellHooks((hook for hooks, _ in found for hook in hooks), setting)
    faults = [fault for hook in hooks.hooks if (fault := faulty_condition(hook))]
    return hooks, [*(problem for _, problems in found for problem in problems), *faults]


def _hook_line(layer: Layer, path: Sequence[str | int]) -> int:
    return layer.line(("hooks", *path))


def _watching(hooks: ShellHooks) -> Callable[[Event], None] | None:
    return hooks.batches.observe if hooks.listens("PostToolBatch") else None


def _executor(
    toolset: Toolset,
    registry: Registry,
    hooks: Iterable[Hook],
    observe: Iterable[Callable[[Event], None]],
    policies: Policies,
) -> Executor:
    outputs = Outputs()
    registry.add(outputs.reader())
    bounds = TurnLimits(question_seconds=None)  # a paused session may be taken up on another day
    return Executor(toolset, policies, hooks=hooks, outputs=outputs, bounds=bounds, observe=observe)


def _policies(ground: WorkspaceContext, places: Locations, more: Iterable[Policy]) -> Policies:
    by_mode = ByMode(ground.switch, sandboxed=ground.confined)
    return standard_policies(ground.workspace, by_mode=by_mode, rules=ground.loaded.rules, cwd=places.cwd, more=more)


def _store(places: Locations) -> SessionStore:
    places.record.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteStore(places.sessions)


def _connect(given: Sequence[str], app: App) -> "McpServers | None":
    if not given and not app.settings.merged("mcpServers"):
        return None
    return servers_into(app.registry, configured_servers(app.settings, given, app.problems), app.places)
