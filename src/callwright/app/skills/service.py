"""Skills of an app: expands `/name` in prompts, grants what skills may do, and runs forked skills as agents."""

import secrets
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from callwright.agent import Agent
from callwright.agent.agent import Prompt
from callwright.agent.results import AgentEvent, Paused, Stopped
from callwright.agent.run_limits import Spending
from callwright.agent.subagent import Lineage
from callwright.app.hook_approvals import AskInside
from callwright.app.locations import Locations
from callwright.app.models import Models
from callwright.app.prompts import UserPrompt
from callwright.app.skills.grants import OWN_MODEL, ActiveSkills
from callwright.app.skills.skill_agent import PathScopedSkills, SkillAgent, skill_agent
from callwright.core.calls import Answers, Completed, Failed, ToolCall
from callwright.core.errors import ToolError, ToolFailed, UsageError
from callwright.core.messages import Usage
from callwright.executor.turn_context import Turn
from callwright.registry import Catalog, Registry
from callwright.sessions.records import Spent
from callwright.skills import Expansion, Skill, Skills, SkillTool
from callwright.skills.render import ExpansionContext, find_references, render_skill
from callwright.skills.skill_tool import SkillCalls
from callwright.tool.base import Cancellation, State, Tool, ToolContext

_ANSWERED = "The user called the skill {name}. It ran as a separate agent, which answered:\n\n{answer}"


class SkillService:
    """The skills of one app, connected to its agent, models and permissions.

    Args:
        skills: The skills found for the working folder.
        locations: The working folder and the project.
        active: The policy that holds the grants of skills in use.
        models: The models that skills may ask for.
        report: Receives messages for the user.
    """

    def __init__(
        self, skills: Skills, locations: Locations, active: ActiveSkills, models: Models, report: Callable[[str], None]
    ) -> None:
        self.skills = skills
        self.active = active
        self.models = models
        self._locations = locations
        self._report = report
        self._agent: Agent | None = None
        self._ask_inside: AskInside = lambda ask, session_id: ask
        self._tool = cast(
            "Tool", SkillTool(skills, fork=self._fork, activate=self._activate, project=locations.project)
        )

    @property
    def problems(self) -> list[str]:
        """Why skills cannot be used, as text for the user; `callwright skills check` reports every problem."""
        return [str(problem) for problem in self.skills.problems if problem.fatal]

    def attach(self, registry: Registry) -> PathScopedSkills:
        """Register the skill tool as soon as there is a skill; return the hook that finds more skills."""

        def offer() -> None:
            # without a skill the tool would only cost tokens
            if len(self.skills) and self._tool.spec.name not in registry:
                registry.add(self._tool)

        offer()
        return PathScopedSkills(self.skills, offer)

    def set_agent(self, agent: Agent, ask_inside: AskInside) -> None:
        """Set the agent that uses the skills, and how the agents of skills ask."""
        self._agent, self._ask_inside = agent, ask_inside

    async def expand(
        self, prompt: Prompt | UserPrompt, session_id: str, cancellation: Cancellation | None = None
    ) -> Prompt:
        """Return the prompt for the agent: `/name /other arguments` is replaced by the text of these skills.

        Attachments, piped text and hook notes are kept.

        Raises:
            ToolFailed: A skill cannot be used.
        """
        parts = UserPrompt.of(prompt)
        called, arguments = self.skills.parse_slashes(parts.text)
        if not called or parts.verbatim:
            return parts.compose()
        attached = find_references(Expansion((parts.text,)), self._locations.cwd) if parts.attachments else ()
        turn = Turn(session_id, cancellation=cancellation)
        locations = self._locations
        context = ExpansionContext(
            locations.project, locations.cwd, session_id, attached=attached, piped=parts.stdin_block
        )
        spending = Spending(self._require_agent().limits)  # of all agents of the prompt: they share one limit
        try:
            texts = [await self._render(skill, arguments, turn, context, spending) for skill in called]
        except BaseException:
            self.end_run(session_id)
            raise
        return parts.compose("\n\n".join(texts))

    def stop(self, reason: str, session_id: str) -> Stopped:
        """Return the result of a prompt whose skills cannot be used, with what their agents used."""
        lineage = self._require_agent().state(session_id).get(Lineage)
        spent = [each for each in lineage.earlier if isinstance(each, Spent)]
        lineage.earlier = ()
        costs = [each.cost for each in spent if each.cost is not None]
        usage = sum((each.usage for each in spent), Usage())
        return Stopped(reason, "halted", usage, session_id, cost=sum(costs) if costs else None)

    def end_run(self, session_id: str) -> None:
        """Revoke the grants and the model of skills used in the run that ends."""
        self.active.release(session_id)
        self.models.switch()

    async def _render(
        self, skill: Skill, arguments: str, turn: Turn, context: ExpansionContext, spending: Spending
    ) -> str:
        agent = self._require_agent()
        lineage = Lineage()
        # the calls of a skill ask through the conversation, as those of a sub-agent do
        lineage.executor, lineage.ask = agent.executor, agent.ask
        if skill.fork:
            lineage.spending = spending
            lineage.note = agent.state(turn.session_id).get(Lineage).note_earlier
        state = State()
        state.put(lineage)
        if agent.undo is not None:
            lineage.undo = agent.undo.record_before_prompt(turn.session_id)
            state.put(lineage.undo)
        turn = replace(turn, state=state, ask=agent.ask)
        self._use(skill, turn.session_id)
        calls = SkillCalls(lambda call: agent.executor.execute([call], turn=turn), f"skill-{uuid.uuid4().hex[:8]}")
        prompt = await render_skill(skill, arguments, replace(context, run=calls.run, read=calls.read))
        return await self._run_forked(skill, prompt, turn) if skill.fork else prompt

    async def _run_forked(self, skill: Skill, prompt: str, turn: Turn) -> str:
        """Run the skill's agent as the only tool of a turn: it can be cancelled, and its calls are judged."""
        self.active.release(turn.session_id, skill.name)
        tool = self._agent_of(skill).tool()
        # a catalog of its own, so that the model cannot call this tool by name
        alone = replace(turn, catalog=Catalog({tool.spec.name: tool}))
        call = ToolCall(f"skill-{uuid.uuid4().hex[:8]}", tool.spec.name, {"prompt": prompt})
        (outcome,) = await self._require_agent().executor.execute([call], turn=alone)
        if isinstance(outcome, Completed):
            return _ANSWERED.format(name=skill.name, answer=outcome.text)
        reason = outcome.text if isinstance(outcome, Failed) else "it needs an approval"
        raise ToolFailed(f"the agent of the skill {skill.name} failed: {reason}")

    async def _fork(self, skill: Skill, prompt: str, context: ToolContext) -> str:
        # the grants belong to the skill's agent, not to the conversation
        self.active.release(context.session_id, skill.name)
        bound = self._agent_of(skill).tool().bind({"prompt": prompt})
        return str(await bound.run(context))

    def _activate(self, skill: Skill, context: ToolContext) -> None:
        lineage = context.state.get(Lineage)
        self._use(skill, context.session_id, switching=lineage.depth == 0)
        if lineage.depth == 0 and lineage.spending is not None:  # of the run that goes on with the skill's model
            lineage.spending.limits = self.models.price_in_use(lineage.spending.limits)

    def _use(self, skill: Skill, session_id: str, *, switching: bool = True) -> None:
        self.active.activate(skill, session_id)
        if switching and not skill.fork and (name := self._model_of(skill)):
            try:
                self.models.switch(name)
                agent = self._require_agent()
                agent.limits = self.models.price_in_use(agent.limits)
            except UsageError as error:
                self._report_model(skill, error)

    def _agent_of(self, skill: Skill) -> SkillAgent:
        name = self._model_of(skill)
        provider, outer = self.models.get(name) if name else self.models.own, self._require_agent()
        limits = self.models.limits_for(provider, outer.limits)
        return skill_agent(skill, outer, provider, limits, self.active, self._ask_inside)

    def _model_of(self, skill: Skill) -> str:
        """Return the model a skill asks for; empty for the conversation's own, or if the request is not granted."""
        if skill.model in OWN_MODEL:
            return ""
        try:
            if not self.active.trusts(skill):
                raise UsageError("this folder is not trusted; run callwright trust give")
            # opened now, so that a missing key or price is reported here and not in the middle of the answer
            self.models.limits_for(self.models.get(skill.model), self._require_agent().limits)
        except UsageError as error:
            self._report_model(skill, error)
            return ""
        return skill.model

    def _report_model(self, skill: Skill, error: UsageError) -> None:
        self._report(f"the skill {skill.name} requests the model {skill.model}, which is not used: {error}")

    def _require_agent(self) -> Agent:
        if self._agent is None:
            raise UsageError("a skill was used before its app was complete")
        return self._agent


class AppAgent(Agent):
    """The agent of an app: users call skills by `/name`, and what a skill is granted ends with the run."""

    _skill_service: SkillService | None = None

    def use_skills(self, service: SkillService, ask_inside: AskInside) -> None:
        """Expand the skills of this service in prompts from now on."""
        self._skill_service = service
        service.set_agent(self, ask_inside)

    def stream(
        self,
        prompt: Prompt | UserPrompt | None = None,
        *,
        session: str | None = None,
        answers: Answers | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run as any agent does; skills that the prompt calls by `/name` are replaced by their text."""
        service, session_id = self._skill_service, session or secrets.token_hex(16)

        def start(expanded: Prompt | None) -> AsyncGenerator[AgentEvent, None]:
            return super(AppAgent, self).stream(
                expanded, session=session_id, answers=answers, output=output, cancellation=cancellation
            )

        if service is None:
            return start(None if prompt is None else UserPrompt.of(prompt).compose())
        return _stream_with_skills(service, start, prompt, session_id, cancellation, resuming=answers is not None)


async def _stream_with_skills(
    service: SkillService,
    start: Callable[[Prompt | None], AsyncGenerator[AgentEvent, None]],
    prompt: Prompt | UserPrompt | None,
    session_id: str,
    cancellation: Cancellation | None,
    *,
    resuming: bool,
) -> AsyncGenerator[AgentEvent, None]:
    """Run one prompt; revoke what its skills were granted when the run ends, but not while it is paused."""
    paused = False
    try:
        expanded: Prompt | None = None
        if prompt is not None:
            # a new prompt abandons a paused run, whose grants must not carry over, unless it is answered too
            if not resuming:
                service.end_run(session_id)
            try:
                expanded = await service.expand(prompt, session_id, cancellation)
            except ToolError as error:
                yield service.stop(error.message, session_id)
                return
        async with aclosing(start(expanded)) as events:
            async for event in events:
                paused = isinstance(event, Paused)
                yield event
    finally:
        if not paused:
            service.end_run(session_id)
