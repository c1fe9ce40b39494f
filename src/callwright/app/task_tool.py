"""The `task` tool: runs a sub-agent for one task, with its own tools, instructions and limits."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from callwright.agent import Agent, RunLimits
from callwright.agent.results import Result
from callwright.agent.subagent import Lineage, SubAgent
from callwright.app.agents import BUILT_IN, AgentDefinition, describe_given, merge_agents, user_agents
from callwright.app.hook_approvals import AskInside
from callwright.app.locations import Locations
from callwright.app.models import Models
from callwright.app.settings import Settings
from callwright.core.calls import ToolCall
from callwright.core.errors import ToolFailed, UsageError
from callwright.core.events import CallBegan, CallEnded, Event
from callwright.core.json import JsonObject
from callwright.core.spec import CLAUDE_CODE_NAMES, Annotations, Effect, Limits, ToolSpec
from callwright.executor.executor import Executor
from callwright.policy import ByMode, Policies
from callwright.providers.base import Provider
from callwright.registry import Deferred, filtered
from callwright.sessions import MemoryStore, SessionStore, SqliteStore
from callwright.tool.arguments import from_text
from callwright.tool.base import Tool, ToolContext
from callwright.tool.schema_tool import SchemaInvocation, SchemaTool

if TYPE_CHECKING:
    from callwright.registry import Toolset

_LIMITS = Limits(seconds=1800.0, output_chars=50_000, concurrency=6)
_NEVER = frozenset({"task", "todo", "ask_user", "enter_plan", "exit_plan", "skill"})
"""Tools that belong to the conversation: they change its mode, speak to its user, or start further agents."""
_MAX_LINE_CHARS = 60
_PROMPT_TOKENS, _PROMPT_TOOLS = 20_000, 100  # OpenAI refuses more than 128 tools; some are found by search
"""The most that tool definitions may add to a prompt; the model finds the other tools with tool_search."""


def defer_surplus(tools: "Toolset") -> Deferred:
    """Return tools of which a prompt shows all, deferred or not, while they fit into it; the rest is searched for."""
    return Deferred(tools, budget_tokens=_PROMPT_TOKENS, budget_tools=_PROMPT_TOOLS)


def open_tasks(
    settings: Settings,
    locations: Locations,
    models: Models,
    report: Callable[[str], None],
    *,
    keep: bool,
    given: Sequence[AgentDefinition] = (),
) -> tuple["TaskTool", tuple[str, ...]]:
    """Return the tool that starts sub-agents, and the problems of the user's own and of given definitions."""
    own, problems = user_agents(locations)
    # the project's cannot replace the user's own or the built-in ones
    definitions = merge_agents(given, own, BUILT_IN, settings.agents)

    def open_sessions() -> SessionStore:
        return SqliteStore(locations.agents) if keep else MemoryStore()

    return TaskTool(definitions, models, open_sessions, report, durable=keep), (*problems, *describe_given(given))


class TaskTool:
    """Starts sub-agents. What they may do is decided by the conversation's policies, call by call.

    Args:
        definitions: The sub-agents by name.
        models: The conversation's model and others by name.
        open_sessions: Opens the records of sub-agents, so that a repeated call continues one; called on first use.
        report: Receives messages for the user.
        durable: Whether these records survive the end of the process.
    """

    def __init__(
        self,
        definitions: Mapping[str, AgentDefinition],
        models: Models,
        open_sessions: Callable[[], SessionStore],
        report: Callable[[str], None],
        *,
        durable: bool,
    ) -> None:
        self._durable = durable
        self.definitions = definitions
        self._open_sessions = open_sessions
        self._sessions: SessionStore | None = None
        self._models = models
        self._report = report
        self._outer: Agent | None = None
        self._tools: Toolset | None = None
        self._ask_inside: AskInside = lambda ask, session_id: ask

    def set_agent(self, outer: Agent, tools: "Toolset", ask_inside: AskInside) -> None:
        """Set the agent whose policies and limits sub-agents share, the tools they choose from, and how they ask."""
        self._outer, self._tools, self._ask_inside = outer, tools, ask_inside

    def close(self) -> None:
        """Close the records, if they were opened."""
        if isinstance(self._sessions, SqliteStore):
            self._sessions.close()

    @property
    def sessions(self) -> SessionStore:
        """The records of sub-agents."""
        if self._sessions is None:
            self._sessions = self._open_sessions()
        return self._sessions

    def tool(self) -> Tool:
        """Return the tool."""
        known = "\n".join(f"- {each.name}: {' '.join(each.description.split())}" for each in self.definitions.values())
        description = (
            "Give a task to a sub-agent. It starts fresh, works on its own and returns one report; several may run at"
            f" the same time. Use it for searches that would fill this conversation. Agents:\n{known}"
        )
        schema: JsonObject = {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": list(self.definitions), "description": "Which agent."},
                "prompt": {"type": "string", "description": "The whole task: it cannot see this conversation."},
            },
            "required": ["agent", "prompt"],  # others are let go: models add a description, as Claude Code asks for
        }
        annotations = Annotations(Effect.READ, idempotent=self._durable, parallel=True, delegates=True)
        spec = ToolSpec(
            "task", description, schema, annotations=annotations, limits=_LIMITS, aliases=("Task", "Agent"),
            group="agent", search_hint="subagent delegate explore plan parallel",
        )  # fmt: skip
        return cast("Tool", _TaskSchemaTool(spec, self._run))

    async def _run(self, arguments: JsonObject, context: ToolContext) -> object:
        definition = self.definitions.get(str(arguments["agent"]))
        if definition is None:
            raise ToolFailed(f"there is no agent {arguments['agent']!r}; the agents are {', '.join(self.definitions)}")
        watch = _Progress(definition.name, context)
        runner = _Runner(self._build(definition, watch.observe), definition.name, self._ask_inside)
        tool = SubAgent(runner, definition.name).tool("task", "A sub-agent.", _LIMITS)
        bound = tool.bind({"prompt": str(arguments["prompt"])})
        return await bound.run(context)

    def _build(self, definition: AgentDefinition, observe: Callable[[Event], None]) -> Agent:
        outer = self._outer
        if outer is None or self._tools is None:
            raise UsageError("a sub-agent was used before its app was complete")
        # shown if they fit, deferred or not: the agent's file names them
        tools = defer_surplus(filtered(self._tools, lambda spec: spec.name not in _NEVER and definition.has_tool(spec)))
        # those of the conversation too: outside of a run there is no lineage that would add them
        policies = outer.executor.policies
        if definition.read_only:
            policies = Policies(*policies.policies, ByMode("plan"))
        executor = Executor(
            tools,
            policies,
            hooks=outer.executor.hooks,
            observe=observe,
            limits=outer.executor.limits,
            outputs=outer.executor.outputs,
            repairs=outer.executor.repairs,
        )
        provider, limits = self._provider(definition, outer.limits)
        return Agent(
            provider,
            tools,
            executor=executor,
            sessions=self.sessions,
            system=definition.instructions,
            limits=replace(limits, turns=min(definition.turns, limits.turns)),
            requests=outer.requests,
            name=definition.name,
        )

    def _provider(self, definition: AgentDefinition, limits: RunLimits) -> tuple[Provider, RunLimits]:
        """Return the model of a sub-agent, and the limits with its prices."""
        if not definition.model:
            return self._models.own, limits
        try:
            provider = self._models.get(definition.model)
            return provider, self._models.limits_for(provider, limits)
        except UsageError as error:
            self._report(f"the agent {definition.name} asks for the model {definition.model}: {error}; using its own")
            return self._models.own, limits


class _TaskSchemaTool(SchemaTool):
    """The tool as models call it, also those that were trained on the names of Claude Code."""

    def field_aliases(self) -> Mapping[str, str]:
        """Return the other names of its arguments, for repairs."""
        return CLAUDE_CODE_NAMES["agent"]

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        """Bind, with the agent also under the name that Claude Code gives it."""
        given = from_text(arguments) if isinstance(arguments, (str, bytes)) else arguments
        for other, own in self.field_aliases().items():
            if isinstance(given, Mapping) and other in given:
                arguments = given = dict(cast("Mapping[str, Any]", given))
                # never both: a rule about the other name would judge an agent that does not run
                given.setdefault(own, given.pop(other))
        return super().bind(arguments)


@dataclass(frozen=True, slots=True)
class _Runner:
    """Runs a sub-agent by its name, with its questions in the conversation that it belongs to."""

    agent: Agent
    name: str
    ask_inside: AskInside

    @property
    def durable(self) -> bool:
        return self.agent.durable

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        inherited = copy(lineage)  # all of it, also what a later version adds
        inherited.ask = self.ask_inside(lineage.ask, session_id)
        return await self.agent.run_inside(prompt, session_id, inherited, self.name)


class _Progress:
    """Reports what a sub-agent does now as the progress of its call, which is the live line of the terminal."""

    def __init__(self, name: str, context: ToolContext) -> None:
        self._name = name
        self._context = context
        self._running: dict[str, ToolCall] = {}
        self._done = 0

    def observe(self, event: Event) -> None:
        match event:
            case CallBegan(call):
                self._running[call.id] = call
            case CallEnded(outcome):
                self._running.pop(outcome.call.id, None)
                self._done += 1
            case _:
                return
        now = " and ".join(call.name for call in self._running.values())[:_MAX_LINE_CHARS] or "thinking"
        self._context.report({"message": f"{self._name}: {now} · {self._done} calls"})
