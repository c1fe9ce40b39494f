"""`toolwright skills`: the skills found here, and what is wrong with them."""

import argparse
import json
from pathlib import Path

from toolwright.cli.show import one_line
from toolwright.skills import Skills


def run(arguments: list[str]) -> int:
    """List or check; checking ends with 1 where a skill cannot be used."""
    parser = argparse.ArgumentParser("toolwright skills", description=__doc__)
    parser.add_argument("action", choices=("list", "check"))
    parser.add_argument("folders", nargs="*", type=Path, help="look in these folders of skills first")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    skills = Skills(Path.cwd(), more=options.folders)
    return _check(skills) if options.action == "check" else _list(skills, as_json=options.json)


def _list(skills: Skills, *, as_json: bool) -> int:
    if as_json:
        fields = ("name", "description", "kind", "scope")
        print(json.dumps([{**{f: getattr(s, f) for f in fields}, "file": str(s.file)} for s in skills], indent=2))
        return 0
    for skill in skills:
        print(f"{skill.name:<24}  {skill.scope:<7}  {one_line(skill.description, 80)}")
    if not len(skills):
        print("no skills here; put one in .toolwright/skills/NAME/SKILL.md")
    return 0


def _check(skills: Skills) -> int:
    for problem in skills.problems:
        print(f"{problem.file}:{problem.line}: {problem.text}")
    fatal = sum(problem.fatal for problem in skills.problems)
    print(f"{len(skills)} skills can be used, {fatal} cannot")
    return 1 if fatal else 0
