"""`callwright` in a terminal: draws the prompt first and loads everything else while the user types.

Nothing heavy may be imported at the top of this file: its imports are what the first prompt waits for.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from callwright.cli.main import USAGE
from callwright.cli.render.text import Palette, visible_line
from callwright.cli.terminal.keys import Tty
from callwright.cli.terminal.screen import PlainScreen, Screen
from callwright.cli.terminal.ui import Terminal


def run(options: argparse.Namespace) -> int:
    """Hold a conversation until the user leaves, and return the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("callwright: stdin or stdout is not a terminal; in scripts use callwright -p PROMPT", file=sys.stderr)
        return USAGE
    with Tty(keys=os.environ.get("TERM", "dumb") != "dumb") as tty:
        return asyncio.run(_run(options, tty))


async def _run(options: argparse.Namespace, tty: Tty) -> int:
    terminal = _open_terminal(tty)
    loop = asyncio.get_running_loop()
    loop.add_reader(tty.descriptor, terminal.read_input, tty.descriptor)
    loop.add_signal_handler(signal.SIGWINCH, terminal.refresh)
    loop.add_signal_handler(signal.SIGINT, terminal.interrupt)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # unhandled, they would leave the terminal without echo
        loop.add_signal_handler(ending, terminal.leave)
    terminal.draw()
    log = _TerminalLog(terminal, loop)
    logging.getLogger().addHandler(log)
    try:
        chat = await asyncio.to_thread(_load_chat)
        return await chat(options, terminal)
    finally:
        logging.getLogger().removeHandler(log)
        loop.remove_reader(tty.descriptor)
        terminal.paused = True  # a pending frame would be drawn over the shell's prompt
        terminal.screen.leave()


class _TerminalLog(logging.Handler):
    """Shows warnings as lines of the conversation: written to stderr, they would tear the screen apart."""

    def __init__(self, terminal: Terminal, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        text = self._terminal.palette.paint(f"{record.levelname.lower()}: {visible_line(record.getMessage())}", "dim")
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._terminal.show, text)


def _open_terminal(tty: Tty) -> Terminal:
    palette = Palette.of(sys.stdout)
    if not tty.keys:
        return Terminal(PlainScreen(sys.stdout.fileno()), palette, lines=True)
    terminal = Terminal(Screen(sys.stdout.fileno()), palette)
    terminal.on_key["suspend"] = partial(_suspend, terminal, tty)
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        from callwright.cli.terminal.external_programs import ExternalEditor, editor_command

        command = editor_command(os.environ)
        terminal.edit_externally = ExternalEditor(command, terminal, tty) if command else None
    return terminal


def _suspend(terminal: Terminal, tty: Tty) -> None:
    """Stop at Ctrl-Z, as the terminal itself does for other programs, until the shell continues this one."""
    terminal.screen.leave()
    tty.restore()
    os.kill(0, signal.SIGTSTP)  # the whole group: the shell may have started a program that started this one
    tty.read_keys()
    terminal.refresh()


def _load_chat() -> Callable[[argparse.Namespace, Terminal], Awaitable[int]]:
    """Import the agent and everything below it; run in a thread, so that typing is not held up."""
    from callwright.cli.terminal.chat import run_chat

    return run_chat
