"""Time to analyse and judge shell lines: ordinary, very long and hostile ones."""

import asyncio
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import table
from callwright.executor import Executor
from callwright.policy import ByMode, judge_command
from callwright.registry import Registry
from callwright.shell.analyzer import analyze, analyze_uncached
from callwright.toolbox import Bash

_ROUNDS = 80
TYPICAL = (
    "git status",
    "ls -la src",
    "grep -rn 'def main' src | head -20",
    "cat README.md | wc -l",
    "find . -name '*.py' -not -path './.venv/*'",
    "cd src && ls",
    "npm test > out.log 2>&1",
    "sed -n '1,40p' src/main.py",
)
HOSTILE = {
    "10 MB of words": "echo " + "a " * 5_000_000,
    "200 nested substitutions": "echo " + "$(echo " * 200 + "x" + ")" * 200,
    "5,000 open backticks": "`a " * 5_000,
    "5,000 open quotes": "'\"" * 5_000,
    "5,000 heredocs": "cat <<A " * 5_000,
    "5,000 open braces": "{ ( " * 5_000,
    "lone surrogates and NUL": "rm \udc80\x00" * 1_000,
}


def best(work: object, repeats: int) -> float:
    """Return processor seconds, best of several."""
    found = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()  # type: ignore[operator] - any function
        found = min(found, time.process_time() - began)
    return found


async def _time_commands(*tools: Bash) -> list[float]:
    """Return the seconds of running `true` with each tool, in turns; the quickest of many counts."""
    executors = [Executor(Registry(bash), ByMode("default")) for bash in tools]
    took: list[list[float]] = [[] for _ in tools]
    for _ in range(_ROUNDS):
        for executor, times in zip(executors, took, strict=True):
            began = time.perf_counter()
            await executor.run("bash", {"command": "true"})
            times.append(time.perf_counter() - began)
    return [min(times[1:]) for times in took]


def _time_bare_bubblewrap() -> float:
    """Return the seconds that bubblewrap itself needs to start `true`: the floor of every wall made with it."""
    argv = ["bwrap", "--unshare-user-try", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc"]
    took: list[float] = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        subprocess.run([*argv, "true"], check=False, capture_output=True)
        took.append(time.perf_counter() - began)
    return min(took)


def measure_wall(place: Path) -> list[tuple[str, str, str, bool]]:
    """Return what the wall adds to a command, in a workspace of 300 folders."""
    for number in range(300):
        (place / f"folder{number}").mkdir()
        (place / f"folder{number}" / "file").touch()
    (place / ".env").touch()
    walled = Bash(place)
    if not walled.sandbox.complete:
        return [("the wall of a command", "no complete sandbox on this machine", "<= 10 ms", False)]
    with_wall, without = (seconds * 1e3 for seconds in asyncio.run(_time_commands(walled, Bash(place, sandbox="off"))))
    added = with_wall - without
    rows = [
        ("a command without a wall (wall-clock, best)", f"{without:.1f} ms", "-", True),
        (f"added by the wall, {walled.sandbox.kind} (wall-clock, best)", f"{added:.1f} ms", "<= 10 ms", added <= 10),
    ]
    if walled.sandbox.kind == "bubblewrap":
        rows.append(("bubblewrap alone", f"{_time_bare_bubblewrap() * 1e3:.1f} ms", "-", True))
    return rows


def main() -> None:
    """Print the table."""
    rows: list[tuple[str, str, str, bool]] = []
    with TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        each = [best(lambda line=line: analyze_uncached(line, str(place)), 200) * 1e6 for line in TYPICAL]
        typical = sorted(each)[len(each) // 2]
        rows.append(("analysis of a typical line (median)", f"{typical:.0f} µs", "<= 150 µs", typical <= 150))
        rows.append(("the slowest of the typical ones", f"{max(each):.0f} µs", "<= 150 µs", max(each) <= 150))
        again = best(lambda: analyze(TYPICAL[0], str(place)), 200) * 1e6
        rows.append(("a line that was analysed before", f"{again:.1f} µs", "-", True))
        judged = best(lambda: judge_command(TYPICAL[0], cwd=place, workspace=place), 200) * 1e6
        rows.append(("judge_command of one line, policies built each time", f"{judged:.0f} µs", "-", True))
        same = best(lambda: analyze("; ".join(["ls -l"] * 3_000), str(place)), 3) * 1e3
        rows.append(("3,000 commands, all the same", f"{same:.0f} ms", "<= 60 ms", same <= 60))
        different = best(lambda: analyze("; ".join(f"ls -l f{n}" for n in range(3_000)), str(place)), 3) * 1e3
        rows.append(("3,000 commands, all different", f"{different:.0f} ms", "<= 60 ms", different <= 60))
        for name, line in HOSTILE.items():
            hostile = best(lambda line=line: analyze_uncached(line, str(place)), 3) * 1e3
            rows.append((f"hostile: {name}", f"{hostile:.0f} ms", "<= 50 ms", hostile <= 50))
    with TemporaryDirectory() as folder:
        rows += measure_wall(Path(folder).resolve())
    table("shell lines (CPU time)", rows)
