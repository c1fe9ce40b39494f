"""`Skills`: the skills and commands found in the folders of a project and of its user."""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from callwright.skills.fields import SkillProblem
from callwright.skills.skill import SKILL_FILE, Kind, Scope, Skill, read_skill
from callwright.system.paths import is_trusted_repository, resolve_links, trusted_owners

FOLDERS = (".callwright", ".agents", ".claude")
_MAX_FILES = 1_000  # per folder: a start must not depend on how much was put there
_MAX_COMMAND_DEPTH = 4
_MAX_SLASHES = 6
_MAX_NESTED = 100
_FOREIGN = frozenset({"node_modules", "site-packages", "vendor", "third_party"})
"""Folders of third-party code, whose skills are not part of the project."""
_KINDS: tuple[tuple[Kind, str], ...] = (("skill", "skills"), ("command", "commands"))


@dataclass(frozen=True, slots=True)
class _SkillFolder:
    """A folder that may hold skills or commands; with `within`, links out of that folder are not followed."""

    folder: Path
    kind: Kind
    scope: Scope
    within: Path | None
    base: Path
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The names of the skills that a reload added, removed and changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Skills:
    """Skills by name. Nearer folders win over farther ones, the project over the user, skills over commands.

    Args:
        cwd: Folder to start from; its parents are searched up to the root of the repository.
        home: The user's home folder, searched after the project.
        more: Folders of skills and of `.md` commands, searched before the project.
        plugins: Folders of plugins by name; their skills and commands are called `plugin:name`.
        only: Names of the skills to use; all by default.
        claude: The user's folder of Claude Code; `.claude` of the home folder by default.
    """

    def __init__(
        self,
        cwd: str | PathLike[str] = ".",
        *,
        home: str | PathLike[str] | None = None,
        more: Iterable[str | PathLike[str]] = (),
        plugins: Mapping[str, Path] | None = None,
        only: Collection[str] | None = None,
        claude: str | PathLike[str] | None = None,
    ) -> None:
        self._cwd = Path(cwd).resolve()
        self._home = Path.home().resolve() if home is None else Path(home).resolve()
        own = [self._home / each for each in FOLDERS]
        self._own = own if claude is None else [*own[:-1], Path(claude).resolve()]
        self._more = [Path(folder).resolve() for folder in more]
        self._plugins = dict(plugins or {})
        self._only = only
        self._nested: dict[Path, None] = {}
        self._skills: dict[str, Skill] = {}
        self.problems: tuple[SkillProblem, ...] = ()
        """Problems of the files that were found, also of those that cannot be used."""
        self.reload()

    @property
    def cwd(self) -> Path:
        """The folder the search started from."""
        return self._cwd

    def visit(self, path: str | PathLike[str]) -> tuple[Skill, ...]:
        """Search the folders between the working folder and a file, and return the skills that are new."""
        folders = [folder for folder in _folders_between(self._cwd, Path(path)) if folder not in self._nested]
        fresh = [folder for folder in folders if any((folder / each).is_dir() for each in FOLDERS)]
        if not fresh or len(self._nested) >= _MAX_NESTED:
            return ()
        self._nested.update(dict.fromkeys(fresh))
        return tuple(self._skills[name] for name in self.reload().added)

    def reload(self) -> Reloaded:
        """Search again. Skills in use are not affected: a `Skill` is an immutable value."""
        before, found, problems = self._skills, dict[str, Skill](), list[SkillProblem]()
        for place in self._places():
            for skill in _read_folder(place, problems):
                if self._only is not None and skill.name not in self._only:
                    continue
                first = found.setdefault(skill.name, skill)
                if first is not skill and first.file != skill.file:
                    text = f"the {skill.kind} {skill.name!r} is not used: {first.file} comes first"
                    problems.append(SkillProblem(skill.file, 1, text, fatal=False))
        self._skills = dict(sorted(found.items()))
        self.problems = tuple(problems)
        return Reloaded(
            tuple(sorted(found.keys() - before.keys())),
            tuple(sorted(before.keys() - found.keys())),
            tuple(sorted(name for name in found.keys() & before.keys() if found[name] != before[name])),
        )

    def get(self, name: str) -> Skill | None:
        """Return the skill of a name, which may start with a slash."""
        return self._skills.get(name.removeprefix("/"))

    def nearest(self, name: str) -> list[str]:
        """Return the known names most similar to one."""
        return get_close_matches(name[:128].removeprefix("/").lower(), self._skills, n=3)

    def parse_slash(self, text: str) -> tuple[Skill, str] | None:
        """Parse `/name arguments` as typed by a user; None if there is no such skill that users may call."""
        name, *arguments = text.strip().split(maxsplit=1) or [""]
        skill = self.get(name) if name.startswith("/") else None
        return (skill, "".join(arguments)) if skill is not None and skill.user_invocable else None

    def parse_slashes(self, text: str) -> tuple[tuple[Skill, ...], str]:
        """Parse `/name /other arguments`: the skills called in one line, and the arguments they share."""
        called, rest = list[Skill](), text
        while len(called) < _MAX_SLASHES and (found := self.parse_slash(rest)) is not None:
            called.append(found[0])
            rest = found[1]
        return tuple(called), rest

    def __iter__(self) -> Iterator[Skill]:
        return iter(list(self._skills.values()))

    def __len__(self) -> int:
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        return name in self._skills

    def _places(self) -> Iterator[_SkillFolder]:
        for folder in self._more:
            yield from (_SkillFolder(folder, kind, "user", None, self._cwd) for kind, _ in _KINDS)
        above = _folders_to_repository_root(self._cwd, self._home)
        within = above[-1] if above else self._cwd
        for kind, name in _KINDS:
            for base in above:
                yield from (_SkillFolder(base / each / name, kind, "project", within, base) for each in FOLDERS)
            yield from (_SkillFolder(each / name, kind, "user", None, self._cwd) for each in self._own)
        for plugin, root in self._plugins.items():
            real = root.resolve()
            yield from (_SkillFolder(real / name, kind, "user", real, self._cwd, plugin) for kind, name in _KINDS)
        for base in self._nested:  # last: a skill found later must not replace one the user knows
            for kind, name in _KINDS:
                yield from (_SkillFolder(base / each / name, kind, "project", within, base) for each in FOLDERS)


def _folders_between(cwd: Path, path: Path) -> list[Path]:
    """Return the folders between the working folder and a file, nearest to the file first."""
    real = resolve_links(path)
    if not real.is_relative_to(cwd):
        return []
    inner = real.relative_to(cwd).parts[:-1]
    if any(part.startswith(".") or part in _FOREIGN for part in inner):
        return []
    return [cwd.joinpath(*inner[:count]) for count in range(len(inner), 0, -1)]


def _folders_to_repository_root(cwd: Path, home: Path) -> list[Path]:
    """Return the folders of the project, nearest first. The home folder belongs to the user, not to a project."""
    if cwd == home:
        return []
    above, owners = [cwd], trusted_owners(cwd)
    if (cwd / ".git").exists():
        return above
    for folder in cwd.parents:
        if folder == home:
            break
        if is_trusted_repository(folder, owners):
            return [*above, folder]
        if not (folder / ".git").exists():  # else another user's, whose skills do not count
            above.append(folder)
    return above[:1]


def _read_folder(place: _SkillFolder, problems: list[SkillProblem]) -> Iterator[Skill]:
    for name, file in _files(place, problems):
        if file.name != SKILL_FILE and place.kind == "skill":
            problems.append(SkillProblem(file, 1, f"the file must be named {SKILL_FILE}; rename it"))
            continue
        real = resolve_links(file)
        if place.within is not None and not real.is_relative_to(place.within):
            problems.append(SkillProblem(file, 1, f"not read: it is a link out of the project, to {real}"))
            continue
        # a folder may be a link and is then resolved; a file in it that links elsewhere is refused by read_skill
        resolved = resolve_links(file.parent) / file.name
        skill, found = read_skill(resolved, kind=place.kind, scope=place.scope, name=name)
        problems.extend(found)
        if skill is not None:
            name = f"{place.plugin}:{skill.name}" if place.plugin else skill.name
            yield replace(skill, name=name, base=place.base)


def _files(place: _SkillFolder, problems: list[SkillProblem]) -> Iterator[tuple[str, Path]]:
    """Yield names and files in order, a bounded number of them."""
    if place.kind == "command":
        yield from _command_files(place.folder, "", 0, problems)
        return
    with _reported(place.folder, problems):
        folders = _first_entries(place.folder, problems)
        yield from ((folder.name, file) for folder in folders if (file := _skill_file(folder, problems)) is not None)


def _first_entries(folder: Path, problems: list[SkillProblem]) -> list[Path]:
    """Return the entries of a folder in order, without hidden ones; of too many the first, which is reported."""
    found = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    if len(found) > _MAX_FILES:
        text = f"the folder has {len(found)} entries; only the first {_MAX_FILES} are read"
        problems.append(SkillProblem(folder, 1, text))
    return found[:_MAX_FILES]


@contextmanager
def _reported(folder: Path, problems: list[SkillProblem]) -> Generator[None, None, None]:
    """Report a folder that may not be read, which must not hide the others; a missing one holds nothing."""
    try:
        yield
    except PermissionError as error:
        problems.append(SkillProblem(folder, 1, f"the folder cannot be read: {error.strerror}"))
    except OSError:  # missing, or not a folder
        return


def _skill_file(folder: Path, problems: list[SkillProblem]) -> Path | None:
    """Return the file that makes a folder a skill, also in the wrong case, which is then reported."""
    with _reported(folder, problems):
        if (folder / SKILL_FILE).is_file():
            return folder / SKILL_FILE
        return next((file for file in folder.iterdir() if file.name.lower() == SKILL_FILE.lower()), None)
    return None


def _command_files(folder: Path, prefix: str, depth: int, problems: list[SkillProblem]) -> Iterator[tuple[str, Path]]:
    with _reported(folder, problems):
        if depth and (folder / SKILL_FILE).exists():
            return
        for entry in _first_entries(folder, problems):
            if entry.is_dir():
                if depth < _MAX_COMMAND_DEPTH and not entry.is_symlink():
                    yield from _command_files(entry, f"{prefix}{entry.name}:", depth + 1, problems)
            elif entry.suffix == ".md" and entry.is_file():
                yield prefix + entry.stem, entry
