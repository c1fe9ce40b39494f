"""Output limits: cuts long outputs for the model and keeps the whole in a file that can be read back."""

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
    """Cut the middle of a text to at most `chars` characters and put a note in its place."""
    if len(text) <= chars:
        return text
    room = max(chars - len(note) - 2, 0)
    head = int(room * _HEAD_SHARE)
    tail = room - head
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"[: max(chars, len(note) + 2)]


class Outputs:
    """The whole outputs of one executor, in a folder that only this user can read.

    Args:
        folder: Where to keep them; by default a temporary folder that is removed together with this object.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._has_reader = False

    @property
    def folder(self) -> Path:
        """Where the outputs are kept; made on first use."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="callwright-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    def keep(self, text: str) -> str:
        """Store a text and return the id to read it back with."""
        output_id = secrets.token_hex(8)
        descriptor = os.open(self._path(output_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        return output_id

    def read(self, output_id: str, offset: int = 0, limit: int = 20_000) -> str:
        """Read part of a stored output.

        Args:
            output_id: As `keep` returned it.
            offset: The first character to read, counted from 0.
            limit: How many characters to read.

        Raises:
            ToolFailed: There is no such output, or the offset is past its end.
        """
        if not output_id.isalnum():  # it becomes part of a file name, and the model chooses it
            raise ToolFailed(f"there is no output {output_id!r}; the id is in the note where the output was cut")
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
        """Return the tool that reads stored outputs; add it to the registry of the executor that uses these outputs."""
        self._has_reader = True

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
        """Cut an output's text to `chars` characters and store the whole; a shorter output is returned as it is.

        Args:
            output: The output to cut.
            chars: The length to keep.
            readable: Name the reader tool in the note, if there is one; otherwise the file.
        """
        if isinstance(output.content, str):
            if len(output.content) <= chars:
                return output
            return replace(output, content=self._cut(output.content, chars, readable=readable))
        total = sum(len(part.text) for part in output.content if isinstance(part, Text))
        if total <= chars:
            return output
        share = chars / total  # each text part is shortened in proportion
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
        has_reader = readable and self._has_reader  # a tool that is not registered cannot be recommended
        where = f'{READER}(id="{output_id}")' if has_reader else str(self._path(output_id))
        return clip_text(text, chars, f"[output cut: {len(text)} characters in all, the whole is in {where}]")


def clip_turn(outcomes: Sequence[Outcome], outputs: Outputs, chars: int, *, readable: bool = True) -> list[Outcome]:
    """Keep the outputs of a turn within `chars` characters by cutting the longest ones to one common length."""
    lengths = [len(outcome.output.text) if isinstance(outcome, Completed) else 0 for outcome in outcomes]
    if sum(lengths) <= chars:
        return list(outcomes)
    level = _find_common_length(lengths, chars)
    return [
        replace(outcome, output=outputs.clip(outcome.output, level, readable=readable))
        if isinstance(outcome, Completed) and length > level
        else outcome
        for outcome, length in zip(outcomes, lengths, strict=True)
    ]


def _find_common_length(lengths: Sequence[int], total: int) -> int:
    """Return the length to cut at so that shorter outputs stay whole and the sum fits."""
    left = total
    waiting = sorted(lengths)
    for at, length in enumerate(waiting):
        share = left // (len(waiting) - at)
        if length > share:
            return max(share, 1)
        left -= length
    return max(waiting, default=0)
