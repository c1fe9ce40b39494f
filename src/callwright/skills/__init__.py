"""Skills: folders of instructions that a model loads when it needs them."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.skills.expand import Expansion as Expansion
    from callwright.skills.expand import Request as Request
    from callwright.skills.expand import expanded as expanded
    from callwright.skills.fields import Problem as Problem
    from callwright.skills.load import Reloaded as Reloaded
    from callwright.skills.load import Skills as Skills
    from callwright.skills.markdown import MarkdownTools as MarkdownTools
    from callwright.skills.markdown import markdown_tool as markdown_tool
    from callwright.skills.menu import listing as listing
    from callwright.skills.prompt import prepare as prepare
    from callwright.skills.skill import Skill as Skill
    from callwright.skills.skill import read_skill as read_skill
    from callwright.skills.toolset import SkillTool as SkillTool

__all__ = [
    "Expansion",
    "MarkdownTools",
    "Problem",
    "Reloaded",
    "Request",
    "Skill",
    "SkillTool",
    "Skills",
    "expanded",
    "listing",
    "markdown_tool",
    "prepare",
    "read_skill",
]

_HOMES = {
    "expand": "Expansion Request expanded",
    "fields": "Problem",
    "load": "Reloaded Skills",
    "markdown": "MarkdownTools markdown_tool",
    "menu": "listing",
    "prompt": "prepare",
    "skill": "Skill read_skill",
    "toolset": "SkillTool",
}

__getattr__ = loader(__name__, _HOMES)
