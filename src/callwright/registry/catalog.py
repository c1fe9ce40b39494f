"""`Catalog`, the tools of one turn, with names that every provider accepts; and the `Toolset` protocol."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from heapq import nlargest
from types import MappingProxyType
from typing import Protocol, cast

from callwright.core.calls import SEARCH_NAME
from callwright.core.content import estimate_tokens
from callwright.core.errors import UnknownTool, check_members, safe_repr
from callwright.core.json import compact, hash_text
from callwright.core.spec import ToolSpec
from callwright.tool.base import State, Tool, identify

_ALLOWED = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"
_FORBIDDEN = r"[^a-zA-Z0-9_-]"
_MAX_WIRE_CHARS = 64
_HASH_CHARS = 7


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Map every name to a unique one that matches `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`, independent of the order.

    An allowed name stays as it is. In others, forbidden characters become `_`, and a name that does not begin with a
    letter or `_` gets one in front, which Gemini requires; if the result is too long or not unique, it ends in a hash
    of the original name.
    """
    ordered = sorted(set(names))
    taken = {name for name in ordered if re.fullmatch(_ALLOWED, name)}
    cleaned = {name: _clean(name) for name in ordered if name not in taken}
    counts: dict[str, int] = {}
    for wire in cleaned.values():
        counts[wire] = counts.get(wire, 0) + 1
    free = {
        name: wire
        for name, wire in cleaned.items()
        if 0 < len(wire) <= _MAX_WIRE_CHARS and wire not in taken and counts[wire] == 1
    }
    names_on_wire = {name: name for name in taken} | free
    used = set(names_on_wire.values())
    for name, base in cleaned.items():
        if name not in free:
            names_on_wire[name] = next(wire for wire in _hashed_names(name, base) if wire not in used)
            used.add(names_on_wire[name])
    return names_on_wire


def _clean(name: str) -> str:
    wire = re.sub(_FORBIDDEN, "_", name)
    return f"_{wire}" if re.match(r"[0-9-]", wire) else wire


def _hashed_names(name: str, base: str) -> Iterator[str]:
    """Yield names with ever longer hashes, in case a shorter one is the name of another tool."""
    digest = hash_text(name)
    for chars in range(_HASH_CHARS, _MAX_WIRE_CHARS):
        yield f"{base[: _MAX_WIRE_CHARS - chars - 1]}_{digest[:chars]}"


_MAX_LISTED = 20
_MAX_GUESS_CHARS = 128
_MAX_COMPARED = 64


class Catalog:
    """An immutable view of a toolset for one turn: what is advertised is what can be called.

    Args:
        tools: The tools by name.
        revealed: Names of deferred tools to show, in this order after the others.
        withheld: Why a tool that exists is not among them, by each of its names; a call of it is denied.
    """

    def __init__(
        self, tools: Mapping[str, Tool], revealed: Sequence[str] = (), withheld: Mapping[str, str] | None = None
    ) -> None:
        self.tools: Mapping[str, Tool] = MappingProxyType(dict(tools))
        self.revealed = tuple(revealed)
        self.withheld: Mapping[str, str] = MappingProxyType(dict(withheld or {}))

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
    def spellings(self) -> Mapping[str, str]:
        """Every name, wire name and alias that can be called, with the name of its tool."""
        named = (*self._by_alias.items(), *self._by_wire.items(), *self.tools.items())
        return {spelling: identify(tool)[0] for spelling, tool in named}

    @cached_property
    def wire_names(self) -> Mapping[str, str]:
        """The name of each tool in requests to a provider."""
        return wire_names(self.tools)

    @cached_property
    def _shown_first(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for _, tool in sorted(self.tools.items()) if not tool.spec.deferred)

    @cached_property
    def definitions(self) -> tuple[ToolSpec, ...]:
        """The definitions the model is shown: by name, then revealed tools in the order they were revealed."""
        later = [self.tools[name].spec for name in self.revealed if name in self.tools]
        return (*self._shown_first, *(spec for spec in later if spec.deferred))

    @cached_property
    def deferred(self) -> tuple[ToolSpec, ...]:
        """The tools the model is not shown until it searches for them, by name."""
        hidden = set(self.tools) - {spec.name for spec in self.definitions}
        return tuple(self.tools[name].spec for name in sorted(hidden))

    @cached_property
    def definition_tokens(self) -> int:
        """Estimated tokens of the definitions in every request."""
        return sum(map(estimate_spec_tokens, self.definitions))

    @property
    def advice(self) -> str:
        """A hint for a model that called an unknown tool; empty if there is no tool search."""
        return f"other tools can be found with {SEARCH_NAME}" if SEARCH_NAME in self.tools else ""

    def unknown_tool(self, name: str) -> UnknownTool:
        """Return the error for a name that no tool has, with the nearest names, or all of them where none is near."""
        if not isinstance(cast(object, name), str):  # a program's own call, perhaps with the tool itself
            return UnknownTool(safe_repr(name), advice="pass the name of the tool, as text")
        near = self.nearest(name)
        named = ", ".join(spec.name for spec in self.definitions[:_MAX_LISTED])
        listed = f"use one of {named}" if named and not near and not self.advice else self.advice
        return UnknownTool(name, near, advice=listed)

    def with_revealed(self, later: Mapping[str, Tool]) -> "Catalog":
        """Return a catalog of the same names that shows these tools after the others."""
        other = Catalog({**self.tools, **later}, (*self.revealed, *later), self.withheld)
        # a reveal changes neither of these, and with thousands of tools computing them costs more than the rest
        other.__dict__.update(_shown_first=self._shown_first, wire_names=self.wire_names)
        return other

    def get(self, name: str) -> Tool | None:
        """Return a tool by name, wire name or alias; the names that are advertised come first."""
        tool = self.tools.get(name)
        if tool is None:
            tool = self._by_wire.get(name)
        return self._by_alias.get(name) if tool is None else tool

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """Return the names most similar to one that does not exist.

        Args:
            name: The name that a model used.
            count: The most names to return.
        """
        index = {**self._by_alias, **self.tools}
        folded = {known.lower().replace("-", "_"): known for known in sorted(index, reverse=True)}
        guess = name[:_MAX_GUESS_CHARS].lower().replace("-", "_")
        from difflib import get_close_matches  # loaded with the first unknown name

        close = get_close_matches(guess, _likely_matches(guess, folded), n=count, cutoff=0.6)
        return list(dict.fromkeys(identify(index[folded[match]])[0] for match in close))

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())


def _likely_matches(guess: str, names: Collection[str]) -> Collection[str]:
    """Return the names that share most letter pairs: difflib takes a third of a second for thousands of names."""
    if len(names) <= _MAX_COMPARED:
        return names
    pairs = {guess[start : start + 2] for start in range(len(guess) - 1)} or {guess}
    return nlargest(_MAX_COMPARED, names, key=lambda name: sum(pair in name for pair in pairs))


def estimate_spec_tokens(spec: ToolSpec) -> int:
    """Estimate the tokens of one definition in every request."""
    return estimate_tokens(spec.name + spec.description + compact(spec.input_schema))


class Toolset(Protocol):
    """A source of tools: a registry, a view of one, the tools of a server."""

    @property
    def changes(self) -> int:
        """A counter that grows whenever the tools change."""
        ...

    def snapshot(self) -> Catalog:
        """Return the current tools; the same object until something changes."""
        ...


def require_toolset(given: Toolset, advice: str = "write Executor(Registry(*tools))") -> Toolset:
    """Return a toolset unchanged.

    Args:
        given: What the caller gave.
        advice: What to write instead.

    Raises:
        UsageError: It is not a toolset, or lacks one of its two members.
    """
    check_members(given, Toolset, "a toolset", advice)
    return given


def session_catalog(toolset: Toolset, state: State) -> Catalog:
    """Return the catalog of a session for one turn.

    Args:
        toolset: The tools; without `snapshot_for`, all sessions have the same ones.
        state: The state of the session.
    """
    return find_snapshot(toolset, state)()


def find_snapshot(toolset: Toolset, state: State) -> Callable[[], Catalog]:
    """Return what gives the catalog of a session in each turn; the arguments are those of `session_catalog`."""
    snapshot_for: Callable[[State], Catalog] | None = getattr(toolset, "snapshot_for", None)
    return toolset.snapshot if snapshot_for is None else partial(snapshot_for, state)
