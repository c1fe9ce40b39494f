"""The terminal's mode while we read keys, and its return to what it was, whatever happens."""

import os
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager

_BEGIN, _END = b"\x1b[?2004h", b"\x1b[?2004l\x1b[?25h"
"""Pasted text is marked as such while we read."""


@contextmanager
def raw_terminal() -> Generator[int, None, None]:
    """Lend stdin's descriptor, sending every key as it is pressed, without echo."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    changed = termios.tcgetattr(descriptor)
    changed[0] &= ~(termios.ICRNL | termios.IXON)
    changed[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    os.write(sys.stdout.fileno(), _BEGIN)
    try:
        yield descriptor
    finally:
        os.write(sys.stdout.fileno(), _END)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
