"""`callwright sessions`: lists, searches, shows, undoes, forks, exports and deletes the sessions of this project."""

import argparse
import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from callwright.agent.replay import SessionReplay
from callwright.agent.undo import Rewinding, UndoConflict, UndoHistory
from callwright.app.costs import cost_of_records, price_lookup
from callwright.app.delete_session import delete_session
from callwright.app.locations import Locations
from callwright.app.session_search import find_excerpt
from callwright.app.transcripts import export_redacted, redact_records
from callwright.cli.parsing import Parser, positive_int
from callwright.cli.render.calls import one_line, transcript
from callwright.cli.render.text import format_time, print_json, print_notice, print_text, visible, visible_line
from callwright.cli.render.undo import point_lines, rewind_lines
from callwright.cli.startup import find_session
from callwright.core.errors import UsageError, describe_exception
from callwright.sessions import SessionDamaged, SqliteStore
from callwright.sessions.records import sum_usage
from callwright.system.private_files import write_private
from callwright.system.undo.undo_store import UndoStore

_MOST_HITS = 10_000
_WIDTH = 100
_NO_SESSIONS = "No sessions in this project. Run callwright to start one."
_LATEST_BY_DEFAULT = ("undo", "redo")
_DESCRIPTION = """\
Manages the sessions of this project. Every conversation is stored, message by message, and can be resumed."""
_EPILOG = """\
examples:
  callwright sessions list
  callwright sessions search 'build fails'
  callwright sessions resume 3f2a                 continue it in the terminal
  callwright sessions undo 3f2a --dry-run         what undoing its last prompt would change
  callwright sessions export 3f2a -o session.jsonl
"""
_UNDO = """\
Undoes the last prompt of a session, or everything since the point given with --to: files are as they were before it,
and the conversation goes on from there. Nothing is lost: redo takes it back until the next prompt."""
_REDO = "Takes the last undo of a session back; possible until its next prompt."


def run(arguments: list[str]) -> int:
    """Run the subcommand and return its exit code."""
    options = _parser().parse_args(arguments)
    if options.action == "resume":
        from callwright.cli.commands.chat import run as run_chat

        return run_chat(["--resume", options.id, *options.rest])
    if not Locations.of().sessions.exists():
        if options.action == "list":
            print_text("[]" if options.json else _NO_SESSIONS)
            return 0
        # opening the store would create the file
        raise UsageError(_NO_SESSIONS)
    return asyncio.run(_perform(options))


def _parser() -> argparse.ArgumentParser:
    usage = "callwright sessions ACTION [ARGUMENTS]"
    parser = Parser("callwright sessions", usage=usage, description=_DESCRIPTION, epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog="callwright sessions")
    listed = actions.add_parser(
        "list", help="list sessions, most recent first", description="Lists sessions, most recent first."
    )
    listed.add_argument("--json", action="store_true", help="print a JSON list")
    listed.add_argument(
        "--limit", type=positive_int, default=20, metavar="N", help="maximum number of sessions; default: 20"
    )
    search = actions.add_parser(
        "search", help="find sessions that contain a text", description="Finds sessions that contain a text."
    )
    search.add_argument("text", metavar="TEXT")
    for name, what in (
        ("show", "print a session"),
        ("resume", "continue a session; accepts the options of a conversation"),
        ("fork", "copy a session, to continue it in another way"),
        ("export", "write the records of a session as JSON Lines"),
        ("delete", "delete a session permanently"),
    ):
        action = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        action.add_argument("id", metavar="ID", help="the id of the session, or its first characters")
        if name == "resume":
            action.add_argument("rest", nargs=argparse.REMAINDER, metavar="OPTIONS", help="options of a conversation")
        if name == "export":
            action.add_argument(
                "-o", "--output", type=Path, metavar="FILE", help="write to this file instead of stdout"
            )
    _add_undo_actions(actions)
    return parser


def _add_undo_actions(actions: Any) -> None:
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


async def _perform(options: argparse.Namespace) -> int:
    actions: dict[str, Callable[[argparse.Namespace, SqliteStore], Awaitable[None]]] = {
        "list": _list,
        "search": _search,
        "show": _show,
        "fork": _fork,
        "export": _export,
        "delete": _delete,
        "undo": _undo,
        "redo": _undo,
    }
    async with SqliteStore(Locations.of().sessions) as store:
        if hasattr(options, "id"):
            options.id = await _find(store, options)
        await actions[options.action](options, store)
    return 0


async def _find(store: SqliteStore, options: argparse.Namespace) -> str:
    if options.id:
        return await find_session(store, options.id)
    if options.action not in _LATEST_BY_DEFAULT:
        # such as an unset variable of a script, which must not delete the last conversation
        raise UsageError(f"sessions {options.action}: ID is empty; see callwright sessions list")
    newest = await store.list(limit=1)
    if not newest:
        raise UsageError(_NO_SESSIONS)
    return newest[0].session_id


async def _list(options: argparse.Namespace, store: SqliteStore) -> None:
    entries = await store.list(limit=options.limit)
    if options.json:
        fields = ("session_id", "title", "created_at", "updated_at", "records")
        print_json([{name: getattr(entry, name) for name in fields} for entry in entries], indent=2)
        return
    if not entries:
        print_text(_NO_SESSIONS)
    width = max((len(entry.session_id) for entry in entries), default=0)
    for entry in entries:
        print_text(f"{entry.session_id:<{width}}  {format_time(entry.updated_at):>12}  {one_line(entry.title, 60)}")


async def _search(options: argparse.Namespace, store: SqliteStore) -> None:
    hits = await store.search(options.text, limit=_MOST_HITS)
    shown: set[str] = set()
    for hit in hits:
        if hit.session_id in shown:
            continue
        excerpt = await find_excerpt(store, hit, options.text)
        if excerpt is not None:
            shown.add(hit.session_id)
            print_text(f"{hit.session_id}  {one_line(visible_line(excerpt))}")
    if not shown:
        print_notice(f"no session of this project contains {options.text!r}")
    if len(hits) == _MOST_HITS:
        print_notice(f"only the last {_MOST_HITS:,} records were searched")


async def _show(options: argparse.Namespace, store: SqliteStore) -> None:
    records = await store.read(options.id)
    recalled = SessionReplay(records)
    print_text("\n".join(transcript(list(recalled.history))))
    if recalled.open is not None:
        waiting = ", ".join(visible_line(call.name) for call in recalled.open.calls)
        print_text(f"pending: {waiting}; continue with: callwright --resume {options.id}")
    usage = sum_usage(records)
    cost = cost_of_records(records, price_lookup(Locations.of()))
    print_text(f"[{usage.input_tokens} tokens in, {usage.output_tokens} out; {cost}]")


async def _fork(options: argparse.Namespace, store: SqliteStore) -> None:
    copy = str(uuid.uuid4())
    await store.fork(options.id, copy)
    print_text(copy)


async def _export(options: argparse.Namespace, store: SqliteStore) -> None:
    damage: SessionDamaged | None = None
    try:
        text = await export_redacted(store, options.id)
    except SessionDamaged as error:  # what can be read is not lost
        text, damage = redact_records(each.record for each in error.readable), error
    if options.output is None:
        sys.stdout.write(text)
    else:
        try:
            write_private(options.output, text)
        except OSError as error:
            raise UsageError(f"--output {options.output}: {describe_exception(error)}; name another file") from None
        print_text(f"wrote {options.output}", file=sys.stderr)
    if damage is not None:
        raise damage


async def _delete(options: argparse.Namespace, store: SqliteStore) -> None:
    await delete_session(store, options.id, Locations.of())
    print_text(f"deleted {options.id}")


async def _undo(options: argparse.Namespace, store: SqliteStore) -> None:
    history = UndoHistory(store, options.id, UndoStore(Locations.of().undo))
    if options.action == "redo":
        await _perform_undo("redone", history.redo, options)
        return
    if options.list:
        points = await history.points()
        if options.json:
            fields = ("point_id", "label", "at", "paths", "problem")
            print_json([{name: getattr(point, name) for name in fields} for point in points], indent=2)
            return
        print_text("\n".join(point_lines(points, _WIDTH)) if points else "no points: the session has no prompt")
        return
    await _perform_undo("undone", partial(history.rewind, options.to, scope=options.scope), options)


async def _perform_undo(verb: str, act: Callable[..., Awaitable[Rewinding]], options: argparse.Namespace) -> None:
    try:
        result = await act(overwrite=options.overwrite, dry_run=options.dry_run)
    except UndoConflict as conflict:
        raise UsageError(f"{conflict}; --overwrite restores them too") from None
    for line in rewind_lines(result, Locations.of().cwd, verb=verb, dry_run=options.dry_run):
        print_text(visible(line))
