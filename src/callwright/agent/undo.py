"""Undo, redo and rewind of a session: its conversation, the files its tools changed, or both.

A point is the state before a prompt. Rewinding deletes nothing: a record says from where the conversation goes on, and
what the files were is kept, so that a rewind can be redone until the next prompt.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from callwright.agent.run_request import RunRequest, release_hold, wait_for_end
from callwright.agent.subagent import Lineage
from callwright.agent.transcript import Transcript
from callwright.core._fast import frozen, replace
from callwright.core.errors import UsageError, join_first
from callwright.core.messages import UserMessage
from callwright.sessions.base import SessionError, SessionHold, SessionStore, no_such_session
from callwright.sessions.records import Record, Rewound, UndoPoint, find_prompt_text, follow_rewinds, is_prompt
from callwright.system.undo.kept_content import UndoError
from callwright.system.undo.recorder import UndoRecorder
from callwright.tool.base import State

if TYPE_CHECKING:
    from callwright.system.undo.change_log import ChangeLog
    from callwright.system.undo.change_sets import UndoPlan
    from callwright.system.undo.undo_store import UndoStore

RewindScope: TypeAlias = Literal["both", "conversation", "files"]
_LABEL_CHARS = 200
_NOTE_FILES = 20


class UndoConflict(UndoError):
    """Other programs have changed files since; nothing was restored. `paths` names them."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(f"changed by another program since: {join_first(paths, 5)}; nothing was restored")
        self.paths = tuple(paths)


@frozen
class RewindPoint:
    """A state that a session can return to."""

    point_id: str
    label: str
    """The prompt that came next."""
    at: float
    """When, as Unix time; 0 if it is not known."""
    position: int
    """Its place among the records of the session."""
    paths: tuple[str, ...] = ()
    """The files that were changed after it and before the next point."""
    problem: str = ""
    """Why files cannot be restored to this point; empty if they can."""


@frozen
class Rewinding:
    """What a rewind or a redo did, or would do."""

    label: str
    """The prompt of the point."""
    conversation: bool
    """Whether the conversation is part of it."""
    restored: tuple[str, ...] = ()
    """Files that get a content back, or another mode."""
    removed: tuple[str, ...] = ()
    """Files that are deleted, because they did not exist."""
    conflicts: tuple[str, ...] = ()
    """Those of the files that another program has changed since."""
    notes: tuple[str, ...] = ()
    """What is left as it is."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that change."""
        return (*self.restored, *self.removed)


async def add_prompt(transcript: Transcript, request: RunRequest, store: "UndoStore | None") -> None:
    """Add the prompt of a request, after the record of the state before it if the session keeps points."""
    if request.prompt is None:
        return
    point = None
    if store is not None and request.lineage is None:
        log = store.open(request.session_id)
        if log.history.restores:
            await _take_back_unrecorded(log, transcript.hold.records)
        log_id, turn = log.take_point()
        label = " ".join(find_prompt_text(request.prompt).split())[:_LABEL_CHARS]
        point = UndoPoint(secrets.token_hex(4), label, {"log": log_id, "turn": turn})
    await transcript.add_user_message(UserMessage(request.prompt), key=request.key, point=point)


def attach_recorder(
    state: State, store: "UndoStore | None", session_id: str, lineage: Lineage | None, sessions: SessionStore
) -> UndoRecorder:
    """Give the tools of a run their recorder: that of the outer agent for an agent inside a call."""
    if lineage is not None:
        state.put(lineage.undo.inside())
    elif store is not None:
        recorder = store.recorder(session_id)
        file = getattr(sessions, "path", None)
        if recorder.log is not None and file is not None:  # a command must not seem to have changed the session itself
            recorder.log.scan.exclude(str(file))
        state.put(recorder)
    return state.get(UndoRecorder)


class UndoHistory:
    """Lists the points of a session and returns to them.

    Args:
        sessions: The store of the session.
        session: The session.
        files: Keeps what tools changed in files; without it only the conversation is rewound.
    """

    def __init__(self, sessions: SessionStore, session: str, files: "UndoStore | None" = None) -> None:
        self._sessions = sessions
        self._session = session
        self._files = files

    async def points(self) -> list[RewindPoint]:
        """Return the points of the conversation as it is now, oldest first.

        Raises:
            SessionError: There is no such session, or it cannot be read.
        """
        stored = await self._sessions.read_from(self._session)
        log = None if self._files is None else await asyncio.to_thread(self._open_log)
        counting = follow_rewinds([each.record for each in stored])
        counted = ((stored[at], stored[at].record) for at in counting)
        found = [(each, record) for each, record in counted if isinstance(record, UndoPoint)]
        points: list[RewindPoint] = []
        for number, (each, record) in enumerate(found):
            following = found[number + 1][1] if number + 1 < len(found) else None
            paths, problem = _describe_files(log, record, following)
            points.append(RewindPoint(record.point_id, record.label, each.at, each.position, paths, problem))
        return points

    async def rewind(
        self, to: str = "", *, scope: RewindScope = "both", overwrite: bool = False, dry_run: bool = False
    ) -> Rewinding:
        """Return to a point: the conversation goes on from it, and files are as they were.

        Files are restored all together or not at all.

        Args:
            to: The id of the point, or its number in the list of points, from 1; by default the latest.
            scope: `conversation`, `files` or `both`.
            overwrite: Also restore files that another program has changed since.
            dry_run: Change nothing, and return what would be done.

        Raises:
            UndoConflict: Another program has changed files since, and `overwrite` is not set.
            UndoError: There is no such point, or files cannot be restored.
            SessionBusy: The session is in use.
            SessionError: The session cannot be read or written; nothing was changed.
        """
        if scope not in get_args(RewindScope):
            raise UsageError(f"expected 'conversation', 'files' or 'both', got {scope!r}")
        point = _choose(await self.points(), to)
        hold = await self._hold()
        try:
            log = None if scope == "conversation" else await asyncio.to_thread(self._open_log)
            plan = None
            if log is not None:
                if not dry_run:
                    await _take_back_unrecorded(log, hold.records)
                plan = await asyncio.to_thread(_plan_undo, log, hold.records, point.position)
            result = _describe(point.label, plan, conversation=scope != "files")
            if dry_run:
                return result
            position = len(hold.records) if scope == "files" else point.position
            rewound = Rewound(position, note=_note(result) if scope == "files" else "")
            return await _finish(self._apply(hold, log, plan, rewound, result, overwrite=overwrite))
        finally:
            await release_hold(hold)

    async def redo(self, *, overwrite: bool = False, dry_run: bool = False) -> Rewinding:
        """Take the latest rewind back; possible until the next prompt.

        Args:
            overwrite: Also restore files that another program has changed since.
            dry_run: Change nothing, and return what would be done.

        Raises:
            UndoConflict: Another program has changed files since, and `overwrite` is not set.
            UndoError: There is nothing to redo, or files cannot be restored.
            SessionBusy: The session is in use.
            SessionError: The session cannot be read or written. Files may be redone already: a second redo goes on.
        """
        hold = await self._hold()
        try:
            if self._files is not None and not dry_run:
                await _take_back_unrecorded(await asyncio.to_thread(self._open_log), hold.records)
            position = _find_redo(hold.records)
            undone = cast("Rewound", hold.records[position])
            log = await asyncio.to_thread(self._open_log) if undone.restored else None
            plan = None if log is None else await asyncio.to_thread(log.plan_redo, undone.restored)
            label = next((each.label for each in hold.records[undone.position :] if isinstance(each, UndoPoint)), "")
            result = _describe(label, plan, conversation=undone.position < position)
            if dry_run:
                return result
            rewound = Rewound(position, undone.restored, redo=True)
            return await _finish(self._apply(hold, log, plan, rewound, result, overwrite=overwrite))
        finally:
            await release_hold(hold)

    async def _apply(
        self,
        hold: SessionHold,
        log: "ChangeLog | None",
        plan: "UndoPlan | None",
        rewound: Rewound,
        result: Rewinding,
        *,
        overwrite: bool,
    ) -> Rewinding:
        restored, left = "", list[str]()
        if plan is not None and log is not None:
            if plan.conflicts and not overwrite:
                raise UndoConflict(plan.conflicts)
            restored, left = await asyncio.to_thread(log.apply, plan, redo=rewound.restored if rewound.redo else "")
        try:
            await hold.append(replace(rewound, restored=restored))
        except SessionError:
            if log is not None and restored and not rewound.redo:  # both or nothing
                await asyncio.to_thread(lambda: log.apply(log.plan_redo(restored), redo=restored))
            raise
        return replace(
            result, notes=(*result.notes, *(f"not removed: {path} (other files are in it)" for path in left))
        )

    async def _hold(self) -> SessionHold:
        hold = await self._sessions.hold(self._session)
        if not hold.records:
            await hold.release()
            raise no_such_session(self._session)
        return hold

    def _open_log(self) -> "ChangeLog":
        if self._files is None:
            raise UndoError("changes of files are not kept for this session; rewind the conversation only")
        return self._files.open(self._session)


async def _finish(applying: Coroutine[Any, Any, Rewinding]) -> Rewinding:
    """Do a rewind to its end, also in a task that is being cancelled: files and conversation go together."""
    task = asyncio.ensure_future(applying)
    await wait_for_end(task)
    return task.result()


def _choose(points: Sequence[RewindPoint], to: str) -> RewindPoint:
    if not points:
        raise UndoError("nothing to undo: the session has no prompt to return to")
    if not to:
        return points[-1]
    for point in points:
        if point.point_id == to:
            return point
    if to.isdecimal() and 1 <= int(to) <= len(points):
        return points[int(to) - 1]
    raise UndoError(f"there is no point {to!r}; there are 1 to {len(points)}")


def _find_redo(records: Sequence[Record]) -> int:
    """Return the position of the latest rewind that was not redone."""
    undone: list[int] = []
    for position, record in enumerate(records):
        if isinstance(record, Rewound):
            if record.redo:
                del undone[-1:]
            else:
                undone.append(position)
        elif is_prompt(record):
            undone.clear()
    if not undone:
        raise UndoError("nothing to redo: nothing was undone since the last prompt")
    return undone[-1]


def _read_data(record: UndoPoint) -> tuple[str, int]:
    match record.data:
        case {"log": str(log_id), "turn": int(turn)}:
            return log_id, turn
        case _:
            raise UndoError("the changes after this point were not kept")


def _plan_undo(log: "ChangeLog", records: Sequence[Record], position: int) -> "UndoPlan":
    log_id, turn = _read_data(cast("UndoPoint", records[position]))
    later = (_read_data(each)[0] for each in records[position:] if isinstance(each, UndoPoint))
    if not log.covers(log_id) or not all(log.covers(each) for each in later if each):
        raise UndoError(
            "the changes since this point are not kept any more, or belong to the session it was copied from"
        )
    point = cast("UndoPoint", records[position]).point_id
    return replace(log.plan_undo(turn if log_id else 0), point=point)


async def _take_back_unrecorded(log: "ChangeLog", records: Sequence[Record]) -> None:
    """Take back a rewind that restored files and was killed before its record was written: both or nothing.

    What another program has changed since stays as it is.
    """
    recorded = {each.restored for each in records if isinstance(each, Rewound)}
    points = {each.point_id for each in records if isinstance(each, UndoPoint)}  # not of an older session of this name
    lost = [each for each, point in log.history.points.items() if point in points and each not in recorded]
    for restored in lost[::-1]:
        with suppress(UndoError):
            plan = await asyncio.to_thread(log.plan_redo, restored)
            if not plan.conflicts:
                await asyncio.to_thread(partial(log.apply, plan, redo=restored))


def _describe_files(
    log: "ChangeLog | None", record: UndoPoint, following: UndoPoint | None
) -> tuple[tuple[str, ...], str]:
    if log is None:
        return (), "changes of files are not kept"
    try:
        log_id, turn = _read_data(record)
        if log.problem or not log.covers(log_id):
            raise UndoError(log.problem or "the changes after this point are not kept any more")
        end = log.history.last if following is None else _read_data(following)[1]
    except UndoError as error:
        return (), str(error)
    sets = [each for number, each in log.history.sets.items() if turn < number <= end]
    gaps = [gap for each in sets for gap in each.gaps]
    return tuple(sorted(set[str]().union(*(each.paths for each in sets)))), gaps[0] if gaps else ""


def _describe(label: str, plan: "UndoPlan | None", *, conversation: bool) -> Rewinding:
    if plan is None:
        return Rewinding(label, conversation)
    chosen = set(plan.paths)
    gone = {each.path: each.target.kind in ("absent", "folder") for each in plan.restorations if each.path in chosen}
    restored = tuple(path for path in gone if not gone[path])
    removed = tuple(path for path in gone if gone[path])
    return Rewinding(label, conversation, restored, removed, plan.conflicts, plan.notes)


def _note(result: Rewinding) -> str:
    if not result.paths:
        return ""
    shown = join_first(result.paths, _NOTE_FILES)
    return f"[The user has undone changes of files: {shown}. Read a file again before you change it.]"
