"""`callwright skills`: the skills found here, and what is wrong with them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from callwright.cli.parsing import Parser
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import visible
from callwright.core.errors import UsageError
from callwright.skills import SkillProblem, Skills
from callwright.skills.check import check_agent, check_body, check_skill_file

_FILE = "SKILL.md"
_DESCRIPTION = """\
A project's skills may ask for allow rules (allowed-tools) and models. None of that counts before you trust the folder:
`callwright trust` shows what it asks for. Your own skills have what they ask for."""


def run(arguments: list[str]) -> int:
    """Carry out the subcommand; checking ends with 1 where a skill cannot be used or something is wrong with it."""
    parser = Parser("callwright skills", description=_DESCRIPTION)
    parser.add_argument("action", choices=("list", "check"))
    parser.add_argument("folders", nargs="*", type=Path, help="a skill's folder, or one of skills, to look in first")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; name a skill's folder or one that holds skills")
    if options.action == "check":
        return _check(options.folders, as_json=options.json)
    return _list(Skills(Path.cwd(), more=options.folders), as_json=options.json)


def _list(skills: Skills, *, as_json: bool) -> int:
    if as_json:
        fields = ("name", "description", "kind", "scope")
        listed = [{**{name: getattr(skill, name) for name in fields}, "file": str(skill.file)} for skill in skills]
        print(json.dumps(listed, indent=2))
        return 0
    for skill in skills:
        print(f"{skill.name:<24}  {skill.scope:<7}  {one_line(skill.description, 80)}")
    if not len(skills):
        print("no skills here; put one in .callwright/skills/NAME/SKILL.md")
    return 0


def _check(folders: Sequence[Path], *, as_json: bool) -> int:
    """Check the folders that were named, and nothing else; without any, everything that is found here."""
    usable, problems = _examined(folders) if folders else _found()
    if as_json:
        print(json.dumps([{**asdict(problem), "file": str(problem.file)} for problem in problems], indent=2))
    else:
        for problem in problems:
            print(visible(f"{problem} {'' if problem.fatal else '(it can be used)'}".rstrip()))
        broken = len({problem.file for problem in problems if problem.fatal})
        print(f"{usable} skill{'' if usable == 1 else 's'} can be used, {broken} cannot")
    return 1 if any(problem.fatal for problem in problems) else 0


def _found() -> tuple[int, list[SkillProblem]]:
    skills = Skills(Path.cwd())
    inside = [problem for skill in skills for problem in (*check_body(skill), *check_agent(skill))]
    return len(skills), sorted([*skills.problems, *inside], key=lambda problem: (problem.file, problem.line))


def _examined(folders: Sequence[Path]) -> tuple[int, list[SkillProblem]]:
    usable, problems = 0, list[SkillProblem]()
    for file in (file for folder in folders for file in _files(folder.resolve())):
        skill, wrong = check_skill_file(file)
        usable += skill is not None
        problems += [*wrong, *(check_agent(skill) if skill is not None else ())]
    return usable, problems


def _files(folder: Path) -> list[Path]:
    found = [folder / _FILE] if (folder / _FILE).is_file() else sorted(folder.glob(f"*/{_FILE}"))
    if not found:
        raise UsageError(f"{folder} holds no {_FILE}, spelt like that, nor a folder with one")
    return found
