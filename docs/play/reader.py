"""`play_page`: runs the steps of a page in a terminal with a home folder of its own, and records the screens."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docs.play.cells import Row, parse_rows, plain
from docs.play.page import PROMPTS, Begin, Enter, Picture, Press, Reopen, Save, steps
from docs.play.terminal import Seen, Tmux

ROOT = Path(__file__).parents[2]
HOME = "/home/someone"
"""The name of the temporary home in pictures; equally long, so that lines break at the same places."""

_VARYING = (
    (re.compile(r"(?<=callwright-demo-)\w{8}"), "k3v9x2ma"),
    (re.compile(r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}"), "3f0c8e52-7a41-4d9b-9c1e-5b2a6d8f1e07"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "09:41:27"),
    (re.compile(r"(?<=ready in )[\d.]+ m?s"), "0.61 s"),
    (re.compile(r" \(\d+\.\d s\)"), ""),  # shown for slow calls; on a busy machine any call is slow
)
"""Text that differs in every run, and its replacement in pictures."""
_BUSY = ("esc interrupts", "loading...")
"""Status lines of a working agent, at whose prompt no picture is taken."""
_ANSWER = re.compile(r"  (always allowed|allowed|declined)\b")
"""The row that the terminal leaves below an answered question."""
_ROWS = 48
_POLL_SECONDS = 0.03
_QUIET_POLLS = 8
_MOST_SECONDS = 100.0


class CannotPlay(Exception):
    """This machine lacks something a page needs."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The screen at the place of a picture."""

    picture: Picture
    rows: tuple[Row, ...]
    cursor: tuple[int, int]
    """Row and column."""

    @property
    def text(self) -> str:
        return "\n".join(map(plain, self.rows))


@dataclass(frozen=True, slots=True)
class Played:
    """The result of running a page."""

    home: Path
    """The home folder after the run."""
    shown: tuple[Shown, ...]
    screen: str
    """The whole text of the last terminal."""


@contextmanager
def play_page(page: Path, programs: Path) -> Generator[Played, None, None]:
    """Run the steps of a page and yield the result; its home folder is deleted afterwards.

    Args:
        page: The Markdown file.
        programs: The folder of the `callwright` command.

    Raises:
        CannotPlay: tmux is not installed, or temporary folders are not in /tmp.
    """
    home = _make_home()
    reader = _Reader(home, programs)
    try:
        yield reader.read(page)
    finally:
        reader.terminal.close_and_wait()
        shutil.rmtree(home)


def _make_home() -> Path:
    if shutil.which("tmux") is None:
        raise CannotPlay("tmux is not installed")
    home = Path(tempfile.mkdtemp(prefix="")).resolve()
    if len(str(home)) != len(HOME):
        home.rmdir()
        raise CannotPlay(f"{home} is not as long as {HOME}; temporary folders must be in /tmp")
    (home / "callwright").symlink_to(ROOT)
    return home


class _Reader:
    """Runs steps in one terminal."""

    def __init__(self, home: Path, programs: Path) -> None:
        self._home = home
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self.terminal = Tmux(home, {"HOME": str(home), "PATH": path})
        self._before = ""
        self._first = 0
        self._dialog: list[str] = []
        """The screen with the open question at which the next picture begins; empty without one."""

    def read(self, page: Path) -> Played:
        shown: list[Shown] = []
        self.terminal.open(self._home, rows=_ROWS)
        for step in steps(page):
            match step:
                case Save(path, text):
                    self._save(path, text)
                case Begin():
                    seen = self._wait_settled()
                    self._first, self._dialog = seen.row, _dialog_rows(seen)
                case Enter(prompt, text):
                    self._before = self._wait_settled(prompt).text
                    self.terminal.enter(text)
                case Press(key):
                    self._before = self._wait_settled().text
                    self.terminal.type(key)
                case Reopen():
                    self._reopen()
                case Picture():
                    shown.append(self._take_picture(step))
        self._wait_settled()
        return Played(self._home, tuple(shown), self.terminal.screen())

    def _save(self, path: str, text: str) -> None:
        file = self._home / path.removeprefix("~/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _reopen(self) -> None:
        self._wait_settled()
        self.terminal.close_and_wait()
        self.terminal.open(self._home, rows=_ROWS)
        self._before, self._first, self._dialog = "", 0, []

    def _take_picture(self, picture: Picture) -> Shown:
        seen = self._wait_settled(polls=_QUIET_POLLS)
        rows = parse_rows(mask_names(seen.text, str(self._home)))
        first = _find_answer_end(self._dialog, [plain(row) for row in parse_rows(seen.text)]) or self._first
        rows = rows[first:]
        while rows and not plain(rows[-1]):
            rows.pop()
        return Shown(picture, tuple(rows), (seen.row - first, seen.column))

    def _wait_settled(self, prompt: str = "", polls: int = 2) -> Seen:
        """Wait until the screen has changed, stays the same for some polls, and shows a prompt."""
        deadline = time.monotonic() + _MOST_SECONDS
        last, quiet = self.terminal.seen(), 0
        while quiet < polls:
            if time.monotonic() > deadline:
                raise AssertionError(f"no prompt {prompt or PROMPTS} on the screen:\n{self.terminal.screen()}")
            time.sleep(_POLL_SECONDS)
            seen = self.terminal.seen()
            calm = seen == last and seen.text != self._before and _shows_prompt(seen, (prompt,) if prompt else PROMPTS)
            last, quiet = seen, quiet + 1 if calm else 0
        return last


def _dialog_rows(seen: Seen) -> list[str]:
    """Return the rows of a screen whose prompt is that of a question; none at any other prompt."""
    rows = [plain(row) for row in parse_rows(seen.text)]
    return rows if rows[seen.row].rstrip().endswith("? >") else []


def _find_answer_end(dialog: list[str], rows: list[str]) -> int:
    """Return the row after the answer to a question, 0 if it had none.

    A dialog is replaced by a shorter record of it when it is answered, so what follows moves up.
    """
    same = next((at for at, (old, new) in enumerate(zip(dialog, rows, strict=False)) if old != new), len(dialog))
    return next((at + 1 for at in range(same, len(rows)) if dialog and _ANSWER.match(rows[at])), 0)


def _shows_prompt(seen: Seen, prompts: tuple[str, ...]) -> bool:
    rows = [plain(row).strip() for row in parse_rows(seen.text)]
    prompt, below = rows[seen.row], "\n".join(rows[seen.row + 1 :])
    return prompt in prompts and not (prompt == ">" and any(word in below for word in _BUSY))


def mask_names(text: str, home: str) -> str:
    """Replace names that differ between machines; a name may continue in the next row."""
    broken = r"(?:\n {0,4})?".join(map(re.escape, home))
    text = re.sub(broken, lambda found: _overlay(found[0], HOME), text)
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def _overlay(found: str, word: str) -> str:
    letters = iter(word)
    return "".join(character if character in "\n " else next(letters) for character in found)
