"""`callwright sessions undo` and `redo`: return a session to an earlier prompt, and take that back."""

import argparse
from typing import Any

from callwright.agent.undo import RewindScope, UndoConflict, UndoHistory
from callwright.app.locations import Locations
from callwright.cli.render.rewind import point_lines, rewind_lines
from callwright.cli.render.text import print_json, print_text, visible
from callwright.core.errors import UsageError
from callwright.sessions import SessionStore
from callwright.system.undo.undo_store import UndoStore

_WIDTH = 100
_UNDO = """\
Undoes the last prompt of a session, or everything since the point given with --to: files are as they were before it,
and the conversation goes on from there. Nothing is lost: redo takes it back until the next prompt."""
_REDO = "Takes the last undo of a session back; possible until its next prompt."


def add_undo_actions(actions: Any) -> None:
    """Add `undo` and `redo` to the subparsers of `callwright sessions`."""
    undo_action = actions.add_parser("undo", help="undo the last prompt, or return to a point", description=_UNDO)
    redo_action = actions.add_parser("redo", help="take the last undo back", description=_REDO)
    for action in (undo_action, redo_action):
        action.add_argument(
            "id", nargs="?", default="", metavar="ID", help="the session, or its first characters; default: the latest"
        )
        action.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
        action.add_argument(
            "--overwrite", action="store_true", help="also restore files that another program has changed since"
        )
    undo_action.add_argument("--to", default="", metavar="POINT", help="the number or id of a point; see --list")
    undo_action.add_argument("--list", action="store_true", help="list the points, and change nothing")
    undo_action.add_argument("--json", action="store_true", help="with --list: print a JSON list")
    parts = undo_action.add_mutually_exclusive_group()
    parts.add_argument("--files", action="store_const", const="files", dest="scope", help="files only")
    parts.add_argument(
        "--conversation", action="store_const", const="conversation", dest="scope", help="the conversation only"
    )
    undo_action.set_defaults(scope="both")


async def latest_session(store: SessionStore) -> str:
    """Return the session that was used last.

    Raises:
        UsageError: There is none.
    """
    newest = await store.list(limit=1)
    if not newest:
        raise UsageError("No sessions in this project. Run callwright to start one.")
    return newest[0].session_id


async def undo(options: argparse.Namespace, store: SessionStore) -> None:
    """Undo, or list the points."""
    history = _history(options, store)
    if options.list:
        points = await history.points()
        if options.json:
            fields = ("point_id", "label", "at", "paths", "problem")
            print_json([{name: getattr(point, name) for name in fields} for point in points], indent=2)
            return
        print_text("\n".join(point_lines(points, _WIDTH)) if points else "no points: the session has no prompt")
        return
    scope: RewindScope = options.scope
    try:
        result = await history.rewind(options.to, scope=scope, overwrite=options.overwrite, dry_run=options.dry_run)
    except UndoConflict as conflict:
        raise UsageError(f"{conflict}; --overwrite restores them too") from None
    _print(result, "undone", options)


async def redo(options: argparse.Namespace, store: SessionStore) -> None:
    """Take the last undo back."""
    try:
        result = await _history(options, store).redo(overwrite=options.overwrite, dry_run=options.dry_run)
    except UndoConflict as conflict:
        raise UsageError(f"{conflict}; --overwrite restores them too") from None
    _print(result, "redone", options)


def _history(options: argparse.Namespace, store: SessionStore) -> UndoHistory:
    return UndoHistory(store, options.id, UndoStore(Locations.of().undo))


def _print(result: Any, verb: str, options: argparse.Namespace) -> None:
    cwd = Locations.of().cwd
    for line in rewind_lines(result, cwd, verb=verb, dry_run=options.dry_run):
        print_text(visible(line))
