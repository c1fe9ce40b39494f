"""What a command says: its beginning and its end in memory, the whole of it in a private file."""

import atexit
import codecs
import os
import shutil
import tempfile
import threading
from collections import deque
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Caps:
    """How much of an output is kept where."""

    kept_chars: int = 28_000
    """In memory, half of it from the beginning and half from the end."""
    flood_bytes: int = 256 * 1024 * 1024
    """A command that says more than this is stopped."""


@cache
def private_folder() -> Path:
    """Return this process's folder for whole outputs: unguessable, ours alone, removed when we exit."""
    folder = Path(tempfile.mkdtemp(prefix="callwright-"))
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


class OutputCapture:
    """One command's output while it grows. One thread feeds it, any may read it."""

    def __init__(self, caps: Caps | None = None) -> None:
        self._caps = caps or Caps()
        self._half = max(1, self._caps.kept_chars // 2)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._early: bytearray | None = bytearray()
        self._spill: int | None = None
        self._lock = threading.Lock()
        self.path: Path | None = None
        """Where the whole output is, once it no longer fits in memory."""
        self.bytes = 0
        self.chars = 0

    @property
    def flooded(self) -> bool:
        """Whether the command has said more than it may."""
        return self.bytes > self._caps.flood_bytes

    @property
    def text(self) -> str:
        """The output as it fits: whole, or its two ends around a note on what is missing and where it is."""
        return self.since(0)

    def feed(self, data: bytes) -> str:
        """Take in what was read and return it as text; a character cut in two waits for its other half."""
        text = self._decoder.decode(data)
        with self._lock:
            self.bytes += len(data)
            self._keep(data)
            self._append(text)
        return text

    def close(self) -> None:
        """Finish the file; half a character at the end becomes a replacement mark."""
        text = self._decoder.decode(b"", final=True)
        with self._lock:
            self._append(text)
            if self._spill is not None:
                os.close(self._spill)
                self._spill = None

    def since(self, chars: int) -> str:
        """Return what came after that many characters, with such a note where the middle is no longer in memory."""
        with self._lock:
            tail = "".join(self._tail)[-self._half :]
            tail_begins = self.chars - len(tail)
            missing = tail_begins - max(chars, len(self._head))
            if missing <= 0:
                return self._head[chars:] + tail[max(0, chars - tail_begins) :]
            whole = f"the whole output is in {self.path}" if self.path else "the whole output could not be saved"
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
            self._spill, name = tempfile.mkstemp(prefix="output-", suffix=".txt", dir=private_folder())
            self.path = Path(name)
        if self._spill is not None:
            self._write(self._spill, memoryview(data))

    def _write(self, spill: int, view: memoryview) -> None:
        try:
            while view:
                view = view[os.write(spill, view) :]
        except OSError:  # a full disk must not end the command
            os.close(spill)
            self._spill = self.path = None
