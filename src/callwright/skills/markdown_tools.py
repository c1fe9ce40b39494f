"""Offers skills as separate tools: one text in, an agent's answer out."""

from pathlib import Path
from typing import Protocol

from callwright.core.access import UseTool
from callwright.core.json import JsonObject
from callwright.core.spec import Effect, ToolSpec
from callwright.skills.loader import Reloaded, Skills
from callwright.skills.skill import Skill
from callwright.skills.skill_tool import ANNOTATIONS, LIMITS, Activate, SkillRunner, SubAgent
from callwright.tool.base import Tool, ToolContext
from callwright.tool.schema_tool import SchemaTool

_INPUT: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What it should work on, in your own words."}},
    "required": ["input"],
    "additionalProperties": False,
}


def markdown_tool(
    skill: Skill, subagent: SubAgent | str, *, activate: Activate | None = None, project: Path | None = None
) -> Tool:
    """Turn a skill into a tool that takes one text and returns the answer of an agent.

    Args:
        skill: The skill.
        subagent: Runs it: a function, or the name of a tool that is an agent.
        activate: Called before the skill is used.
        project: The folder for `${PROJECT_DIR}`; the working folder by default.
    """
    runner, name = SkillRunner(subagent, activate=activate, project=project), tool_name(skill)

    async def run(arguments: JsonObject, context: ToolContext) -> str:
        return await runner.run_agent(skill, str(arguments["input"]), context)

    spec = ToolSpec(name, skill.description, _INPUT, annotations=ANNOTATIONS, limits=LIMITS, group="skill")
    return SchemaTool(spec, run, accesses=lambda arguments: (UseTool(name, Effect.READ),))


def tool_name(skill: Skill) -> str:
    """Return the name of a skill as a tool: `namespace:name` becomes `namespace.name`."""
    return skill.name.replace(":", ".")


class ToolRegistry(Protocol):
    """What tools are added to and removed from: a `Registry`."""

    def add(self, tool: Tool) -> object: ...

    def remove(self, name: str) -> object: ...


class MarkdownTools:
    """Keeps a registry in step with the skills a model may use.

    Args:
        skills: The skills.
        registry: Where their tools are added and removed.
        subagent: Runs them: a function, or the name of a tool that is an agent.
    """

    def __init__(self, skills: Skills, registry: ToolRegistry, subagent: SubAgent | str) -> None:
        self._skills = skills
        self._registry = registry
        self._subagent = subagent
        self._offered: dict[str, Skill] = {}
        self._update_registry()

    def reload(self) -> Reloaded:
        """Search for skills again and update the registry."""
        reloaded = self._skills.reload()
        self._update_registry()
        return reloaded

    def _update_registry(self) -> None:
        now = {tool_name(skill): skill for skill in self._skills if skill.model_invocable}
        for name in self._offered.keys() - now.keys():
            self._registry.remove(name)
        for name, skill in now.items():
            if self._offered.get(name) != skill:
                self._registry.add(markdown_tool(skill, self._subagent))
        self._offered = now
