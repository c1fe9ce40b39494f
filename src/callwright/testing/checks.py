"""Conformance checks for tools, toolsets, providers and skills; they raise `AssertionError` with what is wrong."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path

from callwright.core.calls import Completed, Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.errors import InvalidArguments, ToolError, UnknownTool
from callwright.core.json import JsonObject, canonical, thaw
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.core.spec import Annotations, Effect, ToolSpec, check_name
from callwright.executor.executor import Executor
from callwright.executor.turn_context import Turn, TurnCancelled
from callwright.policy.decide import AllowEverything
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    TextDelta,
    ThinkingDelta,
)
from callwright.registry.catalog import Toolset
from callwright.registry.registry import Registry
from callwright.skills.check import check_skill_file
from callwright.skills.skill import SKILL_FILE, Skill
from callwright.tool.base import Tool

_INVALID_ARGUMENTS: tuple[str | bytes, ...] = (
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "[" * 5000,
    b"\xff\xfe",
    '{"\\ud800": 1}',
)
_CANCEL_SECONDS = 0.02


async def check_tool(tool: Tool, *examples: JsonObject, folder: str | os.PathLike[str] | None = None) -> list[Outcome]:
    """Check that a tool keeps the contract; return the outcomes of the examples.

    The spec is valid and stable, invalid arguments raise `InvalidArguments`, binding changes nothing and returns the
    same accesses each time, a READ tool does not change `folder`, and cancelling leaves no process behind.

    Args:
        tool: The tool to check.
        examples: Arguments to run the tool with.
        folder: A folder that the tool may access; compared before and after.

    Raises:
        AssertionError: The tool breaks the contract.
    """
    _check_spec(tool)
    _check_refusals(tool)
    outcomes: list[Outcome] = []
    for example in examples:
        _check_binding(tool, example, folder)
        outcomes.append(await _check_running(tool, example, folder))
        await _check_cancelling(tool, example)
    return outcomes


async def check_toolset(toolset: Toolset) -> None:
    """Check that a toolset keeps the contract: stable snapshots, unique names that can be looked up, valid tools.

    Args:
        toolset: The toolset to check.

    Raises:
        AssertionError: The toolset breaks the contract.
    """
    catalog = toolset.snapshot()
    assert toolset.snapshot() is catalog, "snapshot() must return the same object until a tool changes"
    assert catalog.definitions is catalog.definitions, "definitions must be the same value every time"
    wires = list(catalog.wire_names.values())
    assert len(set(wires)) == len(wires), f"wire names must be unique: {sorted(wires)}"
    for name, tool in catalog.tools.items():
        assert tool.spec.name == name, f"{name} is listed under a name that differs from its spec: {tool.spec.name}"
        assert catalog.get(name) is tool, f"{name} cannot be looked up by its name"
        assert catalog.get(catalog.wire_names[name]) is tool, f"{name} cannot be looked up by its wire name"
        await check_tool(tool)
    shown = [spec.name for spec in catalog.definitions if not spec.deferred]
    assert shown == sorted(shown), f"definitions must be sorted by name: {shown}"


def _check_spec(tool: Tool) -> None:
    import jsonschema_rs

    spec = tool.spec
    check_name(spec.name)
    assert spec is tool.spec or spec == tool.spec, f"{spec.name}: the spec must not change between two reads"
    assert spec.input_schema.get("type") == "object", f"{spec.name}: input_schema must describe an object"
    canonical(spec.input_schema)
    jsonschema_rs.validator_for(thaw(spec.input_schema))
    if spec.output_schema is not None:
        jsonschema_rs.validator_for(thaw(spec.output_schema))


def _check_refusals(tool: Tool) -> None:
    for arguments in _INVALID_ARGUMENTS:
        try:
            tool.bind(arguments)
        except InvalidArguments as error:
            assert len(error.message) < 2000, (
                f"{tool.spec.name}: the message for {arguments[:20]!r} is longer than 2000 characters"
            )
        except Exception as error:
            if isinstance(error, UnknownTool) and tool.spec.deferred:  # `Deferred(…, unrevealed="refuse")`
                return
            raise AssertionError(
                f"{tool.spec.name}: {arguments[:20]!r} must raise InvalidArguments, got {error!r}"
            ) from error
        else:
            raise AssertionError(f"{tool.spec.name}: {arguments[:20]!r} must raise InvalidArguments")


def _check_binding(tool: Tool, example: JsonObject, folder: str | os.PathLike[str] | None) -> None:
    before = _fingerprint(folder)
    first, second = tool.bind(example), tool.bind(canonical(example))
    assert canonical(first.arguments) == canonical(second.arguments), (
        f"{tool.spec.name}: text and object arguments must bind alike"
    )
    again = tool.bind(first.arguments)
    assert canonical(again.arguments) == canonical(first.arguments), (
        f"{tool.spec.name}: bound arguments must bind to themselves"
    )
    assert _accesses(first) == _accesses(first) == _accesses(second), f"{tool.spec.name}: accesses must be repeatable"
    assert _fingerprint(folder) == before, f"{tool.spec.name}: bind and accesses must change nothing"


def _accesses(invocation: object) -> Sequence[object]:
    try:
        return tuple(invocation.accesses())  # type: ignore[attr-defined] - an Invocation
    except ToolError as error:
        return (error.message,)


async def _check_running(tool: Tool, example: JsonObject, folder: str | os.PathLike[str] | None) -> Outcome:
    before = _fingerprint(folder)
    executor = Executor(Registry(tool), AllowEverything())
    outcome = await executor.run(tool.spec.name, example)
    if tool.spec.annotations.effect is Effect.READ:
        assert _fingerprint(folder) == before, f"{tool.spec.name}: its effect is READ, but {folder} has changed"
    if isinstance(outcome, Completed) and tool.spec.output_schema is not None:
        import jsonschema_rs

        validator = jsonschema_rs.validator_for(thaw(tool.spec.output_schema))
        given = outcome.output.structured
        # of a tool that returns text of some kind, such as a Literal, the text is the value
        assert validator.is_valid(thaw(given)) or (given is None and validator.is_valid(outcome.text)), (
            f"{tool.spec.name}: the output does not match its schema"
        )
    return outcome


async def _check_cancelling(tool: Tool, example: JsonObject) -> None:
    children = _find_child_processes()
    executor = Executor(Registry(tool), AllowEverything())
    task = asyncio.create_task(executor.execute([ToolCall("cancelled", tool.spec.name, example)], turn=Turn()))
    await asyncio.sleep(_CANCEL_SECONDS)  # long enough for a subprocess to be started
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as stopped:
        cancelled = TurnCancelled.find(stopped)
        assert cancelled is not None and len(cancelled.outcomes) == 1, (
            f"{tool.spec.name}: a cancelled call must have an outcome"
        )
    for _ in range(100):  # killed processes need a moment to be reaped
        if _find_child_processes() <= children:
            return
        await asyncio.sleep(_CANCEL_SECONDS)
    raise AssertionError(
        f"{tool.spec.name}: cancelling left processes behind: {sorted(_find_child_processes() - children)}"
    )


def _find_child_processes() -> set[int]:
    """Return the ids of all running descendants of this process."""
    own = os.getpid()
    parents: dict[int, int] = {}
    for entry in _process_folders(Path("/proc")):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":  # a zombie has ended
            parents[int(entry.name)] = int(fields[1])
    found: set[int] = set()
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != own:
            ancestor = parents[ancestor]
        if ancestor == own and pid != own:
            found.add(pid)
    return found


def _process_folders(folder: Path) -> Iterable[Path]:
    return (entry for entry in folder.iterdir() if entry.name.isdigit()) if folder.is_dir() else ()


def _fingerprint(folder: str | os.PathLike[str] | None) -> dict[str, str]:
    """Return mode and content hash of everything below a folder, by path."""
    if folder is None:
        return {}
    assert Path(folder).is_dir(), f"{folder} is not a folder: nothing can be compared in it"
    found: dict[str, str] = {}
    for path in sorted(Path(folder).rglob("*")):
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = f"{path.lstat().st_mode}:{sha256(content).hexdigest()}"
    return found


def check_skill(folder: str | PathLike[str]) -> Skill:
    """Check that a skill follows the open standard; return the skill.

    All problems are reported together: invalid and unknown fields, lengths, names, instructions that are too long,
    links to files that are missing or outside the folder, commands into which an argument cannot be put safely.

    Args:
        folder: The folder of the skill, or the SKILL.md in it.

    Raises:
        AssertionError: The skill has problems, listed by line.
    """
    root = Path(folder).resolve()
    root = root.parent if root.name == SKILL_FILE and root.is_file() else root
    file = root / SKILL_FILE
    assert file.is_file(), f"{root} contains no {SKILL_FILE} (the name is case-sensitive)"
    skill, problems = check_skill_file(file)
    assert not problems, "\n".join(map(str, problems))
    assert skill is not None
    return skill


_TOOL = ToolSpec(
    "check.add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    annotations=Annotations(Effect.READ),
)
_WIRE = {"check.add": "check_add"}
_ASKED = UserMessage("What is 17 + 25? Use the tool.")
_CALLED = ToolCall("call_1", "check.add", '{"a": 17, "b": 25}')


async def check_provider(provider: Provider) -> list[AssistantMessage]:
    """Check that a provider keeps the contract; return the messages it produced.

    The check asks a plain question, offers a tool, shows an outcome, and leaves a stream early. Every stream must end
    with the complete message, its deltas must add up to that message, and calls must have unique ids, known names and
    JSON arguments.

    Args:
        provider: The provider to check; it receives five requests.

    Raises:
        AssertionError: The provider breaks the contract.
    """
    assert provider.model, "a provider must name its model"
    plain: tuple[Message, ...] = (UserMessage("Say hello."),)
    answered: tuple[Message, ...] = (
        _ASKED,
        AssistantMessage((_CALLED,), "calls"),
        ToolMessage((Completed(_CALLED, Output("42")),)),
    )
    requests = [
        ModelRequest(plain, system="Answer in one word."),
        ModelRequest((_ASKED,), tools=(_TOOL,), wire_names=_WIRE),
        ModelRequest(answered, tools=(_TOOL,), wire_names=_WIRE),
    ]
    messages = [_check_stream([event async for event in provider.stream(request)]) for request in requests]
    await _check_leaving(provider, requests[0])
    return messages


def _check_stream(events: Sequence[ModelEvent]) -> AssistantMessage:
    assert events, "a stream must have events"
    last = events[-1]
    assert isinstance(last, MessageDone), f"the last event must be MessageDone, got {last!r}"
    ends = [event for event in events if isinstance(event, MessageDone)]
    assert len(ends) == 1, f"a stream must have one MessageDone, got {len(ends)}"
    message = last.message
    _check_deltas(events, message)
    _check_calls(message)
    usage = message.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert min(counts) >= 0, f"usage must not be negative: {usage}"
    return message


def _check_deltas(events: Sequence[ModelEvent], message: AssistantMessage) -> None:
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == message.text, f"the text deltas are {text!r}, the message is {message.text!r}"
    named = {event.call_id for event in events if isinstance(event, CallDelta)}
    known = {call.id for call in message.calls}
    assert named <= known, f"deltas of calls that are not in the message: {sorted(named - known)}"
    assert all(event.text for event in events if isinstance(event, ThinkingDelta)), "a thinking delta must not be empty"


def _check_calls(message: AssistantMessage) -> None:
    calls = message.calls
    assert len({call.id for call in calls}) == len(calls), "calls must have unique ids"
    if calls:
        assert message.stop in ("calls", "length"), (
            f"a message with calls must stop with 'calls' or 'length', got {message.stop!r}"
        )
    for call in calls:
        assert call.id, f"{call.name}: a call must have an id"
        assert call.name in (*_WIRE, *_WIRE.values()), f"{call.name!r} was not offered"
        if isinstance(call.arguments, (str, bytes)) and message.stop != "length":
            json.loads(call.arguments)


async def _check_leaving(provider: Provider, request: ModelRequest) -> None:
    """Check that a request works after an earlier stream was closed early."""
    stream = provider.stream(request)
    async for _ in stream:
        break
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()
    _check_stream([event async for event in provider.stream(request)])
