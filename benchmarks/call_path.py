"""`python -m benchmarks.call_path [--list]`: the functions and files of the package that one call passes through.

A reader who follows a call has to visit each of them, so the figures say how readable the pipeline is. Comprehensions
count as functions; generated methods of dataclasses and the standard library do not.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType

import callwright
from callwright import Completed, Effect, Executor, Registry, tool
from callwright.core.events import Event
from callwright.policy import ByMode

_PACKAGE = Path(callwright.__file__).parent
_TEXT = json.dumps({"city": "Paris", "days": 3})
_WARM_UP_CALLS = 3


@tool(effect=Effect.READ)
async def weather(city: str, days: int) -> str:
    """Report the weather of a city."""
    return city


async def trace(call: Callable[[], Awaitable[object]]) -> list[CodeType]:
    """Return the package's functions that a call enters, each once, in the order in which they are first entered."""
    entered: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and _PACKAGE in Path(frame.f_code.co_filename).parents:
            entered.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        outcome = await call()
    finally:
        sys.setprofile(None)
    assert isinstance(outcome, Completed), outcome
    return list(entered)


def report(title: str, entered: list[CodeType], *, listed: bool) -> None:
    """Print the figures and, if `listed`, the functions of each file."""
    by_file: dict[str, list[str]] = {}
    for code in entered:
        by_file.setdefault(Path(code.co_filename).relative_to(_PACKAGE).as_posix(), []).append(code.co_qualname)
    print(f"{title:<30} {len(entered):>3} functions in {len(by_file):>2} files")
    if listed:
        for file, names in by_file.items():
            print(f"  {file}: {', '.join(names)}")


def ignore(event: Event) -> None:
    """Observe nothing."""


async def main(*, listed: bool) -> None:
    """Trace a call that one observer watches, and one on the fast path."""
    for title, observe in (("watched by one observer", ignore), ("unwatched, on the fast path", None)):
        executor = Executor(Registry(weather), ByMode("default"), observe=observe)
        for _ in range(_WARM_UP_CALLS):  # the first calls fill the caches and open the fast path
            await executor.run("weather", _TEXT)
        report(title, await trace(lambda executor=executor: executor.run("weather", _TEXT)), listed=listed)


if __name__ == "__main__":
    asyncio.run(main(listed="--list" in sys.argv))
