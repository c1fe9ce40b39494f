"""`Catalog`: the tools as they are for one turn. What was advertised is what can be called.

Names as providers allow them, and back.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from heapq import nlargest
from types import MappingProxyType
from typing import Protocol

from callwright.core.json import compact
from callwright.core.messages import SEARCH_NAME, estimate_tokens
from callwright.core.spec import ToolSpec
from callwright.tool.base import State, Tool, identify

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64
_HASH_CHARS = 7


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Give every name one that `^[a-zA-Z0-9_-]{1,64}$` accepts; no two share one, whatever the order.

    A name that is allowed keeps itself. The others have their forbidden characters replaced and, where that is
    not unique or too long, carry a hash of the name they stand for.
    """
    ordered = sorted(set(names))
    taken = {name for name in ordered if _ALLOWED.fullmatch(name)}
    wishes = {name: _FORBIDDEN.sub("_", name) for name in ordered if name not in taken}
    counts: dict[str, int] = {}
    for wish in wishes.values():
        counts[wish] = counts.get(wish, 0) + 1
    free = {
        name: wish
        for name, wish in wishes.items()
        if 0 < len(wish) <= _LONGEST and wish not in taken and counts[wish] == 1
    }
    given = {name: name for name in taken} | free
    used = set(given.values())
    for name, wish in wishes.items():
        if name not in free:
            given[name] = next(wire for wire in _hashed(name, wish) if wire not in used)
            used.add(given[name])
    return given


def _hashed(name: str, wish: str) -> Iterator[str]:
    """Ever longer hashes of the name, for the case that a shorter one is somebody's name."""
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    for chars in range(_HASH_CHARS, _LONGEST):
        yield f"{wish[: _LONGEST - chars - 1]}_{digest[:chars]}"


_LONGEST_GUESS = 128
_COMPARED = 64


class Catalog:
    """A frozen view of a toolset: looks names up, lists definitions, never changes."""

    def __init__(self, tools: Mapping[str, Tool], revealed: Sequence[str] = ()) -> None:
        self.tools: Mapping[str, Tool] = MappingProxyType(dict(tools))
        self.revealed = tuple(revealed)

    @cached_property
    def _by_alias(self) -> dict[str, Tool]:
        found: dict[str, Tool] = {}
        for tool in self.tools.values():
            for alias in identify(tool)[1]:
                found.setdefault(alias, tool)
        return found

    @cached_property
    def _by_wire(self) -> dict[str, Tool]:
        return {wire: self.tools[name] for name, wire in self.wire_names.items()}

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """The name each tool has at a provider's edge."""
        return wire_names(self.tools)

    @cached_property
    def _from_the_start(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for _, tool in sorted(self.tools.items()) if not tool.spec.deferred)

    @cached_property
    def definitions(self) -> tuple[ToolSpec, ...]:
        """What the model is shown: tools by name, then those that were revealed, in the order they were."""
        later = [self.tools[name].spec for name in self.revealed if name in self.tools]
        return (*self._from_the_start, *(spec for spec in later if spec.deferred))

    @cached_property
    def deferred(self) -> tuple[ToolSpec, ...]:
        """What the model is not shown until it asks, by name."""
        hidden = set(self.tools) - {spec.name for spec in self.definitions}
        return tuple(self.tools[name].spec for name in sorted(hidden))

    @cached_property
    def definition_tokens(self) -> int:
        """About how many tokens the definitions cost in every request."""
        return sum(map(tokens_of, self.definitions))

    @property
    def advice(self) -> str:
        """What to tell a model that asked for a tool there is not; empty when nothing can be searched for."""
        return f"other tools can be found with {SEARCH_NAME}" if SEARCH_NAME in self.tools else ""

    def revealing(self, later: Mapping[str, Tool]) -> "Catalog":
        """The same names with these tools shown after the others."""
        other = Catalog({**self.tools, **later}, (*self.revealed, *later))
        # a reveal changes neither of these, and over thousands of tools they cost more than all the rest
        other.__dict__.update(_from_the_start=self._from_the_start, wire_names=self.wire_names)
        return other

    def get(self, name: str) -> Tool | None:
        """Find a tool by name, wire name or alias; what was advertised beats what was not."""
        tool = self.tools.get(name)
        if tool is None:
            tool = self._by_wire.get(name)
        return self._by_alias.get(name) if tool is None else tool

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """Names a model may have meant."""
        index = {**self._by_alias, **self.tools}
        folded = {known.lower().replace("-", "_"): known for known in sorted(index, reverse=True)}
        said = name[:_LONGEST_GUESS].lower().replace("-", "_")
        close = get_close_matches(said, _likely(said, folded), n=count, cutoff=0.6)
        return list(dict.fromkeys(identify(index[folded[match]])[0] for match in close))

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())


def _likely(said: str, names: Collection[str]) -> Collection[str]:
    """The names that share most pairs of letters: comparing thousands letter by letter takes a third of a second."""
    if len(names) <= _COMPARED:
        return names
    pairs = {said[start : start + 2] for start in range(len(said) - 1)} or {said}
    return nlargest(_COMPARED, names, key=lambda name: sum(pair in name for pair in pairs))


def tokens_of(spec: ToolSpec) -> int:
    """About how many tokens one definition costs in every request."""
    return estimate_tokens(spec.name + spec.description + compact(spec.input_schema))


class Toolset(Protocol):
    """Anything tools can be taken from: a registry, a view of one, a server's tools."""

    @property
    def changes(self) -> int:
        """Counts up whenever the tools change."""
        ...

    def snapshot(self) -> Catalog:
        """The tools as they are now; the same object until something changes."""
        ...


def session_catalog(toolset: Toolset, state: State) -> Catalog:
    """One turn's frozen view of a toolset, that of the session where the toolset tells sessions apart."""
    snapshot_for: Callable[[State], Catalog] | None = getattr(toolset, "snapshot_for", None)
    return toolset.snapshot() if snapshot_for is None else snapshot_for(state)
