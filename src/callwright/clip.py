"""Output limits: cuts long outputs for the model and keeps the whole in a file that can be read back."""

import asyncio
import logging
import os
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from callwright.core._fast import make_constructor, replace
from callwright.core.calls import Completed, Failed, Interrupted, Outcome
from callwright.core.content import File, Output, Part, Text, text_of_file
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.tool.base import Tool, ToolContext
from callwright.tool.decorator import tool

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger("callwright")
_HEAD_SHARE = 0.6
_SAME_CHARS = 100
_SHORTEST_PART = 400
"""A text part is not cut shorter than this, which would leave little beside the note."""
READER = "read_output"
_MOST_KEPT_BYTES = 1 << 30
_output = make_constructor(Output)  # what was cut was checked before


def clip_text(text: str, chars: int, note: str) -> str:
    """Cut the middle of a text to at most `chars` characters and put a note in its place."""
    if len(text) <= chars:
        return text
    room = max(chars - len(note) - 2, 0)
    head = int(room * _HEAD_SHARE)
    tail = room - head
    return f"{text[:head]}\n{note}\n{text[len(text) - tail :]}"[: max(chars, len(note) + 2)]


class StoredOutputs:
    """Where a session's outputs are read from that are not kept in this process."""

    def __init__(self) -> None:
        self.load: Callable[[str], Awaitable[str | None]] | None = None


_GIVEN_ID = rf'{READER}\(id="(\w+)"\)'


def find_output_ids(outcome: Completed | Failed) -> Sequence[str]:
    """Return the ids under which the model was told to read the whole of an output."""
    text = outcome.text
    return re.findall(_GIVEN_ID, text) if READER in text else ()


def _read_part(text: str, output_id: str, offset: int, limit: int) -> str:
    if offset >= len(text):
        raise ToolFailed(f"offset {offset} is past the end: output {output_id} has {len(text)} characters")
    part = text[offset : offset + limit]
    rest = len(text) - offset - len(part)
    return part if rest == 0 else f"{part}\n[{rest} more characters: offset={offset + len(part)}]"


class Outputs:
    """The whole outputs of one executor, in a folder that only this user can read.

    Args:
        folder: Where to keep them; by default a temporary folder that is removed together with this object, and that
            holds no more than a gibibyte: the oldest outputs make room.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = folder
        self._temporary = folder is None
        self._kept: deque[tuple[Path, int]] = deque()
        """The files of a temporary folder and their sizes, the oldest first."""
        self._kept_bytes = 0
        self._reader: Tool | None = None
        self._lock = threading.Lock()

    @property
    def folder(self) -> "Path":
        """Where the outputs are kept; made on first use."""
        from pathlib import Path  # loaded with the first output that is cut, like the modules for its file

        from callwright.system.private_files import make_temporary_folder

        with self._lock:  # two threads must not make two
            if self._folder is None:
                self._folder = make_temporary_folder(self, "callwright-")
        folder = Path(self._folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def keep(self, text: str) -> str:
        """Store a text and return the id to read it back with.

        Raises:
            OSError: It cannot be stored.
        """
        output_id, data = os.urandom(8).hex(), text.encode("utf-8", errors="surrogatepass")
        path = self._path(output_id)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)  # a part of it would be taken for the whole
            raise
        if self._temporary:
            self._make_room(path, len(data))
        return output_id

    def _make_room(self, added: "Path", size: int) -> None:
        """Remove the oldest outputs beyond a total size: a server would fill the disk before it ends."""
        with self._lock:
            self._kept.append((added, size))
            self._kept_bytes += size
            while self._kept_bytes > _MOST_KEPT_BYTES and len(self._kept) > 1:
                path, size = self._kept.popleft()
                self._kept_bytes -= size
                with suppress(OSError):  # removed by someone else
                    path.unlink()

    def read(self, output_id: str, offset: int = 0, limit: int = 20_000) -> str:
        """Read part of a stored output.

        Args:
            output_id: As `keep` returned it.
            offset: The first character to read, counted from 0.
            limit: How many characters to read.

        Raises:
            ToolFailed: There is no such output, or the offset is past its end.
        """
        text = self.load(output_id)
        if text is None:
            raise ToolFailed(f"there is no output {output_id!r}; the id is in the note where the output was cut")
        return _read_part(text, output_id, offset, limit)

    def load(self, output_id: str) -> str | None:
        """Return a whole output, kept here or spilled by a command; None if there is none.

        Args:
            output_id: The id, or the path that the note of a command names.
        """
        from callwright.system.output_capture import spilled_id, spilled_path

        name = spilled_id(output_id)
        if not name.isalnum():  # it becomes part of a file name, and the model chooses it
            return None
        folders = [] if self._folder is None else [self._path(name)]
        for path in (*folders, spilled_path(name)):
            with suppress(OSError):
                return path.read_bytes().decode("utf-8", errors="surrogatepass" if path in folders else "replace")
        return None

    @property
    def has_reader(self) -> bool:
        """Whether the model is told to use the reader tool."""
        return self._reader is not None

    def _path(self, output_id: str) -> "Path":
        return self.folder / f"{output_id}.txt"

    def reader(self) -> Tool:
        """Return the tool that reads stored outputs, for the registry of the executor that uses these outputs.

        Agents show it to their model by themselves when an output was cut.
        """
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader

    def _make_reader(self) -> Tool:
        @tool(name=READER, effect=Effect.READ, group="file")
        async def read_output(id: str, context: ToolContext, offset: int = 0, limit: int = 20_000) -> str:  # noqa: A002 - the name the model sees
            """Read more of an output that was cut.

            Args:
                id: The id in the note where the output was cut.
                offset: The first character to read, counted from 0.
                limit: How many characters to read.
            """
            text = await asyncio.to_thread(self.load, id)
            stored = context.state.get(StoredOutputs)
            if text is None and stored.load is not None:  # cut by another process
                from callwright.system.output_capture import spilled_id

                text = await stored.load(spilled_id(id))
            if text is None:
                raise ToolFailed(f"there is no output {id!r}; the id is in the note where the output was cut")
            return _read_part(text, id, max(offset, 0), max(limit, 1))

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
            return _output(self._cut(output.content, chars, readable=readable), output.structured)
        if _count_chars(output) <= chars:
            return output
        content = [_spell_out(part) for part in output.content]
        level = _find_common_length([len(part.text) for part in content if isinstance(part, Text)], chars)
        if level < _SHORTEST_PART:
            text = "\n".join(part.text for part in content if isinstance(part, Text))
            others = [part for part in content if not isinstance(part, Text)]
            return _output((Text(self._cut(text, chars, readable=readable)), *others), output.structured)
        parts = [
            Text(self._cut(part.text, level, readable=readable)) if isinstance(part, Text) else part for part in content
        ]
        return _output(tuple(parts), output.structured)

    def _find_whole(self, text: str) -> str | None:
        """Return the id of the whole output if this text is what was left of it when it was cut before."""
        for output_id in re.findall(_GIVEN_ID, text):
            whole = self.load(output_id)
            if whole is not None and whole.startswith(text[:_SAME_CHARS]):
                return output_id
        return None

    def _cut(self, text: str, chars: int, *, readable: bool) -> str:
        if len(text) <= chars:
            return text
        try:
            output_id = self._find_whole(text) or self.keep(text)
            has_reader = readable and self.has_reader  # a tool that is not registered cannot be recommended
            where = "the whole is in " + (f'{READER}(id="{output_id}")' if has_reader else str(self._path(output_id)))
        except OSError as error:  # a full disk must not cost the outcome of a call that has run
            _log.warning("an output of %d characters could not be kept: %s", len(text), error)
            where = f"the rest could not be kept ({error.strerror or type(error).__name__})"
        cut = clip_text(text, chars, f"[output cut: {len(text)} characters in all, {where}]")
        return cut if len(cut) < len(text) else text  # the note may be longer than what it replaces


def _count_chars(output: Output) -> int:
    """Return how many characters of an output a model reads, those of files that are text among them."""
    if isinstance(output.content, str):
        return len(output.content)
    spelt_out = map(_spell_out, output.content)
    return sum(len(part.text) for part in spelt_out if isinstance(part, Text))


def _spell_out(part: Part) -> Part:
    """Return a file that is text as a text, which can be cut; any other part as it is."""
    text = None if isinstance(part, Text) else text_of_file(part)
    if text is None:
        return part
    return Text(f"{part.name}:\n{text}" if isinstance(part, File) and part.name else text)


def clip_failed(outcome: Failed, chars: int) -> Failed:
    """Cut the message of a failed call to `chars` characters; a shorter one is returned as it is."""
    message = outcome.error.message
    if len(message) <= chars:
        return outcome
    cut = clip_text(message, chars, f"[{len(message)} characters in all]")
    return replace(outcome, error=outcome.error.with_message(cut))


def clip_turn(outcomes: Sequence[Outcome], outputs: Outputs, chars: int) -> list[Outcome]:
    """Keep the texts of a turn within `chars` characters by cutting the longest ones to one common length."""
    lengths = list(map(_count_outcome, outcomes))
    if sum(lengths) <= chars:
        return list(outcomes)
    level = _find_common_length(lengths, chars)
    return [
        _clip_outcome(outcome, outputs, level) if length > level else outcome
        for outcome, length in zip(outcomes, lengths, strict=True)
    ]


def _count_outcome(outcome: Outcome) -> int:
    if isinstance(outcome, Completed):
        return _count_chars(outcome.output)
    return len(outcome.text) if isinstance(outcome, Failed) else 0


def _clip_outcome(outcome: Outcome, outputs: Outputs, chars: int) -> Outcome:
    match outcome:
        case Completed(output=output):
            return replace(outcome, output=outputs.clip(output, chars))
        case Failed():
            return clip_failed(outcome, chars)
        case Interrupted():
            return outcome


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
