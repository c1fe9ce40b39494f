"""Attachments: `@file` in a prompt adds the file's content, read by the `read` tool under the same rules.

With the compact tool set, a file that is named without `@` is attached too, and so are the names of the files: small
models guess instead of looking.
"""

import asyncio
import os
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from pathlib import Path

from callwright.app.app import App
from callwright.app.run_context import Hidden
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.executor.turn_context import Turn
from callwright.system.paths import expand_home
from callwright.system.search.walk import Walk, walk_files

_MENTION = re.compile(r"""(?<![\w@/])@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"'`@<>|]+))""")
_LINES = re.compile(r"#L(\d{1,9})(?:-L?(\d{1,9}))?$")
_TRAILING = ".,;:!?)]}'\""
_MOST_FILES = 20
_NAME = re.compile(r"(?<![\w@/.-])[\w.+-][\w./+-]*")
_MOST_NAMED_FILES = 4
_MOST_NAMED_BYTES = 6000
_MOST_LISTED_FILES = 60
_MOST_REPEATED_CHARS = 1000


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


def write_mention(name: str) -> str:
    """Return the text by which a prompt names a file, quoted if its name needs it; empty if no text can."""
    plain, quoted = f"@{name}", f'@"{name}"'
    return next((text for text in (plain, quoted) if _MENTION.fullmatch(text)), "")


def find_named_files(prompt: str, cwd: Path, shown: Iterable[str] = ()) -> list[Mention]:
    """Return the small files in a folder that a prompt names without `@`, each once, as long as there is room for them.

    Args:
        prompt: The prompt.
        cwd: The folder that the names start from.
        shown: Names or paths of files to leave out.
    """
    root, room = os.path.realpath(cwd), _MOST_NAMED_BYTES
    known = {_find_real(cwd / name) for name in shown}
    found: list[Mention] = []
    # a mention counts as a whole: of @"my notes.txt", notes.txt is no name
    names = (match[0].rstrip(_TRAILING) for match in _NAME.finditer(_MENTION.sub("@", prompt)))
    for name in dict.fromkeys(name for name in names if "." in name or "/" in name):  # not Makefile or test
        if len(found) == _MOST_NAMED_FILES:
            break
        try:
            if not (cwd / name).is_file():
                continue
            path, size = _find_real(cwd / name), (cwd / name).stat().st_size
        except OSError:  # a name that is too long, or a file that is gone
            continue
        if size <= room and path not in known and Path(path).is_relative_to(root):
            found.append(Mention(name))
            known.add(path)
            room -= size
    return found


def _find_real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a path that no file can have
        return str(path)


def list_files(cwd: Path, hidden: Hidden | None) -> str:
    """Return the names of the files in and below a folder, a line each, without those that rules hide.

    Args:
        cwd: The folder.
        hidden: Tells which files to leave out.
    """
    files = (name for name in walk_files(Walk(cwd, cwd)) if name.isprintable())
    shown = (name for name in files if hidden is None or not hidden(cwd / name))
    names = list(islice(shown, _MOST_LISTED_FILES + 1))
    return "\n".join([*sorted(names[:_MOST_LISTED_FILES]), *("…" for _ in names[_MOST_LISTED_FILES:])])


def _resolve_mention(name: str, cwd: Path) -> Mention | None:
    for candidate in dict.fromkeys((name, name.rstrip(_TRAILING))):
        lines = _LINES.search(candidate)
        bare = candidate[: lines.start()] if lines else candidate
        if bare and os.path.lexists(cwd / expand_home(bare)):
            first = int(lines[1]) if lines else 0
            path = str(expand_home(bare))
            path = f"./{path}" if path.startswith("~") else path  # a name, which `read` would take for a home
            return Mention(path, first, int(lines[2] or lines[1]) if lines else 0)
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
        self._listed = False

    async def __call__(self, prompt: str, shown: Iterable[str] = ()) -> Sequence[Part]:
        """Return the content of the files a prompt names; for those that cannot be read, the reason.

        Args:
            prompt: The prompt.
            shown: Paths of files whose content comes along with it already.
        """
        if self._app.skills.parse_slash(prompt) is not None:  # skills resolve the files in their arguments themselves
            return []
        found, missing = find_mentions(prompt, self._app.locations.cwd)
        for name in missing:
            self._notify(f"@{name}: no such file, nothing attached")
        if len(found) > _MOST_FILES:
            self._notify(f"{len(found)} files are named; only the first {_MOST_FILES} are attached")
        parts = await self.read(found[:_MOST_FILES])
        if not self._app.compact:
            return parts
        return [*parts, *await self._look_around(prompt, [*shown, *(mention.name for mention in found)])]

    async def _look_around(self, prompt: str, shown: Sequence[str]) -> list[Part]:
        """Return the names of the files, those that the prompt names, and the prompt again.

        Small models follow what they read last; a file that may not be read unasked is left out.
        """
        cwd, parts = self._app.locations.cwd, list[Part]()
        if not self._listed and (names := await asyncio.to_thread(list_files, cwd, self._app.hidden)):
            parts.append(Text(f"<files>\n{escape(names, quote=False)}\n</files>"))
        self._listed = True
        for mention in await asyncio.to_thread(find_named_files, prompt, cwd, shown):
            parts += self._show_named(mention, await self._call_read(mention, asks=False))
        return [*parts, Text(prompt)] if parts and len(prompt) <= _MOST_REPEATED_CHARS else parts

    @staticmethod
    def _show_named(mention: Mention, outcome: object) -> list[Part]:
        if not isinstance(outcome, Completed) or not isinstance(outcome.output.content, str):
            return []
        content = outcome.output.content
        return [_show_file(content, path=mention.name, lines=content.count("\n"))]

    async def read(self, found: Sequence[Mention]) -> list[Part]:
        """Return the content of files; for those that cannot be read, the reason."""
        parts: list[Part] = []
        for mention in found:  # one turn each: a file that needs approval must not hold up the others
            parts += self._parts(mention, await self._call_read(mention, asks=True))
        return parts

    async def _call_read(self, mention: Mention, *, asks: bool) -> object:
        agent = self._app.agent
        turn = Turn(self._session_id, state=agent.state(self._session_id), ask=agent.ask if asks else None)
        call = ToolCall(f"attach-{uuid.uuid4().hex[:8]}", "read", mention.arguments)
        (outcome,) = await self._app.executor.execute([call], turn=turn)
        return outcome

    def _parts(self, mention: Mention, outcome: object) -> list[Part]:
        name = escape(mention.name)
        if isinstance(outcome, Completed):
            if isinstance(outcome.output.content, str):
                return [_show_file(outcome.output.content, path=mention.name)]
            return [Text(f'<file path="{name}">\n'), *outcome.output.parts, Text("\n</file>")]
        reason = outcome.text if isinstance(outcome, Failed) else "reading it needs an approval"
        self._notify(f"@{mention.name} is not attached: {reason}")
        return [Text(f'<file path="{name}" error="{escape(reason)}"/>')]


def _show_file(content: str, **about: object) -> Text:
    attributes = "".join(f' {key}="{escape(str(value))}"' for key, value in about.items())
    return Text("\n".join((f"<file{attributes}>", content.removesuffix("\n"), "</file>")))
