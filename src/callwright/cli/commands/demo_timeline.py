"""`callwright demo --turn`: one scripted turn of five calls through the real executor, printed as a timeline."""

import asyncio
import tempfile
import time
from pathlib import Path

from callwright.core.access import ReadPath, WritePath
from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.events import CallBegan, CallEnded, Event
from callwright.core.spec import Effect
from callwright.executor.executor import Executor
from callwright.policy.modes import ByMode
from callwright.registry.registry import Registry
from callwright.tool.base import Tool
from callwright.tool.function import tool

_READ_SECONDS = 0.15


def show_turn() -> None:
    """Run one turn of five calls, as a model would send them, and print which calls ran in parallel."""
    with tempfile.TemporaryDirectory(prefix="callwright-demo-") as folder:
        asyncio.run(_run_turn(Path(folder)))


def note_tools(folder: Path) -> list[Tool]:
    """Return three typed tools that read, replace and count notes in a folder."""

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
            text: The new content.
        """
        (folder / name).write_text(text, encoding="utf-8")
        return f"wrote {len(text.encode())} bytes to {name}"

    @tool(effect=Effect.READ)
    def count_notes() -> dict[str, int]:
        """Count the notes."""
        return {"notes": len(list(folder.iterdir()))}

    return [read_note, write_note, count_notes]


async def _run_turn(folder: Path) -> None:
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
    print("the model sends five calls in one turn:\n")
    for call in calls:
        print(f"  {call.id}  {call.name}({call.arguments!s})")
    print("\ntimeline (c3 writes the file that c2 reads, so it waits for c2, but not for c1):\n")
    outcomes = await executor.execute(calls)
    print("\noutcomes for the model, one per call, in call order:\n")
    for outcome in outcomes:
        print(f"  {outcome.call.id}  {_format_outcome(outcome)}")
    print(f"\ntodo.txt now contains: {(folder / 'todo.txt').read_text(encoding='utf-8')!r}")
    print("\nnext: decorate a typed function with @tool and run it the same way; see README.md")


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
    return outcome.error.code if isinstance(outcome, Failed) else "needs approval"


def _format_outcome(outcome: Outcome) -> str:
    if isinstance(outcome, Completed):
        return f"ok     {outcome.text}"
    return f"error  {outcome.text}" if isinstance(outcome, Failed) else "needs approval"
