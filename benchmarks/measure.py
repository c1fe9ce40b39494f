"""Timing: processor time, best of several slices, baseline and subject interleaved."""

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[object]]


async def seconds_each(work: Work, times: int) -> float:
    """Return the processor seconds of one repetition."""
    began = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - began) / times


async def ratio(subject: Work, floor: Work, *, times: int = 2_000, slices: int = 25) -> tuple[float, float]:
    """Return the ratio of the subject to the baseline, and the baseline in microseconds; slices alternate."""
    floors: list[float] = []
    subjects: list[float] = []
    gc.collect()
    for _ in range(slices):
        floors.append(await seconds_each(floor, times))
        subjects.append(await seconds_each(subject, times))
    return min(subjects) / min(floors), min(floors) * 1e6


def cpu_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the processor seconds of a function, best of several."""
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        began = time.process_time()
        function()
        best = min(best, time.process_time() - began)
    return best


def start_seconds(code: str, repeats: int = 10) -> float:
    """Return the processor seconds of a new interpreter running a line of code, best of several."""
    best = float("inf")
    for _ in range(repeats):
        began = _children_seconds()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        best = min(best, _children_seconds() - began)
    return best


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(title: str, rows: list[tuple[str, str, str, bool]]) -> None:
    """Print the measured values beside their targets."""
    print(f"\n{title}\n")
    width = max(len(row[0]) for row in rows)
    for name, measured, target, met in rows:
        print(f"  {name:<{width}}  {measured:>22}   target {target:<14} {'met' if met else 'MISSED'}")
