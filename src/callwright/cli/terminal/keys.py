"""Keyboard input: decodes the bytes of a terminal into named keys, and switches the terminal's mode to send them."""

import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from callwright.system.platforms import require_posix

_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "[H": "home",
    "[F": "end",
    "[1~": "home",
    "[4~": "end",
    "[3~": "delete",
    "[5~": "page-up",
    "[6~": "page-down",
    "[Z": "shift-tab",
    "[1;5C": "word-right",
    "[1;5D": "word-left",
    "[1;3C": "word-right",
    "[1;3D": "word-left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "OH": "home",
    "OF": "end",
    "b": "word-left",
    "f": "word-right",
    "d": "delete-next-word",
    "\r": "newline",
    "\n": "newline",
    "\x7f": "delete-word",
}
_CONTROLS = {
    "\r": "enter",
    "\n": "newline",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x01": "home",
    "\x02": "left",
    "\x03": "interrupt",
    "\x04": "end-of-input",
    "\x05": "end",
    "\x06": "right",
    "\x0b": "delete-to-end",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x0f": "expand",
    "\x10": "up",
    "\x12": "search-history",
    "\x15": "delete-to-start",
    "\x16": "paste-image",
    "\x17": "delete-word",
    "\x1a": "suspend",
}
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_LONGEST_SEQUENCE = 8
_ESCAPE_SECONDS = 0.03
_PASTE_SECONDS = 3.0
"""How long a paste may pause, for example over a slow connection."""


class KeyReader:
    """Decodes terminal input into keys, text and pastes; sequences may arrive in pieces."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._pasted: list[str] | None = None
        """The pieces of a paste that has not ended yet."""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Decode bytes into pairs: ("key", name), ("text", typed text) or ("paste", pasted text)."""
        self._pending += self._decoder.decode(data)
        return list(self._keys())

    def flush(self) -> list[tuple[str, str]]:
        """Decode what is pending as it is: a lone escape is the Esc key, an unfinished paste is what arrived of it."""
        pending, self._pending = self._pending, ""
        if self._pasted is not None:
            return [self._paste(pending)]
        return [("key", "escape")] if pending.startswith("\x1b") else []

    @property
    def wait_seconds(self) -> float:
        """How long the rest of a sequence may take to arrive; 0 if the input so far is complete."""
        # a lone escape byte may be the Esc key or the start of a sequence: only time tells
        partial = _ESCAPE_SECONDS if self._pending else 0.0
        return partial if self._pasted is None else _PASTE_SECONDS

    def _keys(self) -> Iterator[tuple[str, str]]:
        while self._pending:
            if self._pasted is not None:
                body, ended, rest = self._pending.partition(_PASTE_ENDS)
                if not ended:
                    kept = len(_PASTE_ENDS) - 1  # the end mark itself may arrive in pieces
                    self._pasted.append(self._pending[:-kept])
                    self._pending = self._pending[-kept:]
                    return
                self._pending = rest
                yield self._paste(body)
                continue
            if self._pending.startswith(_PASTE_BEGINS):
                self._pasted, self._pending = [], self._pending[len(_PASTE_BEGINS) :]
                continue
            found, length = self._next(self._pending)
            if not length:
                return
            self._pending = self._pending[length:]
            if found is not None:
                yield found

    def _paste(self, end: str) -> tuple[str, str]:
        pasted, self._pasted = "".join([*(self._pasted or ()), end]), None
        return "paste", pasted.replace("\r\n", "\n").replace("\r", "\n")

    def _next(self, text: str) -> tuple[tuple[str, str] | None, int]:
        if text[0] != "\x1b":
            return _read_plain(text)
        for length in range(2, min(len(text), _LONGEST_SEQUENCE) + 1):
            if text[1:length] in _SEQUENCES:
                return ("key", _SEQUENCES[text[1:length]]), length
        if len(text) > 1 and text[1] not in "[O":
            return ("key", "escape"), 1
        return _skip_unknown(text)


_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and halves of characters. Joiners and the spaces of other scripts are typed on purpose."""


def _read_plain(text: str) -> tuple[tuple[str, str] | None, int]:
    if text[0] in _CONTROLS:
        return ("key", _CONTROLS[text[0]]), 1
    found = _NOT_TEXT.search(text)
    end = len(text) if found is None else found.start()
    return (("text", text[:end]), end) if end else (None, 1)


def _skip_unknown(text: str) -> tuple[tuple[str, str] | None, int]:
    """Skip an unknown sequence once it is complete: it ends with a letter or a tilde."""
    for at in range(2, len(text)):
        if text[at].isalpha() or text[at] == "~":
            return None, at + 1
    return None, len(text) if len(text) > 2 * _LONGEST_SEQUENCE and not _PASTE_BEGINS.startswith(text[:6]) else 0


_BEGIN, _END = b"\x1b[?2004h", b"\x1b[?2004l\x1b[?25h"
"""Switch bracketed paste on and off; the second also shows the cursor, in case an editor hid it."""


class Tty:
    """The terminal on stdin: inside `with` it sends every key at once and without echo.

    Args:
        keys: False for a terminal without cursor movement; its mode is not changed, and it sends whole lines.
    """

    def __init__(self, *, keys: bool) -> None:
        self.keys = keys
        require_posix("terminals in which single keys are read")
        import termios

        self._termios = termios
        self.descriptor = sys.stdin.fileno()
        self._saved_mode: list[Any] = termios.tcgetattr(self.descriptor)

    def read_keys(self) -> None:
        """Switch the terminal to sending single keys."""
        if not self.keys:
            return
        termios = self._termios
        changed = termios.tcgetattr(self.descriptor)
        # no ISIG: Ctrl-C is a key like any other, so that it can empty the line first
        changed[0] &= ~(termios.ICRNL | termios.IXON)
        changed[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self.descriptor, termios.TCSANOW, changed)
        os.write(sys.stdout.fileno(), _BEGIN)

    def restore(self) -> None:
        """Restore the terminal's mode."""
        if self.keys:
            os.write(sys.stdout.fileno(), _END)
        self._termios.tcsetattr(self.descriptor, self._termios.TCSADRAIN, self._saved_mode)

    def __enter__(self) -> "Tty":
        self.read_keys()
        return self

    def __exit__(self, *exception: object) -> None:
        self.restore()


def discard_typed_keys() -> None:
    """Forget what was typed so far and not yet read."""
    if os.name == "posix":
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
