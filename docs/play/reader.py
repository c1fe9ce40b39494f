"""`played`: somebody who does what a page says, on a machine of their own, and what they see."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docs.play.cells import Row, plain, rows_of
from docs.play.page import PROMPTS, Begin, Enter, Picture, Press, Reopen, Save, steps
from docs.play.terminal import Seen, Tmux

ROOT = Path(__file__).parents[2]
HOME = "/home/someone"
"""What a picture calls the temporary home; both names are as long, so that no line breaks elsewhere."""

_CHANCE = (
    (re.compile(r"(?<=callwright-demo-)\w{8}"), "k3v9x2ma"),
    (re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}"), "3f0c8e52-7a41-4d9b-9c1e-5b2a6d8f1e07"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "09:41:27"),
    (re.compile(r"(?<=ready in )[\d.]+ m?s"), "0.61 s"),
    (re.compile(r" \(\d+\.\d s\)"), ""),  # said of calls that took long, as any does on a busy machine
)
"""What is another word every time, and the word a picture has for it."""
_AT_WORK = ("esc interrupts", "loading…")
"""The agent can be typed to while it works, which no picture should show by chance."""
_ROWS = 48
_POLL_SECONDS = 0.03
_QUIET_POLLS = 8
_MOST_SECONDS = 40.0


class CannotPlay(Exception):
    """Something this machine does not have is needed to play a page."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is seen at the place of a picture."""

    picture: Picture
    rows: tuple[Row, ...]
    cursor: tuple[int, int]
    """Row and column."""

    @property
    def text(self) -> str:
        return "\n".join(map(plain, self.rows))


@dataclass(frozen=True, slots=True)
class Played:
    """What came of doing what a page says."""

    home: Path
    """The reader's home folder, as it was left."""
    shown: tuple[Shown, ...]
    screen: str
    """All that stood in the last terminal window."""


@contextmanager
def played(page: Path, programs: Path) -> Generator[Played, None, None]:
    """Do what a page says, with the programs of this folder, and look at what came of it before it is cleared away."""
    home = _home()
    reader = _Reader(home, programs)
    try:
        yield reader.read(page)
    finally:
        reader.terminal.close_and_wait()
        shutil.rmtree(home)


def _home() -> Path:
    if shutil.which("tmux") is None:
        raise CannotPlay("tmux is not installed, so there is no terminal to play a page in")
    home = Path(tempfile.mkdtemp(prefix="")).resolve()
    if len(str(home)) != len(HOME):
        home.rmdir()
        raise CannotPlay(f"{home} is not as long as {HOME}; pages are played where temporary files are in /tmp")
    (home / "callwright").symlink_to(ROOT)
    return home


class _Reader:
    """Sits in front of one terminal."""

    def __init__(self, home: Path, programs: Path) -> None:
        self._home = home
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self.terminal = Tmux(home, {"HOME": str(home), "PATH": path})
        self._before = ""
        self._first = 0

    def read(self, page: Path) -> Played:
        shown: list[Shown] = []
        self.terminal.open(self._home, rows=_ROWS)
        for step in steps(page):
            match step:
                case Save(path, text):
                    self._save(path, text)
                case Begin():
                    self._first = self._settled().row
                case Enter(prompt, text):
                    self._before = self._settled(prompt).text
                    self.terminal.enter(text)
                case Press(key):
                    self._before = self._settled().text
                    self.terminal.type(key)
                case Reopen():
                    self._reopen()
                case Picture():
                    shown.append(self._shown(step))
        self._settled()
        return Played(self._home, tuple(shown), self.terminal.screen())

    def _save(self, path: str, text: str) -> None:
        file = self._home / path.removeprefix("~/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _reopen(self) -> None:
        self._settled()
        self.terminal.close_and_wait()
        self.terminal.open(self._home, rows=_ROWS)
        self._before, self._first = "", 0

    def _shown(self, picture: Picture) -> Shown:
        seen = self._settled(polls=_QUIET_POLLS)
        rows = rows_of(masked(seen.text, str(self._home)))[self._first :]
        while rows and not plain(rows[-1]):
            rows.pop()
        return Shown(picture, tuple(rows), (seen.row - self._first, seen.column))

    def _settled(self, prompt: str = "", polls: int = 2) -> Seen:
        """Wait until something has happened, nothing moves any more and the program waits for somebody to type."""
        deadline = time.monotonic() + _MOST_SECONDS
        last, quiet = self.terminal.seen(), 0
        while quiet < polls:
            if time.monotonic() > deadline:
                raise AssertionError(f"no prompt {prompt or PROMPTS} to be seen:\n{self.terminal.screen()}")
            time.sleep(_POLL_SECONDS)
            seen = self.terminal.seen()
            calm = seen == last and seen.text != self._before and _waits(seen, (prompt,) if prompt else PROMPTS)
            last, quiet = seen, quiet + 1 if calm else 0
        return last


def _waits(seen: Seen, prompts: tuple[str, ...]) -> bool:
    rows = [plain(row).strip() for row in rows_of(seen.text)]
    prompt, below = rows[seen.row], "\n".join(rows[seen.row + 1 :])
    return prompt in prompts and not (prompt == ">" and any(word in below for word in _AT_WORK))


def masked(text: str, home: str) -> str:
    """The text as it would be on every machine; a name may go over the end of a row."""
    broken = r"(?:\n {0,4})?".join(map(re.escape, home))
    text = re.sub(broken, lambda found: _laid_over(found[0], HOME), text)
    for pattern, word in _CHANCE:
        text = pattern.sub(word, text)
    return text


def _laid_over(found: str, word: str) -> str:
    letters = iter(word)
    return "".join(character if character in "\n " else next(letters) for character in found)
