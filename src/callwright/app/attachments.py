"""Attachments: `@file` in a prompt adds the file's content, read by the `read` tool under the same rules."""

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
from callwright.executor.turn_context import Turn

_MENTION = re.compile(r"""(?<![\w@/])@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"'`@<>|]+))""")
_LINES = re.compile(r"#L(\d+)(?:-L?(\d+))?$")
_TRAILING = ".,;:!?)]}'\""
_MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class Mention:
    """A file named in a prompt, and a range of lines (0 for the whole file)."""

    name: str
    first: int = 0
    last: int = 0

    @property
    def arguments(self) -> dict[str, str | int]:
        """The arguments for the `read` tool."""
        arguments: dict[str, str | int] = {"path": self.name}
        if self.first:
            arguments |= {"offset": self.first, "limit": max(self.last - self.first + 1, 1)}
        return arguments


def find_mentions(prompt: str, cwd: Path) -> tuple[list[Mention], list[str]]:
    """Find the files a prompt names.

    Args:
        prompt: The prompt.
        cwd: The folder that relative names start from.

    Returns:
        The files that exist, each once, and the names that look like files but do not exist.
    """
    found: dict[Mention, None] = {}
    missing: dict[str, None] = {}
    for match in _MENTION.finditer(prompt):
        name = match["quoted"] or match["plain"]
        mention = _resolve_mention(name, cwd)
        if mention is not None:
            found[mention] = None
        elif not match["plain"] or "/" in name or "." in name.strip(_TRAILING):  # others are user names and decorators
            missing[name.rstrip(_TRAILING)] = None
    return list(found), list(missing)


def _resolve_mention(name: str, cwd: Path) -> Mention | None:
    for candidate in dict.fromkeys((name, name.rstrip(_TRAILING))):
        lines = _LINES.search(candidate)
        bare = candidate[: lines.start()] if lines else candidate
        if bare and os.path.lexists(cwd / Path(bare).expanduser()):
            first = int(lines[1]) if lines else 0
            return Mention(str(Path(bare).expanduser()), first, int(lines[2] or lines[1]) if lines else 0)
    return None


class Attachments:
    """Reads the files that the prompts of one session name.

    Args:
        app: The app whose `read` tool and policies are used.
        session_id: The session.
        notify: Shows a notice about a file that could not be attached.
    """

    def __init__(self, app: App, session_id: str, notify: Callable[[str], None]) -> None:
        self._app = app
        self._session_id = session_id
        self._notify = notify

    async def __call__(self, prompt: str) -> Sequence[Part]:
        """Return the content of the files a prompt names; for those that cannot be read, the reason."""
        if self._app.skills.parse_slash(prompt) is not None:  # skills resolve the files in their arguments themselves
            return []
        found, missing = find_mentions(prompt, self._app.locations.cwd)
        for name in missing:
            self._notify(f"@{name}: no such file, nothing attached")
        if len(found) > _MOST_FILES:
            self._notify(f"{len(found)} files are named; only the first {_MOST_FILES} are attached")
        return await self.read(found[:_MOST_FILES])

    async def read(self, found: Sequence[Mention]) -> list[Part]:
        """Return the content of files; for those that cannot be read, the reason."""
        if not found:
            return []
        agent = self._app.agent
        mark = uuid.uuid4().hex[:8]
        turn = Turn(self._session_id, state=agent.state(self._session_id), ask=agent.ask)
        parts: list[Part] = []
        for place, mention in enumerate(found):  # one turn each: a file that needs approval must not hold up the others
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
        self._notify(f"@{mention.name} is not attached: {reason}")
        return [Text(f'<file path="{name}" error="{escape(reason)}"/>')]
