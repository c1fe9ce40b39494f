"""Builds an agent with its tools, rules, hooks and skills from settings and command-line options."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.agent import Requests
from callwright.app.agents import read_given_agents
from callwright.app.app import App
from callwright.app.claude_settings import plugin_folders, unused_parts
from callwright.app.costs import prices_in
from callwright.app.hook_approvals import ask_inside
from callwright.app.hook_settings import read_hooks
from callwright.app.locations import Locations
from callwright.app.mcp_servers import load_servers, prepare_servers
from callwright.app.models import Models
from callwright.app.observability import open_observability
from callwright.app.permissions import Conditions, HookAllows, ProjectGrants
from callwright.app.prompts import system_prompt, unread_instructions
from callwright.app.run_context import (
    Hidden,
    HostProgram,
    RunOptions,
    WorkspaceContext,
    agent_tools,
    choose_tools,
    compaction_for,
    run_limits,
    undo_store,
    workspace_context,
)
from callwright.app.settings import Settings
from callwright.app.skills.grants import ActiveSkills
from callwright.app.skills.service import AppAgent, SkillService
from callwright.app.task_tool import defer_surplus, open_tasks
from callwright.app.transcripts import TranscriptFiles
from callwright.app.web_search import web_search_tool
from callwright.clip import Outputs
from callwright.core.errors import UsageError
from callwright.core.events import Event
from callwright.core.spec import ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.repair import RepairMode
from callwright.executor.runtime import TurnLimits
from callwright.hooks.base import Hook
from callwright.hooks.shell.dispatch import HookContext
from callwright.hooks.shell.hooks import ShellHooks
from callwright.mcp.config import ServerConfig
from callwright.policy import ByMode, ExcludedCommands, Policies, Policy, Rules, standard_policies
from callwright.providers.base import Provider
from callwright.registry import Deferred, Registry, Toolset, withheld
from callwright.sessions import MemoryStore, SessionStore, SqliteStore
from callwright.skills import Skills
from callwright.system.paths import expand_home
from callwright.system.private_files import make_private
from callwright.tool.base import Tool
from callwright.toolbox import FileAccess

if TYPE_CHECKING:
    from callwright.mcp import McpServers


_DIRECT_TOOLS = ("skill", "todo", "ask_user", "task", "enter_plan", "exit_plan")
"""Tools about the conversation itself, which are no use inside a program."""
_DEFAULT_OPTIONS = RunOptions()


def assemble(
    provider: Provider,
    settings: Settings,
    locations: Locations,
    options: RunOptions = _DEFAULT_OPTIONS,
    *,
    report: Callable[[str], None] = lambda text: None,
    observe: Callable[[Event], None] | None = None,
    models: Models | None = None,
    files: FileAccess | None = None,
) -> App:
    """Build the app that these settings describe.

    Nothing is started: MCP servers are connected when the app is entered.

    Args:
        provider: The model of the conversation.
        settings: The merged settings.
        locations: The files and folders of the user and the project.
        options: What the command line asks for.
        report: Receives messages of hooks and skills for the user.
        observe: Receives the events of calls as they happen.
        models: The models that skills may ask for; its main model must be the one of `provider`.
        files: Where tools load and store files; on disk if None.

    Raises:
        UsageError: A rule, folder or limit in the settings or options is not valid.
    """
    if models is None:
        # the caller may have wrapped this provider to watch it, so skills must not replace it
        models = Models(provider, switching=False)
        provider = models.main
    models.prices_of = partial(prices_in, settings)
    if locations.home.exists():  # files of earlier versions, or made by hand, may be open to other users
        make_private(locations.home)
    context = workspace_context(settings, locations, options)
    options = replace(options, tools=options.tools or settings.last("tools") or "")

    skill_service, plugin_problems = _open_skills(context, settings, locations, options, models, report)
    given = read_given_agents(options.agents, {} if options.host is None else options.host.agents)
    tasks, agent_problems = open_tasks(settings, locations, models, report, keep=options.keep, given=given)
    searches = web_search_tool(settings, models, locations.cwd, own_server=options.own_server)
    more = [tasks.tool(), *([searches] if searches is not None else [])]
    registry = _make_registry(context, options.tools, more, settings, files)
    offered = _withhold_denied(registry, context.rules)
    toolset = _choose_shown(offered, registry, settings, options)

    store = _open_store(locations) if options.keep else MemoryStore()
    hook_context = replace(_make_hook_context(context, locations, report, toolset, store), ask_model=models.ask)
    hooks, hook_problems = _open_hooks(settings, hook_context, options.host)
    observability = open_observability(settings, options.log)
    observers = [each for each in (*observability.observers, observe, _batch_observer(hooks)) if each is not None]
    grants = (ProjectGrants(context.here, locations), HookAllows(hooks), skill_service.active)
    # last, so that its note about skills follows the outcome that shell hooks have settled on
    call_hooks = (*hooks.call_hooks(), skill_service.attach(registry))
    policies = _make_policies(context, locations, grants)
    executor = _make_executor(toolset, registry, call_hooks, observers, policies, settings.last("repairs") or "on")

    agent = AppAgent(
        provider,
        toolset,
        executor=executor,
        sessions=store,
        system=_write_system_prompt(
            options, locations, settings, skill_service.skills, context.withheld or context.hidden
        ),
        limits=run_limits(settings, options, provider.model),
        requests=Requests(max_tokens=options.max_tokens) if options.max_tokens else Requests(),
        compaction=compaction_for(options.context),
        undo=undo_store(settings, locations.undo if options.keep else None, report),
    )
    asks = partial(ask_inside, hooks, executor)
    agent.use_skills(skill_service, asks)
    tasks.set_agent(agent, offered, asks)
    return App(
        locations=locations,
        settings=settings,
        agent=agent,
        registry=registry,
        executor=executor,
        switch=context.switch,
        hooks=hooks,
        skill_service=skill_service,
        rules=context.loaded,
        problems=[
            *settings.problems,
            *context.sandbox_problems(),
            *map(str, context.loaded.problems),
            *hook_problems,
            *skill_service.problems,
            *plugin_problems,
            *agent_problems,
            *(unread_instructions(locations, context.hidden) if options.system is None else ()),
            *_find_unknown_kept(registry, settings.last("codeMode")),
            *observability.problems,
        ],
        connect=partial(_connect, options),
        observability=observability,
        tasks=tasks,
        hidden=context.hidden,
        compact=options.tools == "compact",
    )


def _open_skills(
    context: WorkspaceContext,
    settings: Settings,
    locations: Locations,
    options: RunOptions,
    models: Models,
    report: Callable[[str], None],
) -> tuple[SkillService, tuple[str, ...]]:
    """Return the skills of the user, the project and the plugins, and the problems of the plugins."""
    plugins, problems = _find_plugins(settings, locations, options)
    only = None if options.host is None else options.host.skills
    skills = Skills(locations.cwd, plugins=plugins, only=only, claude=locations.own_claude)
    active = ActiveSkills(context.here, settings.skills)
    return SkillService(skills, locations, active, models, report), problems


def _find_plugins(
    settings: Settings, locations: Locations, options: RunOptions
) -> tuple[Mapping[str, Path], tuple[str, ...]]:
    found, problems = plugin_folders(settings.layers, locations)
    for given in options.plugins:
        folder = expand_home(given).absolute()
        if not folder.is_dir():
            raise UsageError(f"--plugin-dir {given}: not a folder")
        found[folder.name] = folder
        problems = (*problems, *unused_parts(folder.name, folder))
    return found, problems


def _write_system_prompt(
    options: RunOptions, locations: Locations, settings: Settings, skills: Skills, hidden: Hidden | None
) -> str:
    if options.system is None:
        compact = options.tools == "compact"
        return system_prompt(locations, settings, skills, more=options.more_system, compact=compact, hidden=hidden)
    return "\n\n".join(filter(None, (options.system, options.more_system)))


def _make_registry(
    context: WorkspaceContext, chosen: str, more: Sequence[Tool], settings: Settings, files: FileAccess | None = None
) -> Registry:
    tools = agent_tools(
        context.workspace,
        context.switch,
        bash=context.bash,
        hidden=context.hidden,
        withheld=context.withheld,
        files=files,
        numbered=chosen != "compact",
    )
    return Registry(*choose_tools([*tools, *more], chosen, settings))


def _withhold_denied(registry: Registry, rules: Rules) -> Toolset:
    def why_denied(spec: ToolSpec) -> str:
        rule = rules.forbidding_rule(spec.name, spec.group)
        return f"the rule {rule.text} forbids it ({rule.source})" if rule is not None else ""

    # a rule without a specifier denies the whole tool, so the model need not see its definition
    forbidding = any(rule.kind == "deny" and rule.specifier is None for rule in rules.rules)
    return withheld(registry, why_denied) if forbidding else registry


def _choose_shown(offered: Toolset, registry: Registry, settings: Settings, options: RunOptions) -> Toolset:
    """Return the tools as the model sees them: some of many are found by search, or all are behind `run_code`."""
    has_servers = bool(options.servers or settings.merged("mcpServers"))
    shown = defer_surplus(offered) if has_servers else Deferred(offered)
    return _put_behind_code(shown, registry, settings.last("codeMode"))


def _put_behind_code(toolset: Toolset, registry: Registry, setting: Any) -> Toolset:
    """Return the tools, behind `run_code` if the setting `codeMode` says so."""
    if setting is None or setting is False:
        return toolset
    from callwright.codemode import CodeMode  # needs an extra, which most do not use

    kept = [(name, registry.get(name)) for name in _list_kept(setting)]
    names = [name if tool is None else tool.spec.name for name, tool in kept]  # aliases count too
    return CodeMode(toolset, keep=(*_DIRECT_TOOLS, *names))


def _list_kept(setting: Any) -> list[str]:
    return list(setting.get("keep", ())) if setting and setting is not True else []


def _find_unknown_kept(registry: Registry, setting: Any) -> Iterator[str]:
    """Yield what is wrong with `codeMode.keep`, when the registry has all tools except those of MCP servers."""
    for name in _list_kept(setting):
        if registry.get(name) is None and name not in _DIRECT_TOOLS and not name.startswith("mcp__"):
            yield f"codeMode.keep: there is no tool {name!r}; known tools: {', '.join(registry.names()) or 'none'}"


def _make_hook_context(
    context: WorkspaceContext,
    locations: Locations,
    report: Callable[[str], None],
    toolset: Toolset,
    store: SessionStore,
) -> HookContext:
    return HookContext(
        str(locations.project),
        str(locations.cwd),
        lambda: context.switch.mode,
        report,
        Conditions(toolset, context.here),
        context.folder,
        TranscriptFiles(store),
        context.bash.pass_environment,
    )


def _open_hooks(settings: Settings, context: HookContext, host: HostProgram | None) -> tuple[ShellHooks, Sequence[str]]:
    """Return the hooks of the settings and of the program that drives this one, and their problems."""
    if host is None:
        hooks, problems = read_hooks(settings)
    else:
        context = replace(context, call_back=host.call_back, trace=host.trace)
        hooks, problems = read_hooks(settings, host.hooks)
    return ShellHooks(hooks, context), problems


def _batch_observer(hooks: ShellHooks) -> Callable[[Event], None] | None:
    return hooks.batches.observe if hooks.has_hooks_for("PostToolBatch") else None


def _make_executor(
    toolset: Toolset,
    registry: Registry,
    hooks: Iterable[Hook],
    observe: Iterable[Callable[[Event], None]],
    policies: Policies,
    repairs: RepairMode = "on",
) -> Executor:
    outputs = Outputs()
    # clipped outputs are only useful if the model can read the rest
    registry.add(outputs.reader())
    limits = TurnLimits(question_seconds=None)  # a paused session may be resumed days later
    return Executor(toolset, policies, hooks=hooks, outputs=outputs, limits=limits, observe=observe, repairs=repairs)


def _make_policies(context: WorkspaceContext, locations: Locations, more: Iterable[Policy]) -> Policies:
    by_mode = ByMode(context.switch, sandboxed=context.sandboxed, auto_allow=context.auto_allow)
    if context.bash.excluded:
        more = (*more, ExcludedCommands(context.bash.excluded))
    return standard_policies(
        context.workspace, by_mode=by_mode, rules=context.loaded.rules, cwd=locations.cwd, more=more, filtered=True
    )


def _open_store(locations: Locations) -> SessionStore:
    make_private(locations.home)  # first: `parents` makes folders that others can read
    locations.record.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_private(locations.home)
    return SqliteStore(locations.sessions)


def _connect(options: RunOptions, app: App) -> "McpServers | None":
    settings = Settings() if options.strict_servers else app.settings
    host = options.host
    if not options.servers and not settings.merged("mcpServers") and not (host and host.servers):
        return None
    relay = None if host is None else host.relay
    configs = load_servers(settings, options.servers, app.problems, app.locations, relay=relay)
    if host is not None:
        known = {config.name for config in configs}
        configs += [
            ServerConfig(name, relay=host.relay(name), trusted=True) for name in host.servers if name not in known
        ]
    return prepare_servers(app.registry, configs, app.locations)
