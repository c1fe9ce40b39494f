"""Captures the output of a command: both ends in memory, all of it in a private file."""

import atexit
import codecs
import os
import secrets
import shutil
import tempfile
import threading
from collections import deque
from contextlib import suppress
from functools import cache
from pathlib import Path

from callwright.core._fast import frozen


@frozen
class OutputLimits:
    """How much of an output is kept."""

    kept_chars: int = 28_000
    """In memory, half of it from the beginning and half from the end."""
    flood_bytes: int = 256 * 1024 * 1024
    """A command that writes more than this is stopped."""


OUTPUT_PREFIX = "callwright-"
"""What the names of our temporary folders begin with."""


@cache
def _make_output_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=OUTPUT_PREFIX))
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


def output_folder() -> Path:
    """Return the folder for complete outputs: private, with an unguessable name, removed at exit."""
    folder = _make_output_folder()
    if not folder.is_dir():  # a cleaner of /tmp may remove it
        _make_output_folder.cache_clear()
        folder = _make_output_folder()
    return folder


def spilled_path(output_id: str) -> Path:
    """Return where the complete output with this id is kept."""
    return output_folder() / f"output-{output_id}.txt"


def spilled_id(path: str | Path) -> str:
    """Return the id of a complete output by its file; any other text is returned as it is."""
    return Path(path).name.removeprefix("output-").removesuffix(".txt")


def _make_room() -> None:
    """Remove the oldest complete outputs beyond a total size: a long session would fill the disk before it exits."""
    files: list[tuple[float, int, Path]] = []
    for path in output_folder().glob("output-*.txt"):
        with suppress(OSError):
            found = path.stat()
            files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= _MOST_SPILLED_BYTES:
            return
        if path not in _growing:
            path.unlink(missing_ok=True)
            total -= size


_MOST_SPILLED_BYTES = 1 << 30
_growing: set[Path] = set()
"""The files of outputs that are still being written."""


class OutputCapture:
    """The growing output of one command. One thread feeds it, any thread may read it."""

    def __init__(self, caps: OutputLimits | None = None) -> None:
        self._caps = caps or OutputLimits()
        self._half = max(1, self._caps.kept_chars // 2)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._early: bytearray | None = bytearray()
        self._spill: int | None = None
        self._lock = threading.Lock()
        self.path: Path | None = None
        """The file with the complete output, once it no longer fits in memory."""
        self.bytes = 0
        self.chars = 0

    @property
    def flooded(self) -> bool:
        """Whether the command has written more than it may."""
        return self.bytes > self._caps.flood_bytes

    @property
    def text(self) -> str:
        """The output if it fits, else its two ends around a note that says how much is missing and where it is."""
        return self.read_from(0)[0]

    def feed(self, data: bytes) -> str:
        """Add bytes and return them as text; an incomplete character is kept for the next call."""
        text = self._decoder.decode(data)
        with self._lock:
            self.bytes += len(data)
            self._keep(data)
            self._append(text)
        return text

    def close(self) -> None:
        """Close the file; an incomplete character at the end becomes a replacement character."""
        text = self._decoder.decode(b"", final=True)
        with self._lock:
            self._append(text)
            if self._spill is not None:
                os.close(self._spill)
                self._spill = None
            if self.path is not None:
                _growing.discard(self.path)

    def read_from(self, chars: int) -> tuple[str, int]:
        """Return the output after that many characters, and the position after it.

        A note stands where the middle is no longer in memory.
        """
        with self._lock:  # text and position together, or output that comes in between would be lost
            return self._since(chars), self.chars

    def _since(self, chars: int) -> str:
        tail = "".join(self._tail)[-self._half :]
        tail_begins = self.chars - len(tail)
        missing = tail_begins - max(chars, len(self._head))
        if missing <= 0:
            return self._head[chars:] + tail[max(0, chars - tail_begins) :]
        whole = (
            f'read_output(id="{spilled_id(self.path)}") reads it; the whole output is in {self.path}'
            if self.path
            else "the whole output could not be saved"
        )
        return f"{self._head[chars:]}\n[{missing} characters left out here; {whole}]\n{tail}"

    def _append(self, text: str) -> None:
        self.chars += len(text)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if not text:
            return
        self._tail.append(text)
        self._tail_chars += len(text)
        while self._tail_chars - len(self._tail[0]) >= self._half:
            self._tail_chars -= len(self._tail.popleft())

    def _keep(self, data: bytes) -> None:
        if self._early is not None:
            self._early += data
            if len(self._early) <= self._caps.kept_chars:
                return
            data, self._early = bytes(self._early), None
            with suppress(OSError):  # a missing folder or a full disk must not end the command
                _make_room()
                path = spilled_path(secrets.token_hex(8))
                self._spill = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                self.path = path
                _growing.add(path)
        if self._spill is not None:
            self._write(self._spill, memoryview(data))

    def _write(self, spill: int, view: memoryview) -> None:
        try:
            while view:
                view = view[os.write(spill, view) :]
        except OSError:  # a full disk must not end the command
            os.close(spill)
            if self.path is not None:
                _growing.discard(self.path)
            self._spill = self.path = None
