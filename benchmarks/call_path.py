"""`python -m benchmarks.call_path`: how many functions and files of the package one call passes through.

A reader who follows a call has to visit each of them, so the figures measure how readable the pipeline is.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType

import callwright
from callwright import Completed, Effect, Executor, Registry, tool
from callwright.policy import ByMode

_PACKAGE = Path(callwright.__file__).parent
_TEXT = json.dumps({"city": "Paris", "days": 3})


@tool(effect=Effect.READ)
async def weather(city: str, days: int) -> str:
    """Report the weather of a city."""
    return city


async def trace(call: Callable[[], Awaitable[object]]) -> list[CodeType]:
    """Return the package's functions that one call enters, each once, in the order they are first entered."""
    entered: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and _PACKAGE in Path(frame.f_code.co_filename).parents:
            entered.setdefault(frame.f_code)

    pending = call  # looked up now: the profile must contain nothing but the call
    sys.setprofile(note)
    try:
        outcome = await pending()
    finally:
        sys.setprofile(None)
    assert isinstance(outcome, Completed), outcome
    return list(entered)


def report(title: str, entered: list[CodeType], *, listed: bool) -> None:
    """Print the figures, and the functions by file if they are wanted."""
    files = dict.fromkeys(Path(code.co_filename).relative_to(_PACKAGE).as_posix() for code in entered)
    print(f"{title:<34} {len(entered):>3} functions in {len(files):>2} files")
    if not listed:
        return
    for file in files:
        names = [code.co_qualname for code in entered if (_PACKAGE / file).samefile(code.co_filename)]
        print(f"    {file}: {', '.join(names)}")


async def measure(*, listed: bool) -> None:
    """Trace the first and a later call, watched by one observer and unwatched."""
    for title, observe in (("watched", lambda _event: None), ("unwatched", None)):
        executor = Executor(Registry(weather), ByMode("default"), observe=observe)
        for order in ("first", "later"):
            entered = await trace(lambda executor=executor: executor.run("weather", _TEXT))
            report(f"{title} call, {order}", entered, listed=listed)


if __name__ == "__main__":
    asyncio.run(measure(listed="--list" in sys.argv))
