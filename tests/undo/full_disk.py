"""Changes files while the disk of the undo store is full; prints what happened as JSON.

Run behind bubblewrap with a tiny file system for the kept contents: python full_disk.py WORKSPACE KEPT
"""

import asyncio
import json
import sys
from pathlib import Path

from callwright import Completed, Executor, Registry
from callwright.policy import AllowEverything
from callwright.system.undo.kept_content import UndoError
from callwright.system.undo.recorder import UndoRecorder
from callwright.system.undo.undo_store import UndoStore
from callwright.toolbox import Write


async def write_with_room(executor: Executor, recorder: UndoRecorder, kept: Path) -> None:
    """Change a file after the disk got room again, as other programs remove their files."""
    for content in [*kept.glob("*/contents/*")][:3]:
        content.unlink()
    recorder.begin_turn()
    await executor.run("write", {"path": "last", "content": "new", "overwrite": True})


async def main() -> None:
    workspace, kept = Path(sys.argv[1]), Path(sys.argv[2])
    reports: list[str] = []
    executor = Executor(Registry(Write(workspace)), AllowEverything())
    recorder = UndoStore(kept, report=reports.append).recorder("session")
    executor.state.put(recorder)
    completed = 0
    for number in range(15):  # each keeps 8 kB of the old content; the disk has 64
        recorder.begin_turn()
        for name in (f"small-{number}", f"{number}"):
            outcome = await executor.run("write", {"path": name, "content": "new", "overwrite": True})
            completed += isinstance(outcome, Completed)
    await write_with_room(executor, recorder, kept)
    refused = ""
    try:  # as another process sees it
        log = UndoStore(kept).open("session")
        last = log.history.last
        log.apply(log.plan_undo(last - 1))  # the turn after the disk had room again
        log.apply(log.plan_undo(0))
    except UndoError as error:
        refused = str(error)
    first = (workspace / "0").read_text() == "new"
    last_undone = not (workspace / "last").exists()
    print(
        json.dumps(
            {
                "last_undone": last_undone,
                "completed": completed,
                "refused": refused,
                "kept": first,
                "reports": len(reports),
            }
        )
    )


asyncio.run(main())
