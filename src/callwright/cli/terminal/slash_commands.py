"""Slash commands of the terminal: the built-in ones and the skills a user may call, with their completion."""

import os
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from callwright.agent.compaction import estimate_message_tokens
from callwright.app.app import App
from callwright.app.attachments import write_mention
from callwright.app.prompts import INIT_PROMPT
from callwright.app.transcripts import export_redacted
from callwright.cli.render.calls import one_line, transcript
from callwright.cli.render.text import THEMES, visible, wrap_line
from callwright.cli.startup import find_session
from callwright.cli.terminal.chat_actions import ChatHost
from callwright.cli.terminal.runs_command import RunsCommand
from callwright.cli.terminal.undo_commands import UndoCommands
from callwright.cli.terminal.workspace_commands import WorkspaceCommands
from callwright.core.content import estimate_tokens
from callwright.core.errors import CallwrightError, UsageError, describe_exception
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.hooks.builtin import Redact
from callwright.policy.modes import Mode, mode_named
from callwright.system.paths import expand_home
from callwright.system.private_files import open_private

_KINDS = {UserMessage: "your messages", AssistantMessage: "model messages", ToolMessage: "tool results"}


def _context_lines(app: App, messages: Sequence[Message]) -> Iterator[str]:
    """Yield estimated tokens of each part of the next request, and the threshold of automatic compaction."""
    catalog = app.agent.registry.snapshot()
    sizes = {
        "instructions": estimate_tokens(app.agent.system),
        f"{len(catalog.definitions)} tools": catalog.definition_tokens,
    }
    for kind, name in _KINDS.items():
        sizes[name] = sum(estimate_message_tokens(message) for message in messages if type(message) is kind)
    total = sum(sizes.values())
    yield from (f"  {name:<22} {tokens:>8}" for name, tokens in sizes.items())
    yield f"  {'total':<22} {total:>8} tokens (estimated)"
    if app.agent.compaction is not None:
        yield f"  compacted automatically above {app.agent.compaction.at_tokens} tokens; /compact does it now"


def _permission_lines(app: App) -> Iterator[str]:
    """Yield the mode and every rule in force, with the file and line that defines it."""
    yield f"  mode {app.switch.mode}"
    yield from (f"  {rule.kind:<5}  {rule.text}  [{rule.written_in}]" for rule in app.rules.rules)
    if not app.rules.rules:
        yield "  no rules: the mode and the safety guards decide"
    yield "  to test a call: callwright permissions test TOOL ARGUMENT"


async def _export_session(app: App, session_id: str, name: str) -> Path:
    """Write the session to a new file: as text, or as records if the name ends in `.jsonl`.

    Raises:
        UsageError: The file exists or cannot be written.
    """
    target = app.locations.cwd / expand_home(name or f"session-{session_id[:8]}.md")
    if target.suffix == ".jsonl":
        text = await export_redacted(app.agent.sessions, session_id)
    else:
        text = Redact().clean("\n".join(transcript(await app.agent.messages(session_id))))
    try:
        with open_private(target, exclusive=True) as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{target} already exists; name another file: /export FILE") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL that was pasted
        raise UsageError(
            f"cannot write {target}: {describe_exception(error)}; name another file: /export FILE"
        ) from None
    return target


COMMANDS = {
    "help": "list commands and keys",
    "mode": "show or change the mode: plan, default, auto, dontAsk, bypass",
    "model": "show the model, or switch to another: provider:name",
    "permissions": "show the mode and the rules, with their files",
    "cost": "show tokens and cost of the session",
    "context": "show the size of the next request, in tokens",
    "compact": "summarise the session; /compact FOCUS says what to keep",
    "undo": "undo the last prompt: its changes of files and its messages",
    "redo": "take the last undo back",
    "rewind": "return to an earlier prompt: conversation, files or both",
    "clear": "start a new session; the old one can be resumed",
    "new": "same as /clear",
    "resume": "pick a session and continue it; /resume ID takes one by the start of its id",
    "sessions": "list the sessions of this project",
    "runs": "list the runs of workers that wait for you; /runs NUMBER answers one",
    "export": "write the session to a file: text, or records to FILE.jsonl",
    "diff": "show what changed since the last commit, or since /diff REVISION",
    "copy": "copy the last answer to the clipboard",
    "init": "let the model write AGENTS.md for this project",
    "mcp": "show the MCP servers; /mcp on, off or login NAME",
    "config": "show the settings and their files; /config KEY VALUE sets one",
    "theme": "show or change the colours: dark, light, none",
    "tools": "list the tools the model can call",
    "web": "show the link of the local page of this project, which is started if needed",
    "skills": "list the skills you can call as /NAME",
    "exit": "leave; the session can be continued later",
}
_OTHER_AGENTS_COMMANDS = {
    "add-dir": "start with --add-dir FOLDER",
    "agents": "sub-agents are files in .callwright/agents or .claude/agents",
    "approvals": "/mode changes the mode, /permissions shows the rules",
    "compress": "use /compact",
    "doctor": "run callwright doctor in a shell",
    "fork": "start with --resume ID --fork-session",
    "hooks": "use /config hooks",
    "login": "set the key of the model in the environment, such as ANTHROPIC_API_KEY",
    "memory": "edit AGENTS.md, or let /init write it",
    "output-style": 'set "instructions" in the settings',
    "plan": "use /mode plan",
    "restore": "use /undo or /rewind",
    "stats": "use /cost, or callwright stats in a shell",
    "status": "use /config, or run callwright doctor in a shell",
    "usage": "use /cost",
    "vim": "use /config terminal.viKeys true",
}
"""Commands of other agents, and what does the same here."""
_KEYS = """\
  /NAME         call a skill, with its arguments
  !COMMAND      run a shell command; the model sees it with the next prompt
  @FILE         attach a file, an image or a folder listing; @FILE#L10-20
Enter sends, Alt-Enter inserts a line break, Tab completes, Up and Down recall,
Ctrl-R searches the history, Ctrl-O shows long outputs whole, Esc interrupts,
Shift-Tab changes the mode, Ctrl-L redraws, Ctrl-D leaves; prompts typed while
the agent works are queued, and Up on an empty line takes the last one back"""
_MOST_SESSIONS = 15
_MOST_FILES = 200


def _write_mentions(names: Iterable[str], *, quoted: bool) -> Iterator[str]:
    """Yield the names as a prompt writes them, quoted if one needs it; a folder stays open for what is in it."""
    for name in names:
        if mention := write_mention(name):
            text = f'@"{name}"' if quoted else mention
            yield text.removesuffix('"') if name.endswith("/") else text


class SlashCommands:
    """Runs slash commands and completes them.

    Args:
        chat: The chat the commands act on.
    """

    def __init__(self, chat: ChatHost) -> None:
        self._chat = chat
        self._listed_sessions: list[str] = []
        """Ids of listed sessions, for completion."""
        undo = UndoCommands(chat, self._show)
        workspace = WorkspaceCommands(chat, self._show)
        self._aclose_workspace = workspace.aclose
        self._runs = RunsCommand(self._show, chat.review_questions)
        self.start_hint = self._runs.start_hint
        self._actions: dict[str, Callable[[str], Awaitable[None]]] = {
            "help": self._help,
            "mode": self._mode,
            "model": self._model,
            "permissions": self._permissions,
            "cost": self._cost,
            "context": self._context,
            "compact": self._once_recorded(chat.compact),
            "undo": self._once_recorded(undo.undo),
            "redo": self._once_recorded(undo.redo),
            "rewind": self._once_recorded(undo.rewind),
            "clear": self._new,
            "new": self._new,
            "resume": self._resume,
            "sessions": self._sessions,
            "runs": self._runs.perform,
            "export": self._once_recorded(self._export),
            "diff": workspace.diff,
            "copy": self._once_recorded(workspace.copy),
            "mcp": workspace.mcp,
            "web": workspace.web,
            "config": workspace.config,
            "theme": workspace.theme,
            "tools": self._tools,
            "skills": self._skills,
            "exit": self._exit,
        }

    async def aclose(self) -> None:
        """End what commands have started."""
        await self._runs.aclose()
        await self._aclose_workspace()

    async def perform(self, line: str) -> str | None:
        """Run a command and return None; return the line if it is a prompt: it calls a skill, or starts with a path."""
        name, _, rest = (line[1:].strip() or "help").partition(" ")
        action = self._actions.get({"quit": "exit", "continue": "resume"}.get(name, name))
        try:
            if action is not None:
                await action(rest.strip())
                return None
            if name == "init":
                return INIT_PROMPT
            self._check_skill(line)
            return line
        except (CallwrightError, OSError, ValueError) as error:  # such as a folder that is gone, or a NUL in its name
            self._show(f"! {describe_exception(error)}")
            return None

    def _check_skill(self, line: str) -> None:
        typed = line.split(maxsplit=1)[0]
        is_path = typed != "/" and ("/" in typed[1:] or os.path.exists(typed))  # noqa: PTH110 - false for a long name
        if self._chat.app.skills.parse_slash(line) is None and not is_path:
            name = line[1:].split(maxsplit=1)[0]
            near = get_close_matches(name, self._names(), n=1)
            hint = _OTHER_AGENTS_COMMANDS.get(name) or (f"did you mean /{near[0]}?" if near else "/help lists commands")
            raise UsageError(f"unknown command /{name}; {hint}")

    def complete(self, word: str) -> Sequence[str]:
        """Return completions of a word: a command at the start of the line (marked ^), its argument, a file after @."""
        first, word = word.startswith("^"), word.removeprefix("^")
        if first and word.startswith("/"):
            return sorted(f"/{name}" for name in self._names() if name.startswith(word[1:]))
        if word.startswith("@"):
            return list(_write_mentions(self._files(word[1:].removeprefix('"')), quoted=word.startswith('@"')))
        command = self._chat.terminal.editor.text.split(" ", 1)[0]
        return sorted(known for known in self._arguments(command) if known.startswith(word))

    def _names(self) -> list[str]:
        return [*COMMANDS, *(skill.name for skill in self._chat.app.skills if skill.user_invocable)]

    def _arguments(self, command: str) -> Sequence[str]:
        """Return the known arguments of a command."""
        match command:
            case "/mode":
                return get_args(Mode)
            case "/theme":
                return THEMES
            case "/resume":
                return self._listed_sessions
            case _:
                return ()

    def _files(self, prefix: str) -> Iterator[str]:
        folder, _, start = prefix.rpartition("/")
        base = Path(self._chat.locations.cwd, folder)
        try:
            shown = (entry for entry in base.iterdir() if start or not entry.name.startswith("."))
            entries = sorted(entry for entry in shown if entry.name.startswith(start))
        except (OSError, ValueError):  # ValueError: a NUL that was pasted
            return
        for entry in entries[:_MOST_FILES]:
            name = f"{folder}/{entry.name}" if folder else entry.name
            # not Path.is_dir, which raises in a folder whose names may be read and nothing else
            yield f"{name}/" if os.path.isdir(entry) else name  # noqa: PTH112

    def _show(self, *lines: str) -> None:
        terminal = self._chat.terminal
        terminal.show(*(row for line in lines for row in wrap_line(visible(line), terminal.screen.width)))

    async def _help(self, rest: str) -> None:
        self._show(*(f"  /{name:<12} {what}" for name, what in COMMANDS.items()), *_KEYS.splitlines())

    async def _mode(self, rest: str) -> None:
        switch = self._chat.app.switch
        if rest:
            switch.mode = mode_named(rest)
        self._show(f"the mode is {switch.mode}")

    async def _new(self, rest: str) -> None:
        old = self._chat.conversation.session_id if await self._is_recorded() else ""
        await self._chat.conversation.end("clear")
        await self._chat.open_session(str(uuid.uuid4()), "clear")
        self._show(f"new session; /resume {old[:8]} returns to the previous one" if old else "new session")

    async def _resume(self, rest: str) -> None:
        session_id = await (find_session(self._chat.app.agent.sessions, rest) if rest else self._chat.pick_session())
        if not session_id:
            return
        await self._chat.app.agent.sessions.read(session_id)  # one that is damaged is refused here, not half opened
        await self._chat.conversation.end("resume")
        await self._chat.open_session(session_id, "resume")

    async def _sessions(self, rest: str) -> None:
        entries = await self._chat.app.agent.sessions.list(limit=_MOST_SESSIONS)
        self._listed_sessions = [entry.session_id for entry in entries]
        width = self._chat.terminal.screen.width
        for entry in entries:
            self._show(f"  {entry.session_id[:12]:<12}  {one_line(entry.title, width - 18)}")
        if not entries:
            self._show("  no sessions yet; this one is saved with its first prompt")

    async def _tools(self, rest: str) -> None:
        self._list({spec.name: spec.description for spec in self._chat.app.agent.registry.snapshot().definitions})

    def _list(self, entries: dict[str, str]) -> None:
        """Show names and the first lines of their descriptions, as wide as the screen."""
        column = max(map(len, entries), default=0)
        room = max(self._chat.terminal.screen.width - column - 5, 20)
        for name, what in entries.items():
            self._show(f"  {name:<{column}}  {one_line(what.strip().partition(chr(10))[0], room)}")

    async def _skills(self, rest: str) -> None:
        self._list({f"/{skill.name}": skill.description for skill in self._chat.app.skills})
        if not len(self._chat.app.skills):
            self._show("  no skills here; a skill is a folder with a SKILL.md in .callwright/skills")

    async def _cost(self, rest: str) -> None:
        usage, usd = self._chat.usage.usage, self._chat.usage.usd
        cached = f", {usage.cache_read_tokens} from the cache" if usage.cache_read_tokens else ""
        model = self._chat.app.agent.provider.model
        money = f"{usd:.4f} USD" if usd is not None else f'no price for {model}; set "prices" in the settings'
        self._show(f"  {usage.input_tokens} tokens in{cached}, {usage.output_tokens} out; {money}")

    async def _context(self, rest: str) -> None:
        app, session = self._chat.app, self._chat.conversation.session_id
        self._show(*_context_lines(app, await app.agent.messages(session) if await self._is_recorded() else []))

    async def _is_recorded(self) -> bool:
        return await self._chat.app.agent.sessions.find(self._chat.conversation.session_id) is not None

    def _once_recorded(self, action: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
        async def perform(rest: str) -> None:
            if not await self._is_recorded():
                raise UsageError("this session has no messages yet")
            await action(rest)

        return perform

    async def _permissions(self, rest: str) -> None:
        self._show(*_permission_lines(self._chat.app))

    async def _export(self, rest: str) -> None:
        path = await _export_session(self._chat.app, self._chat.conversation.session_id, rest)
        self._show(f"  exported to {path}")

    async def _model(self, rest: str) -> None:
        app = self._chat.app
        if rest:
            app.use_model(app.skill_service.models.get(rest))
        self._show(f"the model is {app.agent.provider.model}")

    async def _exit(self, rest: str) -> None:
        self._chat.terminal.leave()
