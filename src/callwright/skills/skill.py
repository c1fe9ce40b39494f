"""One skill: what its file says about it, checked field by field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import ToolError, ToolFailed
from callwright.skills.fields import Fields, Problem
from callwright.skills.files import read_inside
from callwright.skills.scalars import Value, YamlError
from callwright.skills.yaml import Document, read_yaml
from callwright.system.globs import matches

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
