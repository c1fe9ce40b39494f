"""The `edit` tool: replace text that stands in a file exactly once, all changes or none."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field, model_validator

from callwright.core.access import Access, ReadPath, WritePath
from callwright.core.errors import ToolFailed
from callwright.core.spec import Effect
from callwright.system.atomic_write import ABSENT
from callwright.system.files import detect, digest, spliced, unified
from callwright.system.paths import Workspace
from callwright.tool.base import ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._file_state import Current, Freshness, alone_with, load, store
from callwright.toolbox._paths import TargetArguments, explain_missing
from callwright.toolbox.edit.feedback import show_change
from callwright.toolbox.edit.locate import locate
from callwright.toolbox.edit.typos import Doubtful, Place

_OLD = AliasChoices("old_string", "oldString", "old_str", "old_text", "old", "search")
_NEW = AliasChoices("new_string", "newString", "new_str", "new_text", "new", "replace")
_ALL = AliasChoices("replace_all", "replaceAll", "allow_multiple")


class Replacement(Arguments):
    """One change of several."""

    old_string: str = Field(validation_alias=_OLD)
    """The exact text to replace; it must stand in the file once."""
    new_string: str = Field(validation_alias=_NEW)
    """What takes its place."""
    replace_all: bool = Field(default=False, validation_alias=_ALL)
    """Replace every occurrence."""


class EditArguments(TargetArguments):
    """What `edit` takes."""

    old_string: str | None = Field(default=None, validation_alias=_OLD)
    """The exact text to replace, with enough lines around it to stand in the file once; empty to create a file."""
    new_string: str | None = Field(default=None, validation_alias=_NEW)
    """What takes its place."""
    replace_all: bool = Field(default=False, validation_alias=_ALL)
    """Replace every occurrence."""
    edits: tuple[Replacement, ...] = ()
    """Several changes instead of one, applied in this order, all or none."""

    @model_validator(mode="after")
    def _one_form(self) -> "EditArguments":
        if bool(self.edits) == (self.old_string is not None and self.new_string is not None):
            raise ValueError("give either old_string and new_string, or edits")
        return self

    def changes(self) -> tuple[Replacement, ...]:
        """The changes, whichever form they came in."""
        if self.edits:
            return self.edits
        return (
            Replacement.model_construct(
                old_string=self.old_string or "", new_string=self.new_string or "", replace_all=self.replace_all
            ),
        )


class Edit(TypedTool[EditArguments]):
    """Changes parts of files inside a workspace."""

    spec = describe(
        "edit",
        "Replace text in a file. old_string must be copied exactly, with its indentation and without read's line "
        "numbers, and stand in the file once (or pass replace_all=true); several changes go into edits, all or none. "
        "The file must have been read in this session. Answers with a diff.",
        effect=Effect.WRITE,
        group="file",
        aliases=("Edit", "MultiEdit", "str_replace", "edit_file", "replace", "str_replace_editor"),
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".") -> None:
        self._workspace = Workspace.of(workspace)

    def accesses(self, arguments: EditArguments) -> Sequence[Access]:
        """A read, because the answer shows lines around the change, and a write."""
        path = str(arguments.settle(self._workspace.check_write))
        return (ReadPath(path), WritePath(path))

    async def run(self, arguments: EditArguments, context: ToolContext) -> str:
        """Apply the changes and show what came of them."""
        path = arguments.settle(self._workspace.check_write)
        # matching a large file and flushing to the disk take time the loop cannot spare
        return await asyncio.to_thread(_edit, path, arguments, context.state.get(Freshness))


def _edit(path: Path, arguments: EditArguments, freshness: Freshness) -> str:
    changes = arguments.changes()
    with alone_with(path):
        before = load(path, arguments.path)
        if before is None:
            return _create(path, arguments, changes, freshness)
        known = freshness.check(path, arguments.path, before.data, before.identity)
        if detect(before.data) is None:
            raise ToolFailed(f"{arguments.path} is a binary file; edit changes text only")
        literal = freshness.insists(path, changes)
        try:
            applied = _applied(before.text, changes, literal=literal)
        except Doubtful:
            freshness.doubt(path, changes)
            raise
        data = _encoded(applied.text, before, arguments.path)
        store(path, arguments.path, data, digest(before.data))
        freshness.made(path, digest(data), whole=known.whole)
    return _told(arguments.path, before, applied)


def _create(path: Path, arguments: EditArguments, changes: Sequence[Replacement], freshness: Freshness) -> str:
    if len(changes) != 1 or changes[0].old_string:
        raise explain_missing(arguments.path, path)
    data = changes[0].new_string.encode()
    store(path, arguments.path, data, ABSENT)
    freshness.made(path, digest(data), whole=True)
    return f"Created {arguments.path} ({len(data)} bytes)"


@dataclass(frozen=True, slots=True)
class _Applied:
    text: str
    count: int = 0
    slips: tuple[str, ...] = ()


def _applied(text: str, changes: Sequence[Replacement], *, literal: bool) -> _Applied:
    applied = _Applied(text)
    for number, change in enumerate(changes, 1):
        try:
            applied = _apply(applied, change, literal=literal)
        except ToolFailed as error:
            if len(changes) > 1:
                error.message = f"edit {number} of {len(changes)}: {error.message} (no edit was applied)"
            raise
    return applied


def _apply(so_far: _Applied, change: Replacement, *, literal: bool) -> _Applied:
    text = so_far.text
    old, new = _as_in(text, change.old_string), _as_in(text, change.new_string)
    if not old:
        raise ToolFailed("old_string is empty, which only creates a missing file; this one exists")
    if old == new:
        raise ToolFailed("old_string and new_string are the same; there is nothing to change")
    if change.replace_all:
        return _apply_everywhere(so_far, old, new)
    place = locate(unified(text), old, new, literal=literal)
    slips = (*so_far.slips, place.slip) if place.slip else so_far.slips
    return _Applied(spliced(text, place.start, place.end, place.text), so_far.count + 1, slips)


def _as_in(text: str, copied: str) -> str:
    """Unify line breaks; where the file has `\\r\\n`, a final `\\r` is one that was cut in half."""
    return unified(copied).removesuffix("\r") if "\r\n" in text else unified(copied)


def _apply_everywhere(so_far: _Applied, old: str, new: str) -> _Applied:
    text, plain = so_far.text, unified(so_far.text)
    count = plain.count(old)
    if count <= 1:  # one is the ordinary case, and none gets the ordinary answer
        place: Place = locate(plain, old, new, literal=True)
        return _Applied(spliced(text, place.start, place.end, place.text), so_far.count + 1, so_far.slips)
    if len(plain) == len(text):
        return _Applied(text.replace(old, new), so_far.count + count, so_far.slips)
    start = len(plain)
    while (start := plain.rfind(old, 0, start)) >= 0:  # from the end, so that the offsets before stay true
        text = spliced(text, start, start + len(old), new)
    return _Applied(text, so_far.count + count, so_far.slips)


def _encoded(text: str, before: Current, given: str) -> bytes:
    try:
        data = before.encoding.mark + before.encoding.encode(text)
    except UnicodeEncodeError as error:
        letter = text[error.start]
        raise ToolFailed(
            f"{given} is encoded as {before.encoding.name}, which has no {letter!r}; use letters it has, or write the "
            "whole file anew"
        ) from None
    if data == before.data:
        raise ToolFailed("the edit leaves the file as it is; there is nothing to change")
    return data


def _told(given: str, before: Current, applied: _Applied) -> str:
    places = "1 place" if applied.count == 1 else f"{applied.count} places"
    mended = f"; mended: {', '.join(dict.fromkeys(applied.slips))} (copy exactly next time)" if applied.slips else ""
    shown = show_change(unified(before.text), unified(applied.text), given)
    return f"Edited {given} at {places}{mended}\n{shown}"
