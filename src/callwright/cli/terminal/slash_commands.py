"""What a person may look at in a conversation: its context, the rules in force, and a copy of it in a file.

What begins with a slash: our own commands, and the skills people may call.
"""

import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol, get_args

from callwright.agent.compaction import estimate_message_tokens
from callwright.app.app import App
from callwright.app.conversation import Conversation
from callwright.app.costs import prices_in
from callwright.app.locations import Locations
from callwright.app.permissions import load_rules
from callwright.cli.render.calls import one_line, transcript
from callwright.cli.render.text import filled
from callwright.cli.startup import find_session
from callwright.cli.terminal.status import Spent
from callwright.cli.terminal.ui import Terminal
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, estimate_tokens
from callwright.policy.modes import Mode, mode_named
from callwright.policy.paths import PathContext
from callwright.sessions import export_jsonl
from callwright.system.paths import Workspace

_KINDS = {UserMessage: "what you said", AssistantMessage: "what the model said", ToolMessage: "what tools gave back"}


def context_lines(app: App, messages: Sequence[Message]) -> Iterator[str]:
    """About how many tokens each part of the next request takes, and when the conversation will be summarised."""
    definitions = app.agent.registry.snapshot().definitions
    tools = sum(
        estimate_tokens(spec.name + spec.description + json.dumps(thaw(spec.input_schema))) for spec in definitions
    )
    sizes = {"instructions": estimate_tokens(app.agent.system), f"{len(definitions)} tools": tools}
    for kind, name in _KINDS.items():
        sizes[name] = sum(estimate_message_tokens(message) for message in messages if type(message) is kind)
    total = sum(sizes.values())
    yield from (f"  {name:<22} {tokens:>8}" for name, tokens in sizes.items())
    yield f"  {'about':<22} {total:>8} tokens, counted roughly"
    if app.agent.compaction is not None:
        room = app.agent.compaction.at_tokens
        yield f"  summarised by itself above {room}; /compact does it now"


def permission_lines(app: App) -> Iterator[str]:
    """The mode and every rule in force, with where it was written."""
    here = PathContext.within(Workspace(app.locations.cwd), app.locations.cwd)
    rules = load_rules(app.settings, here).rules
    yield f"  mode {app.switch.mode}"
    yield from (f"  {rule.kind:<5}  {rule.text}  [{rule.written_in}]" for rule in rules)
    if not rules:
        yield "  no rules in the settings: the mode decides, and the safety guards hold"
    yield "  to try a call: callwright permissions test TOOL ARGUMENT"


async def write_copy(app: App, session_id: str, name: str) -> Path:
    """Write the conversation as text, or its records where the file is named `.jsonl`; never over another file."""
    target = _target(app.locations, name or f"session-{session_id[:8]}.md")
    if target.suffix == ".jsonl":
        text = await export_jsonl(app.agent.sessions, session_id)
    else:
        text = "\n".join(transcript(await app.agent.messages(session_id)))
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{target} is there already; name another file: /export FILE") from None
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}; name another file: /export FILE") from None
    return target


def _target(locations: Locations, name: str) -> Path:
    return locations.cwd / Path(name).expanduser()


COMMANDS = {
    "help": "what can be typed here",
    "mode": "show or change the mode: plan, default, auto, dontAsk, bypass",
    "model": "show the model, or go on with another: provider:name",
    "permissions": "the mode and the rules in force, and where they were written",
    "cost": "what the session took",
    "context": "what the next request is made of, in tokens",
    "compact": "summarise what was said; /compact FOCUS keeps that above all",
    "clear": "begin another session; the old one can be resumed",
    "new": "the same as /clear",
    "resume": "go on with a session: its id, or how it begins",
    "sessions": "the sessions of this project",
    "export": "write the session to a file: text, or records to FILE.jsonl",
    "tools": "what the model can call",
    "skills": "skills that can be called as /NAME",
    "exit": "leave; the session can be continued",
}
_KEYS = """\
  /NAME         a skill, with arguments if it takes some
  @FILE         attach a file, a picture or a folder's names; @FILE#L10-20
Enter sends, Alt-Enter breaks the line, Tab completes, Up and Down recall,
Esc interrupts, Shift-Tab changes the mode, Ctrl-L draws anew, Ctrl-D leaves;
what is typed while the agent works is queued"""
_MOST_SESSIONS = 15
_MOST_FILES = 200


class Host(Protocol):
    """The conversation as its commands see it."""

    app: App
    conversation: Conversation
    terminal: Terminal
    locations: Locations
    spent: Spent

    async def compact(self, focus: str) -> None:
        """Have the session summarised."""
        ...

    async def begin(self, session_id: str, source: str) -> None:
        """Talk in another session from now on."""
        ...


class Slash:
    """Carries out commands and completes them."""

    def __init__(self, talker: Host) -> None:
        self._talker = talker
        self._known: list[str] = []
        """Sessions that were listed, to be completed."""
        self._actions: dict[str, Callable[[str], Awaitable[None]]] = {
            "help": self._help,
            "mode": self._mode,
            "model": self._model,
            "permissions": self._permissions,
            "cost": self._cost,
            "context": self._context,
            "compact": self._compact,
            "clear": self._new,
            "new": self._new,
            "resume": self._resume,
            "sessions": self._sessions,
            "export": self._export,
            "tools": self._tools,
            "skills": self._skills,
            "exit": self._exit,
        }

    async def perform(self, line: str) -> str | None:
        """Carry a command out; a skill comes back as what is to be said to the agent."""
        name, _, rest = (line[1:].strip() or "help").partition(" ")
        action = self._actions.get({"quit": "exit", "continue": "resume"}.get(name, name))
        try:
            if action is not None:
                await action(rest.strip())
                return None
            return self._skill(line)
        except CallwrightError as error:
            self._show(f"! {error}")
            return None

    def _skill(self, line: str) -> str:
        """A skill is said as it was typed: the conversation knows what it stands for."""
        if self._talker.app.skills.parse_slash(line) is None:
            name = line[1:].split(maxsplit=1)[0]
            near = get_close_matches(name, self._names(), n=1)
            hint = f"did you mean /{near[0]}?" if near else "/help names those there are"
            raise UsageError(f"there is no command /{name}; {hint}")
        return line

    def complete(self, word: str) -> Sequence[str]:
        """What a word could become: a command at the start of the line (marked ^), its argument, a file after @."""
        first, word = word.startswith("^"), word.removeprefix("^")
        if first and word.startswith("/"):
            return sorted(f"/{name}" for name in self._names() if name.startswith(word[1:]))
        if word.startswith("@"):
            return [f"@{name}" for name in self._files(word[1:])]
        command = self._talker.terminal.editor.text.split(" ", 1)[0]
        return sorted(known for known in self._arguments(command) if known.startswith(word))

    def _names(self) -> list[str]:
        return [*COMMANDS, *(skill.name for skill in self._talker.app.skills if skill.user_invocable)]

    def _arguments(self, command: str) -> Sequence[str]:
        """What can stand after a command, as far as that can be listed."""
        match command:
            case "/mode":
                return get_args(Mode)
            case "/resume":
                return self._known
            case _:
                return ()

    def _files(self, begun: str) -> Iterator[str]:
        folder, _, start = begun.rpartition("/")
        base = Path(self._talker.locations.cwd, folder)
        try:
            entries = sorted(base.iterdir())[:_MOST_FILES]
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                name = f"{folder}/{entry.name}" if folder else entry.name
                yield f"{name}/" if entry.is_dir() else name

    def _show(self, *lines: str) -> None:
        terminal = self._talker.terminal
        terminal.show(*(row for line in lines for row in filled(line, terminal.screen.width)))

    async def _help(self, rest: str) -> None:
        self._show(*(f"  /{name:<12} {what}" for name, what in COMMANDS.items()), *_KEYS.splitlines())

    async def _mode(self, rest: str) -> None:
        switch = self._talker.app.switch
        if rest:
            switch.mode = mode_named(rest)
        self._show(f"the mode is {switch.mode}")

    async def _new(self, rest: str) -> None:
        old = self._talker.conversation.session_id
        await self._talker.conversation.end("clear")
        await self._talker.begin(str(uuid.uuid4()), "clear")
        self._show(f"a new session; /resume {old[:8]} goes back to the old one")

    async def _resume(self, rest: str) -> None:
        if not rest:
            await self._sessions("")
            self._show("type /resume and how its id begins; Tab completes it")
            return
        wanted = await find_session(self._talker.app.agent.sessions, rest)
        await self._talker.conversation.end("resume")
        await self._talker.begin(wanted, "resume")

    async def _sessions(self, rest: str) -> None:
        entries = await self._talker.app.agent.sessions.list(limit=_MOST_SESSIONS)
        self._known = [entry.session_id for entry in entries]
        width = self._talker.terminal.screen.width
        for entry in entries:
            self._show(f"  {entry.session_id[:12]:<12}  {one_line(entry.title, width - 18)}")
        if not entries:
            self._show("  none yet: this one is kept from its first prompt on")

    async def _tools(self, rest: str) -> None:
        self._list({spec.name: spec.description for spec in self._talker.app.agent.registry.snapshot().definitions})

    def _list(self, entries: dict[str, str]) -> None:
        """Names and the beginnings of what they are, as wide as the screen is."""
        column = max(map(len, entries), default=0)
        room = max(self._talker.terminal.screen.width - column - 5, 20)
        for name, what in entries.items():
            self._show(f"  {name:<{column}}  {one_line(what.strip().partition(chr(10))[0], room)}")

    async def _skills(self, rest: str) -> None:
        self._list({f"/{skill.name}": skill.description for skill in self._talker.app.skills})
        if not len(self._talker.app.skills):
            self._show("  none here; a skill is a folder with a SKILL.md in .callwright/skills")

    async def _cost(self, rest: str) -> None:
        usage, usd = self._talker.spent.usage, self._talker.spent.usd
        cached = f", {usage.cache_read_tokens} from the cache" if usage.cache_read_tokens else ""
        model = self._talker.app.agent.provider.model
        money = f"{usd:.4f} USD" if usd is not None else f'no price is known for {model}: "prices" in the settings'
        self._show(f"  {usage.input_tokens} tokens in{cached}, {usage.output_tokens} out; {money}")

    async def _context(self, rest: str) -> None:
        app, session = self._talker.app, self._talker.conversation.session_id
        self._show(*context_lines(app, await app.agent.messages(session) if await self._begun() else []))

    async def _begun(self) -> bool:
        session = self._talker.conversation.session_id
        return any(entry.session_id == session for entry in await self._talker.app.agent.sessions.list(limit=10_000))

    async def _check_begun(self) -> None:
        if not await self._begun():
            raise UsageError("nothing was said in this session yet")

    async def _permissions(self, rest: str) -> None:
        self._show(*permission_lines(self._talker.app))

    async def _compact(self, rest: str) -> None:
        await self._check_begun()
        await self._talker.compact(rest)

    async def _export(self, rest: str) -> None:
        await self._check_begun()
        path = await write_copy(self._talker.app, self._talker.conversation.session_id, rest)
        self._show(f"  written to {path}")

    async def _model(self, rest: str) -> None:
        app = self._talker.app
        if rest:
            models = app.skill_service.models
            models.own = models.get(rest)
            models.switch()
            app.agent.limits = replace(app.agent.limits, prices=prices_in(app.settings, models.own.model))
        self._show(f"the model is {app.agent.provider.model}")

    async def _exit(self, rest: str) -> None:
        self._talker.terminal.leave()
