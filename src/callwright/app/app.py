"""The agent of the command with everything it is made of: settings, tools, rules, hooks, skills, MCP servers."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from callwright.agent.undo import UndoHistory
from callwright.app.locations import Locations
from callwright.app.mcp_servers import describe_problems
from callwright.app.observability import Observability
from callwright.app.run_context import Hidden
from callwright.app.settings import Settings
from callwright.app.skills.service import AppAgent, SkillService
from callwright.app.task_tool import TaskTool
from callwright.core.errors import UsageError
from callwright.executor.executor import Executor
from callwright.hooks.shell.hooks import ShellHooks
from callwright.policy import LoadedRules
from callwright.policy.modes import ModeSwitch
from callwright.providers.base import Provider, close_provider
from callwright.registry import Registry
from callwright.sessions import SqliteStore
from callwright.skills import Skills

if TYPE_CHECKING:
    from callwright.mcp import McpServers


@dataclass(slots=True)
class App:
    """An agent with its settings, registry, executor, hooks and skills.

    MCP servers are connected inside `async with`.
    """

    locations: Locations
    settings: Settings
    agent: AppAgent
    registry: Registry
    executor: Executor
    switch: ModeSwitch
    hooks: ShellHooks
    skill_service: SkillService
    rules: LoadedRules
    problems: list[str]
    """Shown to the user before the first prompt."""
    connect: Callable[["App"], "McpServers | None"]
    observability: Observability
    tasks: TaskTool
    hidden: Hidden | None = None
    """Tells which paths are left out of listings."""
    compact: bool = False
    """Whether the model is small, and has the compact tool set."""
    servers: "McpServers | None" = None
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def skills(self) -> Skills:
        """The skills of the user and the project."""
        return self.skill_service.skills

    def use_model(self, provider: Provider) -> None:
        """Make a model the conversation's own.

        Raises:
            UsageError: There is a limit in USD, and the price of the model is unknown; nothing has changed.
        """
        models = self.skill_service.models
        self.agent.limits = models.limits_for(provider, self.agent.limits)
        models.own = provider
        models.switch()

    def undo_history(self, session_id: str) -> UndoHistory:
        """Return what can be undone in a session; raises `UsageError` if the setting `undo` is off."""
        if self.agent.undo is None:
            raise UsageError('undo is off: remove "undo": "off" from the settings to switch it on')
        return UndoHistory(self.agent.sessions, session_id, self.agent.undo)

    async def __aenter__(self) -> "App":
        self.servers = self.connect(self)
        if self.servers is not None:
            await self._open.enter_async_context(self.servers)
            self.problems += [
                describe_problems(status) for status in self.servers.status() if status.reason or status.problems
            ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()
        await self.hooks.aclose()
        await close_provider(self.agent.provider)
        await self.skill_service.models.aclose()
        self.tasks.close()
        self.close()

    def close(self) -> None:
        """Close the session file and flush the observers."""
        self.observability.close()
        if self.agent.undo is not None:
            self.agent.undo.close()
        if isinstance(self.agent.sessions, SqliteStore):
            self.agent.sessions.close()
