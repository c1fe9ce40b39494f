"""Hostile calls on real frames: nothing can be approved before everything was visible."""

import asyncio
import re
from collections.abc import Sequence
from functools import partial

import pytest
from tests.cli.hostile_calls import HostileCall, hostile_calls

from callwright.cli.approval_card import Menu, MenuEntry, approval_menu, card_text
from callwright.cli.approval_dialog import DialogText, dialog_text
from callwright.cli.render.text import Palette, visible_line, width_of
from callwright.cli.terminal.screen import Screen
from callwright.cli.terminal.ui import Terminal
from callwright.cli.terminal.views import DialogView
from callwright.core.access import ReadPath, WritePath
from callwright.core.calls import Question

_PAGE = re.compile(r"  ── rows (\d+)-(\d+) of")
_GUTTERS = ("$ ", "│ ", "+ ", "- ")


class Frames(Screen):
    """A screen of a fixed size that keeps the rows of the last frame."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(-1)
        self._columns, self._rows = columns, lines
        self.frame: list[str] = []

    @property
    def width(self) -> int:
        return self._columns - 1

    @property
    def height(self) -> int:
        return self._rows

    def draw(self, rows: Sequence[str], cursor: tuple[int, int]) -> None:
        assert len(rows) < self._rows and all(width_of(row) <= self.width for row in rows)
        assert all(row.replace("\u200d", "").isprintable() for row in rows)
        self.frame = list(rows)


def squeezed(text: str) -> str:
    """Remove what a dialog adds or counts: gutters, blanks, marks; what is left must be found on the screen."""
    return re.sub(r"[␠⇥]×\d+|[\s⏎⇥]", "", text)


def lines_of(rows: Sequence[str]) -> list[str]:
    """Join the rows of a dialog to the lines they show."""
    found: list[str] = []
    for row in rows:
        body = row[2:]
        if body.startswith("↪ ") and found:
            found[-1] += body[2:]
        else:
            found.append(body[2:] if body.startswith(_GUTTERS) else body)
    return [squeezed(line) for line in found]


@pytest.mark.parametrize("count", [45, pytest.param(180, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60)])
async def test_nothing_is_approved_before_it_was_visible(columns: int, lines: int, count: int) -> None:
    hidden = [call for call in hostile_calls(count) if not await was_visible(call, Frames(columns, lines))]
    assert not hidden, f"{len(hidden)} of {count} hide something, such as {hidden[0].question}"


async def was_visible(call: HostileCall, screen: Frames) -> bool:
    """Turn the pages as a user does; return whether the harmful text was visible when a yes could count."""
    text = dialog_text(call.question, Palette(False), screen.width)
    view = DialogView(lambda width: text)
    terminal = Terminal(screen, Palette(False))
    asked = asyncio.create_task(terminal.ask("allow?", view=view))
    await asyncio.sleep(0)
    seen = [""] * len(text.body)
    while not view.read:
        terminal.draw()
        keep_page(screen.frame, seen)
        terminal._handle("text", " ")  # pyright: ignore[reportPrivateUsage] - the key of a user
    last = screen.frame  # leaving draws another one
    terminal.leave()
    await asked
    now = "\n".join(lines_of(last))
    # what caused the question is on every page, unless it alone is longer than a page
    in_view = len(text.deciding) > (screen.height - 12) // 2 or all(line in now for line in lines_of(text.deciding))
    wanted = squeezed(visible_line(call.harmful))
    warned = not (call.disguised and not any(f"! {call.disguised} " in row for row in last))
    return warned and in_view and seen == text.body and any(wanted in line for line in lines_of(seen))


def keep_page(frame: Sequence[str], seen: list[str]) -> None:
    """Copy the rows of the body that are on the screen to their places."""
    page = next((found for row in frame if (found := _PAGE.match(row))), None)
    first, last = (int(page[1]) - 1, int(page[2])) if page else (0, len(seen))
    seen[first:last] = frame[1:][: last - first]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60), (40, 10), (20, 6)])
async def test_every_row_is_drawn_before_the_dialog_is_read(columns: int, lines: int) -> None:
    for call in hostile_calls(18):
        screen = Frames(columns, lines)
        view = DialogView(partial(dialog_text, call.question, Palette(False)))
        body = dialog_text(call.question, Palette(False), screen.width).body
        drawn: set[str] = set()
        while not view.read:
            drawn.update(view.rows(screen.width, lines - 2))
            view.turn(1)
            view.turn(1)  # a key that repeats faster than frames are drawn skips nothing
        assert drawn.issuperset(body)


@pytest.mark.parametrize("count", [27, pytest.param(180, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60), (60, 16)])
async def test_nothing_is_approved_before_the_card_showed_it(columns: int, lines: int, count: int) -> None:
    hidden = [call for call in hostile_calls(count) if not await card_shows(call, Frames(columns, lines))]
    assert not hidden, f"{len(hidden)} of {count} hide something, such as {hidden[0].question}"


async def card_shows(call: HostileCall, screen: Frames) -> bool:
    """Turn the pages of a card with Enter, as fast as it goes, until Enter answers; return what was visible then."""
    compose = partial(card_text, call.question, Palette(False), "/srv/project")
    view = DialogView(
        compose, menu=approval_menu(call.question, Palette(False)), details=partial(compose, everything=True)
    )
    terminal = Terminal(screen, Palette(False))
    terminal.settle_seconds = 0
    body = compose(screen.width).body
    asked = asyncio.create_task(terminal.ask("allow?", view=view))
    await asyncio.sleep(0)
    seen: set[str] = set()
    while not view.read:
        terminal.draw()
        seen.update(screen.frame)
        terminal._handle("key", "page-down")  # pyright: ignore[reportPrivateUsage] - the key of a user
    assert not asked.done() and any(" ❯ " in row for row in screen.frame)
    terminal._handle("key", "enter")  # pyright: ignore[reportPrivateUsage] - the key of a user
    assert await asked == "y"
    wanted = squeezed(visible_line(call.harmful))
    return seen.issuperset(body) and any(wanted in line for line in card_lines(body))


def card_lines(rows: Sequence[str]) -> list[str]:
    """Join the rows of a card to the lines they show, without the frame and the line numbers."""
    found: list[str] = []
    for row in rows:
        inside = re.sub(r"^ *\d* +[-+ ] ", "", row[2:-2]) if re.match(r"│ +\d+  ", row) else row[2:-2]
        piece = inside.lstrip(" ")
        if piece.startswith("↪ ") and found:
            found[-1] += piece[2:]
        else:
            found.append(piece[2:] if piece.startswith(_GUTTERS) else inside)
    return [squeezed(line) for line in found]


async def test_enter_that_turned_to_the_last_page_does_not_answer() -> None:
    screen = Frames(80, 24)
    rows = [f"row {number}" for number in range(40)]
    menu = Menu([MenuEntry("Yes", "y", "y")], Palette(False))
    view = DialogView(lambda width: DialogText(["Title"], rows, [], []), menu=menu)
    terminal = Terminal(screen, Palette(False))
    terminal.settle_seconds = 60
    asked = asyncio.create_task(terminal.ask("allow?", view=view))
    await asyncio.sleep(0)
    terminal.draw()
    while not view.read:
        terminal._handle("key", "enter")  # pyright: ignore[reportPrivateUsage] - the key of a user
        terminal.draw()
    terminal._handle("key", "enter")  # pyright: ignore[reportPrivateUsage] - the key of a user
    assert await asked == ""  # no answer: the dialog asks again


async def test_tab_shows_every_access_and_arrows_choose() -> None:
    asked = Question("c1", "edit", {}, "d", "Allow?", "why", (ReadPath("/w/a.py"), WritePath("/w/a.py")))
    compose = partial(card_text, asked, Palette(False), "/w")
    menu = approval_menu(asked, Palette(False), "/w")
    view = DialogView(compose, menu=menu, details=partial(compose, everything=True))
    terminal = Terminal(Frames(80, 24), Palette(False))
    pending = asyncio.create_task(terminal.ask("allow?", view=view))
    await asyncio.sleep(0)
    plain = "\n".join(view.rows(79, 24))
    assert "╭ Edit a.py ──" in plain and "/w/a.py" not in plain and " ❯ Yes " in plain
    for key in ("tab", "down", "down"):
        terminal._handle("key", key)  # pyright: ignore[reportPrivateUsage] - the key of a user
    shown = "\n".join(view.rows(79, 24))
    assert "writes /w/a.py" in shown and "reads /w/a.py" in shown and " ❯ Always: Edit(a.py) " in shown
    terminal._handle("key", "enter")  # pyright: ignore[reportPrivateUsage] - the key of a user
    assert await pending == "a"


@pytest.mark.parametrize("height", range(7, 18))
def test_answers_of_a_low_screen_stand_below_the_frame(height: int) -> None:
    menu = Menu([MenuEntry("Yes", "y", "y"), MenuEntry("No", "n", "n")], Palette(False))
    text = DialogText(["╭ Title ╮"], [f"│ row {number} │" for number in range(40)], ["│ deciding │"], ["╰ end ╯"])
    rows = DialogView(lambda width: text, menu=menu).rows(60, height)
    assert len(rows) <= height and rows[-1] == " ❯ Yes  y · or: n"
    assert height < 9 or rows[-2] == "╰ end ╯"


async def test_enter_that_ends_a_draft_does_not_answer() -> None:
    menu = Menu([MenuEntry("Yes", "y", "y"), MenuEntry("No", "n", "n")], Palette(False))
    view = DialogView(lambda width: DialogText(["Title"], ["row"], [], []), menu=menu)
    terminal = Terminal(Frames(80, 24), Palette(False))
    terminal.editor.insert("and then run the tests")  # typed while the model worked
    for keys, answer in ((["enter"], ""), (["down", "enter"], "n"), (["down", "enter"], "y"), (["enter"], "")):
        pending = asyncio.create_task(terminal.ask("allow?", view=view))
        await asyncio.sleep(0)
        terminal.draw()
        for key in keys:
            terminal._handle("key", key)  # pyright: ignore[reportPrivateUsage] - the key of a user
        assert await pending == answer
    assert terminal.editor.text == "and then run the tests"
