"""Skills as tools of their own: one text in, an agent's answer out."""

from pathlib import Path
from typing import Protocol

from callwright.core.access import UseTool
from callwright.core.json import JsonObject
from callwright.core.spec import Effect, ToolSpec
from callwright.skills.loader import Reloaded, Skills
from callwright.skills.skill import Skill
from callwright.skills.skill_tool import ANNOTATIONS, LIMITS, Activate, SubAgent, Use
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
    """Make a skill a tool of its own that takes one text and answers with what its agent said."""
    use, name = Use(subagent, activate=activate, project=project), tool_name(skill)

    async def run(arguments: JsonObject, context: ToolContext) -> str:
        return await use.answer(skill, str(arguments["input"]), context)

    spec = ToolSpec(name, skill.description, _INPUT, annotations=ANNOTATIONS, limits=LIMITS, group="skill")
    return SchemaTool(spec, run, accesses=lambda arguments: (UseTool(name, Effect.READ),))


def tool_name(skill: Skill) -> str:
    """The name a skill has as a tool: what stands before a colon is a namespace."""
    return skill.name.replace(":", ".")


class Shelf(Protocol):
    """Where tools are put and taken from: a `Registry`."""

    def add(self, tool: Tool) -> object: ...

    def remove(self, name: str) -> object: ...


class MarkdownTools:
    """Keeps every skill a model may use as a tool in a registry, also when files come and go."""

    def __init__(self, skills: Skills, registry: Shelf, subagent: SubAgent | str) -> None:
        self._skills = skills
        self._registry = registry
        self._subagent = subagent
        self._offered: dict[str, Skill] = {}
        self._keep_in_step()

    def reload(self) -> Reloaded:
        """Look for skills again and bring the registry in step; no restart is needed."""
        reloaded = self._skills.reload()
        self._keep_in_step()
        return reloaded

    def _keep_in_step(self) -> None:
        now = {tool_name(skill): skill for skill in self._skills if skill.model_invocable}
        for name in self._offered.keys() - now.keys():
            self._registry.remove(name)
        for name, skill in now.items():
            if self._offered.get(name) != skill:
                self._registry.add(markdown_tool(skill, self._subagent))
        self._offered = now
