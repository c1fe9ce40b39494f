"""Skills in the command: who may use them how, whether the model calls for one or a person types its name."""

import secrets
import uuid
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import cast

from callwright.agent import Agent
from callwright.agent.agent import Prompt
from callwright.agent.results import AgentEvent, Paused, Stopped
from callwright.agent.subagent import Lineage
from callwright.app.locations import Locations
from callwright.app.models import Models
from callwright.app.skills.grants import OWN_MODEL, ActiveSkills
from callwright.app.skills.skill_agent import NearbySkills, SkillAgent, skill_agent
from callwright.core.calls import Answers, Completed, Failed, ToolCall
from callwright.core.content import Text
from callwright.core.errors import ToolError, ToolFailed, UsageError
from callwright.executor.turn import Turn
from callwright.registry import Catalog, Registry
from callwright.skills import Expansion, Skill, Skills, SkillTool
from callwright.skills.render import ExpansionContext, prepared, references
from callwright.skills.skill_tool import Calls
from callwright.tool.base import Cancellation, State, Tool, ToolContext

HOOK_NOTE = "\n\n[hook] "
"""Stands before what hooks add to a prompt, which is no part of what the person typed."""
STDIN_BEGINS = "\n\n<stdin>\n"
"""Stands before what was piped in, which names no files to be attached."""
_ANSWERED = "The person called the skill {name}. It ran as an agent of its own, which answered:\n\n{answer}"


class Skilled:
    """The skills of one app, wired to its agent, models and permissions."""

    def __init__(
        self, skills: Skills, places: Locations, active: ActiveSkills, models: Models, report: Callable[[str], None]
    ) -> None:
        self.skills = skills
        self.active = active
        """What they are granted while they are in use."""
        self.models = models
        self._places = places
        self._report = report
        self._agent: Agent | None = None
        self._tool = cast("Tool", SkillTool(skills, fork=self._fork, activate=self._activate, project=places.project))

    @property
    def problems(self) -> list[str]:
        """What keeps skills from being used, for a person to read; `callwright skills check` says all of it."""
        return [str(problem) for problem in self.skills.problems if problem.fatal]

    def attach(self, registry: Registry) -> NearbySkills:
        """Put the tool where the model finds it, as soon as there is a skill; returns the hook that finds more."""

        def offer() -> None:
            if len(self.skills) and self._tool.spec.name not in registry:
                registry.add(self._tool)

        offer()
        return NearbySkills(self.skills, offer)

    def serve(self, agent: Agent) -> None:
        """Make this the agent that skills are used by."""
        self._agent = agent

    async def heard(self, prompt: Prompt, session_id: str, cancellation: Cancellation | None = None) -> Prompt:
        """Return what is said to the agent for what a person typed: `/name /other arguments` becomes the skills' text.

        What came along with it still does. Raises `ToolFailed` where a skill cannot be used.
        """
        turn = Turn(session_id, cancellation=cancellation)
        if isinstance(prompt, str):
            return await self._read_out(prompt, turn, ())
        first = prompt[0] if prompt else None
        if not isinstance(first, Text):
            return prompt
        named = references(Expansion((first.text,)), self._places.cwd)
        return (Text(await self._read_out(first.text, turn, named)), *prompt[1:])

    async def _read_out(self, text: str, turn: Turn, attached: Collection[Path]) -> str:
        typed, note, more = text.partition(HOOK_NOTE)
        typed, begins, piped = typed.partition(STDIN_BEGINS)
        called, arguments = self.skills.stacked(typed)
        if not called:
            return text
        places = self._places
        around = ExpansionContext(places.project, places.cwd, turn.session_id, attached=attached, piped=begins + piped)
        try:
            texts = [await self._said(skill, arguments, turn, around) for skill in called]
        except BaseException:
            self.ended(turn.session_id)
            raise
        return "\n\n".join(texts) + note + more

    def ended(self, session_id: str) -> None:
        """Take back what skills were granted for an answer that is there now."""
        self.active.release(session_id)
        self.models.switch()

    async def _said(self, skill: Skill, arguments: str, turn: Turn, around: ExpansionContext) -> str:
        agent = self._served()
        lineage = Lineage()
        lineage.executor, lineage.ask = agent.executor, agent.ask
        state = State()
        state.put(lineage)
        turn = replace(turn, state=state, ask=agent.ask)
        self._use(skill, turn.session_id)
        calls = Calls(lambda call: agent.executor.execute([call], turn=turn), f"skill-{uuid.uuid4().hex[:8]}")
        prompt = await prepared(skill, arguments, replace(around, run=calls.run, read=calls.read))
        return await self._answered(skill, prompt, turn) if skill.fork else prompt

    async def _answered(self, skill: Skill, prompt: str, turn: Turn) -> str:
        """Let the skill's agent run as the only tool of a turn, so that it can be stopped and its calls are judged."""
        self.active.release(turn.session_id, skill.name)
        tool = self._agent_of(skill).tool()
        alone = replace(turn, catalog=Catalog({tool.spec.name: tool}))
        call = ToolCall(f"skill-{uuid.uuid4().hex[:8]}", tool.spec.name, {"prompt": prompt})
        (outcome,) = await self._served().executor.execute([call], turn=alone)
        if isinstance(outcome, Completed):
            return _ANSWERED.format(name=skill.name, answer=outcome.text)
        reason = outcome.text if isinstance(outcome, Failed) else "it may not run without approval"
        raise ToolFailed(f"the agent of the skill {skill.name} gave no answer: {reason}")

    async def _fork(self, skill: Skill, prompt: str, context: ToolContext) -> str:
        self.active.release(context.session_id, skill.name)  # its agent has the grants, the conversation does not
        bound = self._agent_of(skill).tool().bind({"prompt": prompt})
        return str(await bound.run(context))

    def _activate(self, skill: Skill, context: ToolContext) -> None:
        self._use(skill, context.session_id, switching=context.state.get(Lineage).depth == 0)

    def _use(self, skill: Skill, session_id: str, *, switching: bool = True) -> None:
        self.active.activate(skill, session_id)
        if switching and not skill.fork and (name := self._model_of(skill)):
            try:
                self.models.switch(name)
            except UsageError as error:
                self._refused(skill, error)

    def _agent_of(self, skill: Skill) -> SkillAgent:
        name = self._model_of(skill)
        provider = self.models.get(name) if name else self.models.own
        return skill_agent(skill, self._served(), provider, self.active)

    def _model_of(self, skill: Skill) -> str:
        """The model a skill is to be used with; empty for the conversation's own, as where its wish is not granted."""
        if skill.model in OWN_MODEL:
            return ""
        try:
            if not self.active.trusts(skill):
                raise UsageError("this folder is not trusted for that; callwright trust give")
            self.models.get(skill.model)
        except UsageError as error:
            self._refused(skill, error)
            return ""
        return skill.model

    def _refused(self, skill: Skill, error: UsageError) -> None:
        self._report(f"the skill {skill.name} asks for the model {skill.model} and does not get it: {error}")

    def _served(self) -> Agent:
        if self._agent is None:
            raise UsageError("skills are used before their app is complete")
        return self._agent


class SkilledAgent(Agent):
    """An agent people can call skills of by `/name`. What skills were granted ends with the run they were used in."""

    _skilled: Skilled | None = None

    def serve(self, skilled: Skilled) -> None:
        """Use these skills from now on."""
        self._skilled = skilled
        skilled.serve(self)

    def stream(
        self,
        prompt: Prompt | None = None,
        *,
        session: str | None = None,
        answers: Answers | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """As every agent; a prompt that calls skills is said as what they stand for."""
        skilled, session_id = self._skilled, session or secrets.token_hex(16)

        def go(heard: Prompt | None) -> AsyncGenerator[AgentEvent, None]:
            return super(SkilledAgent, self).stream(
                heard, session=session_id, answers=answers, output=output, cancellation=cancellation
            )

        return go(prompt) if skilled is None else _led(skilled, go, prompt, session_id, cancellation)


async def _led(
    skilled: Skilled,
    go: Callable[[Prompt | None], AsyncGenerator[AgentEvent, None]],
    prompt: Prompt | None,
    session_id: str,
    cancellation: Cancellation | None,
) -> AsyncGenerator[AgentEvent, None]:
    """Lead one run; however it ends, what skills were granted for it ends too, unless it only pauses."""
    paused = False
    try:
        if prompt is not None:
            skilled.ended(session_id)  # of a run that is still paused: the person has gone on
            try:
                prompt = await skilled.heard(prompt, session_id, cancellation)
            except ToolError as error:
                yield Stopped(error.message, "halted", session_id=session_id)
                return
        async with aclosing(go(prompt)) as events:
            async for event in events:
                paused = isinstance(event, Paused)
                yield event
    finally:
        if not paused:
            skilled.ended(session_id)
