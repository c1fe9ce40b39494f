"""Skills: folders of instructions that a model loads when it needs them."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.skills.fields import SkillProblem as SkillProblem
    from callwright.skills.loader import Reloaded as Reloaded, Skills as Skills
    from callwright.skills.render import (
        CommandRequest as CommandRequest,
        Expansion as Expansion,
        expand as expand,
        prepare as prepare,
    )
    from callwright.skills.skill import Skill as Skill, read_skill as read_skill
    from callwright.skills.skill_tool import (
        MarkdownTools as MarkdownTools,
        SkillTool as SkillTool,
        list_skills as list_skills,
        markdown_tool as markdown_tool,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "loader": "Reloaded Skills",
            "render": "Expansion CommandRequest expand prepare",
            "fields": "SkillProblem",
            "skill": "Skill read_skill",
            "skill_tool": "MarkdownTools SkillTool list_skills markdown_tool",
        },
    )
