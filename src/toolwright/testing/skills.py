"""What the author of a skill can check before anybody else uses it."""

import re
from os import PathLike
from pathlib import Path

from toolwright.core.errors import ToolError
from toolwright.skills.expand import expanded
from toolwright.skills.files import read_inside
from toolwright.skills.skill import Skill, read_skill

_FILE = "SKILL.md"
_MOST_LINES = 500
_LINK = re.compile(r"\]\(\s*<?([^)\s>#]+)[^)]*\)")
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/|#")


def check_skill(folder: str | PathLike[str]) -> Skill:
    """Check that a folder is a sound skill by the open standard; raises `AssertionError` with every mistake, by line.

    Everything is named at once: fields, lengths, names, fields nobody knows, instructions too long to load whole,
    links to files that are missing or outside, commands an argument cannot be put into safely.
    """
    place = Path(folder).resolve()
    file = place / _FILE
    assert file.is_file(), f"{place} holds no {_FILE}, spelt like that"
    skill, problems = read_skill(file)
    mistakes = [str(problem) for problem in problems]
    if skill is not None:
        mistakes += [f"{file}: {text}" for text in _body_mistakes(skill)]
    assert not mistakes, "\n".join(mistakes)
    assert skill is not None
    return skill


def _body_mistakes(skill: Skill) -> list[str]:
    body = skill.body()
    found: list[str] = []
    if not body.strip():
        found.append("there are no instructions below the fields")
    if body.count("\n") >= _MOST_LINES:
        found.append(f"the instructions have {body.count(chr(10)) + 1} lines; move some to files they refer to")
    for request in expanded(body, "word", names=skill.arguments).requests:
        if request.refusal:
            found.append(f"the command {request.line!r} will not run: {request.refusal}")
    return found + [text for link in dict.fromkeys(_LINK.findall(body)) if (text := _link_mistake(skill, link))]


def _link_mistake(skill: Skill, link: str) -> str:
    if _ELSEWHERE.match(link):
        return ""
    if (skill.folder / link).is_dir():
        return ""
    try:
        read_inside(skill.folder, link)
    except ToolError as error:
        if "UTF-8" in error.message or "larger" in error.message:  # pictures and data are files too
            return ""
        return f"the link to {link} leads nowhere: {error.message}"
    return ""
