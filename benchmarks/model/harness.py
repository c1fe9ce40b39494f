"""`python -m benchmarks.model.harness ADAPTER BASE_URL MODEL`: runs the tasks in another package, a JSON line each."""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.model.tasks import TASKS

TURNS = 10
SYSTEM = (
    "You are an assistant that works on the files of a project with tools. Do the task, then answer in a few words."
)


def run_all(adapter: str, base_url: str, model: str, names: list[str]) -> None:
    """Run every task in a folder of its own and print what came of it."""
    run_task: Any = import_module(f"benchmarks.model.{adapter}").run_task
    for task in TASKS:
        if names and task.name not in names:
            continue
        with TemporaryDirectory() as folder:
            project = task.prepare(Path(folder))
            began = time.monotonic()
            found = run_task(task, project, base_url, model, SYSTEM, TURNS)
            found |= {"task": task.name, "seconds": time.monotonic() - began}
            found["passed"] = task.passed(project, found["answer"])
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    package, address, name, *chosen = sys.argv[1:]
    run_all(package, address, name, chosen)
