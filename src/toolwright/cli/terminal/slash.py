"""What begins with a slash: our own commands, and the skills people may call."""

import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from toolwright.app.assemble import App
from toolwright.app.conversation import Conversation
from toolwright.app.places import Places
from toolwright.cli.session import find_session
from toolwright.cli.show import one_line
from toolwright.cli.terminal.ui import Terminal
from toolwright.core.errors import ToolwrightError, UsageError
from toolwright.core.message import Usage
from toolwright.policy.mode import mode_named

COMMANDS = {
    "help": "what can be typed here",
    "mode": "show or change the mode: plan, default, auto, dontAsk, bypass",
    "new": "begin another session",
    "resume": "go on with a session: its id, or how it begins",
    "sessions": "the sessions of this project",
    "tools": "what the model can call",
    "skills": "skills that can be called as /NAME",
    "cost": "what the session took",
    "exit": "leave; the session can be continued",
}
_KEYS = """\
Enter sends, Alt-Enter breaks the line, Tab completes /commands and @files, Up and Down recall
Esc interrupts, Shift-Tab changes the mode, Ctrl-D leaves; what is typed meanwhile is queued"""
_MOST_FILES = 200


class Host(Protocol):
    """The conversation as its commands see it."""

    app: App
    conversation: Conversation
    terminal: Terminal
    places: Places
    usage: Usage

    async def begin(self, session_id: str, source: str) -> None:
        """Talk in another session from now on."""
        ...


class Slash:
    """Carries out commands and completes them."""

    def __init__(self, talker: Host) -> None:
        self._talker = talker
        self._actions: dict[str, Callable[[str], Awaitable[None]]] = {
            "help": self._help,
            "mode": self._mode,
            "new": self._new,
            "resume": self._resume,
            "sessions": self._sessions,
            "tools": self._tools,
            "skills": self._skills,
            "cost": self._cost,
            "exit": self._exit,
        }

    async def perform(self, line: str) -> str | None:
        """Carry a command out; a skill comes back as what is to be said to the agent."""
        name, _, rest = line[1:].partition(" ")
        action = self._actions.get({"quit": "exit", "clear": "new", "continue": "resume"}.get(name, name))
        try:
            if action is not None:
                await action(rest.strip())
                return None
            return self._skill(line)
        except ToolwrightError as error:
            self._show(f"! {error}")
            return None

    def _skill(self, line: str) -> str:
        """A skill is said as it was typed: the conversation knows what it stands for."""
        if self._talker.app.skills.slash(line) is None:
            raise UsageError(f"there is no command {line.split(maxsplit=1)[0]}; /help names those there are")
        return line

    def complete(self, word: str) -> Sequence[str]:
        """What a word could become: a command at the start of the line (marked ^), a file after @."""
        first, word = word.startswith("^"), word.removeprefix("^")
        if first and word.startswith("/"):
            names = [*COMMANDS, *(skill.name for skill in self._talker.app.skills if skill.user_invocable)]
            return sorted(f"/{name}" for name in names if name.startswith(word[1:]))
        return [f"@{name}" for name in self._files(word[1:])] if word.startswith("@") else ()

    def _files(self, begun: str) -> Iterator[str]:
        folder, _, start = begun.rpartition("/")
        base = Path(self._talker.places.cwd, folder)
        try:
            entries = sorted(base.iterdir())[:_MOST_FILES]
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                name = f"{folder}/{entry.name}" if folder else entry.name
                yield f"{name}/" if entry.is_dir() else name

    def _show(self, *lines: str) -> None:
        self._talker.terminal.show(*lines)

    async def _help(self, rest: str) -> None:
        self._show(*(f"  /{name:<10} {what}" for name, what in COMMANDS.items()), *_KEYS.splitlines())

    async def _mode(self, rest: str) -> None:
        switch = self._talker.app.switch
        if rest:
            switch.mode = mode_named(rest)
        self._show(f"the mode is {switch.mode}")

    async def _new(self, rest: str) -> None:
        await self._talker.begin(str(uuid.uuid4()), "startup")
        self._show("a new session; the old one can be resumed")

    async def _resume(self, rest: str) -> None:
        if not rest:
            await self._sessions("")
            self._show("type /resume and how its id begins")
            return
        await self._talker.begin(await find_session(self._talker.app.agent.sessions, rest), "resume")

    async def _sessions(self, rest: str) -> None:
        for entry in await self._talker.app.agent.sessions.list(limit=15):
            self._show(f"  {entry.session_id[:12]}  {one_line(entry.title, 60)}")

    async def _tools(self, rest: str) -> None:
        for spec in self._talker.app.agent.registry.snapshot().definitions:
            self._show(f"  {spec.name:<20} {one_line(spec.description, 56)}")

    async def _skills(self, rest: str) -> None:
        for skill in self._talker.app.skills:
            self._show(f"  /{skill.name:<20} {one_line(skill.description, 56)}")

    async def _cost(self, rest: str) -> None:
        usage, prices = self._talker.usage, self._talker.app.prices
        money = "" if prices is None else f", {prices.cost(usage):.4f} USD"
        self._show(f"  {usage.input_tokens} tokens in, {usage.output_tokens} out{money}")

    async def _exit(self, rest: str) -> None:
        self._talker.terminal.leave()
