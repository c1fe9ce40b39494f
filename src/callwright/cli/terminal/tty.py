"""The terminal's mode while we read keys, and its return to what it was, whatever happens."""

import os
import sys
import termios
from typing import Any

_BEGIN, _END = b"\x1b[?2004h", b"\x1b[?2004l\x1b[?25h"
"""Pasted text is marked as such while we read."""


class Tty:
    """stdin as a source of keys: inside `with`, each comes as it is pressed, without echo; `give_back` interrupts that.

    A terminal that cannot place its cursor is left as it is: it sends whole lines.
    """

    def __init__(self, *, keys: bool) -> None:
        self.keys = keys
        self.descriptor = sys.stdin.fileno()
        self._before: list[Any] = termios.tcgetattr(self.descriptor)

    def take(self) -> None:
        """Read keys from now on."""
        if not self.keys:
            return
        changed = termios.tcgetattr(self.descriptor)
        changed[0] &= ~(termios.ICRNL | termios.IXON)
        changed[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self.descriptor, termios.TCSANOW, changed)
        os.write(sys.stdout.fileno(), _BEGIN)

    def give_back(self) -> None:
        """Leave the terminal as it was found."""
        if self.keys:
            os.write(sys.stdout.fileno(), _END)
        termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)

    def __enter__(self) -> "Tty":
        self.take()
        return self

    def __exit__(self, *exception: object) -> None:
        self.give_back()
