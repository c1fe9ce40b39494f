"""Actions of a chat besides prompts: `!` lines, expanded outputs, the search in the history, dropped files, bells."""

import argparse
import asyncio
import os
import shlex
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from callwright.agent.replay import SessionReplay
from callwright.app.app import App
from callwright.app.attachments import write_mention
from callwright.app.conversation import Conversation
from callwright.app.costs import cost_of_records, prices_in
from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.cli.render.calls import call_line, transcript
from callwright.cli.render.text import cut, visible, visible_line, wrap_line
from callwright.cli.terminal.input import LineEditor
from callwright.cli.terminal.status import SessionUsage
from callwright.cli.terminal.ui import Terminal
from callwright.cli.terminal.views import PickEntry, Picker
from callwright.core.calls import Answers, Completed, Failed, Outcome, Question, ToolCall
from callwright.core.content import Part, Text
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, Message, UserMessage
from callwright.executor.turn import Turn
from callwright.sessions.base import SessionStore, read_readable
from callwright.sessions.records import Record
from callwright.system.paths import shorten_path
from callwright.tool.base import Cancellation

SHELL_CALL = "shell-"
"""The start of the ids of calls that the user made with `!`."""
_KEPT_OUTPUTS = 30
_MOST_LINES = 2_000
_MOST_NOTICE_CHARS = 120
_MOST_PROMPT_LINES = 12
_MOST_DROPPED_CHARS = 4_000
_MOST_PICKED = 50
_STYLED_MESSAGES = 100
"""How many of the last messages are shown as Markdown: more takes long, and is above the screen."""
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})
_OSC9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode"})


def show_earlier(terminal: Terminal, messages: Sequence[Message]) -> None:
    """Show the messages of a resumed session: answers as when they were written, long prompts cut."""
    plain = len(messages) - _STYLED_MESSAGES
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and index >= plain:
            terminal.stream(message.text)
            terminal.end_stream()
        else:
            for text in transcript([message], terminal.screen.width - 4):
                lines = text.splitlines()
                terminal.show(*(cut_prompt(lines) if isinstance(message, UserMessage) else lines))


def unfinished_calls(records: Sequence[Record]) -> Iterator[str]:
    """Yield a notice for each call of a resumed session that was running when its program ended."""
    turn = SessionReplay(records).open
    if turn is None:
        return
    for call in turn.calls:
        if call.id in turn.begun and call.id not in turn.ended:
            yield f"{call_line(call)}\n  was running when the program ended, and may have had an effect"


def cut_prompt(lines: list[str]) -> list[str]:
    """Return the first lines of a prompt, and how many follow."""
    more = len(lines) - _MOST_PROMPT_LINES
    return lines if more <= 0 else [*lines[:_MOST_PROMPT_LINES], f"… {more} more lines"]


class ChatHost(Protocol):
    """The parts of a chat that its actions and slash commands use."""

    app: App
    options: argparse.Namespace
    conversation: Conversation
    terminal: Terminal
    locations: Locations
    usage: SessionUsage

    async def compact(self, focus: str) -> None:
        """Replace the session's messages by a summary."""
        ...

    async def open_session(self, session_id: str, source: str) -> None:
        """Continue in another session from now on."""
        ...

    async def pick_session(self) -> str:
        """Let the user pick a session; empty if none was picked."""
        ...

    async def run_shell(self, line: str, *, told: bool) -> Outcome:
        """Run a command with the bash tool."""
        ...

    async def review_questions(self, questions: Sequence[Question]) -> Answers:
        """Show the approval dialogs of another run; return the answers to those that the user decided."""
        ...


class ShellLines:
    """Runs what the user types after `!` with the bash tool, and keeps the outputs for the next prompt."""

    def __init__(self, chat: ChatHost) -> None:
        self._chat = chat
        self._notes: list[str] = []

    async def run(self, line: str, cancellation: Cancellation, *, told: bool = True) -> Outcome:
        """Run a command behind the same rules, questions and wall as a call of the model.

        Args:
            line: The command.
            cancellation: Stops it.
            told: Whether the model gets the command and its output with the next prompt.

        Raises:
            UsageError: There is no command, or no bash tool.
        """
        chat = self._chat
        if not line:
            raise UsageError("type a command after !, as in !git status")
        if "bash" not in chat.app.registry:
            raise UsageError("the tool set of this session has no bash; start with --tools all")
        session, agent = chat.conversation.session_id, chat.app.agent
        turn = Turn(session, state=agent.state(session), ask=agent.ask, cancellation=cancellation)
        call = ToolCall(f"{SHELL_CALL}{uuid.uuid4().hex[:8]}", "bash", {"command": line})
        (outcome,) = await chat.app.executor.execute([call], turn=turn)
        if told:
            self._notes.append(f"The user ran a command in the shell.\n$ {line}\n{outcome.text}")
        return outcome

    def take_notes(self) -> list[Part]:
        """Return what was run since the last prompt, to be sent along with this one."""
        notes, self._notes = self._notes, []
        return [Text(note) for note in notes]


class LatestOutputs:
    """The latest outputs of calls; Ctrl-O shows them whole, the newest first."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._kept: deque[Completed | Failed] = deque(maxlen=_KEPT_OUTPUTS)
        self._next = 0

    def add(self, outcome: Outcome) -> None:
        """Keep an output that the screen shows only a part of."""
        if isinstance(outcome, (Completed, Failed)) and outcome.text.strip():
            self._kept.appendleft(outcome)
            self._next = 0

    def expand(self) -> None:
        """Show the newest output whole; pressed again, the one before it."""
        terminal = self._terminal
        paint = terminal.palette.paint
        if self._next >= len(self._kept):
            terminal.show(paint("  no earlier output" if self._kept else "  no output yet", "dim"))
            self._next = 0
            return
        outcome = self._kept[self._next]
        self._next += 1
        lines = visible(outcome.text).replace("\t", "    ").splitlines()
        width = terminal.screen.width
        rows = [row for line in lines[:_MOST_LINES] for row in wrap_line(f"  {line}", width)]
        more = [paint(f"  … {len(lines) - _MOST_LINES} more lines", "dim")] if len(lines) > _MOST_LINES else []
        much = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
        heading = paint(cut(f"── {call_line(outcome.call, width - 20)} · {much}", width), "bold")
        terminal.show("", heading, *rows, *more)


class HistorySearch:
    """Ctrl-R: a list of earlier prompts that what is typed narrows down."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._running: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Open the list, unless a question is on the screen."""
        terminal = self._terminal
        if not terminal.asking and not terminal.scrolls_only:
            entries = [PickEntry(text, text) for text in dict.fromkeys(reversed(terminal.editor.history))]
            picker = Picker("history", entries, terminal.palette)
            self._running = asyncio.ensure_future(self._pick(picker))

    async def _pick(self, picker: Picker) -> None:
        found = await self._terminal.ask("search", view=picker)
        if found:
            self._terminal.editor.set("")
            self._terminal.editor.paste(found)  # a long one is folded again
            self._terminal.refresh()


def paste(editor: LineEditor, cwd: Path, text: str) -> None:
    """Insert a pasted text; the paths of images or PDFs, as terminals paste dropped files, become `@PATH`."""
    if mentions := mention_dropped(text, cwd):
        editor.insert_apart(mentions)
    else:
        editor.paste(text)


def mention_dropped(text: str, cwd: Path) -> str:
    """Return the mentions of dropped files; empty if a pasted text is anything else."""
    mentions = [write_mention(shorten_path(str(path), cwd)) for path in _dropped_files(text.strip())]
    return " ".join(mentions) if all(mentions) else ""


def _dropped_files(given: str) -> list[Path]:
    """Return the files that a text names: one as it is, or several, quoted or with backslashes as terminals write."""
    if "\n" in given or len(given) > _MOST_DROPPED_CHARS:
        return []
    try:
        words = shlex.split(given)
    except ValueError:
        words = []
    for names in ([given], words):
        paths = [_read_path(name) for name in names]
        if paths and all(map(_is_dropped, paths)):
            return paths
    return []


def _read_path(name: str) -> Path:
    try:
        return Path(unquote(urlsplit(name).path) if name.startswith("file://") else name)
    except ValueError:  # such as file://[host]/share, a text that is not a URL
        return Path(name)


def _is_dropped(path: Path) -> bool:
    try:
        return path.is_absolute() and path.suffix.lower() in _IMAGES and path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def notification(message: str, kind: str) -> str:
    """Return the codes that tell the user that a question waits: a bell, and a notice where the terminal has them.

    Args:
        message: What waits; escaped and shortened, because parts of it come from a model.
        kind: `auto`, `bell`, `osc9`, `osc777` or `off`.
    """
    text = visible_line(message).replace(";", ",")[:_MOST_NOTICE_CHARS]
    if kind == "auto":
        kind = "osc9" if os.environ.get("TERM_PROGRAM") in _OSC9 or os.environ.get("KITTY_WINDOW_ID") else "bell"
    match kind:
        case "osc9":
            return f"\x1b]9;callwright: {text}\x07"
        case "osc777":
            return f"\x1b]777;notify;callwright;{text}\x07"
        case "bell":
            return "\x07"
        case _:
            return ""


async def session_entries(
    store: SessionStore, settings: Settings, folder: str, report: Callable[[str], None]
) -> list[PickEntry]:
    """Return the latest sessions for a picker: title, age, folder and cost.

    Args:
        store: The sessions of the project.
        settings: May have the prices of models.
        folder: The name of the project.
        report: Receives what is wrong with sessions that cannot be read.
    """
    found: list[PickEntry] = []
    for entry in await store.list(limit=_MOST_PICKED):
        records = await read_readable(store, entry.session_id, report=report)
        usd = cost_of_records((each.record for each in records), partial(prices_in, settings)).usd
        details = (_age(time.time() - entry.updated_at), folder, f"${usd:.2f}" if usd else "")
        found.append(PickEntry(entry.session_id, entry.title or "(no prompt)", " · ".join(filter(None, details))))
    return found


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"
