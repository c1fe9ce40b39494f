"""Calls of function tools that need more than their values: how they were written, or copies for each run."""

from collections.abc import Coroutine
from copy import deepcopy
from typing import Any, TypeVar

from callwright.core.json import JsonObject
from callwright.tool.base import ToolContext
from callwright.tool.concealment import digest_written, recall_defaults, restore_concealed
from callwright.tool.function import Bound, FunctionTool

Copied = TypeVar("Copied")


def bind_special(tool: FunctionTool, values: dict[str, Any], written: JsonObject | str | bytes) -> Bound:
    """Return the invocation of a tool whose contract is special."""
    contract = tool.contract
    concealed = digest_written(written) if contract.concealed else ""
    return (FreshBound if contract.fresh else ConcealingBound)(tool, values, concealed)


class ConcealingBound(Bound):
    """One call of a function tool whose arguments are not all shown as they are."""

    __slots__ = ("concealed",)

    def __init__(self, tool: FunctionTool, values: dict[str, Any], concealed: str) -> None:
        super().__init__(tool, values)
        self.concealed = concealed
        """A digest of the arguments as they were written; empty if they are all shown."""

    def restore_concealed(self, edited: JsonObject, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject:
        """Return edited arguments with what they do not show as it was written."""
        contract = self.tool.contract
        if not contract.concealed:
            return edited
        return restore_concealed(edited, shown, written, contract.concealed, self._aliases)

    @property
    def _aliases(self) -> dict[str, str]:
        return {alias: each.name for each in self.tool.contract.shape.parameters for alias in each.aliases}


class FreshBound(ConcealingBound):
    """One call of a function tool with a default that is made for each call: it cannot be made again for a retry."""

    __slots__ = ()

    def take_values(self, other: Bound) -> None:
        """Keep the values: the others have another default."""

    def recall_defaults(self, shown: JsonObject, written: JsonObject | str | bytes) -> JsonObject | None:
        """Return the arguments with the defaults of each call as they were shown before."""
        contract = self.tool.contract
        return recall_defaults(written, shown, contract.fresh, contract.concealed, self._aliases)

    def run(self, context: ToolContext) -> Coroutine[Any, Any, object]:
        """Run with a copy, so that a function that changes its arguments does not change those of a retry."""
        return self.tool.perform(copy_values(self.values), context)


def copy_values(values: Copied) -> Copied:
    """Return a copy of validated arguments; the same object if one of them cannot be copied."""
    try:
        return deepcopy(values)
    except Exception:  # noqa: BLE001 - whatever methods of its own a value has
        return values
