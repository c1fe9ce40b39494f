"""What a skill has done for it: commands and files, as calls of the session it is used in.

The list of skills a prompt carries: enough to choose by, within a budget.

Using a skill inside a call: who is told, who runs its commands, who answers for it.

The `skill` tool: instructions when the model needs them, files when the instructions do.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from callwright.core.access import Access, ReadPath, UseTool
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.errors import ToolFailed
from callwright.core.messages import estimate_tokens
from callwright.core.spec import Annotations, Effect, Limits
from callwright.skills.loader import Skills
from callwright.skills.render import ExpansionContext, prepared
from callwright.skills.skill import Skill, files_of, inside, read_inside
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe

Execute: TypeAlias = Callable[[ToolCall], Awaitable[Sequence[Outcome]]]
"""Makes one call where hooks, policies and people have their say."""

_NOBODY = "it needs a person's approval; if you need it, call {} yourself"


class Calls:
    """Runs commands with `bash` and reads files with `read`: nothing a skill wants is judged more mildly than that."""

    def __init__(self, execute: Execute, call_id: str) -> None:
        self._execute = execute
        self._call_id = call_id
        self._count = 0

    async def run(self, line: str) -> str:
        """The output of a shell line, or why there is none."""
        match await self._call("bash", {"command": line}):
            case Completed(output=output):
                text = output.text.removesuffix("exit code: 0").removesuffix("\n")
                return "" if text == "(no output)" else text
            case other:
                return _excuse(other, "bash with this command")

    async def read(self, path: Path) -> str:
        """What a file holds, or why it is not to be had."""
        match await self._call("read", {"path": str(path)}):
            case Completed(output=output):
                return output.text
            case other:
                return _excuse(other, "read with this path")

    async def _call(self, name: str, arguments: dict[str, str]) -> Outcome:
        self._count += 1
        (outcome,) = await self._execute(ToolCall(f"{self._call_id}.{self._count}", name, {**arguments}))
        return outcome


def _excuse(outcome: Outcome, instead: str) -> str:
    if isinstance(outcome, Failed):
        return f"[{'failed' if outcome.started else 'not run'}: {outcome.error.message}]"
    return f"[not run: {_NOBODY.format(instead)}]"


_LONGEST_ENTRY = 1536
_SHORTEST_ENTRY = 40


def listing(skills: Iterable[Skill], *, budget_tokens: int = 2_000, touched: Iterable[Path] = ()) -> str:
    """Name the skills a model may load, one line each; too many for the budget are described more and more briefly.

    Skills that are for certain `paths` are left out until a file that fits was `touched`.
    """
    files = list(touched)
    fitting = (skill for skill in skills if not skill.paths or any(map(skill.fits, files)))
    offered = sorted((skill for skill in fitting if skill.model_invocable), key=lambda skill: skill.name)
    if not offered:
        return ""
    chars = _LONGEST_ENTRY
    while chars >= _SHORTEST_ENTRY:
        text = _lines(offered, chars)
        if estimate_tokens(text) <= budget_tokens:
            return text
        chars = chars * 3 // 4
    return _names(offered, budget_tokens)


def _lines(skills: list[Skill], chars: int) -> str:
    return "\n".join(f"- {skill.name}: {_about(skill, chars)}" for skill in skills)


def _about(skill: Skill, chars: int) -> str:
    """On one line: a description must not be able to add entries."""
    said = " ".join(f"{skill.description} {skill.when_to_use}".split())
    return said if len(said) <= chars else f"{said[: chars - 1].rstrip()}…"


def _names(skills: list[Skill], budget_tokens: int) -> str:
    names = [skill.name for skill in skills]
    kept = len(names)
    while kept and estimate_tokens(_cut(names, kept)) > budget_tokens:
        kept -= 1
    return _cut(names, kept)


def _cut(names: list[str], kept: int) -> str:
    left = len(names) - kept
    return ", ".join(names[:kept]) + (f" and {left} more" if left else "")


SubAgent: TypeAlias = Callable[[str], Awaitable[str]]
"""Hands a prompt to an agent of its own and returns what it said."""
Fork: TypeAlias = Callable[[Skill, str, ToolContext], Awaitable[str]]
"""Hands a skill's prompt to the agent the skill asks for and returns what it said."""
Activate: TypeAlias = Callable[[Skill, ToolContext], None]
"""Told before a skill is used: the place to grant the rules it asks for, if its author is trusted."""

LIMITS = Limits(seconds=1800.0, output_chars=100_000)
# a skill may run commands, so a call is not repeated after a crash; each command is judged on its own
ANNOTATIONS = Annotations(Effect.WRITE, parallel=False)


@dataclass(frozen=True, slots=True)
class Use:
    """How skills are used in one place."""

    subagent: SubAgent | str | None = None
    fork: Fork | None = None
    activate: Activate | None = None
    project: Path | None = None
    cwd: Path | None = None
    commands: bool = True

    def forks(self, skill: Skill) -> bool:
        """Whether a skill runs as an agent of its own here."""
        return skill.fork and (self.fork is not None or self.subagent is not None)

    async def prompt(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return the instructions, their commands run and their files read as calls of the session."""
        if self.activate is not None:
            self.activate(skill, context)
        calls = Calls(context.execute, context.call_id)
        run = calls.run if self.commands else None
        return await prepared(
            skill, arguments, ExpansionContext(self.project, self.cwd, context.session_id, run, calls.read)
        )

    async def answer(self, skill: Skill, arguments: str, context: ToolContext) -> str:
        """Return what the skill's own agent said to the instructions."""
        prompt = await self.prompt(skill, arguments, context)
        if self.fork is not None:
            return await self.fork(skill, prompt, context)
        if self.subagent is None:
            raise ToolFailed(f"{skill.name} wants an agent of its own, and there is none here")
        if not isinstance(self.subagent, str):
            return await self.subagent(prompt)
        (outcome,) = await context.execute(ToolCall(f"{context.call_id}.agent", self.subagent, {"prompt": prompt}))
        if isinstance(outcome, Completed):
            return outcome.text
        raise ToolFailed(outcome.text if isinstance(outcome, Failed) else "its agent waits for a person's approval")


class SkillArguments(Arguments):
    """What `skill` takes."""

    name: str
    """The skill's name, as listed."""
    arguments: str = ""
    """What to apply it to, as a person would type it after the name."""
    file: str = ""
    """Read this file of the skill's folder instead, such as references/api.md."""


class SkillTool(TypedTool[SkillArguments]):
    """Hands a model the skill it asks for."""

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
        """`subagent` runs skills that want an agent of their own: a function, or the name of a tool that is one.

        `fork` does it in its place where the skill itself matters, for its model or its kind of agent.
        """
        self._skills = skills
        self._use = Use(subagent, fork, activate, project, skills.cwd, commands)

    def accesses(self, arguments: SkillArguments) -> tuple[Access, ...]:
        """Loading a skill reads, as does a file of it; what it runs is judged call by call."""
        use = UseTool("skill", Effect.READ)
        skill = self._skills.get(arguments.name)
        if skill is None or not arguments.file:
            return (use,)
        return (use, ReadPath(str(inside(skill.folder, arguments.file))))

    async def run(self, arguments: SkillArguments, context: ToolContext) -> str:
        """Return the instructions, a file, or what the skill's own agent said."""
        skill = self._skill(arguments.name)
        if arguments.file and skill.kind == "command":
            raise ToolFailed(f"{skill.name} is a single file; load it without naming one")
        if arguments.file:
            return read_inside(skill.folder, arguments.file)
        if self._use.forks(skill):
            return await self._use.answer(skill, arguments.arguments, context)
        return await self._use.prompt(skill, arguments.arguments, context) + _footer(skill)

    def _skill(self, name: str) -> Skill:
        skill = self._skills.get(name)
        if skill is None:
            near = self._skills.nearest(name)
            hint = f"did you mean {' or '.join(near)}?" if near else "take one from the list"
            raise ToolFailed(f"there is no skill {name[:100]!r}; {hint}")
        if not skill.model_invocable:
            raise ToolFailed(f"only a person may start {skill.name}, by typing /{skill.name}; suggest it to them")
        return skill


def _footer(skill: Skill) -> str:
    if skill.kind == "command":
        return ""
    names, more = files_of(skill.folder, but=skill.file.name)
    if not names:
        return ""
    listed = "\n".join(f"- {name}" for name in names) + ("\n- …" if more else "")
    return (
        f"\n\nFiles of this skill, in {skill.folder}; read one with"
        f' skill(name="{skill.name}", file="{names[0]}"):\n{listed}'
    )
