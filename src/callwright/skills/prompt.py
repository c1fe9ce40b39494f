"""From a skill and its arguments to the text a model is given: expanded, its commands run by whoever may run them."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from callwright.core.errors import ToolFailed
from callwright.skills.expand import Request, expanded
from callwright.skills.reference import attachment, references
from callwright.skills.skill import Skill

RunLine: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs one shell line where permissions are asked for, and returns its output or why there is none."""
ReadFile: TypeAlias = Callable[[Path], Awaitable[str]]
"""Reads one file where permissions are asked for, and returns what it holds or why that is not to be had."""

DISABLED = "[shell command execution disabled by policy]"
_MOST_COMMANDS = 20


@dataclass(frozen=True, slots=True)
class Around:
    """Where a skill is used, and who does for it what it may not do itself."""

    project: Path | None = None
    cwd: Path | None = None
    """The folder `@files` are taken from; without one the project's."""
    session: str = ""
    run: RunLine | None = None
    read: ReadFile | None = None
    attached: Collection[Path] = ()
    """Files that are handed over already."""
    piped: str = ""
    """Goes with the arguments and names no files: whoever wrote it is not who called the skill."""


async def prepare(
    skill: Skill, arguments: str = "", *, run: RunLine | None = None, project: Path | None = None, session: str = ""
) -> str:
    """Return the instructions for these arguments; without `run` no command is run, and the text says so."""
    return await prepared(skill, arguments, Around(project, session=session, run=run))


async def prepared(skill: Skill, arguments: str, around: Around) -> str:
    """Return the instructions for these arguments, followed by the files they name as `@path`."""
    given = arguments + around.piped
    if "\0" in given:
        raise ToolFailed("the arguments hold a NUL character; leave it out")
    project, body = around.project or Path.cwd(), skill.body()
    values = _values(skill, project, around.session)
    expansion = expanded(body, given, names=skill.arguments, values=values)
    count = len(expansion.requests)
    if count > _MOST_COMMANDS:
        raise ToolFailed(f"the skill {skill.name} wants to run {count} commands; at most {_MOST_COMMANDS} are allowed")
    text = expansion.assembled([await _output(request, around.run) for request in expansion.requests])
    if around.read is not None:
        naming = expanded(body, arguments, names=skill.arguments, values=values) if around.piped else expansion
        for path in references(naming, around.cwd or project):
            if path not in around.attached:
                text += attachment(path, await around.read(path))
    return text


async def _output(request: Request, run: RunLine | None) -> str:
    if run is None:
        return DISABLED
    if request.refusal:
        return f"[not run: {request.refusal}]"
    return await run(request.line)


def _values(skill: Skill, project: Path, session: str) -> dict[str, str]:
    own = {"SKILL_DIR": str(skill.folder), "PROJECT_DIR": str(project), "SESSION_ID": session}
    return own | {f"CLAUDE_{name}": value for name, value in own.items()}
