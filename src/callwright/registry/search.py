"""Finding tools by what somebody says: a lexical index that needs nothing but the standard library."""

import gc
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.heard import Heard
from callwright.registry.postings import Postings
from callwright.registry.query import read
from callwright.registry.rank import rank
from callwright.registry.weigh import weigh

_MANY = 500


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found."""

    name: str
    score: float
    """Comparable within one search only."""
    why: str
    """The words that matched, for a person to read."""


class ToolIndex:
    """Searchable tools. The order in which they came does not matter; several threads may use it."""

    __slots__ = ("_lock", "_pending", "_postings")

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._pending = {spec.name: spec for spec in specs}  # read by the first search: many sessions never search
        self._postings = Postings()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._postings.tools.keys() | self._pending.keys())

    def add(self, spec: ToolSpec) -> None:
        """Make a tool findable, in place of one of the same name."""
        with self._lock:
            self._pending[spec.name] = spec

    def remove(self, name: str) -> None:
        """Make a tool unfindable."""
        with self._lock:
            if self._pending.pop(name, None) is None and name not in self._postings.tools:
                raise UsageError(f"there is no tool {name!r} in the index to remove")
            self._postings.forget(name)

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Return the k tools that fit best, best first; tools that share nothing with the query are left out."""
        with self._lock:
            self._settle()
            request = read(query)
            heard = Heard(self._postings, request)
            return [Hit(name, score, heard.why(name)) for name, score in rank(self._postings, request, k)]

    def _settle(self) -> None:
        collecting = gc.isenabled() and len(self._pending) >= _MANY
        if collecting:
            gc.disable()  # nothing made here is garbage, and looking for some costs a fifth of the time
        try:
            if self._pending:
                self._postings.learn(map(weigh, self._pending.values()))
                self._pending.clear()
            self._postings.settle()
        finally:
            if collecting:
                gc.enable()
