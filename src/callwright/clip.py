"""Keeps outputs to their limits without losing any: what is cut is kept in a file and can be read back."""

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from callwright.core.calls import Completed, Outcome
from callwright.core.content import Output, Text
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.tool.base import Tool
from callwright.tool.function import tool

_HEAD_SHARE = 0.6
READER = "read_output"


def clip_text(text: str, chars: int, note: str) -> str:
    """Keep head and tail of a text within `chars`, with a note of what is missing between them."""
    if len(text) <= chars:
        return text
    room = max(chars - len(note) - 2, 0)
    head = int(room * _HEAD_SHARE)
    tail = room - head
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"[: max(chars, len(note) + 2)]


class Outputs:
    """Whole outputs of one executor, in a folder only this user can read."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._offered = False

    @property
    def folder(self) -> Path:
        """Where they are kept: a folder that was given, else one that goes when nobody can ask for it any more."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="callwright-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    def keep(self, text: str) -> str:
        """Write a text down and return the id it can be read back by."""
        output_id = secrets.token_hex(8)
        descriptor = os.open(self._path(output_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        return output_id

    def read(self, output_id: str, offset: int = 0, limit: int = 20_000) -> str:
        """Read a stretch of a kept output, counted in characters."""
        if not output_id.isalnum():
            raise ToolFailed(f"there is no output {output_id!r}; the id stands in the note where the output was cut")
        try:
            text = self._path(output_id).read_text(encoding="utf-8", errors="surrogatepass")
        except FileNotFoundError:
            raise ToolFailed(f"there is no output {output_id!r}; it may be from another session") from None
        if offset >= len(text):
            raise ToolFailed(f"offset {offset} is past the end: output {output_id} has {len(text)} characters")
        part = text[offset : offset + limit]
        rest = len(text) - offset - len(part)
        return part if rest == 0 else f"{part}\n[{rest} more characters: offset={offset + len(part)}]"

    def _path(self, output_id: str) -> Path:
        return self.folder / f"{output_id}.txt"

    def reader(self) -> Tool:
        """The tool that reads kept outputs back: add it to the registry whose executor cuts."""
        self._offered = True

        @tool(name=READER, effect=Effect.READ, group="file")
        def read_output(id: str, offset: int = 0, limit: int = 20_000) -> str:  # noqa: A002 - the name the model sees
            """Read more of an output that was cut.

            Args:
                id: The id in the note where the output was cut.
                offset: The first character to read, counted from 0.
                limit: How many characters to read.
            """
            return self.read(id, max(offset, 0), max(limit, 1))

        return read_output

    def clip(self, output: Output, chars: int, *, readable: bool = True) -> Output:
        """Cut an output's text to `chars` and keep the whole; short ones are returned as they are."""
        if isinstance(output.content, str):
            if len(output.content) <= chars:
                return output
            return replace(output, content=self._cut(output.content, chars, readable=readable))
        total = sum(len(part.text) for part in output.content if isinstance(part, Text))
        if total <= chars:
            return output
        share = chars / total
        parts = [
            Text(self._cut(part.text, int(len(part.text) * share), readable=readable))
            if isinstance(part, Text)
            else part
            for part in output.content
        ]
        return replace(output, content=tuple(parts))

    def _cut(self, text: str, chars: int, *, readable: bool) -> str:
        if len(text) <= chars:
            return text
        output_id = self.keep(text)
        named = readable and self._offered  # a tool that nobody has cannot be recommended
        where = f'{READER}(id="{output_id}")' if named else str(self._path(output_id))
        return clip_text(text, chars, f"[output cut: {len(text)} characters in all, the whole is in {where}]")


def clip_turn(outcomes: Sequence[Outcome], outputs: Outputs, chars: int, *, readable: bool = True) -> list[Outcome]:
    """Keep a whole turn within `chars` by cutting its longest outputs to one common length."""
    lengths = [len(outcome.output.text) if isinstance(outcome, Completed) else 0 for outcome in outcomes]
    if sum(lengths) <= chars:
        return list(outcomes)
    level = _level(lengths, chars)
    return [
        replace(outcome, output=outputs.clip(outcome.output, level, readable=readable))
        if isinstance(outcome, Completed) and length > level
        else outcome
        for outcome, length in zip(outcomes, lengths, strict=True)
    ]


def _level(lengths: Sequence[int], total: int) -> int:
    """The length to cut at so that what is shorter stays whole and the sum fits."""
    left = total
    waiting = sorted(lengths)
    for at, length in enumerate(waiting):
        share = left // (len(waiting) - at)
        if length > share:
            return max(share, 1)
        left -= length
    return max(waiting, default=0)
