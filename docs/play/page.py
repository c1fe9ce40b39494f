"""Parses a page into steps: what to save, what to type, and which picture shows the result.

A fenced block of `console` is typed as it stands. Each line begins with the prompt it answers, or is one of the
other actions:

    $ callwright                    at the shell
    > fix greet.py                  at the agent
    allow? > y                      at a question
    [Ctrl-D]                        a key
    (close the terminal, open a new one)

A block of `sh` holds commands alone, without prompts, so that readers can copy them. One that installs something is
skipped here and run by the test of a fresh machine. A block after "Save this as `FILE`:" is saved.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

PROMPTS = ("$", ">", "allow? >", "trust? >", "your reply >", "your answer:")
"""The prompts after which the user types."""
REOPEN = "(close the terminal, open a new one)"

_PART = re.compile(
    r"^Save this as `(?P<path>[^`]+)`.*?:\n\n```\w*\n(?P<text>.*?)^```$"
    r"|^```console\n(?P<typed>.*?)^```$"
    r"|^```sh\n(?P<commands>.*?)^```$"
    r"|^!\[(?P<about>[^\]]+)\]\(\.\./pictures/(?P<picture>[\w-]+\.svg)\)$",
    re.DOTALL | re.MULTILINE,
)
_KEY = re.compile(r"\[Ctrl-([A-Z])\]")
_PROMPT = re.compile(rf"({'|'.join(map(re.escape, PROMPTS))}) (.+)")


@dataclass(frozen=True, slots=True)
class Save:
    """Put a text into a file of the working folder."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """The start of a block: the next picture shows the screen from here on."""


@dataclass(frozen=True, slots=True)
class Enter:
    """Type a line at a prompt."""

    prompt: str
    text: str


@dataclass(frozen=True, slots=True)
class Press:
    """Press a key, by its name in tmux."""

    key: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """Close the terminal and open a new one."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Take a picture of the screen."""

    name: str
    about: str


Step: TypeAlias = Save | Begin | Enter | Press | Reopen | Picture


def title(page: Path) -> str:
    """Return the page's heading."""
    return page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def steps(page: Path) -> Iterator[Step]:
    """Yield the steps of a page in order."""
    for part in _PART.finditer(page.read_text(encoding="utf-8")):
        if part["path"]:
            yield Save(part["path"], part["text"])
        elif part["picture"]:
            yield Picture(part["picture"], " ".join(part["about"].split()))
        elif part["typed"]:
            yield Begin()
            yield from (_parse_line(line) for line in part["typed"].splitlines())
        elif not installs(part["commands"]):
            yield Begin()
            yield from (Enter("$", line) for line in part["commands"].splitlines())


def installs(commands: str) -> bool:
    """Return whether a block of `sh` installs something."""
    return "pip install" in commands


def _parse_line(line: str) -> Step:
    if line == REOPEN:
        return Reopen()
    if key := _KEY.fullmatch(line):
        return Press(f"C-{key[1].lower()}")
    if typed := _PROMPT.fullmatch(line):
        return Enter(typed[1], typed[2])
    raise ValueError(f"cannot parse {line!r}; a line starts with one of {', '.join(PROMPTS)}, or is [Ctrl-D]")
