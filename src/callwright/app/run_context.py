"""The options and limits of one run, and the workspace context that its tools, hooks and policies share."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from callwright.agent import Compaction, RunLimits
from callwright.app.costs import prices_in, unknown_price
from callwright.app.locations import Locations
from callwright.app.permissions import load_rules
from callwright.app.settings import Settings
from callwright.core.errors import UsageError
from callwright.core.json import read_object
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.process import HookRun
from callwright.hooks.shell.remote import CallBack
from callwright.mcp.config import Relay
from callwright.policy import LoadedRules, Rules
from callwright.policy.modes import AutoAllow, ModeSwitch
from callwright.policy.paths import PathContext
from callwright.policy.plan_tools import plan_tools
from callwright.registry.compose import SlimTool
from callwright.system.paths import Workspace, expand_home
from callwright.system.sandbox.sandbox import INSTALL, SandboxMode, check_mode
from callwright.system.undo.kept_content import UndoLimits
from callwright.system.undo.undo_store import UndoStore
from callwright.tool.base import Tool
from callwright.toolbox import (
    AskUser,
    Bash,
    BashKill,
    BashOutput,
    Delete,
    Edit,
    FileAccess,
    Glob,
    Grep,
    List,
    Move,
    Read,
    Todo,
    WebFetch,
    Write,
)

Hidden = Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The setting `sandbox`."""

    mode: SandboxMode = "prefer"
    pass_environment: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> "SandboxOptions":
        """Read the setting, which is a mode or an object.

        Raises:
            UsageError: The mode is not valid.
        """
        given: object = settings.last("sandbox")
        if not isinstance(given, Mapping):
            return cls(check_mode(given or "prefer"))
        options = cast("Mapping[str, Any]", given)
        return cls(
            check_mode(options.get("mode", "prefer")),
            tuple(options.get("passEnvironment", ())),
            tuple(options.get("writable", ())),
            tuple(options.get("readable", ())),
            tuple(options.get("excludedCommands", ())),
        )


def _shell_tool(workspace: Workspace, options: SandboxOptions, rules: Rules) -> Bash:
    """Return the bash tool with the sandbox that was asked for, which also holds what rules deny or ask about."""
    bash = Bash(
        workspace,
        sandbox=options.mode,
        writable=options.writable,
        readable=options.readable,
        hidden=_read_deny(rules),
        pass_environment=options.pass_environment,
        excluded=options.excluded,
    )
    unwritable = rules.forbids_writing if any(rule.kind == "deny" for rule in rules.rules) else None
    bash.sandbox = replace(bash.sandbox, denied=rules.denied_places(), unwritable=unwritable)
    if rules.asks_about_files:
        # a command that was not approved must not read or change what a rule asks about
        asking = partial(rules.forbids_writing, asked=True)
        asked = replace(bash.sandbox, hidden=rules.withholds, unwritable=asking, approved=bash.sandbox, _scans={})
        bash.sandbox = replace(asked, denied=rules.denied_places(asked=True))
    return bash


COMPACT_TOOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "read": (
        "Read a file; of a folder its entries. Long files come in parts: the last line says how to read on.",
        ("path", "offset", "limit"),
    ),
    "write": (
        "Write a whole file; what it had before is lost. To add or change lines of a file use edit.",
        ("path", "content"),
    ),
    "edit": (
        "Replace text in a file. Copy old_string exactly from the file; it must occur once, or pass replace_all=true. "
        "To add lines, give the line before them as old_string, and that line with the new ones as new_string.",
        ("path", "old_string", "new_string", "replace_all"),
    ),
    "bash": ("Run a bash command line in the working folder.", ("command",)),
    "grep": (
        "Search file contents with a regular expression. mode files (default) names the files, content shows the "
        "lines, count counts them.",
        ("pattern", "path", "mode"),
    ),
}
"""The tool set for models with little context: descriptions and fields they are shown. Small models fill in every one.

The fields that are not shown keep their defaults, and a model that sends them is understood.
"""


_LITTLE_CONTEXT_TOKENS = 16_384
_MEGABYTE = 1024 * 1024


def tool_set_for(context: int | None) -> str:
    """Return the tool set for a model's context; `all` where that is not known."""
    return "compact" if context is not None and context <= _LITTLE_CONTEXT_TOKENS else "all"


def choose_tools(tools: list[Tool], chosen: str, settings: Settings | None = None) -> list[Tool]:
    """Return the tools of a set: `all`, `compact`, `none`, or names between commas.

    Args:
        tools: All of them.
        chosen: The set.
        settings: Where the choice may come from, for the message.

    Raises:
        UsageError: A name is not that of a tool.
    """
    if chosen in ("", "all", "default"):
        return tools
    if chosen == "none":
        return []
    wanted = tuple(COMPACT_TOOLS if chosen == "compact" else (name for name in re.split(r"[\s,]+", chosen) if name))
    known = {spelling: tool for tool in tools for spelling in (*tool.spec.aliases, tool.spec.name)}
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        named = ", ".join(tool.spec.name for tool in tools)
        configured = settings is not None and settings.last("tools") == chosen
        where = f"{settings.place('tools')}: tools" if settings is not None and configured else "--tools"
        raise UsageError(f"{where} {chosen!r}: expected all, compact, none or names of tools ({named})")
    names = {known[name].spec.name for name in wanted}
    found = [tool for tool in tools if tool.spec.name in names]
    return [_make_slim(tool) for tool in found] if chosen == "compact" else found


def _make_slim(tool: Tool) -> SlimTool:
    description, fields = COMPACT_TOOLS[tool.spec.name]
    return SlimTool(tool, fields, description)


def agent_tools(
    workspace: Workspace,
    switch: ModeSwitch,
    *,
    bash: Bash,
    hidden: Hidden | None,
    withheld: Hidden | None = None,
    files: FileAccess | None = None,
    numbered: bool = True,
) -> list[Tool]:
    """Return the tools of the command.

    Args:
        workspace: The folders the tools work in.
        switch: Holds the permission mode, which the plan tools change.
        bash: The shell, already confined.
        hidden: Paths to leave out of listings and searches.
        withheld: Files whose content is searched only if a call names them.
        files: Where files are loaded and stored; on disk if None.
        numbered: Whether `read` shows line numbers.
    """
    files = files or FileAccess()
    tools = [
        Read(workspace, files=files, numbered=numbered),
        Write(workspace, files=files),
        Edit(workspace, files=files),
        bash,
        BashOutput(),
        BashKill(),
        Glob(workspace, hidden=hidden),
        Grep(workspace, hidden=hidden, withheld=withheld),
        List(workspace, hidden=hidden),
        Delete(workspace),
        Move(workspace),
        WebFetch(),
        Todo(),
        AskUser(),
        *plan_tools(switch),
    ]
    return cast("list[Tool]", tools)  # the class attribute spec is a descriptor, which the protocol cannot say


@dataclass(frozen=True, slots=True)
class HostProgram:
    """What a program that drives this one provides, besides the command line."""

    call_back: CallBack
    """Runs a hook of the program, by its id."""
    relay: Callable[[str], Relay]
    """Returns the way to an MCP server inside the program, by its name."""
    hooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """In the form of the setting, with ids as commands."""
    servers: tuple[str, ...] = ()
    """MCP servers inside the program that no `--mcp-config` names."""
    agents: Mapping[str, Any] = field(default_factory=dict[str, Any])
    skills: tuple[str, ...] | None = None
    """The only skills to use; None for all."""
    trace: Callable[[ShellHook, HookRun | None], None] = lambda hook, run: None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one run asks for on the command line, in addition to the settings."""

    mode: str = ""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """MCP configuration: each entry is a file name or JSON."""
    turns: int | None = None
    usd: float | None = None
    max_tokens: int | None = None
    """The most tokens of one answer."""
    context: int | None = None
    """How many tokens the model can take in; None if unknown."""
    fallbacks: tuple[str, ...] = ()
    """Models that may answer in place of the chosen one."""
    system: str | None = None
    """Replaces the built-in system prompt."""
    more_system: str = ""
    """Added to the end of the system prompt."""
    keep: bool = True
    """Whether sessions are written to disk."""
    log: str = ""
    """The file for the structured log; `-` means stderr."""
    tools: str = ""
    """The tool set: `all`, `compact`, `none`, or names between commas; empty for the setting."""
    strict_servers: bool = False
    """Whether only the servers of `servers` are used, and none of the settings."""
    agents: str = ""
    """Sub-agents as JSON, by name."""
    plugins: tuple[str, ...] = ()
    """Folders of plugins, for their skills and commands."""
    host: HostProgram | None = None
    own_server: bool = False
    """Whether the model runs on another server than its vendor's."""


def run_limits(settings: Settings, options: RunOptions, model: str) -> RunLimits:
    """Return the limits of one run: options take precedence over settings. Without a model, nothing is paid for.

    Raises:
        UsageError: A limit in money is set, but the price of the model is unknown.
    """
    limits = settings.merged("limits")
    prices = {name: prices_in(settings, name) for name in (model, *options.fallbacks)}
    money = None if not model else options.usd if options.usd is not None else limits.get("usd")
    unknown = next((name for name, found in prices.items() if found is None), None)
    if money is not None and unknown is not None:
        raise unknown_price(unknown)
    return RunLimits(
        # 0 turns would be a run that cannot begin, so it means the default
        turns=options.turns or limits.get("turns") or RunLimits().turns,
        calls=limits.get("calls"),
        tokens=limits.get("tokens"),
        seconds=limits.get("seconds"),
        money=money,
        prices=prices[model],
        other_prices={name: found for name, found in prices.items() if found is not None and name != model},
    )


def undo_store(settings: Settings, folder: Path | None, report: Callable[[str], None]) -> UndoStore | None:
    """Return what keeps changes of files for undo; None if the setting `undo` is off.

    Args:
        settings: The merged settings.
        folder: Where to keep them; a temporary folder if None.
        report: Receives messages for the user.
    """
    given: object = settings.last("undo")
    if given == "off":
        return None
    chosen = read_object(given)
    usual = UndoLimits()
    limits = UndoLimits(
        int(chosen["megabytes"] * _MEGABYTE) if "megabytes" in chosen else usual.total_bytes,
        int(chosen["largestFileMegabytes"] * _MEGABYTE) if "largestFileMegabytes" in chosen else usual.file_bytes,
        chosen.get("days", usual.days),
    )
    return UndoStore(folder, limits=limits, report=report)


def compaction_for(context: int | None) -> Compaction:
    """Return when a conversation is shortened: in time for the model's context, where its size is known."""
    if context is None:
        return Compaction()
    return Compaction(at_tokens=max(2, context * 3 // 4), keep_tokens=max(1, context // 6))


@dataclass(frozen=True, slots=True)
class WorkspaceContext:
    """The folders, rules, mode and shell that the tools, hooks and policies of one app share."""

    workspace: Workspace
    here: PathContext
    loaded: LoadedRules
    """The rules, with the problems found in them."""
    rules: Rules
    switch: ModeSwitch
    bash: Bash
    auto_allow: AutoAllow = "proven"
    unsearched: str = ""
    """Which part of the workspace is too large to be searched for secrets."""

    @property
    def sandboxed(self) -> bool:
        """Whether a sandbox without gaps holds every command; with gaps, commands are still asked about."""
        # Landlock leaves gaps (chmod, sockets), so a command there is still judged by its line
        return self.bash.sandbox.complete and not self.unsearched

    @property
    def hidden(self) -> Hidden | None:
        """Tells which paths listings and searches leave out; None if there are none."""
        return _read_deny(self.rules)

    @property
    def withheld(self) -> Hidden | None:
        """Tells which files may not be read unasked; None if rules ask about none."""
        return self.rules.withholds if self.rules.asks_about_reading else None

    def sandbox_problems(self) -> list[str]:
        """Return what the user must know about the sandbox: that there is none, or what it does not cover."""
        sandbox = self.bash.sandbox
        if sandbox.mode == "off":
            return []
        if sandbox.complete:
            return [f"only lines that are proven to read run unasked: {self.unsearched}"] if self.unsearched else []
        if not sandbox.confines:
            return [f"no sandbox: only a short list of programs runs unasked ({'; '.join(sandbox.gaps)})"]
        return [f"incomplete sandbox: {sandbox.describe()}; {INSTALL}"]

    def folder(self) -> str:
        """Return the folder the next command would run in."""
        return str(self.bash.bind({"command": "true"}).folder)


def workspace_context(settings: Settings, locations: Locations, options: RunOptions) -> WorkspaceContext:
    """Read the workspace, rules and mode from the settings and the options of this run."""
    # reading is judged by rules and guards; only changes outside need the fence
    workspace = Workspace(locations.cwd, *_directories(settings, options), reads="anywhere", outside="ask")
    here = PathContext.within(workspace, locations.cwd)
    loaded = load_rules(settings, here, allow=options.allow, ask=options.ask, deny=options.deny)
    # any layer may bar the mode, even one of an untrusted repository: it only restricts
    barred = ("bypass",) if settings.last("permissions", "disableBypassPermissionsMode") else ()
    switch = ModeSwitch(options.mode or settings.last("permissions", "defaultMode") or "default", barred=barred)
    rules = Rules(loaded.rules, here)
    bash = _shell_tool(workspace, SandboxOptions.of(settings), rules)
    # with a gap in the wall, a wrong guess about a line could do harm
    unsearched = bash.sandbox.find_unsearched()
    walled = bash.sandbox.complete and not unsearched and settings.last("autoAllow") != "proven"
    auto_allow = "walled" if walled else "proven"
    return WorkspaceContext(workspace, here, loaded, rules, switch, bash, auto_allow, unsearched)


def _read_deny(rules: Rules) -> Hidden | None:
    """Return which paths read-deny rules hide; None without such rules, which spares a check of every path."""
    return rules.hides if any(rule.kind == "deny" for rule in rules.rules) else None


def _directories(settings: Settings, options: RunOptions) -> list[Path]:
    added = [expand_home(folder).absolute() for folder in options.directories]
    for folder in added:
        if not folder.is_dir():
            raise UsageError(f"--add-dir {folder}: not a folder")
    return [*settings.directories(), *added]
