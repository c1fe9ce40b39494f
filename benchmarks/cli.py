"""Start-up time of the command (version, help, first prompt, tools) and the time to draw deltas."""

import asyncio
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import table
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.ui import Terminal

_DELTAS = 10_000
_TEXT = "some **bold** words, a `name` and a [link](https://example.com) in a line\n- an item\n| a | b |\n"


def command() -> list[str]:
    """The command as users start it."""
    script = Path(sys.executable).with_name("callwright")
    return [str(script)] if script.exists() else [sys.executable, "-m", "callwright"]


def environment(home: str) -> dict[str, str]:
    """An environment with compiled modules and an empty home folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"CALLWRIGHT_HOME": home, "TERM": "xterm-256color"}


def best_ratio(subject: list[str], floor: list[str], around: dict[str, str], repeats: int = 25) -> tuple[float, float]:
    """Return the wall time as a ratio to the baseline, and in seconds; runs alternate."""
    subjects: list[float] = []
    floors: list[float] = []
    for _ in range(repeats):
        floors.append(_seconds(floor, around))
        subjects.append(_seconds(subject, around))
    return min(subjects) / min(floors), min(subjects)


def _seconds(line: list[str], around: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(line, env=around, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def until(marks: list[bytes], line: list[str], around: dict[str, str], folder: str) -> list[float]:
    """Seconds from the start in a terminal until each of these was drawn, in this order."""
    began = time.perf_counter()
    child, descriptor = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(line[0], line, around)
    seen, found = b"", list[float]()
    while len(found) < len(marks) and select.select([descriptor], [], [], 20)[0]:
        seen += os.read(descriptor, 65_536)
        while len(found) < len(marks) and marks[len(found)] in seen:
            found.append(time.perf_counter() - began)
    os.write(descriptor, b"\x04")
    _drain(descriptor)
    os.waitpid(child, 0)
    os.close(descriptor)
    return found


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65_536):
            pass
    except OSError:  # the other end is gone
        return


async def delta_seconds(deltas: int) -> float:
    """Return processor seconds per delta, streamed word by word and drawn at thirty frames per second."""
    words = (_TEXT * (deltas // 20 + 1)).split(" ")[:deltas]
    with tempfile.TemporaryFile() as file:
        terminal = Terminal(Screen(file.fileno()), Palette(True))
        terminal.style = MarkdownLines(Palette(True))
        began = time.process_time()
        for number, word in enumerate(words):
            terminal.stream(f"{word} ")
            if number % 4 == 0:  # about 120 words a second
                terminal.draw()
        terminal.end_stream()
        terminal.draw()
        return (time.process_time() - began) / deltas


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as home:
        around, python = environment(home), [sys.executable, "-c", "pass"]
        script = Path(home, "script.json")
        script.write_text(json.dumps(["hello"]))
        talk = [*command(), "--model", f"script:{script}"]
        until([b"default mode"], talk, around, home)  # so that everything is compiled
        version, version_seconds = best_ratio([*command(), "--version"], python, around)
        usage, usage_seconds = best_ratio([*command(), "--help"], python, around)
        runs = [until([b"> ", b"default mode"], talk, around, home) for _ in range(7)]
        first, ready = (min(times) * 1e3 for times in zip(*runs, strict=True))
        each = asyncio.run(delta_seconds(_DELTAS)) * 1e6
    table(
        "the command (wall time, best of several; deltas in CPU time)",
        [
            ("callwright --version", f"{version_seconds * 1e3:.0f} ms, {version:.2f}x", "<= 1.4x", version <= 1.4),
            ("callwright --help", f"{usage_seconds * 1e3:.0f} ms, {usage:.2f}x", "<= 3x", usage <= 3),
            ("first prompt", f"{first:.0f} ms", "<= 250 ms", first <= 250),
            ("model and tools ready, behind the prompt", f"{ready:.0f} ms", "-", True),
            (f"one of {_DELTAS:,} deltas, drawn", f"{each:.0f} µs", "<= 1000 µs", each <= 1000),
        ],
    )
