"""The `edit` tool: replaces text that occurs in a file exactly once, all changes or none."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pydantic import AliasChoices, Field, model_validator

from callwright.core.access import Access, ReadPath, WritePath
from callwright.core.errors import ToolFailed
from callwright.core.json import JsonObject
from callwright.core.spec import Effect
from callwright.system.atomic_write import ABSENT
from callwright.system.files import detect_encoding, digest, replace_range, replace_ranges, unify_line_breaks
from callwright.system.paths import Workspace
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import Invocation, Preview, State, ToolContext
from callwright.tool.schema import Arguments
from callwright.tool.typed import TypedTool, describe
from callwright.toolbox._content_slips import find_edit_slip
from callwright.toolbox._file_state import DISK, FileAccess, LoadedFile, SeenFiles, lock_path
from callwright.toolbox._path_repairs import PathChanges, repair_fields
from callwright.toolbox._paths import TargetArguments, explain_missing
from callwright.toolbox.change_preview import preview_call
from callwright.toolbox.edit.feedback import explain_empty, show_change
from callwright.toolbox.edit.locate import locate
from callwright.toolbox.edit.typos import Doubtful, EditPlace, find_all

_OLD = AliasChoices("old_string", "oldString", "old_str", "old_text", "old", "search")
_NEW = AliasChoices("new_string", "newString", "new_str", "new_text", "new", "replace")
_ALL = AliasChoices("replace_all", "replaceAll", "allow_multiple")
_MOST_CHARS = 1 << 26
"""Of a file in which every occurrence was replaced: a short text by a long one may fill the memory."""


class Replacement(Arguments):
    # without descriptions, which would repeat those of the fields outside of the list
    old_string: str = Field(validation_alias=_OLD)
    new_string: str = Field(validation_alias=_NEW)
    replace_all: bool = Field(default=False, validation_alias=_ALL)


class EditArguments(TargetArguments):
    """Arguments of `edit`."""

    old_string: str | None = Field(default=None, validation_alias=_OLD)
    """The exact text, with enough lines around it to occur once; empty to create a file."""
    new_string: str | None = Field(default=None, validation_alias=_NEW)
    """The text to put in its place; empty to delete it."""
    replace_all: bool = Field(default=False, validation_alias=_ALL)
    """Replace every occurrence."""
    edits: tuple[Replacement, ...] = ()
    """Several changes instead of one, with the same three fields."""

    @model_validator(mode="after")
    def _one_form(self) -> "EditArguments":
        if bool(self.edits) == (self.old_string is not None and self.new_string is not None):
            deletes = '; to delete the text, give "" as new_string' if self.old_string and not self.edits else ""
            raise ValueError(f"give either old_string and new_string, or edits{deletes}")
        return self

    def changes(self) -> tuple[Replacement, ...]:
        """Return the changes, in whichever form they were given."""
        if self.edits:
            return self.edits
        return (
            Replacement.model_construct(
                old_string=self.old_string or "", new_string=self.new_string or "", replace_all=self.replace_all
            ),
        )


class Edit(TypedTool[EditArguments]):
    """Changes parts of files of a workspace.

    Args:
        workspace: The workspace, or the path of its folder.
        files: Where files are loaded and stored.
    """

    spec = describe(
        "edit",
        "Replace text in a file that was read in this session. Copy old_string exactly, with its indentation and "
        "without line numbers; it must occur once (or pass replace_all=true). Several changes go into edits, all or "
        "none.",
        effect=Effect.WRITE,
        group="file",
        aliases=("Edit", "MultiEdit", "str_replace", "edit_file", "replace", "str_replace_editor"),
    )

    def __init__(self, workspace: Workspace | str | PathLike[str] = ".", *, files: FileAccess = DISK) -> None:
        self._workspace = Workspace.of(workspace)
        self._files = files

    def repair_paths(self, invocation: Invocation) -> PathChanges:
        """Return the path that the call means, where exactly one file fits; an empty old_string may create one."""
        given: object = getattr(invocation, "given", None)
        creates = isinstance(given, EditArguments) and given.old_string == ""
        return repair_fields(invocation, self._workspace, {"path": "new" if creates else "existing"})

    def accesses(self, arguments: EditArguments) -> Sequence[Access]:
        """Declare a read, because the result shows lines around the change, and a write."""
        path = str(arguments.resolve(self._workspace.check_write))
        return (ReadPath(path), WritePath(path))

    def preview(self, arguments: JsonObject) -> Preview | None:
        """Return the difference that the call would make to the file as it is now."""
        return preview_call(self._workspace, arguments)

    async def run(self, arguments: EditArguments, context: ToolContext) -> str:
        """Apply the changes and return a diff."""
        path = arguments.resolve(self._workspace.check_write)
        # in a thread: matching a large file and flushing to disk would block the event loop
        return await asyncio.to_thread(_edit, path, arguments, context.state, self._files)


def _edit(path: Path, arguments: EditArguments, state: State, files: FileAccess) -> str:
    seen, undo = state.get(SeenFiles), state.get(UndoRecorder)
    changes = arguments.changes()
    with lock_path(path):
        before = files.load(path, arguments.path)
        if before is None:
            with undo.changing(path):
                return _create(path, arguments, changes, seen, files)
        known = seen.check(path, arguments.path, before.data, before.identity)
        if detect_encoding(before.data) is None:
            raise ToolFailed(f"{arguments.path} is a binary file; edit changes text only")
        literal = seen.consume_doubt(path, changes)  # the model insists: no corrections, no doubts
        try:
            applied = _apply_all(before.text, changes, path.name, literal=literal)
        except Doubtful:
            seen.remember_doubt(path, changes)
            raise
        data = _encode(applied.text, before, arguments.path)
        with undo.changing(path):
            files.store(path, arguments.path, data, digest(before.data))
        seen.remember_written(path, digest(data), whole=known.whole)
    return _describe_edit(arguments.path, before, applied)


def _create(
    path: Path, arguments: EditArguments, changes: Sequence[Replacement], seen: SeenFiles, files: FileAccess
) -> str:
    if len(changes) != 1 or changes[0].old_string:
        raise explain_missing(arguments.path, path)
    data = changes[0].new_string.encode()
    files.store(path, arguments.path, data, ABSENT)
    seen.remember_written(path, digest(data), whole=True)
    return f"Created {arguments.path} ({len(data)} bytes)"


@dataclass(frozen=True, slots=True)
class _Result:
    text: str
    count: int = 0
    typos: tuple[str, ...] = ()


def _apply_all(text: str, changes: Sequence[Replacement], name: str, *, literal: bool) -> _Result:
    applied = _Result(text)
    for number, change in enumerate(changes, 1):
        try:
            applied = _apply(applied, change, name, literal=literal)
        except ToolFailed as error:
            if len(changes) > 1:
                error.message = f"edit {number} of {len(changes)}: {error.message} (no edit was applied)"
            raise
    return applied


def _apply(so_far: _Result, change: Replacement, name: str, *, literal: bool) -> _Result:
    text = so_far.text
    if text and not change.old_string:
        raise ToolFailed(explain_empty(text))
    if change.old_string == change.new_string:
        raise ToolFailed("old_string and new_string are the same; there is nothing to change")
    if not literal and (reason := find_edit_slip(name, change.old_string, change.new_string)) is not None:
        raise Doubtful(reason)
    if not change.old_string:  # in an empty file there is one place for it
        return _Result(change.new_string, so_far.count + 1, so_far.typos)
    if not change.replace_all and _names_breaks(text, change, literal=literal):
        return _Result(text.replace(change.old_string, change.new_string), so_far.count + 1, so_far.typos)
    old, new = _unify_breaks(text, change.old_string), _unify_breaks(text, change.new_string)
    if old == new:
        raise ToolFailed("old_string and new_string differ in line breaks only; there is nothing to change")
    if not old:
        raise ToolFailed("old_string is half of a line break (\\r\\n); change line breaks with a command, such as sed")
    if change.replace_all:
        return _apply_everywhere(so_far, old, new, literal=literal)
    place = locate(unify_line_breaks(text), old, new, literal=literal)
    typos = (*so_far.typos, place.typo) if place.typo else so_far.typos
    return _Result(replace_range(text, place.start, place.end, place.text), so_far.count + 1, typos)


def _names_breaks(text: str, change: Replacement, *, literal: bool) -> bool:
    """Tell whether an edit spells out `\\r`, and old_string stands in the file exactly once as it was given.

    Raises:
        Doubtful: Only new_string has `\\r`, in a file without any.
    """
    if "\r" not in change.old_string + change.new_string or len(find_all(text, change.old_string, 2)) != 1:
        return False
    if not literal and "\r" not in text:
        raise Doubtful("new_string has \\r\\n line breaks and the file has \\n; write \\n")
    return True


def _unify_breaks(text: str, copied: str) -> str:
    """Unify line breaks; in a file with `\\r\\n`, a final `\\r` is half of one."""
    return unify_line_breaks(copied).removesuffix("\r") if "\r\n" in text else unify_line_breaks(copied)


def _apply_everywhere(so_far: _Result, old: str, new: str, *, literal: bool) -> _Result:
    text, plain = so_far.text, unify_line_breaks(so_far.text)
    count = plain.count(old)
    starts = find_all(plain, old, 2)
    if len(starts) <= 1:  # one match is the ordinary case, and none gets the same error as ever
        place: EditPlace = locate(plain, old, new, literal=literal or bool(starts))
        return _Result(replace_range(text, place.start, place.end, place.text), so_far.count + 1, so_far.typos)
    if (size := len(plain) + count * (len(new) - len(old))) > _MOST_CHARS:
        raise ToolFailed(
            f"old_string occurs at {count} places, so the file would grow to {size} characters; above {_MOST_CHARS} a "
            "file is changed with a command, such as sed"
        )
    return _Result(_replace_everywhere(text, plain, old, new), so_far.count + count, so_far.typos)


def _replace_everywhere(text: str, plain: str, old: str, new: str) -> str:
    """Replace what stands in the unified text, from the left; every line keeps its own break."""
    if len(plain) == len(text) or "\n" not in old + new:
        return text.replace(old, new)
    if text.count("\r\n") == plain.count("\n"):
        return plain.replace(old, new).replace("\n", "\r\n")
    return replace_ranges(text, [match.span() for match in re.finditer(re.escape(old), plain)], new)


def _encode(text: str, before: LoadedFile, given: str) -> bytes:
    try:
        data = before.encoding.mark + before.encoding.encode(text)
    except UnicodeEncodeError as error:
        letter = text[error.start]
        raise ToolFailed(
            f"{given} is encoded as {before.encoding.name}, which has no {letter!r}; use other characters, or "
            "write the whole file with write"
        ) from None
    if data == before.data:
        raise ToolFailed("the edit does not change the file")
    return data


def _describe_edit(given: str, before: LoadedFile, applied: _Result) -> str:
    places = "1 place" if applied.count == 1 else f"{applied.count} places"
    corrected = (
        f"; corrected: {', '.join(dict.fromkeys(applied.typos))} (copy exactly next time)" if applied.typos else ""
    )
    shown = show_change(unify_line_breaks(before.text), unify_line_breaks(applied.text), given)
    return f"Edited {given} at {places}{corrected}{before.describe_links()}\n{shown}"
