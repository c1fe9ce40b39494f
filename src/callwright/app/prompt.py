"""What the model is told before anything is said."""

import platform
from datetime import date

from callwright.agent import default_system_prompt
from callwright.app.instructions import instructions_for
from callwright.app.places import Places
from callwright.app.settings import Settings
from callwright.skills import Skills, listing

_ROLE = """\
You are callwright, a coding agent in a terminal. You work on the files of the person you talk to, in their working \
folder, with the tools you are given. Read before you change, change as little as the task needs, follow the style you \
find, and run what proves that it works. Everything you do may have to be approved: say in a word what a command is \
for. Answer in short Markdown."""


def system_prompt(places: Places, settings: Settings, skills: Skills, *, more: str = "") -> str:
    """Return the role, the surroundings, the project's instructions and the skills, in this order."""
    around = "\n".join(
        [
            f"Working folder: {places.cwd}",
            f"Repository: {places.project if (places.project / '.git').exists() else 'none'}",
            f"System: {platform.system()} {platform.machine()}",
            f"Date: {date.today().isoformat()}",
        ]
    )
    offered = listing(skills)
    parts = [
        default_system_prompt(_ROLE),
        around,
        instructions_for(places),
        settings.last("instructions") or "",
        f"Skills, to be loaded with the tool skill when they fit:\n{offered}" if offered else "",
        more,
    ]
    return "\n\n".join(part for part in parts if part)
