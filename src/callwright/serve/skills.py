"""Skills for MCP clients: prompts a person picks, and the tool `skill` for models, which tells what there is."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import mcp_types as types
from mcp import MCPError

from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec
from callwright.skills.calls import Calls, Execute
from callwright.skills.load import Skills
from callwright.skills.menu import listing
from callwright.skills.prompt import Around, prepared
from callwright.skills.skill import Skill
from callwright.skills.toolset import SkillTool
from callwright.tool.base import Invocation, Tool

_ALL = "arguments"


class ListedSkills:
    """The tool `skill`; its description names the skills, because a client has no prompt of ours to read them in."""

    def __init__(self, skills: Skills, *, project: Path | None = None) -> None:
        self._tool = cast("Tool", SkillTool(skills, project=project))
        about = f"{self._tool.spec.description} The skills:\n{listing(skills)}"
        self.spec: ToolSpec = replace(self._tool.spec, description=about)

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Bind as the tool itself does."""
        return self._tool.bind(arguments)


def prompts_of(skills: Skills) -> list[types.Prompt]:
    """The skills a person may call, as they are now."""
    skills.reload()
    return [
        types.Prompt(name=skill.name, description=skill.description, arguments=_arguments(skill))
        for skill in skills
        if skill.user_invocable
    ]


def _arguments(skill: Skill) -> list[types.PromptArgument]:
    hint = skill.argument_hint or "what to apply it to"
    if not skill.arguments:
        return [types.PromptArgument(name=_ALL, description=hint, required=False)]
    return [types.PromptArgument(name=name, description=hint, required=False) for name in skill.arguments]


def called(skills: Skills, name: str) -> Skill:
    """The skill a person picked."""
    skill = skills.get(name)
    if skill is None or not skill.user_invocable:
        near = skills.nearest(name)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise MCPError(types.INVALID_PARAMS, f"unknown prompt: there is no skill {name[:100]!r}{hint}")
    return skill


async def said(skill: Skill, given: Mapping[str, str], execute: Execute, around: Around) -> types.GetPromptResult:
    """The instructions for these arguments; their commands are run and files read as calls, judged like any."""
    calls = Calls(execute, f"prompt-{skill.name}")
    text = await prepared(skill, _words(skill, given), replace(around, run=calls.run, read=calls.read))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=skill.description, messages=[message])


def _words(skill: Skill, given: Mapping[str, str]) -> str:
    """As a person would type them after the name."""
    if not skill.arguments:
        return given.get(_ALL, "")
    return shlex.join(given.get(name, "") for name in skill.arguments) if given else ""
