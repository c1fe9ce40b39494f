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
    folder = Path(tempfile.mkdtemp(prefix="toolwright-"))
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return folder


class Transcript:
    """One command's output while it grows. One thread feeds it, any may read it."""

    def __init__(self, caps: Caps | None = None) -> None:
        self._caps = caps or Caps()
        self._half = max(1, self._caps.kept_chars // 2)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._early = bytearray()
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
        with self._lock:
            return self._head + self._rendered(self._half)

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
        """Return what came after that many characters, shortened in the middle if it is too much."""
        with self._lock:
            if chars < len(self._head):
                return self._head[chars:] + self._rendered(self._half)
            return self._rendered(self.chars - chars)

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

    def _rendered(self, wanted: int) -> str:
        tail = "".join(self._tail)[-min(wanted, self._half) :] if wanted > 0 else ""
        missing = min(wanted, self.chars - len(self._head)) - len(tail)
        missing = self.chars - len(self._head) - len(tail) if wanted == self._half else missing
        if missing <= 0:
            return tail
        return f"\n[{missing} characters left out here; the whole output is in {self.path}]\n{tail}"

    def _keep(self, data: bytes) -> None:
        if self._spill is None:
            self._early += data
            if len(self._early) <= self._caps.kept_chars:
                return
            data, self._early = bytes(self._early), bytearray()
            self._spill, name = tempfile.mkstemp(prefix="output-", suffix=".txt", dir=private_folder())
            self.path = Path(name)
        view = memoryview(data)
        while view:
            view = view[os.write(self._spill, view) :]
