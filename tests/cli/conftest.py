"""Fixtures: a home folder and a project, the command run in them, a terminal, and a model server."""

import asyncio
import fcntl
import json
import os
import shlex
import shutil
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docs.play.terminal import Tmux as Window
from tests.forked import warm_command

from callwright.cli.main import run
from callwright.testing.loopback import Loopback


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a command line."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Machine:
    """Runs command lines in a project folder, in this process."""

    project: Path
    home: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: str = "") -> Ended:
        piped = self.home / "stdin"  # a real file, because other streams are not read
        piped.write_text(stdin)
        with piped.open(encoding="utf-8") as given:
            self.patch.setattr(sys, "stdin", given)
            try:
                code = run(list(arguments))
            except SystemExit as end:
                code = int(end.code or 0)
        out, err = self.capture.readouterr()
        return Ended(code, out, err)

    def says(self, *replies: object) -> str:
        """Return the option for a scripted model with these replies."""
        file = self.home / f"script-{len(list(self.home.glob('script-*')))}.json"
        file.write_text(json.dumps(replies))
        return f"--model=script:{file}"

    def settings(self, content: object, name: str = "settings.json") -> Path:
        """Write the project's settings."""
        file = self.project / ".callwright" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def user_settings(self, content: object) -> None:
        (self.home / "settings.json").write_text(json.dumps(content))


class Tmux(Window):
    """A real terminal of 80 columns that runs the command."""

    real_command = f"{sys.executable} -m callwright"

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        self._pasted = folder / "pasted"

    @property
    def command(self) -> str:
        """The command without the time for its imports."""
        return shlex.join(warm_command("-m", "callwright"))

    def start(self, project: Path, *arguments: str, rows: int = 40, before: str = "") -> None:
        """Start the command, or the real one after what stands before it."""
        self.open(project, rows=rows)
        started = [before, self.real_command] if before else [self.command]
        self.enter(f"clear; {' '.join([*started, *arguments])}; echo EXIT $?")

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        deadline = time.monotonic() + 60
        while self._size_of_tty() != (rows, columns):  # tmux passes a new size on at most every 250 ms
            assert time.monotonic() < deadline, f"the terminal never became {columns} columns wide"
            time.sleep(0.02)

    def _size_of_tty(self) -> tuple[int, int]:
        """Return the rows and columns that programs in the terminal are told."""
        with open(self.tmux("display-message", "-p", "#{pane_tty}").strip(), "rb") as tty:  # noqa: PTH123 - a device
            rows, columns, *_ = struct.unpack("HHHH", fcntl.ioctl(tty, termios.TIOCGWINSZ, bytes(8)))
        return rows, columns

    def paste(self, text: str) -> None:
        """Paste a text with bracketed-paste marks, as a terminal does."""
        self._pasted.write_text(text)
        self.tmux("load-buffer", str(self._pasted))
        self.tmux("paste-buffer", "-p")

    def screen(self) -> str:
        """Return the text; rows of a dialog that continue the one above are joined with it."""
        return super().screen().replace("\n  ↪ ", "")

    def coloured(self) -> str:
        return self.tmux("capture-pane", "-p", "-e")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count tests in a real terminal as slow: they wait for its screen."""
    for item in items:
        if "tmux" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """Return a reply of the model with one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def calls() -> Callable[..., dict[str, object]]:
    return call


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    before = dict(os.environ)
    monkeypatch.setenv("CALLWRIGHT_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    for name in ("CALLWRIGHT_MODEL", "VISUAL", "EDITOR", *keys):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    yield Machine(project, home, capsys, monkeypatch)
    for name in set(os.environ) - set(before):  # settings may set variables
        del os.environ[name]


@pytest.fixture
def tmux(machine: Machine, tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path, os.environ)
    yield terminal
    terminal.close()


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A model server on a loop of its own: the command has its own, too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = Loopback()
    asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result()
    yield running
    asyncio.run_coroutine_threadsafe(running.__aexit__(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def first_request(server: Loopback) -> dict[str, Any]:
    """Return the body of the first request to the model."""
    return next(each.json for each in server.received if each.method == "POST")
