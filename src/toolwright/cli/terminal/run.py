"""`toolwright` in a terminal: shows the prompt first and loads everything else while the person types."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from toolwright.cli.palette import Palette
from toolwright.cli.terminal.screen import Screen
from toolwright.cli.terminal.tty import raw_terminal
from toolwright.cli.terminal.ui import Terminal

_FAILED, _USAGE = 1, 2


def run(options: argparse.Namespace) -> int:
    """Talk until the person leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("toolwright: a conversation needs a terminal; in scripts use toolwright -p PROMPT", file=sys.stderr)
        return _USAGE
    with raw_terminal() as descriptor:
        return asyncio.run(_talk(options, descriptor))


async def _talk(options: argparse.Namespace, descriptor: int) -> int:
    terminal = Terminal(Screen(sys.stdout.fileno()), Palette.of(sys.stdout))
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, terminal.readable, descriptor)
    loop.add_signal_handler(signal.SIGWINCH, terminal.refresh)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # or the terminal would be left without echo
        loop.add_signal_handler(ending, terminal.leave)
    terminal.draw()
    try:
        talk = await asyncio.to_thread(_load)
        return await talk(options, terminal)
    finally:
        loop.remove_reader(descriptor)
        terminal.screen.leave()


def _load() -> Callable[[argparse.Namespace, Terminal], Awaitable[int]]:
    from toolwright.cli.terminal.talk import talk

    return talk
