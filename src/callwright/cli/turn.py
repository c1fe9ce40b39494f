"""`callwright demo --turn`: one scripted turn of five calls through the real executor, on real files."""

import asyncio
import tempfile
import time
from pathlib import Path

from callwright.core.access import ReadPath, WritePath
from callwright.core.call import Completed, Failed, Outcome, ToolCall
from callwright.core.event import CallBegan, CallEnded, Event
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.policy.mode import ByMode
from callwright.registry.registry import Registry
from callwright.tool.base import Tool
from callwright.tool.function import tool

_READ_SECONDS = 0.15


def show_turn() -> None:
    """Serve one turn of five calls, as a model would send them, and show what ran beside what."""
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        asyncio.run(_serve(Path(folder)))


def note_tools(folder: Path) -> list[Tool]:
    """Three typed tools that read, change and count notes in a folder."""

    @tool(effect=Effect.READ, accesses=lambda arguments: [ReadPath(str(folder / str(arguments["name"])))])
    async def read_note(name: str) -> str:
        """Read a note.

        Args:
            name: The note's file name.
        """
        await asyncio.sleep(_READ_SECONDS)  # so that the timeline has something to show
        return (folder / name).read_text(encoding="utf-8")

    @tool(effect=Effect.WRITE, accesses=lambda arguments: [WritePath(str(folder / str(arguments["name"])))])
    def write_note(name: str, text: str) -> str:
        """Replace a note.

        Args:
            name: The note's file name.
            text: What it says from now on.
        """
        (folder / name).write_text(text, encoding="utf-8")
        return f"wrote {len(text.encode())} bytes to {name}"

    @tool(effect=Effect.READ)
    def count_notes() -> dict[str, int]:
        """Count the notes."""
        return {"notes": len(list(folder.iterdir()))}

    return [read_note, write_note, count_notes]


async def _serve(folder: Path) -> None:
    (folder / "plan.txt").write_text("1. read  2. think  3. write", encoding="utf-8")
    (folder / "todo.txt").write_text("water the plants", encoding="utf-8")
    timeline = _Timeline()
    executor = Executor(Registry(*note_tools(folder)), ByMode("auto"), observe=timeline)
    calls = [
        ToolCall("c1", "read_note", '{"name": "plan.txt"}'),
        ToolCall("c2", "read_note", '{"name": "todo.txt"}'),
        ToolCall("c3", "write_note", '{"name": "todo.txt", "text": "plants are watered"}'),
        ToolCall("c4", "raed_note", '{"name": "plan.txt"}'),
        ToolCall("c5", "write_note", '{"name": "todo.txt", "txt": 42}'),
    ]
    print("the model asks for five calls in one turn:\n")
    for call in calls:
        print(f"  {call.id}  {call.name}({call.arguments!s})")
    print("\nwhat happened (c3 writes what c2 reads, so it waits; c1 does not care):\n")
    outcomes = await executor.execute(calls)
    print("\nwhat the model is told, one outcome per call, in call order:\n")
    for outcome in outcomes:
        print(f"  {outcome.call.id}  {_told(outcome)}")
    print(f"\non disk todo.txt now says: {(folder / 'todo.txt').read_text(encoding='utf-8')!r}")
    print("\nnext: write a typed function, put @tool on it, and run it the same way; README.md shows how")


class _Timeline:
    """Prints calls as they start and end."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def __call__(self, event: Event) -> None:
        milliseconds = (time.perf_counter() - self._began) * 1000
        if isinstance(event, CallBegan):
            print(f"  {milliseconds:6.1f} ms  {event.call.id}  > {event.call.name} starts")
        elif isinstance(event, CallEnded):
            ending = "done" if isinstance(event.outcome, Completed) else _code(event.outcome)
            print(f"  {milliseconds:6.1f} ms  {event.outcome.call.id}  < {event.outcome.call.name} {ending}")


def _code(outcome: Outcome) -> str:
    return outcome.error.code if isinstance(outcome, Failed) else "waits for an answer"


def _told(outcome: Outcome) -> str:
    if isinstance(outcome, Completed):
        return f"ok     {outcome.text}"
    return f"error  {outcome.text}" if isinstance(outcome, Failed) else "asks"
