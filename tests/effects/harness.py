"""Runs shell lines inside an outer sandbox without network, in a throwaway folder, and collects their effects."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from tests.effects.runner import Result

from callwright.system.sandbox import bubblewrap

_ROOT = Path(__file__).parents[2]
_WORKERS = 2 * (os.cpu_count() or 1)  # a line that waits for its time limit must not hold up the others


@cache
def find_problem() -> str:
    """Return why lines cannot be executed safely here; empty if they can."""
    if problem := bubblewrap.find_problem():
        return problem
    with tempfile.TemporaryDirectory(prefix="effects-") as folder:
        inner = ["bwrap", "--unshare-user-try", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL"]
        inner += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"]
        tried = subprocess.run([*_outer(Path(folder)), *inner], capture_output=True, text=True, check=False)
        return "" if tried.returncode == 0 else f"sandboxes cannot be nested here: {tried.stderr.strip()}"


def _outer(folder: Path) -> list[str]:
    options = ["bwrap", "--die-with-parent", "--unshare-net", "--unshare-ipc", "--ro-bind", "/", "/"]
    # with a /proc of its own, the kernel would not let the inner sandbox mount one
    options += ["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--tmpfs", "/run"]
    return [*options, "--bind", str(folder), str(folder), "--chdir", str(_ROOT), "--"]


def run_cases(cases: Sequence[dict[str, Any]], *, workers: int = _WORKERS) -> list[Result]:
    """Execute cases in one outer sandbox, with this number of processes, and return their results in order."""
    if not cases:
        return []
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="effects-")))
    try:
        given, results = folder / "cases.jsonl", folder / "results.jsonl"
        given.write_text("\n".join(map(json.dumps, cases)))
        (folder / "tmp").mkdir()
        arguments = [str(given), str(results), str(folder), str(workers)]
        command = [*_outer(folder), sys.executable, "-m", "tests.effects.runner", *arguments]
        environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if not results.exists():
            raise AssertionError(f"the runner failed: {done.stderr[-2000:]}")
        return [cast("Result", json.loads(line)) for line in results.read_text().split("\n")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_cases(file: Path) -> list[dict[str, Any]]:
    """Read cases, one JSON object on each line."""
    return [cast("dict[str, Any]", json.loads(line)) for line in file.read_text("utf-8").split("\n") if line.strip()]
