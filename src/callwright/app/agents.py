"""Definitions of sub-agents: the built-in ones, and Markdown files with front matter of the user and the project.

A definition chooses tools, a model and instructions. It grants nothing: every call of a sub-agent passes the policies
of the conversation.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from callwright.app.locations import Locations
from callwright.app.skills.grants import OWN_MODEL
from callwright.core.errors import ToolError, UsageError
from callwright.core.json import hash_text, read_object
from callwright.core.spec import ToolSpec
from callwright.policy.tool_names import canonical, find_misspelt_tool, identities, names_tool
from callwright.skills.fields import FieldReader, SkillProblem
from callwright.skills.skill import check_hooks, read_inside, split_front_matter
from callwright.system.paths import resolve_links

if TYPE_CHECKING:
    from callwright.skills.frontmatter import FrontMatter

AgentScope: TypeAlias = Literal["built-in", "user", "project"]
_FOLDERS = (".callwright", ".claude")
_MAX_FILES = 200
_MAX_FOLDERS = 1_000
"""How many folders to look into: a project that is only opened must not make the start slow."""
_MAX_DESCRIPTION = 2_000
_MAX_TURNS = 40
_READERS = ("read", "grep", "glob", "list", "web_fetch", "web_search", "read_output", "bash")
_EXPLORE = """\
You explore a code base for another agent. Search with glob and grep, read what matters, and follow the code. You can
change nothing. Answer with facts: file paths with line numbers, names, and what they do. Say what you did not find."""
_PLAN = """\
You plan a change for another agent. Read the code that the change touches first. You can change nothing. Answer with a
plan: the steps in order, the files of each step, what could go wrong, and how to check the result."""


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One kind of sub-agent."""

    name: str
    description: str
    """Tells the model when to use it."""
    instructions: str
    tools: tuple[str, ...] | None = None
    """Names of its tools, such as `Read` or `mcp__github__*`; None for those of the conversation."""
    without: tuple[str, ...] = ()
    """Names of tools it must not have; a rule about some of a tool's calls, `Bash(rm *)`, takes the whole tool."""
    model: str = ""
    """Empty for the model of the conversation."""
    turns: int = _MAX_TURNS
    read_only: bool = False
    scope: AgentScope = "built-in"
    file: str = ""
    digest: str = ""
    """Of the whole file: trust covers exactly what the user saw."""

    def has_tool(self, spec: ToolSpec) -> bool:
        """Whether a tool belongs to it."""
        if _name_any((_without_specifier(name) for name in self.without), spec):
            return False
        return self.tools is None or _name_any(self.tools, spec)


def _name_any(patterns: Iterable[str], spec: ToolSpec) -> bool:
    return any(names_tool(canonical(pattern), identities(spec), spec.group) for pattern in patterns)


def _without_specifier(rule: str) -> str:
    return rule.partition("(")[0]


BUILT_IN = (
    AgentDefinition(
        "explore", "Finds and explains code: where something is, how it works. Read-only.", _EXPLORE, _READERS,
        read_only=True,
    ),
    AgentDefinition(
        "plan", "Plans a larger change after reading the code. Read-only.", _PLAN, _READERS, read_only=True
    ),
)  # fmt: skip


_UNUSED_FIELDS = frozenset({"skills", "memory", "mcpServers", "background", "effort", "initialPrompt"})
_LIMITING_FIELDS = {
    **dict.fromkeys(("tools", "tool", "allowedtools"), "tools"),
    **dict.fromkeys(("disallowedtools", "disallowedtool", "deniedtools"), "disallowedTools"),
    "permissionmode": "permissionMode",
    "maxturns": "maxTurns",
}
"""The fields that limit an agent, by other spellings without signs: `allowed-tools` is a field of skills."""
_GIVEN_FIELDS = frozenset({"description", "prompt", "tools", "disallowedTools", "model", "maxTurns"})


def read_given_agents(text: str, entries: Mapping[str, Any]) -> tuple[AgentDefinition, ...]:
    """Return the definitions of a command line and of a driving program, which are the user's own.

    Args:
        text: The value of `--agents`, as JSON; may be empty.
        entries: More of them, by name.

    Raises:
        UsageError: The text or an entry is not valid; the message names the field.
    """
    given: object = {}
    if text:
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--agents: not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise UsageError(f"--agents: expected an object of agents by name, got {given!r:.80}")
    return tuple(_read_given_agent(name, each) for name, each in {**cast("dict[str, Any]", given), **entries}.items())


def _read_given_agent(name: str, given: object) -> AgentDefinition:
    entry = read_object(given)
    texts = {key: entry.get(key, "") for key in ("description", "prompt", "model")}
    lists = {key: entry.get(key, []) for key in ("tools", "disallowedTools")}
    turns = entry.get("maxTurns", _MAX_TURNS)
    unknown = sorted(entry.keys() - _GIVEN_FIELDS)
    fault = next((f"{key} must be a text" for key, value in texts.items() if not isinstance(value, str)), "")
    for key, value in lists.items():
        if not isinstance(value, list) or not all(isinstance(each, str) for each in cast("list[Any]", value)):
            fault = fault or f"{key} must be a list of texts"
    if not texts["description"] or not texts["prompt"]:
        fault = fault or "description and prompt are needed"
    if type(turns) is not int or turns < 1:
        fault = fault or "maxTurns must be a number above 0"
    # a field that is not read could have been a limit, such as a permission mode
    fault = fault or (f"{unknown[0]} is not supported; known are {', '.join(sorted(_GIVEN_FIELDS))}" if unknown else "")
    if fault or not name.strip():
        raise UsageError(f"the agent {name!r}: {fault or 'a name is needed'}")
    return AgentDefinition(
        name,
        texts["description"],
        texts["prompt"],
        tuple(lists["tools"]) if "tools" in entry else None,
        tuple(lists["disallowedTools"]),
        "" if texts["model"] in OWN_MODEL else texts["model"],
        turns,
        scope="user",
    )


def project_agents(locations: Locations) -> tuple[tuple[AgentDefinition, ...], tuple[str, ...]]:
    """Return the definitions in the project's folders, and the problems of its files, with file and line."""
    own = set(map(resolve_links, _user_folders(locations)))  # the same ones if the project is the home folder
    folders = [locations.project / folder / "agents" for folder in _FOLDERS]
    folders = [folder for folder in folders if resolve_links(folder) not in own]
    return _read_folders(folders, "project", locations.project)


def user_agents(locations: Locations) -> tuple[tuple[AgentDefinition, ...], tuple[str, ...]]:
    """Return the user's own definitions and the problems of their files."""
    return _read_folders(_user_folders(locations), "user", None)


def _user_folders(locations: Locations) -> list[Path]:
    usual = Path.home() / _FOLDERS[0]
    return list(dict.fromkeys(folder / "agents" for folder in (locations.home, usual, locations.own_claude)))


def merge_agents(*groups: Sequence[AgentDefinition]) -> dict[str, AgentDefinition]:
    """Return definitions by name; the first group that has a name wins."""
    found: dict[str, AgentDefinition] = {}
    for group in groups:
        for definition in group:
            found.setdefault(definition.name, definition)
    return found


def describe_agents(definitions: Iterable[AgentDefinition]) -> Iterator[str]:
    """Yield what a project's definitions request, as text for the user."""
    for definition in definitions:
        tools = "all tools" if definition.tools is None else f"tools {', '.join(definition.tools) or 'none'}"
        model = f", model {definition.model}" if definition.model else ""
        yield f"sub-agent {definition.name}: {tools}{model} ({definition.file})"


def _read_folders(
    folders: Iterable[Path], scope: AgentScope, within: Path | None
) -> tuple[tuple[AgentDefinition, ...], tuple[str, ...]]:
    found: list[AgentDefinition] = []
    problems: list[SkillProblem] = []
    root = None if within is None else resolve_links(within)
    for folder in folders:
        if root is not None and not resolve_links(folder).is_relative_to(root):
            if folder.is_dir():
                problems.append(SkillProblem(folder, 1, "the folder is a link out of the project, so it is not used"))
            continue
        try:
            files = list(islice(_markdown_files(folder), _MAX_FILES + 1))
        except OSError:
            continue
        if len(files) > _MAX_FILES:
            problems.append(SkillProblem(folder, 1, f"only the first {_MAX_FILES} agents are read"))
            files.pop()
        for file in files:
            if root is not None and not resolve_links(file).is_relative_to(root):
                problems.append(SkillProblem(file, 1, "the file is a link out of the project, so it is not used"))
                continue
            definition = _read_agent(file, scope, problems)
            if definition is not None:
                found.append(definition)
    return tuple(found), tuple(map(str, problems))


def _markdown_files(folder: Path) -> Iterator[Path]:
    """Yield the files in and below a folder in order; linked folders are not followed."""
    for here, folders, names in islice(os.walk(folder), _MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(here, name) for name in sorted(names) if name.endswith(".md"))


def _read_agent(file: Path, scope: AgentScope, problems: list[SkillProblem]) -> AgentDefinition | None:
    """Read one file; a file with any mistake is named and not used."""
    from callwright.skills.frontmatter import InvalidFrontMatter, parse_front_matter  # imports PyYAML

    try:
        text = read_inside(file.parent, file.name)
        front, body = split_front_matter(text)
        if front is None and file.parent.name != "agents":  # a README beside agents in a subfolder
            return None
        if front is None:
            problems.append(SkillProblem(file, 1, "the file does not start with front matter between two lines '---'"))
            return None
        document = parse_front_matter(front, first_line=2)
    except InvalidFrontMatter as error:
        problems.append(SkillProblem(file, error.line, error.message))
        return None
    except ToolError as error:
        problems.append(SkillProblem(file, 1, error.message))
        return None
    fields = FieldReader(file, document)
    definition = _build(fields, document, body, text, scope)
    problems += [problem for problem in fields.problems if problem.fatal]
    if fields.broken:
        return None
    unused = _find_unused(document, definition)
    problems += [SkillProblem(file, document.lines[name], text, fatal=False) for name, text in unused]
    return definition


def _check_limits(fields: FieldReader) -> None:
    """Refuse a file with a limit that would be lost: under another name, or of a kind that is not kept here."""
    for name in fields.document.fields:
        meant = _LIMITING_FIELDS.get(name.casefold().replace("-", "").replace("_", ""), name)
        if meant != name:
            fields.add_error(name, f"{name} is not a field of agents, and what it limits would be lost; write {meant}")
    if fields.document.fields.get("isolation") is not None:
        fields.add_error("isolation", "isolation is not kept here, the agent works in your files; remove it to agree")


def _find_unused(document: "FrontMatter", definition: AgentDefinition) -> Iterator[tuple[str, str]]:
    """Yield the fields that other programs read and that have no effect here, each with a text for the user."""
    for name, value in document.fields.items():
        if name in _UNUSED_FIELDS or (name == "permissionMode" and value not in (None, "default", "plan")):
            yield name, f"{name} is not used here"
    description = document.fields.get("description")
    if isinstance(description, str) and len(description.strip()) > _MAX_DESCRIPTION:
        yield "description", f"the model sees the first {_MAX_DESCRIPTION} characters of the description"
    for rule in definition.tools or ():
        yield from (("tools", f"the agent {text}") for text in _describe_part(rule))
    for rule in definition.without:
        if near := find_misspelt_tool(_without_specifier(rule)):
            yield "disallowedTools", f"{rule} takes no tool away: there is no such tool; did you mean {near}?"


def _describe_part(rule: str) -> Iterator[str]:
    """Yield why an agent does not have a tool that its definition misspells or gives in part."""
    name = _without_specifier(rule)
    if near := find_misspelt_tool(name):
        yield f"does not have {rule}: there is no such tool; did you mean {near}?"
    elif name != rule and canonical(name) != "agent":  # which no agent has
        yield f"does not have {rule}: a tool belongs to it as a whole or not; write {name}"


def describe_given(definitions: Iterable[AgentDefinition]) -> tuple[str, ...]:
    """Return what definitions of a command line ask for and do not get."""
    parts = ((each.name, rule) for each in definitions for rule in each.tools or ())
    return tuple(f"the agent {name} {text}" for name, rule in parts for text in _describe_part(rule))


def _build(fields: FieldReader, document: "FrontMatter", body: str, text: str, scope: AgentScope) -> AgentDefinition:
    name = fields.text("name", longest=64)
    if "name" not in document.fields:
        fields.add_error("name", "the field name is missing; write name: NAME")
    elif name and not all(character.isascii() and (character.isalnum() or character in "-_") for character in name):
        fields.add_error("name", f"name {name!r} may have letters, digits, '-' and '_' only")
    description = fields.text("description")[:_MAX_DESCRIPTION]
    if "description" not in document.fields:
        fields.add_error("description", "the field description is missing; it tells the model when to use the agent")
    if not body.strip():
        fields.add_error("", "there are no instructions below the front matter")
    check_hooks(fields)
    _check_limits(fields)
    model = fields.text("model")
    return AgentDefinition(
        name,
        description,
        body.strip(),
        fields.rules("tools") if "tools" in document.fields else None,
        fields.rules("disallowedTools"),
        "" if model in OWN_MODEL else model,
        _turns(fields),
        # other modes would give more than the conversation has, which a definition cannot
        read_only=fields.text("permissionMode") == "plan",
        scope=scope,
        file=str(fields.file),
        digest=hash_text(text),
    )


def _turns(fields: FieldReader) -> int:
    given = fields.text("maxTurns")
    if not given:
        return _MAX_TURNS
    if not (given.isascii() and given.isdigit() and int(given[:6]) > 0):
        fields.add_error("maxTurns", f"maxTurns must be a number above 0, not {given!r}")
        return _MAX_TURNS
    return int(given[:6])
