"""Slash commands with a chat that draws nothing: input that no user types, and sessions that cannot be read."""

import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from callwright.app.assembly import assemble
from callwright.app.conversation import Conversation
from callwright.app.locations import Locations
from callwright.app.settings import load_settings
from callwright.cli.terminal.input import LineEditor
from callwright.cli.terminal.slash_commands import SlashCommands
from callwright.testing import ScriptedProvider


class QuietTerminal:
    """Keeps the lines that are shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.screen = self
        self.editor = LineEditor()
        self.width, self.height = 200, 40

    def show(self, *lines: str) -> None:
        self.lines += lines


class QuietChat:
    """A chat with one session that has a message."""

    def __init__(self, app: Any, conversation: Conversation) -> None:
        self.app, self.conversation, self.locations = app, conversation, app.locations
        self.terminal: Any = QuietTerminal()
        self.review_questions: Any = None
        self.compact: Any = None
        self.run_shell: Any = None
        self.pick_session: Any = None
        self.options: Any = None
        self.usage: Any = None
        self.opened: list[str] = []

    async def open_session(self, session_id: str, source: str) -> None:
        self.opened.append(session_id)


@asynccontextmanager
async def open_chat(folder: Path) -> AsyncGenerator[QuietChat]:
    (folder / "project").mkdir()
    locations = Locations.of(folder / "project", home=folder / "home")
    app = assemble(ScriptedProvider("hello"), load_settings(locations, trusted=False), locations)
    async with app:
        conversation = Conversation(app, "s")
        async with aclosing(conversation.say("hi")) as events:
            async for _ in events:
                pass
        yield QuietChat(app, conversation)


async def test_pasted_nul_does_not_end_the_conversation(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as chat:
        slash = SlashCommands(chat)
        assert await slash.perform("/export a\0b") is None
        (told,) = chat.terminal.lines
        assert told.endswith("a\\x00b: embedded null byte; name another file: /export FILE")
        assert list(slash.complete("@a\0/b")) == []


async def test_server_of_the_page_is_not_held_up_by_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, program = tmp_path / "told", tmp_path / "server"
    lines = ("#!/bin/sh", "echo http://127.0.0.1/#token=x", "head -c 1000000 /dev/zero >&2", f"touch {told}")
    program.write_text("\n".join((*lines, "exec sleep 1000")))
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    async with open_chat(tmp_path) as chat:
        slash = SlashCommands(chat)
        assert await slash.perform("/web") is None and "#token=x" in chat.terminal.lines[0]
        await until(told.exists)
        await slash.aclose()


async def test_damaged_session_is_not_resumed(tmp_path: Path) -> None:
    async with open_chat(tmp_path) as chat:
        with closing(sqlite3.connect(chat.locations.sessions)) as connection, connection:
            connection.execute("UPDATE records SET body = '{}' WHERE position = 1")
        assert await SlashCommands(chat).perform("/resume s") is None
        assert chat.opened == [] and "session 's' is damaged" in chat.terminal.lines[0]
