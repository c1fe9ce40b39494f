"""`@file` in a prompt: the file's content goes along, read as the model itself would read it, behind the same rules."""

import os
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from callwright.app.app import App
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.executor.turn import Turn

_MENTION = re.compile(r"""(?<![\w@/])@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"'`@<>|]+))""")
_LINES = re.compile(r"#L(\d+)(?:-L?(\d+))?$")
_TRAILING = ".,;:!?)]}'\""
_MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class Mention:
    """A file somebody named, and the lines of it they meant."""

    name: str
    first: int = 0
    last: int = 0

    @property
    def arguments(self) -> dict[str, str | int]:
        """What `read` is to be called with."""
        wanted: dict[str, str | int] = {"path": self.name}
        if self.first:
            wanted |= {"offset": self.first, "limit": max(self.last - self.first + 1, 1)}
        return wanted


def mentions(prompt: str, cwd: Path) -> tuple[list[Mention], list[str]]:
    """The files a prompt names that are there, each once, and the names nothing was found for."""
    found: dict[Mention, None] = {}
    missing: dict[str, None] = {}
    for match in _MENTION.finditer(prompt):
        name = match["quoted"] or match["plain"]
        mention = _found(name, cwd)
        if mention is not None:
            found[mention] = None
        elif not match["plain"] or "/" in name or "." in name.strip(_TRAILING):  # others are people and decorators
            missing[name.rstrip(_TRAILING)] = None
    return list(found), list(missing)


def _found(name: str, cwd: Path) -> Mention | None:
    for candidate in dict.fromkeys((name, name.rstrip(_TRAILING))):
        lines = _LINES.search(candidate)
        bare = candidate[: lines.start()] if lines else candidate
        if bare and os.path.lexists(cwd / Path(bare).expanduser()):
            first = int(lines[1]) if lines else 0
            return Mention(str(Path(bare).expanduser()), first, int(lines[2] or lines[1]) if lines else 0)
    return None


class Attaching:
    """Reads what prompts name, for one session; `tell` hears what could not be attached."""

    def __init__(self, app: App, session_id: str, tell: Callable[[str], None]) -> None:
        self._app = app
        self._session_id = session_id
        self._tell = tell

    async def __call__(self, prompt: str) -> Sequence[Part]:
        """The content of the files a prompt names; of those that may not be read, why not."""
        if self._app.skills.parse_slash(prompt) is not None:  # a skill reads what its text and arguments name by itself
            return []
        found, missing = mentions(prompt, self._app.locations.cwd)
        for name in missing:
            self._tell(f"@{name}: there is no such file here, so nothing is attached for it")
        if len(found) > _MOST_FILES:
            self._tell(f"{len(found)} files are named; the first {_MOST_FILES} are attached")
        return await self._read(found[:_MOST_FILES])

    async def _read(self, found: Sequence[Mention]) -> list[Part]:
        if not found:
            return []
        agent = self._app.agent
        mark = uuid.uuid4().hex[:8]
        turn = Turn(self._session_id, state=agent.state(self._session_id), ask=agent.ask)
        parts: list[Part] = []
        for place, mention in enumerate(found):  # one by one: a file that needs a yes must not hold up the others
            call = ToolCall(f"attach-{mark}-{place}", "read", mention.arguments)
            (outcome,) = await self._app.executor.execute([call], turn=turn)
            parts += self._parts(mention, outcome)
        return parts

    def _parts(self, mention: Mention, outcome: object) -> list[Part]:
        name = escape(mention.name)
        if isinstance(outcome, Completed):
            opening, closing = f'<file path="{name}">\n', "\n</file>"
            if isinstance(outcome.output.content, str):
                content = outcome.output.content.removesuffix("\n")
                return [Text(f"{opening}{content}{closing}")]
            return [Text(opening), *outcome.output.parts, Text(closing)]
        reason = outcome.text if isinstance(outcome, Failed) else "reading it needs an approval"
        self._tell(f"@{mention.name} is not attached: {reason}")
        return [Text(f'<file path="{name}" error="{escape(reason)}"/>')]
