"""Tools that other packages ship, loaded only when asked for."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from toolwright.core.errors import UsageError
from toolwright.tool.base import Tool

GROUP = "toolwright.tools"


def installed_plugins() -> list[str]:
    """Names of the tool packages that are installed; imports none of them."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_plugins(*names: str) -> list[Tool]:
    """Load tools from the entry points of these names, or from all; each gives a tool, several, or a function that does."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    for name in names:
        if name not in points:
            raise UsageError(f"no installed package offers tools named {name!r}; there are {', '.join(points) or 'none'}")
    return [tool for name in (names or sorted(points)) for tool in _load(points[name])]


def _load(point: EntryPoint) -> list[Tool]:
    try:
        found: Any = point.load()
        if callable(found) and not hasattr(found, "bind"):
            found = found()
    except Exception as error:
        raise UsageError(f"the tools of {point.name!r} ({point.value}) cannot be loaded: {error}") from error
    tools = [found] if hasattr(found, "bind") else list(cast("Iterable[Any]", found))
    for tool in tools:
        if not hasattr(tool, "bind") or not hasattr(tool, "spec"):
            raise UsageError(f"{point.name!r} ({point.value}) offers {tool!r}, which is not a tool")
    return tools
