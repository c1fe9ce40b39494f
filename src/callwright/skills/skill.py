"""`Skill`, read and checked from its file, and safe access to the other files of its folder."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from callwright.core.errors import ToolError, ToolFailed
from callwright.skills.fields import FieldReader, SkillProblem
from callwright.system.files import open_regular, read_all
from callwright.system.paths import Workspace
from callwright.system.search.globs import matches

if TYPE_CHECKING:
    from callwright.skills.frontmatter import YamlValue

SKILL_FILE = "SKILL.md"
MOST_BYTES = 1 << 20
_MOST_LISTED = 50
_MOST_VISITED = 2_000


def resolve_inside(folder: Path, path: str) -> Path:
    """Resolve a path of a skill.

    Raises:
        Unsafe: The path or a link in it leads out of the folder.
    """
    return Workspace(folder).check_read(path)


def check_inside(folder: Path, path: str) -> None:
    """Check that a file of a skill can be opened, without reading it.

    Raises:
        Unsafe: It lies outside of the folder.
        ToolFailed: It cannot be opened.
    """
    os.close(_open(resolve_inside(folder, path), path))


def read_inside(folder: Path, path: str) -> str:
    """Read a text file of a skill.

    Raises:
        Unsafe: It lies outside of the folder.
        ToolFailed: It cannot be opened, is too large or is not UTF-8.
    """
    resolved = resolve_inside(folder, path)
    descriptor = _open(resolved, path)
    try:
        data = read_all(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise ToolFailed(f"{path} is larger than {MOST_BYTES} bytes; use another tool on {resolved}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is not UTF-8 text (byte {error.start}); use another tool on {resolved}") from None
    return text.replace("\r\n", "\n")


def _open(resolved: Path, path: str) -> int:
    try:
        return open_regular(resolved)
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder of the skill; give the path of a file in it") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be read: {error.strerror}") from None


def list_files(folder: Path, *, but: str = SKILL_FILE) -> tuple[list[str], bool]:
    """Return the first files of a skill in order, and whether there are more; links and hidden files are left out."""
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

READ_ONLY_AGENTS = frozenset({"explore", "plan"})
"""Names of agents a skill may ask for that change nothing."""
FULL_AGENTS = frozenset({"general-purpose", "general"})
"""Names of agents that have all the tools of the conversation."""
_FENCE = "---"
_LATE_FIELDS = re.compile(r"\s+---[ \t]*\n[\w-]+:")
_UNUSED = ("effort", "background", "shell", "subtask")
"""Fields that other agents read."""
_GUARDS = frozenset({"PreToolUse", "PermissionRequest", "UserPromptSubmit", "Elicitation", "ElicitationResult"})
"""Events of hooks that come before an action."""
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_LONGEST_COMPATIBILITY = 500
_TYPED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_COMMAND_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9][A-Za-z0-9_.-]*)*")
_KNOWN = frozenset(
    "name description license compatibility metadata allowed-tools disallowed-tools when_to_use argument-hint"
    " arguments disable-model-invocation user-invocable model effort context agent background hooks paths shell"
    " version subtask".split()
)


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for a model: their description and settings. `body` loads the text itself when it is needed."""

    name: str
    description: str
    file: Path
    kind: Kind = "skill"
    scope: Scope = "project"
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    """Names of the positional arguments, in order."""
    allowed_tools: tuple[str, ...] = ()
    """Allow rules the skill asks for. The application decides whether to grant them; ask and deny rules still win."""
    disallowed_tools: tuple[str, ...] = ()
    fork: bool = False
    """The skill runs in a separate agent instead of joining the conversation."""
    agent: str = ""
    model: str = ""
    model_invocable: bool = True
    user_invocable: bool = True
    paths: tuple[str, ...] = ()
    """Globs. If there are any, the skill is offered after a file that matches one of them was read or changed."""
    base: Path = Path()
    """The folder the globs are relative to."""
    more: "Mapping[str, YamlValue]" = field(default_factory=dict[str, "YamlValue"])
    """All fields of the front matter, unchecked."""

    @property
    def folder(self) -> Path:
        """The folder its files are in."""
        return self.file.parent

    def fits(self, path: Path) -> bool:
        """Tell whether a file matches the skill's `paths`; a glob without a slash is compared with the file's name."""
        within = path.relative_to(self.base).as_posix() if path.is_relative_to(self.base) else None
        return any(
            within is not None and matches(pattern.removeprefix("/"), within)
            if "/" in pattern
            else matches(pattern, path.name)
            for pattern in self.paths
        )

    def body(self) -> str:
        """The instructions, read when they are needed, so that an edit counts at once."""
        return split_front_matter(read_inside(self.folder, self.file.name))[1]


def split_front_matter(text: str) -> tuple[str | None, str]:
    """Separate the front matter from the instructions; None if the file has no front matter."""
    if _LATE_FIELDS.match(text):  # as instructions, its fields would restrict nothing
        raise ToolFailed(f"the front matter does not start in line 1; remove the blank lines above the line {_FENCE!r}")
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return None, text.strip("\n")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip("\n")
    raise ToolFailed(
        f"the front matter that starts in line 1 is not closed; add a line {_FENCE!r} after the last field"
    )


def read_skill(
    file: Path | str, *, kind: Kind = "skill", scope: Scope = "project", name: str = ""
) -> tuple[Skill | None, list[SkillProblem]]:
    """Read a skill or command from its file.

    Args:
        file: The Markdown file.
        kind: Whether the standard for skills applies, or the looser one for commands.
        scope: Whether it belongs to the project or to the user.
        name: Its name, if that is not the name of the folder or file.

    Returns:
        The skill, or None if a problem is fatal, and all problems.
    """
    from callwright.skills.frontmatter import FrontMatter, InvalidFrontMatter, parse_front_matter  # imports PyYAML

    file = Path(file)
    name = name or (file.parent.name if kind == "skill" else file.stem)
    try:
        front, body = split_front_matter(read_inside(file.parent, file.name))
        document = FrontMatter() if front is None else parse_front_matter(front, first_line=2)
    except InvalidFrontMatter as error:
        return None, [SkillProblem(file, error.line, error.message)]
    except ToolError as error:
        return None, [SkillProblem(file, 1, error.message)]
    fields = FieldReader(file, document)
    if front is None and kind == "skill":
        fields.add_warning(f"the file does not start with front matter between two lines {_FENCE!r}")
    skill = _build(fields, body, name, kind, scope)
    return (None if fields.broken else skill), fields.problems


def check_hooks(fields: FieldReader) -> None:
    """Refuse a file whose hooks would guard something, as such hooks are not run here; warn about other hooks."""
    given = fields.document.fields.get("hooks")
    events = list(given) if isinstance(given, dict) else [] if given is None else [str(given)]
    guarding = [event for event in events if event in _GUARDS or not isinstance(given, dict)]
    if guarding:
        named = ", ".join(guarding)
        fields.add_error("hooks", f"its hooks ({named}) guard calls and are not run here; move them to the settings")
    elif events:
        fields.add_warning(f"its hooks ({', '.join(events)}) are not run here; move them to the settings", "hooks")


def _build(fields: FieldReader, body: str, name: str, kind: Kind, scope: Scope) -> Skill:
    fields.check_names(_KNOWN)
    check_hooks(fields)
    for unused in _UNUSED:
        if unused in fields.document.fields:
            fields.add_warning(f"{unused} is not used here", unused)
    if kind == "skill":
        _check_standard(fields, name)
    elif not _COMMAND_NAME.fullmatch(name):
        fields.add_error(
            "", f"{name!r} cannot be typed as a command; use letters, digits, '-', '_' and '.' in file names"
        )
    return Skill(
        name=name,
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


def _check_standard(fields: FieldReader, folder: str) -> None:
    """Check what the Agent Skills standard asks for beyond the types of the fields."""
    name = fields.text("name", longest=_LONGEST_NAME, cut=True) or folder
    if "name" not in fields.document.fields:
        fields.add_warning(f"the field name is missing; the standard requires it: name: {folder}")
    elif name != folder:
        fields.add_warning(f"the name {name!r} differs from the folder {folder!r}, which is used; rename one", "name")
    if not _TYPED_NAME.fullmatch(folder):
        near = "-".join(re.findall("[a-z0-9]+", folder.lower()))
        hint = f", such as {near!r}" if near else ""
        fields.add_error("", f"the folder {folder!r} must have letters, digits, '-', '_' and '.' only{hint}; rename it")
    parts = name.split("-")
    if not all(part and part.isascii() and part.isalnum() and part == part.lower() for part in parts):
        near = "-".join(re.findall("[a-z0-9]+", name.lower()))
        hint = f", such as {near!r}; rename the folder with it" if near else ""
        fields.add_warning(
            f"the name {name!r} should be lower-case letters and digits separated by single hyphens{hint}", "name"
        )
    fields.text("compatibility", longest=_LONGEST_COMPATIBILITY, cut=True)
    fields.text("license")
    fields.check_texts("metadata")


def _description(fields: FieldReader, body: str, kind: Kind) -> str:
    text = fields.text("description", longest=_LONGEST_DESCRIPTION, cut=True)
    if text:
        return text
    if kind == "skill" and "description" not in fields.document.fields:
        fields.add_warning("the field description is missing; the first paragraph is used instead")
    paragraphs = (paragraph.strip() for paragraph in body.split("\n\n"))
    first = next((paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("#")), "")
    if not first and "description" not in fields.document.fields:
        fields.add_error("description", "the field description is missing, and no paragraph can replace it; add one")
    return fields.show_hidden("description", " ".join(first.split()))[:_LONGEST_DESCRIPTION]
