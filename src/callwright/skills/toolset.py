"""The `skill` tool: instructions when the model needs them, files when the instructions do."""

from pathlib import Path

from callwright.core.access import Access, ReadPath, UseTool
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.skills.files import files_of, inside, read_inside
from callwright.skills.load import Skills
from callwright.skills.skill import Skill
from callwright.skills.use import ANNOTATIONS, LIMITS, Activate, Fork, SubAgent, Use
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe


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
