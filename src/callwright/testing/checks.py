"""Contracts as functions: run them on your own tools; they raise `AssertionError` and say what is broken.

The contract of a skill as a function: run it on your own.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path

from callwright.core.calls import Completed, Outcome, ToolCall
from callwright.core.errors import InvalidArguments, ToolError
from callwright.core.json import JsonObject, canonical, thaw
from callwright.core.spec import Effect, check_name
from callwright.executor.executor import Executor
from callwright.executor.turn import Turn, TurnCancelled
from callwright.policy.decide import AllowEverything
from callwright.registry.catalog import Toolset
from callwright.registry.registry import Registry
from callwright.skills.check import examine
from callwright.skills.skill import Skill
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
    """Check that a tool keeps the contract; returns the outcomes of the examples.

    The spec is valid and stable, nonsense is refused with `InvalidArguments`, binding changes nothing and gives the
    same accesses each time, a READ tool leaves `folder` as it was, and cancelling leaves no process behind.
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
    """Check that a toolset keeps the contract: stable snapshots, findable names, unique wire names, sound tools."""
    catalog = toolset.snapshot()
    assert toolset.snapshot() is catalog, "snapshot() must be the same object until something changes"
    assert catalog.definitions is catalog.definitions, "definitions must be the same value every time"
    wires = list(catalog.wire_names.values())
    assert len(set(wires)) == len(wires), f"wire names must be unique: {sorted(wires)}"
    for name, tool in catalog.tools.items():
        assert tool.spec.name == name, f"{name} is kept under a name that is not its own: {tool.spec.name}"
        assert catalog.get(name) is tool, f"{name} cannot be looked up by its name"
        assert catalog.get(catalog.wire_names[name]) is tool, f"{name} cannot be looked up by its wire name"
        await check_tool(tool)
    shown = [spec.name for spec in catalog.definitions if not spec.deferred]
    assert shown == sorted(shown), f"definitions must be sorted by name: {shown}"


def _check_spec(tool: Tool) -> None:
    import jsonschema_rs

    spec = tool.spec
    check_name(spec.name)
    assert spec is tool.spec or spec == tool.spec, f"{spec.name}: the spec must not change between two looks"
    assert spec.input_schema.get("type") == "object", f"{spec.name}: input_schema must describe an object"
    canonical(spec.input_schema)
    jsonschema_rs.validator_for(thaw(spec.input_schema))
    if spec.output_schema is not None:
        jsonschema_rs.validator_for(thaw(spec.output_schema))


def _check_refusals(tool: Tool) -> None:
    for nonsense in _INVALID_ARGUMENTS:
        try:
            tool.bind(nonsense)
        except InvalidArguments as error:
            assert len(error.message) < 2000, f"{tool.spec.name}: the refusal of {nonsense[:20]!r} is too long"
        except Exception as error:
            raise AssertionError(
                f"{tool.spec.name}: {nonsense[:20]!r} must be refused with InvalidArguments, not {error!r}"
            ) from error
        else:
            raise AssertionError(f"{tool.spec.name}: {nonsense[:20]!r} must be refused")


def _check_binding(tool: Tool, example: JsonObject, folder: str | os.PathLike[str] | None) -> None:
    before = _fingerprint(folder)
    first, second = tool.bind(example), tool.bind(canonical(example))
    assert canonical(first.arguments) == canonical(second.arguments), (
        f"{tool.spec.name}: text and object arguments must bind alike"
    )
    again = tool.bind(first.arguments)
    assert canonical(again.arguments) == canonical(first.arguments), (
        f"{tool.spec.name}: arguments as they will run must bind to themselves"
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
        assert _fingerprint(folder) == before, f"{tool.spec.name}: claims to READ, but {folder} has changed"
    if isinstance(outcome, Completed) and tool.spec.output_schema is not None:
        import jsonschema_rs

        validator = jsonschema_rs.validator_for(thaw(tool.spec.output_schema))
        assert validator.is_valid(thaw(outcome.output.structured)), f"{tool.spec.name}: output does not fit its schema"
    return outcome


async def _check_cancelling(tool: Tool, example: JsonObject) -> None:
    children = _find_child_processes()
    executor = Executor(Registry(tool), AllowEverything())
    task = asyncio.create_task(executor.execute([ToolCall("cancelled", tool.spec.name, example)], turn=Turn()))
    await asyncio.sleep(_CANCEL_SECONDS)
    task.cancel()
    try:
        await task
    except TurnCancelled as stopped:
        assert len(stopped.outcomes) == 1, f"{tool.spec.name}: a cancelled call must have its outcome"
    for _ in range(100):
        if _find_child_processes() <= children:
            return
        await asyncio.sleep(_CANCEL_SECONDS)
    raise AssertionError(
        f"{tool.spec.name}: cancelling left processes behind: {sorted(_find_child_processes() - children)}"
    )


def _find_child_processes() -> set[int]:
    """Processes started from this one that are still there, wherever they have been adopted."""
    own = os.getpid()
    parents: dict[int, int] = {}
    for entry in _process_folders(Path("/proc")):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.name)] = int(fields[1])
    found: set[int] = set()
    for pid in parents:
        above = pid
        while above in parents and above != own:
            above = parents[above]
        if above == own and pid != own:
            found.add(pid)
    return found


def _process_folders(folder: Path) -> Iterable[Path]:
    return (entry for entry in folder.iterdir() if entry.name.isdigit()) if folder.is_dir() else ()


def _fingerprint(folder: str | os.PathLike[str] | None) -> dict[str, str]:
    """Names, kinds and contents of everything below a folder."""
    if folder is None:
        return {}
    found: dict[str, str] = {}
    for path in sorted(Path(folder).rglob("*")):
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = f"{path.lstat().st_mode}:{sha256(content).hexdigest()}"
    return found


_FILE = "SKILL.md"


def check_skill(folder: str | PathLike[str]) -> Skill:
    """Check that a folder, or the SKILL.md in it, is a sound skill by the open standard.

    Raises `AssertionError` with every mistake, by line.
    Everything is named at once: fields, lengths, names, fields nobody knows, instructions too long to load whole,
    links to files that are missing or outside, commands an argument cannot be put into safely.
    """
    place = Path(folder).resolve()
    place = place.parent if place.name == _FILE and place.is_file() else place
    file = place / _FILE
    assert file.is_file(), f"{place} holds no {_FILE}, spelt like that"
    skill, problems = examine(file)
    assert not problems, "\n".join(map(str, problems))
    assert skill is not None
    return skill
