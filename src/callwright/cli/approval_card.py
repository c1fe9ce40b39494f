"""The approval card: a box with what a call would do, and a menu of answers below it.

Everything that `approval_dialog.dialog_text` shows is in the card too. A path is said once and relative to the
workspace; accesses that the title or an argument already says are listed on demand.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from callwright.app.questions import look_alikes
from callwright.cli.approval_dialog import (
    DialogText,
    argument_rows,
    deciding_texts,
    wrap_rows,
)
from callwright.cli.render.text import Palette, cut, mark_text, width_of, wrap_columns, wrap_line
from callwright.core.access import Access, DeletePath, ReadPath, RunCommand, WritePath, describe_access
from callwright.core.calls import Question
from callwright.policy.grants import can_last, propose_for
from callwright.system.paths import shorten_path
from callwright.toolbox.ask_user import choices_of
from callwright.toolbox.change_preview import preview_change

WHY = "n…"
"""The answer of the menu row that asks for the reason of a no."""
_EVERYTHING = "tab: everything it touches"
_LESS = "tab: less"
_KEY_COLUMN = 37
_QUIET = {"bash": {"timeout_seconds": 120.0, "background": False, "description": ""}}
"""Arguments that say nothing at these values, which are the defaults; Tab shows them."""
_VERBS = {"edit": "Edit", "write": "Write", "delete": "Delete"}


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One row of a menu: what it says, and the answer it stands for."""

    label: str
    key: str
    answer: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One row of a card: its text, escaped, and what stands in front of it."""

    text: str
    mark: str = ""
    """`+`, `-`, a blank for an unchanged line, or nothing for a row that is not a line of a file."""
    number: int = 0

    @property
    def gutter(self) -> str:
        """The line number and the mark, as wide in every row of a diff."""
        if not self.mark:
            return ""
        return f"{self.number or '':>4}  {self.mark} "


class Menu:
    """Rows to choose from with the arrow keys; a typed answer marks its row.

    Args:
        entries: The rows.
        palette: The colours.
    """

    def __init__(self, entries: Sequence[MenuEntry], palette: Palette) -> None:
        self.entries = tuple(entries)
        self._palette = palette
        self._selected = 0

    @property
    def answer(self) -> str:
        """The answer of the marked row."""
        return self.entries[self._selected].answer

    def move(self, step: int) -> None:
        """Mark another row; the first follows the last."""
        self._selected = (self._selected + step) % len(self.entries)

    def mark(self, typed: str) -> None:
        """Mark the row of a typed key, if there is one."""
        found = [at for at, entry in enumerate(self.entries) if entry.key == typed.strip().lower()]
        self._selected = found[0] if found else self._selected

    def rows(self, width: int, *, brief: bool = False) -> list[str]:
        """Return the rows of the menu; `brief` for a screen without room, which shows the marked row alone."""
        if brief:
            entry = self.entries[self._selected]
            more = " · ".join(other.key for other in self.entries if other is not entry)
            return [cut(f" ❯ {entry.label}  {entry.key} · or: {more}", width)]
        return [row for at, entry in enumerate(self.entries) for row in self._entry_rows(at, entry, width)]

    def _entry_rows(self, at: int, entry: MenuEntry, width: int) -> Iterator[str]:
        first, *more = wrap_columns(entry.label, max(width - 8, 12))
        sign = "❯" if at == self._selected else " "
        gap = " " * max(_KEY_COLUMN - 3 - width_of(first), 2) if not more else "  "
        yield f" {sign} {self._palette.paint(first, 'bold' if at == self._selected else '')}{gap}{entry.key}"
        yield from (f"     {row}" for row in more)


def approval_menu(question: Question, palette: Palette, folder: str = "") -> Menu:
    """Return the answers that a question takes; rules name paths inside of `folder` relative to it."""
    if question.kind == "auth":
        return Menu([MenuEntry("Done", "y", "y"), MenuEntry("No", "n", "n")], palette)
    yes, no = MenuEntry("Yes", "y", "y"), MenuEntry("No, and tell the model why…", "n", WHY)
    if question.running:  # the call has begun: neither a rule nor other arguments would be for this question
        return Menu([yes, no], palette)
    rules = propose_for(question).rules
    always = [MenuEntry(f"Always: {', '.join(_rule_texts(rules, folder))}", "a", "a")] if rules else []
    wider = propose_for(question, wider=True).rules if rules else ()
    always += [MenuEntry(f"Always, also: {', '.join(_rule_texts(wider, folder))}", "g", "g")] if wider else []
    session = [MenuEntry("Yes, for this session", "s", "s")] if can_last(question) else []
    return Menu([yes, *session, *always, MenuEntry("Change the arguments…", "e", "e"), no], palette)


def _rule_texts(rules: Sequence[str], folder: str) -> list[str]:
    """Return rules as the menu shows them: paths relative to the folder, and no reads that writing includes."""
    shown = [mark_text(rule.replace(f"(/{folder}/", "(", 1) if folder else rule) for rule in rules]
    written = {rule.removeprefix("Edit") for rule in shown if rule.startswith("Edit(")}
    return [rule for rule in shown if not (rule.startswith("Read(") and rule.removeprefix("Read") in written)]


def card_text(
    question: Question, palette: Palette, folder: str, width: int = 80, *, everything: bool = False, keys: bool = True
) -> DialogText:
    """Return the rows of a card; the menu is not part of them.

    Args:
        question: The approval request.
        palette: The colours.
        folder: The folder that paths are shown relative to.
        width: The columns of the screen.
        everything: Whether to list every access, with whole paths.
        keys: Whether single keys are read, so that Tab shows more or less.
    """
    box = _Box(width, palette)
    card = _Card(question, folder)
    title, said = card.title()
    if width_of(title) > box.room - 2:
        title, said = f"Allow {cut(mark_text(question.tool), box.room - 12)}?", None
    rows = card.body(said, everything=everything)
    rows += [ChangeRow(f"{verb} {target}") for verb, target in card.accesses(said, everything=everything)]
    if question.origin:
        rows += [ChangeRow("made by:"), *(ChangeRow(mark_text(line)) for line in question.origin.split("\n"))]
    painted = [row for change in rows for row in box.change(change)]
    warnings = list(box.paint(wrap_rows(look_alikes(question), box.room), "yellow"))
    reason = mark_text(card.shorten_paths(question.reason))
    hint = "" if not keys else _LESS if everything else _EVERYTHING
    fits = width_of(f"{reason} · {hint}") <= box.room
    why = [] if fits or not reason else list(box.paint(wrap_rows([f"because {reason}"], box.room), "dim"))
    deciding = box.paint(wrap_rows(deciding_texts(question), box.room), "bold")
    footer = " · ".join(filter(None, (reason if fits else "", hint)))
    return DialogText(
        [box.edge("╭", title, "╮", "bold")],
        [*painted, *warnings, *why],
        [*deciding, *warnings, *why],
        [box.edge("╰", footer, "╯", "dim")],
        rule="├─ ",
    )


def input_menu(question: Question, palette: Palette) -> Menu | None:
    """Return the choices of the model's question by number; None if it offers none."""
    found = choices_of(question.arguments)
    entries = [MenuEntry(mark_text(label), str(number), label) for number, (label, _) in enumerate(found, 1)]
    return Menu(entries, palette) if entries else None


def input_text(question: Question, palette: Palette, width: int = 80, *, keys: bool = True) -> DialogText:
    """Return the rows of the model's question; the choices are in the menu, for arrow keys where `keys` are read."""
    box = _Box(width, palette)
    found = choices_of(question.arguments)
    told = [f"{number}  {mark_text(what)}" for number, (_, what) in enumerate(found, 1) if what]
    # the lines of the model's text are framed, so that they cannot look like the program's own
    rows = [row for line in question.reason.split("\n") for row in wrap_line(mark_text(line), box.room)]
    rows = [piece for row in [*rows, *([""] if told else []), *told] for piece in wrap_columns(row, box.room)]
    hint = ("a number or arrow keys" if keys else "a number") if found else "type a reply"
    stop = "Esc" if keys else "Ctrl-C"
    several = ", several with commas between them" if question.arguments.get("multiple") else ""
    return DialogText(
        [box.edge("╭", "The model asks", "╮", "bold")],
        [box.row(row) for row in rows],
        [],
        [box.edge("╰", f"{hint}{several}; any other text is your own reply · {stop} stops", "╯", "dim")],
        rule="├─ ",
    )


@dataclass(frozen=True, slots=True)
class _Box:
    """Draws the frame around rows."""

    width: int
    palette: Palette

    @property
    def room(self) -> int:
        """The columns inside of the frame."""
        return max(self.width - 4, 16)

    def edge(self, left: str, text: str, right: str, style: str) -> str:
        shown = cut(text, self.room)
        line = "─" * max(self.room - width_of(shown), 0)
        return f"{left} {self.palette.paint(shown, style)} {line}{right}"

    def row(self, text: str, style: str = "") -> str:
        """Frame one row that fits."""
        pad = " " * max(self.room - width_of(text), 0)
        return f"│ {self.palette.paint(text, style)}{pad} │"

    def paint(self, texts: Iterable[str], style: str) -> Iterator[str]:
        return (self.row(text, style) for text in texts)

    def change(self, change: ChangeRow) -> Iterator[str]:
        """Frame a row of a diff; a longer one goes on in rows that start with `↪`, below the text."""
        indent = min(len(change.gutter), self.room // 2)
        style = {"+": "green", "-": "red"}.get(change.mark, "")
        pieces = list(wrap_rows([change.text], self.room - indent)) or [""]
        yield self.row(f"{change.gutter}{pieces[0]}", style)
        yield from (self.row(f"{' ' * indent}{piece}", style) for piece in pieces[1:])


class _Card:
    """Chooses the title and the rows of one question."""

    def __init__(self, question: Question, folder: str) -> None:
        self._question = question
        self._folder = folder

    def title(self) -> tuple[str, str | None]:
        """Return the title, and the whole path that it says; None if it says none."""
        question, tool = self._question, self._question.tool
        if question.kind == "auth":
            return "Sign in", None
        changed = list(dict.fromkeys(a.path for a in question.accesses if isinstance(a, (WritePath, DeletePath))))
        if tool in _VERBS and len(changed) == 1:
            return f"{_VERBS[tool]} {self._shorten_path(changed[0])}", changed[0]
        commands = [access for access in question.accesses if isinstance(access, RunCommand)]
        if tool == "bash" and len(commands) == 1:
            cwd = commands[0].cwd
            return "Run a command" if cwd == self._folder else f"Run a command in {self._shorten_path(cwd)}", cwd
        return f"Allow {mark_text(tool)}?", None

    def body(self, said: str | None, *, everything: bool) -> list[ChangeRow]:
        question = self._question
        url = [ChangeRow(f"open {mark_text(question.url)}")] if question.url else []
        target = next((a.path for a in question.accesses if isinstance(a, WritePath)), "")
        preview = preview_change(question.arguments, target) if question.tool in ("edit", "write") else None
        shown = frozenset[str]() if preview is None else preview.shown
        changes = [
            ChangeRow(mark_text(row.text), row.mark, row.new or row.old) for row in (preview.rows if preview else ())
        ]
        rest = {name: value for name, value in question.arguments.items() if name not in shown}
        path = rest.get("path")
        if isinstance(path, str) and str(Path(self._folder, path)) == said:
            del rest["path"]  # exactly what the title says; through a link it would be another path
        quiet = {} if everything else _QUIET.get(question.tool, {})
        rest = {name: value for name, value in rest.items() if name not in quiet or quiet[name] != value}
        rows = argument_rows(question.accesses, rest)
        return [*url, *changes, *([ChangeRow("")] if changes and rows else []), *map(ChangeRow, rows)]

    def accesses(self, said: str | None, *, everything: bool) -> Iterator[tuple[str, str]]:
        for access in _flatten(self._question.accesses):
            pair = describe_access(access)
            if pair is None:
                continue
            verb, target = pair
            if everything:
                yield verb, mark_text(target)
            elif target != said and not self._harmless(access):
                yield verb, self._shorten_path(target)

    def _harmless(self, access: Access) -> bool:
        """Whether an access can wait for Tab: it only reads inside of the workspace."""
        return isinstance(access, ReadPath) and Path(access.path).is_relative_to(self._folder)

    def shorten_paths(self, text: str) -> str:
        """Return a reason with paths inside of the folder relative to it."""
        return re.sub(rf"(?<![\w./~-]){re.escape(self._folder)}/(?=\S)", "", text)

    def _shorten_path(self, path: str) -> str:
        return mark_text(shorten_path(path, self._folder))


def _flatten(accesses: Iterable[Access]) -> Iterator[Access]:
    for access in accesses:
        yield access
        if isinstance(access, RunCommand):
            yield from access.touches
