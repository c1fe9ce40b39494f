"""Loads tools from the entry points of installed packages."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from callwright.core.errors import UsageError
from callwright.tool.base import Tool

GROUP = "callwright.tools"


def installed_plugins() -> list[str]:
    """Return the names of installed tool packages without importing them."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_plugins(*names: str) -> list[Tool]:
    """Load tools from entry points: a tool, a tool class, several tools, or a function that returns any of these.

    Args:
        names: Names of entry points; without any, all are loaded.

    Raises:
        UsageError: A name is unknown, or an entry point cannot be loaded or offers something else than tools.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    known = sorted({point.name for point in points})
    for name in names:
        if name not in known:
            raise UsageError(
                f"no installed package offers tools named {name!r}; known names: {', '.join(known) or 'none'}"
            )
    wanted = dict.fromkeys(names or known)
    return [tool for name in wanted for point in points if point.name == name for tool in _load(point)]


def _load(point: EntryPoint) -> list[Tool]:
    try:
        found: Any = point.load()
        if isinstance(found, type) or (callable(found) and not hasattr(found, "bind")):
            found = found()
        tools: list[Any] = [found] if hasattr(found, "bind") else list(cast("Iterable[Any]", found))
    except Exception as error:
        raise UsageError(f"the tools of {point.name!r} ({point.value}) cannot be loaded: {error}") from error
    for tool in tools:
        if isinstance(tool, type) or not hasattr(tool, "bind") or not hasattr(tool, "spec"):
            raise UsageError(f"{point.name!r} ({point.value}) offers {tool!r}, which is not a tool")
    return tools
