"""A call that exists only to be judged: for `judge_command`, for rule examples and for the rule tester."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Stands in for a real call where only the decision about it is wanted."""

    spec: ToolSpec
    arguments: JsonObject = _NO_ARGUMENTS
    session_id: str = ""


def accesses_to_judge(spec: ToolSpec, accesses: Sequence[Access]) -> Sequence[Access]:
    """What a call is judged by: what it would touch, or where it declares nothing, that the tool is used."""
    return accesses or (UseTool(spec.name, spec.annotations.effect),)


def dry_run_line(line: str) -> DryRunCall:
    """Return the call a shell tool would get for a line."""
    return DryRunCall(_spec("bash", Effect.DESTROY, "shell"), FrozenDict({"command": line}))


def dry_run_call(tool: str, argument: str, cwd: str) -> tuple[Access, DryRunCall]:
    """Return what a tool of that name would touch when called with its main argument."""
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


def _spec(name: str, effect: Effect, group: str) -> ToolSpec:
    safe = "".join(character if character.isalnum() or character in "_-." else "_" for character in name)
    return ToolSpec(safe, "judged only", {"type": "object"}, annotations=Annotations(effect), group=group)


def _arguments(text: str) -> JsonObject:
    """Read `key=value` words as arguments; anything else is the one argument called name."""
    pairs = [word.partition("=") for word in text.split()]
    if pairs and all(equals for _, equals, _ in pairs):
        return FrozenDict({key: value for key, _, value in pairs})
    return FrozenDict({"name": text})
