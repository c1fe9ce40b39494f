"""What an author can find out before anybody else uses a skill: mistakes in its fields and instructions, by line."""

import re
from pathlib import Path

from callwright.core.errors import ToolError
from callwright.skills.render import COMMAND, expanded
from callwright.skills.skill import (
    EVERYTHING,
    LOOKING,
    Kind,
    Problem,
    Scope,
    Skill,
    check_inside,
    read_inside,
    read_skill,
)

_MOST_LINES = 500
_LINK = re.compile(r"\]\(\s*<?([^)\s>#]+)[^)]*\)")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/|#")


def examine(
    file: Path, *, kind: Kind = "skill", scope: Scope = "project", name: str = ""
) -> tuple[Skill | None, list[Problem]]:
    """Read a skill and everything that is wrong with it, in the order of its lines."""
    skill, problems = read_skill(file, kind=kind, scope=scope, name=name)
    if skill is not None:
        problems = [*problems, *check_body(skill)]
    return skill, sorted(problems, key=lambda problem: problem.line)


def check_body(skill: Skill) -> list[Problem]:
    """Name what is wrong with the instructions: too many, commands that will not run, links that lead nowhere."""
    text, body = read_inside(skill.folder, skill.file.name), skill.body()
    above = text.count("\n", 0, len(text.rstrip("\n")) - len(body))
    found = [(1, mistake) for mistake in _size_mistakes(body)]
    found += _command_mistakes(skill, body)
    found += [(_line(body, at), text) for at, link in _links(body) if (text := _link_mistake(skill, link))]
    return [Problem(skill.file, above + line, mistake, fatal=False) for line, mistake in found]


def check_agent(skill: Skill) -> list[Problem]:
    """Name an agent the command does not have; other programs may."""
    if not skill.agent or skill.agent.lower() in LOOKING | EVERYTHING:
        return []
    lines = read_inside(skill.folder, skill.file.name).split("\n")
    number = next((number for number, line in enumerate(lines, 1) if line.startswith("agent")), 1)
    text = f"there is no agent {skill.agent!r} here; write Explore (looks, changes nothing) or general-purpose"
    return [Problem(skill.file, number, text, fatal=False)]


def _size_mistakes(body: str) -> list[str]:
    if not body.strip():
        return ["there are no instructions below the fields; write what the model should do"]
    lines = body.count("\n") + 1
    if lines > _MOST_LINES:
        return [
            f"the instructions have {lines} lines, at most {_MOST_LINES} are read well; move some to files of the skill"
        ]
    return []


def _command_mistakes(skill: Skill, body: str) -> list[tuple[int, str]]:
    requests = expanded(body, "word", names=skill.arguments).requests
    return [
        (_line(body, found.start()), f"the command {found[0].strip('!`')!r} will not run: {request.refusal}")
        for found, request in zip(COMMAND.finditer(body), requests, strict=True)
        if request.refusal
    ]


def _links(body: str) -> list[tuple[int, str]]:
    return list({found[1]: (found.start(1), found[1]) for found in reversed(list(_LINK.finditer(body)))}.values())


def _line(body: str, at: int) -> int:
    return body.count("\n", 0, at) + 1


def _link_mistake(skill: Skill, link: str) -> str:
    if _ELSEWHERE.match(link) or (skill.folder / link).is_dir():
        return ""
    try:
        check_inside(skill.folder, link)
    except ToolError as error:
        return f"the link to {link} leads nowhere: {error.message}"
    return ""
