"""`Skills`: the skills and commands of a project and of its user, found where programs of this kind keep them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from callwright.skills.skill import Kind, Problem, Scope, Skill, read_skill

FOLDERS = (".callwright", ".agents", ".claude")
_FILE = "SKILL.md"
_MOST = 1_000
_DEEPEST_COMMANDS = 4
_MOST_STACKED = 6
_MOST_NESTED = 100
_FOREIGN = frozenset({"node_modules", "site-packages", "vendor", "third_party"})
"""Folders of code others wrote: what they would like an agent to do is not part of the project."""
_KINDS: tuple[tuple[Kind, str], ...] = (("skill", "skills"), ("command", "commands"))


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder that may hold skills or commands, and the folder none of them may lead out of."""

    folder: Path
    kind: Kind
    scope: Scope
    within: Path | None
    base: Path


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload changed, by name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Skills:
    """Skills by name. Nearer folders win over farther ones, the project over the user, skills over commands."""

    def __init__(
        self,
        cwd: str | PathLike[str] = ".",
        *,
        home: str | PathLike[str] | None = None,
        more: Iterable[str | PathLike[str]] = (),
    ) -> None:
        """Look from `cwd` up to the root of its repository, then in `home`.

        Folders of skills and .md files in `more` come before both.
        """
        self._cwd = Path(cwd).resolve()
        self._home = Path.home().resolve() if home is None else Path(home).resolve()
        self._more = [Path(folder).resolve() for folder in more]
        self._nested: dict[Path, None] = {}
        self._skills: dict[str, Skill] = {}
        self.problems: tuple[Problem, ...] = ()
        """What is wrong with files that were found, the unusable ones included."""
        self.reload()

    @property
    def cwd(self) -> Path:
        """The folder they are for."""
        return self._cwd

    def visit(self, path: str | PathLike[str]) -> tuple[Skill, ...]:
        """Look for skills in the folders between the working folder and a file; returns those that are new."""
        folders = [folder for folder in _between(self._cwd, Path(path)) if folder not in self._nested]
        fresh = [folder for folder in folders if any((folder / each).is_dir() for each in FOLDERS)]
        if not fresh or len(self._nested) >= _MOST_NESTED:
            return ()
        self._nested.update(dict.fromkeys(fresh))
        return tuple(self._skills[name] for name in self.reload().added)

    def reload(self) -> Reloaded:
        """Look again; skills that are being used are not disturbed."""
        before, found, problems = self._skills, dict[str, Skill](), list[Problem]()
        for place in self._places():
            for skill in _found(place, problems):
                first = found.setdefault(skill.name, skill)
                if first is not skill and first.file != skill.file:
                    text = f"the {skill.kind} {skill.name!r} is hidden by {first.file}"
                    problems.append(Problem(skill.file, 1, text, fatal=False))
        self._skills = dict(sorted(found.items()))
        self.problems = tuple(problems)
        return Reloaded(
            tuple(sorted(found.keys() - before.keys())),
            tuple(sorted(before.keys() - found.keys())),
            tuple(sorted(name for name in found.keys() & before.keys() if found[name] != before[name])),
        )

    def get(self, name: str) -> Skill | None:
        """Find a skill by name, with or without the slash people write before it."""
        return self._skills.get(name.removeprefix("/"))

    def nearest(self, name: str) -> list[str]:
        """Names somebody may have meant."""
        return get_close_matches(name[:128].removeprefix("/").lower(), self._skills, n=3)

    def slash(self, text: str) -> tuple[Skill, str] | None:
        """Read `/name arguments` as a person types it; None if there is no such skill for people to call."""
        name, *arguments = text.strip().split(maxsplit=1) or [""]
        skill = self.get(name) if name.startswith("/") else None
        return (skill, "".join(arguments)) if skill is not None and skill.user_invocable else None

    def stacked(self, text: str) -> tuple[tuple[Skill, ...], str]:
        """Read `/name /other arguments`: the skills a person calls in one line, and what all of them are told."""
        called, rest = list[Skill](), text
        while len(called) < _MOST_STACKED and (found := self.slash(rest)) is not None:
            called.append(found[0])
            rest = found[1]
        return tuple(called), rest

    def __iter__(self) -> Iterator[Skill]:
        return iter(list(self._skills.values()))

    def __len__(self) -> int:
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        return name in self._skills

    def _places(self) -> Iterator[_Place]:
        for folder in self._more:
            yield from (_Place(folder, kind, "user", None, self._cwd) for kind, _ in _KINDS)
        above = _up_to_the_repository(self._cwd, self._home)
        within = above[-1] if above else self._cwd
        for kind, name in _KINDS:
            for base in above:
                yield from (_Place(base / each / name, kind, "project", within, base) for each in FOLDERS)
            yield from (_Place(self._home / each / name, kind, "user", None, self._cwd) for each in FOLDERS)
        for base in self._nested:  # last: what turns up while people work replaces nothing they know
            for kind, name in _KINDS:
                yield from (_Place(base / each / name, kind, "project", within, base) for each in FOLDERS)


def _between(cwd: Path, path: Path) -> list[Path]:
    """The folders below the working one that a file is in, nearest to the file first."""
    real = path.resolve()
    if not real.is_relative_to(cwd):
        return []
    inner = real.relative_to(cwd).parts[:-1]
    if any(part.startswith(".") or part in _FOREIGN for part in inner):
        return []
    return [cwd.joinpath(*inner[:count]) for count in range(len(inner), 0, -1)]


def _up_to_the_repository(cwd: Path, home: Path) -> list[Path]:
    """The folders of the project, nearest first; the home folder is the user's own, not part of one."""
    above: list[Path] = []
    for folder in (cwd, *cwd.parents):
        if folder == home:
            break
        above.append(folder)
        if (folder / ".git").exists():
            return above
    return above[:1]


def _found(place: _Place, problems: list[Problem]) -> Iterator[Skill]:
    for name, file in _files(place):
        if file.name != _FILE and place.kind == "skill":
            problems.append(Problem(file, 1, f"it must be named {_FILE} to be found; rename it"))
            continue
        real = file.resolve()
        if place.within is not None and not real.is_relative_to(place.within):
            problems.append(Problem(file, 1, f"it leads out of the project, to {real}, and is not read"))
            continue
        # a folder that is itself a link is taken for where it leads; a file inside that leads out of it is not read
        seen = file.parent.resolve() / file.name
        skill, wrong = read_skill(seen, kind=place.kind, scope=place.scope, name=name)
        problems.extend(wrong)
        if skill is not None:
            yield replace(skill, base=place.base)


def _files(place: _Place) -> Iterator[tuple[str, Path]]:
    """Names and files, in order, a bounded number of them."""
    try:
        if place.kind == "skill":
            folders = sorted(entry for entry in place.folder.iterdir() if not entry.name.startswith("."))[:_MOST]
            yield from ((folder.name, file) for folder in folders if (file := _skill_file(folder)) is not None)
        else:
            yield from _command_files(place.folder, "", 0)
    except OSError:  # not there, or not for us to see
        return


def _skill_file(folder: Path) -> Path | None:
    """The file that makes a folder a skill, also when it is spelt so that nobody would find it."""
    if (folder / _FILE).is_file():
        return folder / _FILE
    try:
        return next((file for file in folder.iterdir() if file.name.lower() == _FILE.lower()), None)
    except OSError:  # not a folder
        return None


def _command_files(folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, Path]]:
    for entry in sorted(folder.iterdir())[:_MOST]:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if depth < _DEEPEST_COMMANDS and not entry.is_symlink() and not (entry / _FILE).exists():
                yield from _command_files(entry, f"{prefix}{entry.name}:", depth + 1)
        elif entry.suffix == ".md" and entry.is_file():
            yield prefix + entry.stem, entry
