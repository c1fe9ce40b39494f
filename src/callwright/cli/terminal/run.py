"""`callwright` in a terminal: shows the prompt first and loads everything else while the person types."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable

from callwright.cli.exits import USAGE
from callwright.cli.palette import Palette
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.tty import Tty
from callwright.cli.terminal.ui import Terminal


def run(options: argparse.Namespace) -> int:
    """Talk until the person leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("callwright: a conversation needs a terminal; in scripts use callwright -p PROMPT", file=sys.stderr)
        return USAGE
    with Tty(keys=os.environ.get("TERM", "dumb") != "dumb") as tty:
        return asyncio.run(_talk(options, tty))


async def _talk(options: argparse.Namespace, tty: Tty) -> int:
    terminal = _terminal(tty)
    loop = asyncio.get_running_loop()
    loop.add_reader(tty.descriptor, terminal.readable, tty.descriptor)
    loop.add_signal_handler(signal.SIGWINCH, terminal.refresh)
    loop.add_signal_handler(signal.SIGINT, terminal.interrupt)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # or the terminal would be left without echo
        loop.add_signal_handler(ending, terminal.leave)
    terminal.draw()
    try:
        talk = await asyncio.to_thread(_load)
        return await talk(options, terminal)
    finally:
        loop.remove_reader(tty.descriptor)
        terminal.paused = True  # a frame that is still due would be drawn over the shell's prompt
        terminal.screen.leave()


def _terminal(tty: Tty) -> Terminal:
    palette = Palette.of(sys.stdout)
    if not tty.keys:
        from callwright.cli.terminal.plain_screen import PlainScreen

        return Terminal(PlainScreen(sys.stdout.fileno()), palette, lines=True)
    terminal = Terminal(Screen(sys.stdout.fileno()), palette)
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        from callwright.cli.terminal.outside import OutsideEditor, chosen_editor

        terminal.edit_outside = OutsideEditor(chosen_editor(os.environ), terminal, tty)
    return terminal


def _load() -> Callable[[argparse.Namespace, Terminal], Awaitable[int]]:
    from callwright.cli.terminal.talk import talk

    return talk
