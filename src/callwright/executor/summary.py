"""The one line that describes a call in an approval request."""

from collections.abc import Mapping
from typing import cast

from callwright.core.access import RunCommand, UseTool, target_of
from callwright.core.spec import ToolSpec
from callwright.executor.admitted import Admitted
from callwright.policy.base import make_printable

_SUMMARY_CHARS = 200


def summarize(call: Admitted) -> str:
    """Describe a call in one line: the command, path, address or URI if it declares one, and the other arguments."""
    targets = (target_of(access) for access in call.accesses if not isinstance(access, UseTool))
    target = next(filter(None, targets), "")
    given = {name: value for name, value in call.arguments.items() if not _is_left_out(value, target)}
    if call.accesses and isinstance(call.accesses[0], RunCommand):
        defaults = _defaults(call.spec)  # a command says what it does by itself
        given = {name: value for name, value in given.items() if (name, value) not in defaults}
    others = ", ".join(f"{name}={value!r}" for name, value in given.items())
    shown, beside = (make_printable(text, chars=_SUMMARY_CHARS) for text in (target, others))
    if not shown:
        return beside or "no arguments"
    return f"{shown} ({beside})" if beside else shown


def _defaults(spec: ToolSpec) -> list[tuple[str, object]]:
    properties = cast("Mapping[str, Mapping[str, object]]", spec.input_schema.get("properties", {}))
    return [(name, field["default"]) for name, field in properties.items() if "default" in field]


def _is_left_out(value: object, target: str) -> bool:
    """Whether an argument is left out of a summary: it was not given, or the target says it."""
    return value is None or (isinstance(value, str) and bool(value) and target.endswith(value))
