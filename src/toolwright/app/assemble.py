"""From settings to an agent that can be talked to."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from toolwright.agent import Agent, Budget
from toolwright.app.active import ActiveSkills
from toolwright.app.conditions import Conditions, faulty_condition
from toolwright.app.costs import prices_in
from toolwright.app.granted import HookAllows, ProjectGrants
from toolwright.app.layer import Layer
from toolwright.app.places import Places
from toolwright.app.prompt import system_prompt
from toolwright.app.rules import rules_in
from toolwright.app.servers import configured_servers
from toolwright.app.settings import Settings
from toolwright.app.skilled import Skilled, SkilledAgent
from toolwright.app.switched import Models
from toolwright.app.tools import agent_tools, shell_tool
from toolwright.app.watching import Watching, watching
from toolwright.app.written import WrittenSessions
from toolwright.clip import Outputs
from toolwright.core.errors import UsageError
from toolwright.core.event import Event
from toolwright.core.spec import ToolSpec
from toolwright.executor.executor import Executor
from toolwright.executor.turn import Bounds
from toolwright.hooks.base import Hook
from toolwright.hooks.shell import ShellHooks
from toolwright.hooks.shell_config import parse_shell_hooks
from toolwright.hooks.shell_fire import Setting
from toolwright.policy import ByMode, LoadedRules, ModeSwitch, Policies, Policy, Rules, standard_policies
from toolwright.policy.places import Surroundings
from toolwright.providers.base import Provider
from toolwright.providers.clients import close_provider
from toolwright.registry import Deferred, Registry, Toolset, filtered
from toolwright.sessions import MemoryStore, SessionStore, SqliteStore
from toolwright.skills import Skills
from toolwright.system.paths import Workspace
from toolwright.system.sandbox import Sandbox
from toolwright.toolbox import Bash

if TYPE_CHECKING:
    from toolwright.mcp import McpServers

_PROMPT_TOKENS = 20_000
"""What the definitions of tools may take of a prompt; what is above is found by tool_search."""


def _silent(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one run asks for on top of the settings: the options of the command line."""

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


_NOTHING_MORE = Wishes()


@dataclass(slots=True)
class App:
    """An agent and everything around it. Inside `async with` its MCP servers are connected."""

    places: Places
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
    servers: "McpServers | None" = None
    watching: Watching = field(default_factory=Watching)
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
    places: Places,
    wishes: Wishes = _NOTHING_MORE,
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
    workspace = Workspace(places.cwd, *_directories(settings, wishes), reads="anywhere", outside="ask")
    here = Surroundings.within(workspace, places.cwd)
    rules = rules_in(settings, here, allow=wishes.allow, ask=wishes.ask, deny=wishes.deny)
    barred = ("bypass",) if settings.last("permissions", "disableBypassPermissionsMode") else ()
    switch = ModeSwitch(wishes.mode or settings.last("permissions", "defaultMode") or "default", barred=barred)
    held = Rules(rules.rules, here)
    active = ActiveSkills(here, settings.skills)
    skilled = Skilled(Skills(places.cwd), places, active, models, report)
    bash = shell_tool(workspace, settings.last("sandbox") or "off")
    registry = _registry(workspace, switch, held, bash)
    toolset = _toolset(registry, held, crowded=bool(wishes.servers or settings.merged("mcpServers")))
    store = _store(places) if wishes.keep else MemoryStore()
    setting = Setting(
        str(places.project),
        str(places.cwd),
        lambda: switch.mode,
        report,
        Conditions(toolset, here),
        lambda: str(bash.bind({"command": "true"}).folder),
        WrittenSessions(store),
    )
    hooks, hook_problems = _hooks(settings, setting)
    watched = watching(settings, wishes.log)
    watchers = [watcher for watcher in (*watched.observers, observe, _watching(hooks)) if watcher is not None]
    more = (ProjectGrants(here, places), HookAllows(hooks), active)
    policies = _policies(workspace, rules, switch, bash.sandbox, places, more)
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
    problems = [*settings.problems, *map(str, rules.problems), *hook_problems, *skilled.problems]
    connect = _Connecting(settings, wishes)
    app = App(places, settings, agent, registry, executor, switch, hooks, skilled, rules, problems, connect)
    app.watching, app.problems = watched, [*problems, *watched.problems]
    return app


def _directories(settings: Settings, wishes: Wishes) -> list[Path]:
    asked = [Path(folder).expanduser().absolute() for folder in wishes.directories]
    for folder in asked:
        if not folder.is_dir():
            raise UsageError(f"--add-dir {folder} is not a folder")
    return [*settings.directories(), *asked]


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


def _registry(workspace: Workspace, switch: ModeSwitch, held: Rules, bash: Bash) -> Registry:
    hides = held.hides if any(rule.kind == "deny" for rule in held.rules) else None
    return Registry(*agent_tools(workspace, switch, bash=bash, hidden=hides))


def _toolset(registry: Registry, held: Rules, *, crowded: bool) -> Toolset:
    def kept(spec: ToolSpec) -> bool:
        return not held.forbids_tool(spec.name, spec.group)

    forbidding = any(rule.kind == "deny" and rule.specifier is None for rule in held.rules)
    toolset: Toolset = filtered(registry, kept) if forbidding else registry
    return Deferred(toolset, budget_tokens=_PROMPT_TOKENS if crowded else None)


def _executor(
    toolset: Toolset,
    registry: Registry,
    hooks: Iterable[Hook],
    observe: Iterable[Callable[[Event], None]],
    policies: Policies,
) -> Executor:
    outputs = Outputs()
    registry.add(outputs.reader())
    bounds = Bounds(question_seconds=None)  # a paused session may be taken up on another day
    return Executor(toolset, policies, hooks=hooks, outputs=outputs, bounds=bounds, observe=observe)


def _policies(
    workspace: Workspace,
    rules: LoadedRules,
    switch: ModeSwitch,
    sandbox: Sandbox,
    places: Places,
    more: Iterable[Policy],
) -> Policies:
    confined = sandbox.kind != "none" and not sandbox.gaps  # a wall with holes answers no question
    return standard_policies(
        workspace, by_mode=ByMode(switch, sandboxed=confined), rules=rules.rules, cwd=places.cwd, more=more
    )


def _store(places: Places) -> SessionStore:
    places.record.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteStore(places.sessions)


class _Connecting:
    """Makes the connection to MCP servers when it is wanted: importing that side takes longer than the rest."""

    def __init__(self, settings: Settings, wishes: Wishes) -> None:
        self._settings = settings
        self._wishes = wishes

    def __call__(self, app: App) -> "McpServers | None":
        entries = self._settings.merged("mcpServers")
        if not entries and not self._wishes.servers:
            return None
        from toolwright.mcp import McpServers, SeenFile, token_files

        servers = configured_servers(self._settings, self._wishes.servers, app.problems)
        seen, tokens = SeenFile(app.places.record / "mcp-tools.json"), token_files(app.places.home / "mcp-tokens")
        return McpServers(servers, app.registry, seen=seen, tokens=tokens)


def budget(settings: Settings, wishes: Wishes, model: str) -> Budget:
    """What one run may take, by options first and settings second."""
    limits = settings.merged("limits")
    prices = prices_in(settings, model)
    money = wishes.usd if wishes.usd is not None else limits.get("usd")
    if money is not None and prices is None:
        raise UsageError(
            f"a limit in money needs the price of {model}: add"
            f' "prices": {{"{model}": {{"input": …, "output": …}}}} to the settings, in USD for a million tokens'
        )
    return Budget(
        turns=wishes.turns or limits.get("turns") or Budget().turns,
        tokens=limits.get("tokens"),
        seconds=limits.get("seconds"),
        money=money,
        prices=prices,
    )
