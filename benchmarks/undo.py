"""The undo table: what keeping changes costs an edit, and what comparing the workspace costs a command."""

import asyncio
import math
import tempfile
import time
from pathlib import Path

from benchmarks.measure import table
from callwright import Completed, Executor, Registry
from callwright.policy import AllowEverything
from callwright.system.undo import UndoStore
from callwright.system.undo.command_watch import CommandWatch
from callwright.toolbox import Edit, Read

_BYTES = 10_000
_EDITS = 20
Row = tuple[str, str, str, bool]


class Editor:
    """Edits one file back and forth, in a new turn each time."""

    def __init__(self, folder: Path, *, undo: bool) -> None:
        folder.mkdir()
        self._executor = Executor(Registry(Read(folder), Edit(folder)), AllowEverything())
        self._recorder = UndoStore(folder.with_suffix(".kept")).recorder("s") if undo else None
        if self._recorder is not None:
            self._executor.state.put(self._recorder)
        self._words = ["first", "other"]
        (folder / "file").write_text("first\n" + "text of a line\n" * (_BYTES // 15))

    async def prepare(self) -> None:
        await self._executor.run("read", {"path": "file"})

    async def edit(self) -> None:
        if self._recorder is not None:
            self._recorder.begin_turn()
        old, new = self._words
        outcome = await self._executor.run("edit", {"path": "file", "old_string": old, "new_string": new})
        assert isinstance(outcome, Completed)
        self._words.reverse()


async def edits() -> list[Row]:
    """Measure an edit with and without undo, in turns: by the clock, because most of it waits for the disk."""
    with tempfile.TemporaryDirectory() as name:
        made = [Editor(Path(name, label), undo=label == "kept") for label in ("plain", "kept")]
        for editor in made:
            await editor.prepare()
        best, processor = [math.inf, math.inf], [math.inf, math.inf]
        for _ in range(30):
            for place, editor in enumerate(made):
                began, used = time.perf_counter(), time.process_time()
                for _ in range(_EDITS):
                    await editor.edit()
                best[place] = min(best[place], (time.perf_counter() - began) / _EDITS)
                processor[place] = min(processor[place], (time.process_time() - used) / _EDITS)
    ratio = best[1] / best[0]
    added = (processor[1] - processor[0]) * 1e6
    return [
        ("one edit of 10 kB, by the clock", f"{ratio:.2f}x of {best[0] * 1e3:.1f} ms", "<= 1.5x", ratio <= 1.5),
        ("the same, processor time added", f"{added:.0f} µs", "<= 1000 µs", added <= 1000),
    ]


def commands(files: int = 1_000) -> list[Row]:
    """Measure the comparison around a command, in processor time: the first one keeps the contents of all files."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "workspace"
        for number in range(files):
            folder = root / str(number // 50)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(number)).write_text(f"text {number}\n" * 200)
        time.sleep(0.1)  # files that were just written are read again
        log = UndoStore(Path(name) / "kept").open("s")
        seconds = [_compare(log, str(root)) for _ in range(8)]
    first, later = seconds[0] * 1e3, min(seconds[1:]) * 1e3
    return [
        (f"first writing command, {files} files of 2 kB", f"{first:.0f} ms", "<= 500 ms", first <= 500),
        ("each later one", f"{later:.1f} ms", "<= 30 ms", later <= 30),
    ]


def _compare(log: object, root: str) -> float:
    watch = CommandWatch(log, [root])  # type: ignore[arg-type] - a log
    began = time.process_time()
    watch.begin(everything=False)
    watch.end()
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    table("what keeping changes for undo costs", [*asyncio.run(edits()), *commands()])


if __name__ == "__main__":
    main()
