"""Changing a file: one change at a time per file, only of what the session has seen, and remembered afterwards."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from callwright.core.errors import ToolFailed
from callwright.system.encoding import Encoding, detect
from callwright.system.files import Identity, open_regular, read_all
from callwright.system.replace import Changed, replace_file
from callwright.toolbox.freshness import changed
from callwright.toolbox.target import explain


class _PathLock:
    """A lock that goes away with its last user."""

    def __init__(self) -> None:
        self.lock = Lock()


_locks: WeakValueDictionary[Path, _PathLock] = WeakValueDictionary()
_guard = Lock()


@contextmanager
def alone_with(path: Path) -> Generator[None, None, None]:
    """Hold a file against every other change in this process: sessions share the disk, so they share the lock."""
    with _guard:
        own = _locks.setdefault(path, _PathLock())
    with own.lock:
        yield


@dataclass(frozen=True, slots=True)
class Current:
    """A file as it is right now."""

    data: bytes
    identity: Identity
    encoding: Encoding

    @property
    def text(self) -> str:
        """Its text, byte order mark left out."""
        return self.encoding.decode(self.data[len(self.encoding.mark) :])


def load(path: Path, given: str) -> Current | None:
    """Read the file about to be changed; None if there is none."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
    except OSError as error:
        raise explain(error, given, "read") from None
    try:
        identity = Identity.of(os.fstat(descriptor))
        data = read_all(descriptor)
    finally:
        os.close(descriptor)
    return Current(data, identity, detect(data) or Encoding())


def store(path: Path, given: str, data: bytes, expected: str | None) -> None:
    """Put new content in place if the file still is what was expected; see `replace_file`."""
    try:
        replace_file(path, data, expected=expected)
    except Changed:
        raise changed(given) from None
    except IsADirectoryError:
        raise ToolFailed(f"{given} is a folder; give the path of a file in it") from None
    except OSError as error:
        raise explain(error, given, "write") from None
