"""The `skill` tool, skills as tools of their own, the list of skills for prompts, and calls while one is rendered."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from pydantic import AliasChoices, Field

from callwright.core.access import Access, ReadPath, UseTool
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import estimate_tokens
from callwright.core.errors import ToolFailed, UsageError, check_kind, join_first
from callwright.core.json import JsonObject
from callwright.core.spec import CLAUDE_CODE_NAMES, Annotations, Effect, Limits, ToolSpec, check_name
from callwright.skills.loader import Reloaded, Skills
from callwright.skills.render import ExpansionContext, render_skill
from callwright.skills.skill import Skill, list_files, read_inside, resolve_inside
from callwright.tool.base import Tool, ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.schema_tool import SchemaTool
from callwright.tool.typed import TypedTool, describe

_log = logging.getLogger("callwright")

Execute: TypeAlias = Callable[[ToolCall], Awaitable[Sequence[Outcome]]]
"""Executes one call through hooks, policies and approvals."""

_NEEDS_APPROVAL = "it needs approval; if you need it, call {} yourself"


class SkillCalls:
    """Runs the commands of a skill with `bash` and reads files with `read`, under the same policies as the model's."""

    def __init__(self, execute: Execute, call_id: str) -> None:
        self._execute = execute
        self._call_id = call_id
        self._count = 0

    async def run(self, line: str) -> str:
        """Return the output of a shell line, or why it did not run."""
        match await self._call("bash", {"command": line}):
            case Completed(output=output):
                text = output.text.removesuffix("exit code: 0").removesuffix("\n")
                return "" if text == "(no output)" else text
            case other:
                return _describe_failure(other, "bash with this command")

    async def read(self, path: Path) -> str:
        """Return the text of a file, or why it cannot be read."""
        match await self._call("read", {"path": str(path)}):
            case Completed(output=output):
                return output.text
            case other:
                return _describe_failure(other, "read with this path")

    async def _call(self, name: str, arguments: dict[str, str]) -> Outcome:
        self._count += 1
        # ids below the call's own, so that records show which skill made the call
        (outcome,) = await self._execute(ToolCall(f"{self._call_id}.{self._count}", name, {**arguments}))
        return outcome


def _describe_failure(outcome: Outcome, instead: str) -> str:
    if isinstance(outcome, Failed):
        return f"[{'failed' if outcome.started else 'not run'}: {outcome.error.message}]"
    return f"[not run: {_NEEDS_APPROVAL.format(instead)}]"


_MAX_ENTRY_CHARS = 1536
_MIN_ENTRY_CHARS = 40


def list_skills(skills: Iterable[Skill], *, budget_tokens: int = 2_000, touched: Iterable[Path] = ()) -> str:
    """List the skills a model may load, one line each, shortened until they fit the budget.

    Args:
        skills: The skills.
        budget_tokens: Most tokens the list may have.
        touched: Files read or changed so far; a skill with `paths` is listed only if one of them matches.
    """
    files = list(touched)
    fitting = (skill for skill in skills if not skill.paths or any(map(skill.fits, files)))
    offered = sorted((skill for skill in fitting if skill.model_invocable), key=lambda skill: skill.name)
    if not offered:
        return ""
    chars = _MAX_ENTRY_CHARS
    while chars >= _MIN_ENTRY_CHARS:
        text = _format_entries(offered, chars)
        if estimate_tokens(text) <= budget_tokens:
            return text
        chars = chars * 3 // 4
    return _format_names(offered, budget_tokens)


def _format_entries(skills: list[Skill], chars: int) -> str:
    return "\n".join(f"- {skill.name}: {_summarize(skill, chars)}" for skill in skills)


def _summarize(skill: Skill, chars: int) -> str:
    """Return one line about a skill: a line break in a description must not add entries."""
    text = " ".join(f"{skill.description} {skill.when_to_use}".split())
    return text if len(text) <= chars else f"{text[: chars - 1].rstrip()}…"


def _format_names(skills: list[Skill], budget_tokens: int) -> str:
    names = [skill.name for skill in skills]
    kept = len(names)
    while kept and estimate_tokens(join_first(names, kept)) > budget_tokens:
        kept -= 1
    return join_first(names, kept)


SubAgent: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a separate agent on a prompt and returns its answer."""
Fork: TypeAlias = Callable[[Skill, str, ToolContext], Awaitable[str]]
"""Runs the agent a skill asks for on the skill's prompt and returns its answer."""
Activate: TypeAlias = Callable[[Skill, ToolContext], None]
"""Called before a skill is used; may grant the rules it asks for if its source is trusted."""

LIMITS = Limits(seconds=1800.0, output_chars=100_000)
# a skill may run commands, so a call is not repeated after a crash; each command is judged on its own
ANNOTATIONS = Annotations(Effect.WRITE, parallel=False)


@dataclass(frozen=True, slots=True)
class SkillRunner:
    """Renders skills and runs those that need a separate agent."""

    subagent: SubAgent | str | None = None
    fork: Fork | None = None
    activate: Activate | None = None
    project: Path | None = None
    cwd: Path | None = None
    commands: bool = True

    def forks(self, skill: Skill) -> bool:
        """Tell whether a skill runs in a separate agent."""
        return skill.fork and (self.fork is not None or self.subagent is not None)

    async def render(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return the instructions; commands run and files are read as calls of the session."""
        if self.activate is not None:
            self.activate(skill, context)
        calls = SkillCalls(context.execute, context.call_id)
        run = calls.run if self.commands else None
        return await render_skill(
            skill, arguments, ExpansionContext(self.project, self.cwd, context.session_id, run, calls.read)
        )

    async def run_agent(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Run the skill in a separate agent and return its answer."""
        prompt = await self.render(skill, arguments, context)
        if self.fork is not None:
            return await self.fork(skill, prompt, context)
        if self.subagent is None:
            raise ToolFailed(f"{skill.name} must run in a separate agent, and none is available")
        if not isinstance(self.subagent, str):
            return await self.subagent(prompt)
        (outcome,) = await context.execute(ToolCall(f"{context.call_id}.agent", self.subagent, {"prompt": prompt}))
        if isinstance(outcome, Completed):
            return outcome.text
        raise ToolFailed(outcome.text if isinstance(outcome, Failed) else "its agent waits for approval")


def _named(own: str) -> AliasChoices:
    return AliasChoices(own, *(other for other, field in CLAUDE_CODE_NAMES["skill"].items() if field == own))


class SkillArguments(Arguments):
    """What `skill` takes."""

    name: str = Field(validation_alias=_named("name"))
    """The skill's name, as listed."""
    arguments: str = Field("", validation_alias=_named("arguments"))
    """What to apply it to, as a user would type it after the name."""
    file: str = ""
    """Read this file of the skill's folder instead, such as references/api.md."""


class SkillTool(TypedTool[SkillArguments]):
    """Loads a skill for a model.

    Args:
        skills: The skills to choose from.
        subagent: Runs skills that need a separate agent: a function, or the name of a tool that is an agent.
        fork: Like `subagent`, but also receives the skill, for its model and its kind of agent. Comes first.
        commands: Run the commands in instructions.
        activate: Called before a skill is used.
        project: The folder for `${PROJECT_DIR}`; the working folder by default.
    """

    spec = describe(
        "skill",
        "Load the instructions of a skill and follow them. Skills are listed with what they are for; use the one that"
        " fits before doing such a task your own way.",
        annotations=ANNOTATIONS,
        limits=LIMITS,
        aliases=("Skill", "activate_skill"),
        search_hint="load instructions of a skill",
    )

    def __init__(
        self,
        skills: Skills,
        *,
        subagent: SubAgent | str | None = None,
        fork: Fork | None = None,
        commands: bool = True,
        activate: Activate | None = None,
        project: Path | None = None,
    ) -> None:
        self._skills = skills
        self._runner = SkillRunner(subagent, fork, activate, project, skills.cwd, commands)

    def accesses(self, arguments: SkillArguments) -> tuple[Access, ...]:
        """Declare reads only: commands of the skill are separate calls, judged one by one."""
        use = UseTool("skill", Effect.READ)
        skill = self._skills.get(arguments.name)
        if skill is None or not arguments.file:
            return (use,)
        return (use, ReadPath(str(resolve_inside(skill.folder, arguments.file))))

    async def run(self, arguments: SkillArguments, context: ToolContext) -> str:
        """Return the instructions, a file of the skill, or the answer of its agent."""
        skill = self._skill(arguments.name)
        if arguments.file and skill.kind == "command":
            raise ToolFailed(f"{skill.name} is a single file; call skill without the argument file")
        if arguments.file:
            return read_inside(skill.folder, arguments.file)
        if self._runner.forks(skill):
            return await self._runner.run_agent(skill, arguments.arguments, context)
        return await self._runner.render(skill, arguments.arguments, context) + _footer(skill)

    def _skill(self, name: str) -> Skill:
        skill = self._skills.get(name)
        if skill is None:
            near = self._skills.nearest(name)
            hint = f"did you mean {' or '.join(near)}?" if near else "use a name from the list"
            raise ToolFailed(f"there is no skill {name[:100]!r}; {hint}")
        if not skill.model_invocable:
            raise ToolFailed(f"only the user may start {skill.name}, by typing /{skill.name}; suggest it")
        return skill


def _footer(skill: Skill) -> str:
    if skill.kind == "command":
        return ""
    names, more = list_files(skill.folder, but=skill.file.name)
    if not names:
        return ""
    listed = "\n".join(f"- {name}" for name in names) + ("\n- …" if more else "")
    return (
        f"\n\nFiles of this skill, in {skill.folder}; read one with"
        f' skill(name="{skill.name}", file="{names[0]}"):\n{listed}'
    )


_INPUT: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What it should work on, in your own words."}},
    "required": ["input"],
    "additionalProperties": False,
}


def markdown_tool(
    skill: Skill, subagent: SubAgent | str, *, activate: Activate | None = None, project: Path | None = None
) -> Tool:
    """Turn a skill into a tool that takes one text and returns the answer of an agent.

    Args:
        skill: The skill.
        subagent: Runs it: a function, or the name of a tool that is an agent.
        activate: Called before the skill is used.
        project: The folder for `${PROJECT_DIR}`; the working folder by default.

    Raises:
        UsageError: It is not a skill.
    """
    check_kind("skill", skill, Skill, "write skill, problems = read_skill(file), and pass the skill")
    runner, name = SkillRunner(subagent, activate=activate, project=project), tool_name(skill)

    async def run(arguments: JsonObject, context: ToolContext) -> str:
        return await runner.run_agent(skill, str(arguments["input"]), context)

    spec = ToolSpec(name, skill.description, _INPUT, annotations=ANNOTATIONS, limits=LIMITS, group="skill")
    return SchemaTool(spec, run, accesses=lambda arguments: (UseTool(name, Effect.READ),))


def tool_name(skill: Skill) -> str:
    """Return the name of a skill as a tool: `namespace:name` becomes `namespace.name`."""
    return skill.name.replace(":", ".")


class ToolRegistry(Protocol):
    """What tools are added to and removed from: a `Registry`."""

    def add(self, tool: Tool) -> object: ...

    def remove(self, name: str) -> object: ...

    def get(self, name: str) -> Tool | None: ...

    def __contains__(self, name: object) -> bool: ...


class MarkdownTools:
    """Keeps a registry in step with the skills a model may use.

    A skill with the name of another tool is left out, with a warning in the log: skills come with the project, and none
    of them may take the place of a tool. So is one whose name is too long for a tool.

    Args:
        skills: The skills.
        registry: Where their tools are added and removed.
        subagent: Runs them: a function, or the name of a tool that is an agent.
    """

    def __init__(self, skills: Skills, registry: ToolRegistry, subagent: SubAgent | str) -> None:
        self._skills = skills
        self._registry = registry
        self._subagent = subagent
        self._offered: dict[str, Skill] = {}
        self._tools: dict[str, Tool] = {}
        self._update_registry()

    def reload(self) -> Reloaded:
        """Search for skills again and update the registry."""
        reloaded = self._skills.reload()
        self._update_registry()
        return reloaded

    def _update_registry(self) -> None:
        now: dict[str, Skill] = {}
        for skill in self._skills:
            if not skill.model_invocable:
                continue
            name = tool_name(skill)
            if problem := self._find_problem(name, now):
                _log.warning("skill %s is not offered as a tool: %s; rename its folder", name, problem)
            else:
                now[name] = skill
        for name in self._offered.keys() - now.keys():
            if self._registry.get(name) is self._tools.pop(name):  # the owner may have removed or replaced it
                self._registry.remove(name)
        for name, skill in now.items():
            if self._offered.get(name) != skill:
                self._tools[name] = markdown_tool(skill, self._subagent)
                self._registry.add(self._tools[name])
        self._offered = now

    def _find_problem(self, name: str, taken: Collection[str]) -> str:
        """Return why a skill cannot be a tool of this name; empty if it can."""
        if name in taken or (name in self._registry and self._registry.get(name) is not self._tools.get(name)):
            return "there is a tool of this name"
        try:
            check_name(name)
        except UsageError:
            return "its name is too long for a tool"
        return ""
