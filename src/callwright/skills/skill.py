"""One skill: what its file says about it, checked field by field.

The fields at the top of a skill as what they are meant to be, and what is wrong with them, by line.

Reading what belongs to a skill, and nothing outside of its folder.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import ToolError, ToolFailed
from callwright.skills.frontmatter import Document, Value, YamlError, read_yaml
from callwright.system.files import open_regular, read_all
from callwright.system.paths import Workspace
from callwright.system.search.globs import BadGlob, compile_glob, matches

_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
_RULE = re.compile(r"[^\s()]+(\(.*\))?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, and where."""

    file: Path
    line: int
    text: str
    fatal: bool = True
    """The skill cannot be used; else it can, but other programs may refuse it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Fields:
    """Hands out fields by kind, and collects what is wrong instead of stopping at the first mistake."""

    def __init__(self, file: Path, document: Document) -> None:
        self.file = file
        self.document = document
        self.problems = [Problem(file, remark.line, remark.text, fatal=False) for remark in document.remarks]

    @property
    def wrong(self) -> bool:
        """Whether anything keeps the skill from being used."""
        return any(problem.fatal for problem in self.problems)

    def refuse(self, name: str, text: str) -> None:
        """Note a mistake at a field."""
        self.problems.append(Problem(self.file, self.document.lines.get(name, 1), text))

    def remark(self, text: str, name: str = "") -> None:
        """Note what others would refuse."""
        self.problems.append(Problem(self.file, self.document.lines.get(name, 1), text, fatal=False))

    def expect(self, known: Collection[str]) -> None:
        """Remark on fields nobody knows, which are most often misspelt."""
        for name in self.document.fields:
            if name in known:
                continue
            near = get_close_matches(name, sorted(known), n=1)
            self.remark(f"{name!r} is not a known field" + (f"; did you mean {near[0]}?" if near else ""), name)

    def text(self, name: str, *, longest: int | None = None) -> str:
        """A text, empty where it is not given."""
        value = self._given(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.refuse(name, f"{name} must be a text, not {_kind(value)}")
            return ""
        value = value.strip()
        if not value:
            self.refuse(name, f"{name} is empty; write something after it or remove the line")
        if longest is not None and len(value) > longest:
            self.refuse(name, f"{name} has {len(value)} characters; at most {longest} are allowed")
        return value

    def texts(self, name: str) -> None:
        """Check a map of texts."""
        value = self._given(name)
        sound = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
        if value is not None and not sound:
            self.refuse(name, f"{name} must be a map of texts")

    def flag(self, name: str, *, default: bool) -> bool:
        """Yes or no, in the words people use for it."""
        value = self._given(name)
        if value is None:
            return default
        said = value.lower() if isinstance(value, str) else ""
        if said not in _YES | _NO:
            self.refuse(name, f"{name} must be true or false, not {value!r}")
        return said in _YES

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words."""
        value = self.text(name)
        if value and value not in choices:
            self.refuse(name, f"{name} must be {' or '.join(choices)}, not {value!r}")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Words that can stand after a dollar sign."""
        found = tuple(self._items(name))
        for word in found:
            if not _NAME.fullmatch(word) or word == "ARGUMENTS":
                self.refuse(name, f"{word!r} cannot be the name of an argument; use letters, digits and '_'")
        if len(set(found)) != len(found):
            self.refuse(name, f"{name} has the same name twice")
        return found

    def rules(self, name: str) -> tuple[str, ...]:
        """Permission rules, such as `Bash(git log *)`, parted by spaces, commas or as a list."""
        found = tuple(self._items(name))
        for rule in found:
            if not _RULE.fullmatch(rule) or rule.count("(") != rule.count(")"):
                closed = f"; did you mean {rule})?" if rule.count("(") > rule.count(")") else ""
                self.refuse(name, f"{rule!r} in {name} is not a rule of the form Tool or Tool(specifier){closed}")
        return found

    def globs(self, name: str) -> tuple[str, ...]:
        """Patterns for paths, such as `src/**/*.{ts,tsx}`, parted by spaces, commas or as a list."""
        found = tuple(item.removeprefix("./") for item in self._items(name))
        for pattern in found:
            try:
                compile_glob(pattern)
            except BadGlob as error:
                self.refuse(name, f"{name}: {error}")
        return found

    def _items(self, name: str) -> Iterator[str]:
        value = self._given(name)
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, str):
                yield from split_outside(item)
            elif item is not None:
                self.refuse(name, f"{name} must be a text or a list of texts; {_kind(item)} is neither")

    def _given(self, name: str) -> Value:
        return self.document.fields.get(name)


def split_outside(text: str) -> list[str]:
    """Split at spaces and commas that do not stand inside parentheses or braces."""
    items, depth, current = list[str](), 0, ""
    for char in text:
        depth += (char in "({") - (char in ")}")
        if depth <= 0 and (char == "," or char.isspace()):
            items.append(current)
            current = ""
        else:
            current += char
    return [item for item in (*items, current) if item]


def _kind(value: Value) -> str:
    return "a list" if isinstance(value, list) else "a map" if isinstance(value, dict) else "nothing"


MOST_BYTES = 1 << 20
_MOST_LISTED = 50
_MOST_VISITED = 2_000


def inside(folder: Path, path: str) -> Path:
    """Say where a path of a skill leads; out of its folder is `Unsafe`."""
    return Workspace(folder).check_read(path)


def check_inside(folder: Path, path: str) -> None:
    """Raise what keeps a file of a skill from being opened, if anything does; what it holds does not matter."""
    os.close(_opened(inside(folder, path), path))


def read_inside(folder: Path, path: str) -> str:
    """Read a text file of a skill; a path or link that leads out of the folder is `Unsafe`."""
    resolved = inside(folder, path)
    descriptor = _opened(resolved, path)
    try:
        data = read_all(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise ToolFailed(f"{path} is larger than {MOST_BYTES} bytes; look into it with another tool: {resolved}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is not UTF-8 text (byte {error.start}); use another tool on {resolved}") from None
    return text.replace("\r\n", "\n")


def _opened(resolved: Path, path: str) -> int:
    try:
        return open_regular(resolved)
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder of the skill; name one of its files") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be read: {error.strerror}") from None


def files_of(folder: Path, *, but: str = "SKILL.md") -> tuple[list[str], bool]:
    """Name the files of a skill, in order, and say whether there are more; links and hidden ones are left out."""
    found: list[str] = []
    visited = 0
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            visited += 1
            path = Path(here, name)
            if name.startswith(".") or path.is_symlink() or (name == but and Path(here) == folder):
                continue
            found.append(path.relative_to(folder).as_posix())
        if len(found) > _MOST_LISTED or visited > _MOST_VISITED:
            return found[:_MOST_LISTED], True
    return found, False


Kind: TypeAlias = Literal["skill", "command"]
Scope: TypeAlias = Literal["project", "user"]

LOOKING = frozenset({"explore", "plan"})
"""Agents a skill may ask for that look and change nothing."""
EVERYTHING = frozenset({"general-purpose", "general"})
"""Agents that have all the tools of the conversation."""
_FENCE = "---"
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_LONGEST_COMPATIBILITY = 500
_COMMAND_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9][A-Za-z0-9_.-]*)*")
_KNOWN = frozenset(
    "name description license compatibility metadata allowed-tools disallowed-tools when_to_use argument-hint"
    " arguments disable-model-invocation user-invocable model effort context agent background hooks paths shell"
    " version subtask".split()
)


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for the model, loaded when needed; here is what is known before they are."""

    name: str
    description: str
    file: Path
    kind: Kind = "skill"
    scope: Scope = "project"
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    """Names for the words of the arguments, in order."""
    allowed_tools: tuple[str, ...] = ()
    """Allow rules the skill asks for; they are for the application to grant, and never beat an ask or deny rule."""
    disallowed_tools: tuple[str, ...] = ()
    fork: bool = False
    """It runs as an agent of its own instead of joining the conversation."""
    agent: str = ""
    model: str = ""
    model_invocable: bool = True
    user_invocable: bool = True
    paths: tuple[str, ...] = ()
    """Globs; with any, the skill is offered once a file that fits one of them was touched."""
    base: Path = Path()
    """The folder the globs start from."""
    more: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Every field as it was written."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.file.parent

    def fits(self, path: Path) -> bool:
        """Whether a file is one the skill is for; a glob without a slash is compared with the file's name."""
        within = path.relative_to(self.base).as_posix() if path.is_relative_to(self.base) else None
        return any(
            within is not None and matches(pattern.removeprefix("/"), within)
            if "/" in pattern
            else matches(pattern, path.name)
            for pattern in self.paths
        )

    def body(self) -> str:
        """The instructions, read when they are needed, so that an edit counts at once."""
        return split_front(read_inside(self.folder, self.file.name))[1]


def split_front(text: str) -> tuple[str | None, str]:
    """Part the fields at the top from the instructions; None where a file has no fields."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return None, text.strip("\n")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip("\n")
    raise ToolFailed(
        f"the fields that begin with {_FENCE!r} in line 1 are not closed; add a line of {_FENCE!r} after the last one"
    )


def read_skill(
    file: Path, *, kind: Kind = "skill", scope: Scope = "project", name: str = ""
) -> tuple[Skill | None, list[Problem]]:
    """Read what a file says about its skill; a skill comes back only if nothing about it is wrong."""
    named = name or (file.parent.name if kind == "skill" else file.stem)
    try:
        front, body = split_front(read_inside(file.parent, file.name))
        document = Document() if front is None else read_yaml(front, first_line=2)
    except YamlError as error:
        return None, [Problem(file, error.line, error.message)]
    except ToolError as error:
        return None, [Problem(file, 1, error.message)]
    fields = Fields(file, document)
    if front is None and kind == "skill":
        fields.remark(f"the file does not begin with fields between two lines of {_FENCE!r}")
    skill = _skill(fields, body, named, kind, scope)
    return (None if fields.wrong else skill), fields.problems


def _skill(fields: Fields, body: str, named: str, kind: Kind, scope: Scope) -> Skill:
    fields.expect(_KNOWN)
    if kind == "skill":
        _check_standard(fields, named)
    elif not _COMMAND_NAME.fullmatch(named):
        fields.refuse(
            "", f"{named!r} cannot be typed as a command; use letters, digits, '-', '_' and '.' in file names"
        )
    return Skill(
        name=named,
        description=_description(fields, body, kind),
        file=fields.file,
        kind=kind,
        scope=scope,
        when_to_use=fields.text("when_to_use"),
        argument_hint=fields.text("argument-hint"),
        arguments=fields.names("arguments"),
        allowed_tools=fields.rules("allowed-tools"),
        disallowed_tools=fields.rules("disallowed-tools"),
        fork=fields.choice("context", ("fork", "inline")) == "fork",
        agent=fields.text("agent"),
        model=fields.text("model"),
        model_invocable=not fields.flag("disable-model-invocation", default=False),
        user_invocable=fields.flag("user-invocable", default=True),
        paths=fields.globs("paths"),
        more=fields.document.fields,
    )


def _check_standard(fields: Fields, folder: str) -> None:
    """What the open standard asks for beyond the types of the fields."""
    name = fields.text("name", longest=_LONGEST_NAME) or folder
    if "name" not in fields.document.fields:
        fields.remark(f"there is no name; the standard wants the folder's here: name: {folder}")
    elif name != folder:
        fields.refuse("name", f"the name {name!r} is not that of its folder, {folder!r}; rename one of them")
    parts = name.split("-")
    if not all(part and part.isascii() and part.isalnum() and part == part.lower() for part in parts):
        near = "-".join(re.findall("[a-z0-9]+", name.lower()))
        hint = f", such as {near!r}; rename the folder with it" if near else ""
        fields.refuse(
            "name", f"the name {name!r} must be lower-case letters and digits, parted by single hyphens{hint}"
        )
    fields.text("compatibility", longest=_LONGEST_COMPATIBILITY)
    fields.text("license")
    fields.texts("metadata")


def _description(fields: Fields, body: str, kind: Kind) -> str:
    said = fields.text("description", longest=_LONGEST_DESCRIPTION)
    if said:
        return said
    if kind == "skill" and "description" not in fields.document.fields:
        fields.remark("there is no description; the first paragraph stands in for it")
    paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
    first = next((paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("#")), "")
    if not first and "description" not in fields.document.fields:
        fields.refuse("description", "there is neither a description nor a paragraph to take it from")
    return " ".join(first.split())[:_LONGEST_DESCRIPTION]
