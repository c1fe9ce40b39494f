"""`callwright skills`: lists and checks the skills of the user and the project."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from callwright.app.locations import Locations
from callwright.cli.parsing import Parser
from callwright.cli.render.calls import one_line
from callwright.cli.render.text import print_json, print_notice, print_text
from callwright.core.errors import UsageError
from callwright.skills import SkillProblem, Skills
from callwright.skills.check import check_agent, check_body, check_skill_file
from callwright.skills.skill import SKILL_FILE

_DESCRIPTION = """\
Lists and checks skills. Skills of a project may request allow rules (allowed-tools) and models; they get them only
after you trust the folder (callwright trust shows what it requests). Your own skills get what they request."""


def run(arguments: list[str]) -> int:
    """Run the subcommand; `check` returns 1 if a skill cannot be used."""
    parser = Parser("callwright skills", description=_DESCRIPTION)
    parser.add_argument("action", choices=("list", "check"), help="list the skills, or report their problems")
    parser.add_argument("folders", nargs="*", type=Path, help="a folder of one skill or of several, searched first")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: not a folder; name the folder of a skill, or one that holds skills")
    if options.action == "check":
        return _check(options.folders, as_json=options.json)
    return _list(_find_skills(options.folders), as_json=options.json)


def _find_skills(more: Sequence[Path]) -> Skills:
    return Skills(Path.cwd(), more=more, claude=Locations.of().own_claude)


def _list(skills: Skills, *, as_json: bool) -> int:
    broken = {problem.file: problem for problem in reversed(skills.problems) if problem.fatal}
    for problem in reversed(broken.values()):
        print_notice(f"left out, as it cannot be used: {problem}")
    if as_json:
        fields = ("name", "description", "kind", "scope")
        listed = [{**{name: getattr(skill, name) for name in fields}, "file": str(skill.file)} for skill in skills]
        print_json(listed, indent=2)
        return 0
    for skill in skills:
        print_text(f"{skill.name:<24}  {skill.scope:<7}  {one_line(skill.description, 80)}")
    if not len(skills) and not broken:
        print_text("No skills found. Add one as .callwright/skills/NAME/SKILL.md.")
    return 0


def _check(folders: Sequence[Path], *, as_json: bool) -> int:
    """Check the given folders only; without any, every skill that is found."""
    usable, problems = _check_folders(folders) if folders else _check_all()
    if as_json:
        print_json([{**asdict(problem), "file": str(problem.file)} for problem in problems], indent=2)
    else:
        for problem in problems:
            print_text(f"{problem} {'' if problem.fatal else '(warning: the skill can be used)'}".rstrip())
        broken = len({problem.file for problem in problems if problem.fatal})
        print_text(f"{usable} skill{'' if usable == 1 else 's'} usable, {broken} broken")
    return 1 if any(problem.fatal for problem in problems) else 0


def _check_all() -> tuple[int, list[SkillProblem]]:
    skills = _find_skills(())
    inside = [problem for skill in skills for problem in (*check_body(skill), *check_agent(skill))]
    return len(skills), sorted([*skills.problems, *inside], key=lambda problem: (problem.file, problem.line))


def _check_folders(folders: Sequence[Path]) -> tuple[int, list[SkillProblem]]:
    usable, problems = 0, list[SkillProblem]()
    for file in (file for folder in folders for file in _files(folder.resolve())):
        skill, wrong = check_skill_file(file)
        usable += skill is not None
        problems += [*wrong, *(check_agent(skill) if skill is not None else ())]
    return usable, problems


def _files(folder: Path) -> list[Path]:
    found = [folder / SKILL_FILE] if (folder / SKILL_FILE).is_file() else sorted(folder.glob(f"*/{SKILL_FILE}"))
    if not found:
        raise UsageError(f"{folder} contains no file {SKILL_FILE} (case matters), nor a folder with one")
    return found
