"""Calls that are only judged and never run: for `judge_command`, rule examples and `callwright permissions test`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from callwright.core.access import (
    Access,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.json import FrozenDict, JsonObject
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.policy.tool_names import canonical

_NO_ARGUMENTS: JsonObject = FrozenDict()
_READERS = frozenset({"read", "glob", "grep", "ls"})
_RESOURCE_KINDS = {
    "resource": (WriteResource, Effect.WRITE),
    "readresource": (ReadResource, Effect.READ),
    "writeresource": (WriteResource, Effect.WRITE),
    "deleteresource": (DeleteResource, Effect.DESTROY),
}


@dataclass(frozen=True, slots=True)
class DryRunCall:
    """Stands in for a real call where only the decision about it is needed."""

    spec: ToolSpec
    arguments: JsonObject = _NO_ARGUMENTS
    session_id: str = ""


def accesses_to_judge(spec: ToolSpec, accesses: Sequence[Access]) -> Sequence[Access]:
    """Return the declared accesses of a call, or one `UseTool` if it declares none."""
    return accesses or (UseTool(spec.name, spec.annotations.effect),)


def dry_run_line(line: str) -> DryRunCall:
    """Return the call of a shell tool that runs a line."""
    return DryRunCall(_spec("bash", Effect.DESTROY, "shell"), FrozenDict({"command": line}))


def dry_run_call(tool: str, argument: str, cwd: str) -> tuple[Access, DryRunCall]:
    """Return the access and the call of a tool that is called with its main argument: a line, path, address or URI."""
    family = canonical(tool)
    if family == "bash":
        return RunCommand(argument, cwd), dry_run_line(argument)
    if family in _READERS:
        return ReadPath(argument), DryRunCall(_spec(tool, Effect.READ, "file"), FrozenDict({"path": argument}))
    if family == "edit":
        return WritePath(argument), DryRunCall(_spec(tool, Effect.WRITE, "file"), FrozenDict({"path": argument}))
    if family == "webfetch":
        return Reach(argument), DryRunCall(_spec(tool, Effect.READ, "web"), FrozenDict({"url": argument}))
    if family in _RESOURCE_KINDS:
        kind, effect = _RESOURCE_KINDS[family]
        return kind(argument), DryRunCall(_spec(tool, effect, ""), FrozenDict({"uri": argument}))
    spec = _spec(tool, Effect.WRITE, "")
    return UseTool(tool, Effect.WRITE), DryRunCall(spec, _arguments(argument))


@lru_cache(maxsize=64)
def _spec(name: str, effect: Effect, group: str) -> ToolSpec:
    safe = "".join(character if character.isalnum() or character in "_-." else "_" for character in name)
    return ToolSpec(safe, "a dry run", {"type": "object"}, annotations=Annotations(effect), group=group)


def _arguments(text: str) -> JsonObject:
    """Parse `key=value` words as arguments; any other text becomes the argument `name`."""
    pairs = [word.partition("=") for word in text.split()]
    if pairs and all(equals for _, equals, _ in pairs):
        return FrozenDict({key: value for key, _, value in pairs})
    return FrozenDict({"name": text})
