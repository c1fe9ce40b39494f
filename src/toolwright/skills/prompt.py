"""From a skill and its arguments to the text a model is given: expanded, its commands run by whoever may run them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from toolwright.core.errors import ToolFailed
from toolwright.skills.expand import Request, expanded
from toolwright.skills.skill import Skill

RunLine: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs one shell line where permissions are asked for, and returns its output or why there is none."""

DISABLED = "[shell command execution disabled by policy]"
_MOST_COMMANDS = 20


async def prepare(
    skill: Skill, arguments: str = "", *, run: RunLine | None = None, project: Path | None = None, session: str = ""
) -> str:
    """Return the instructions for these arguments; without `run` no command is run, and the text says so."""
    if "\0" in arguments:
        raise ToolFailed("the arguments hold a NUL character; leave it out")
    values = _values(skill, project or Path.cwd(), session)
    expansion = expanded(skill.body(), arguments, names=skill.arguments, values=values)
    count = len(expansion.requests)
    if count > _MOST_COMMANDS:
        raise ToolFailed(f"the skill {skill.name} wants to run {count} commands; at most {_MOST_COMMANDS} are allowed")
    return expansion.assembled([await _output(request, run) for request in expansion.requests])


async def _output(request: Request, run: RunLine | None) -> str:
    if run is None:
        return DISABLED
    if request.refusal:
        return f"[not run: {request.refusal}]"
    return await run(request.line)


def _values(skill: Skill, project: Path, session: str) -> dict[str, str]:
    own = {"SKILL_DIR": str(skill.folder), "PROJECT_DIR": str(project), "SESSION_ID": session}
    return own | {f"CLAUDE_{name}": value for name, value in own.items()}
