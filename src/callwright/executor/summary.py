"""The one line that describes a call in an approval request."""

from collections.abc import Mapping
from typing import cast

from callwright.core.access import (
    Access,
    DeletePath,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.escaping import visible_line
from callwright.core.spec import ToolSpec
from callwright.executor.admitted import Admitted

_SUMMARY_CHARS = 200
CUT = " … "
"""Stands where a long text was cut."""


def summarize(call: Admitted) -> str:
    """Describe a call in one line: the command, path, address or URI if it declares one, and the other arguments."""
    target = next((target for access in call.accesses if (target := _target_of(access))), "")
    given = {name: value for name, value in call.arguments.items() if not _is_said(value, target)}
    if call.accesses and isinstance(call.accesses[0], RunCommand):
        defaults = _defaults(call.spec)  # a command says what it does by itself
        given = {name: value for name, value in given.items() if (name, value) not in defaults}
    others = ", ".join(f"{name}={value!r}" for name, value in given.items())
    if not target:
        return _shorten(others) or "no arguments"
    return f"{_shorten(target)} ({_shorten(others)})" if others else _shorten(target)


def _defaults(spec: ToolSpec) -> list[tuple[str, object]]:
    properties = cast("Mapping[str, Mapping[str, object]]", spec.input_schema.get("properties", {}))
    return [(name, field["default"]) for name, field in properties.items() if "default" in field]


def _target_of(access: Access) -> str:
    match access:
        case RunCommand(line=target) | Reach(url=target) | WritePath(target) | DeletePath(target) | ReadPath(target):
            return target
        case ReadResource(target) | WriteResource(target) | DeleteResource(target):
            return target
        case UseTool():
            return ""


def _is_said(value: object, target: str) -> bool:
    """Whether an argument is left out of a summary: it was not given, or the target says it."""
    return value is None or (isinstance(value, str) and bool(value) and target.endswith(value))


def _shorten(text: str) -> str:
    """Show hidden characters and cut the middle of a long text, so that a question cannot hide its end."""
    shown = visible_line(text)
    if len(shown) <= _SUMMARY_CHARS:
        return shown
    return f"{shown[: _SUMMARY_CHARS // 2]}{CUT}{shown[-_SUMMARY_CHARS // 2 :]}"
