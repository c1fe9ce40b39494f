"""Checks a skill for its author: mistakes in its fields and instructions, by line."""

import re
from pathlib import Path

from callwright.core.errors import ToolError
from callwright.skills.fields import SkillProblem
from callwright.skills.render import expand, find_commands
from callwright.skills.skill import (
    FULL_AGENTS,
    READ_ONLY_AGENTS,
    Skill,
    check_inside,
    read_inside,
    read_skill,
)

_MAX_LINES = 500
_LINK = re.compile(r"\]\(\s{0,9}<?([^)\s>#]{1,1000}+)[^)]{0,1000}\)")
_NOT_A_FILE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/|#")


def check_skill_file(file: Path) -> tuple[Skill | None, list[SkillProblem]]:
    """Read a skill and return it with all problems of its fields and instructions, by line; see `read_skill`."""
    skill, problems = read_skill(file)
    if skill is not None:
        problems = [*problems, *check_body(skill)]
    return skill, sorted(problems, key=lambda problem: problem.line)


def check_body(skill: Skill) -> list[SkillProblem]:
    """Return the problems of the instructions: too long, commands that cannot run, broken links."""
    text, body = read_inside(skill.folder, skill.file.name), skill.body()
    above = text.count("\n", 0, len(text.rstrip("\n")) - len(body))
    found = [(1, mistake) for mistake in _size_mistakes(body)]
    found += _command_mistakes(skill, body)
    found += [(_line(body, at), text) for at, link in _links(body) if (text := _link_mistake(skill, link))]
    return [SkillProblem(skill.file, above + line, mistake, fatal=False) for line, mistake in found]


def check_agent(skill: Skill) -> list[SkillProblem]:
    """Return a problem if the skill asks for an agent that callwright does not have; other programs may have it."""
    if not skill.agent or skill.agent.lower() in READ_ONLY_AGENTS | FULL_AGENTS:
        return []
    lines = read_inside(skill.folder, skill.file.name).split("\n")
    number = next((number for number, line in enumerate(lines, 1) if line.startswith("agent")), 1)
    text = f"there is no agent {skill.agent!r}; use Explore (changes nothing) or general-purpose"
    return [SkillProblem(skill.file, number, text, fatal=False)]


def _size_mistakes(body: str) -> list[str]:
    if not body.strip():
        return ["the instructions are missing; write below the fields what the model should do"]
    lines = body.count("\n") + 1
    if lines > _MAX_LINES:
        return [f"the instructions have {lines} lines, more than {_MAX_LINES}; move some to other files of the skill"]
    return []


def _command_mistakes(skill: Skill, body: str) -> list[tuple[int, str]]:
    requests = expand(body, "word", names=skill.arguments).requests
    return [
        (_line(body, found.start()), f"the command {found[0].strip('!`')!r} cannot run: {request.refusal}")
        for found, request in zip(find_commands(body), requests, strict=True)
        if request.refusal
    ]


def _links(body: str) -> list[tuple[int, str]]:
    return list({found[1]: (found.start(1), found[1]) for found in reversed(list(_LINK.finditer(body)))}.values())


def _line(body: str, at: int) -> int:
    return body.count("\n", 0, at) + 1


def _link_mistake(skill: Skill, link: str) -> str:
    if _NOT_A_FILE.match(link) or (skill.folder / link).is_dir():
        return ""
    try:
        check_inside(skill.folder, link)
    except ToolError as error:
        return f"the link to {link} is broken: {error.message}"
    return ""
