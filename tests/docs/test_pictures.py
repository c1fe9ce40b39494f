"""The pictures of the pages: which there are, what is in them, and how they are drawn.

That they show what the program shows now is tested where the pages are followed, in tests/cli/test_journey_pages.py.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.play.__main__ import PAGES, PICTURES
from docs.play.cells import Cell, Row, Style, parse_rows, plain
from docs.play.page import Enter, Picture, Press, Reopen, Save, steps
from docs.play.reader import HOME, mask_names
from docs.play.svg import draw_svg
from hypothesis import given, strategies as st

SVG = "{http://www.w3.org/2000/svg}"
ALL = sorted(PICTURES.glob("*.svg"))
PARTS = ["## Steps", "## Result", "## Explanation", "## Next"]


def draw(*rows: Row) -> str:
    return draw_svg(rows, title="a title", about="what is seen", cursor=(0, 0))


def spans(picture: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(f"{SVG}tspan"))


def lines(picture: str) -> list[str]:
    """What a reader who selects the text would copy."""
    texts = ElementTree.fromstring(picture).iterfind(f"{SVG}g/{SVG}text")
    return ["".join(span.text or "" for span in text) for text in texts]


def test_every_page_has_pictures_and_none_is_unused() -> None:
    named = [[step.name for step in steps(page) if isinstance(step, Picture)] for page in PAGES]
    assert all(named) and len(PAGES) == 8
    assert sorted(name for names in named for name in names) == [picture.name for picture in ALL]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_start_page_has_the_four_sections(page: Path) -> None:
    assert re.findall("^## .*", page.read_text(encoding="utf-8"), re.MULTILINE) == PARTS
    assert any(isinstance(step, Enter) for step in steps(page))


def test_start_pages_can_be_followed_in_one_terminal() -> None:
    """Each page makes a folder of its own and names it from the home folder, wherever the page before ended."""
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    made = [line for line in lines if line.startswith("mkdir ")]
    assert len(made) == len(set(made)) == 7
    assert all(re.fullmatch(r"(?:mkdir|cd) ~/\w+", line) for line in lines if line.startswith(("mkdir ", "cd ")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_alone_have_no_prompt(page: Path) -> None:
    """What is copied from the page can be pasted into a shell."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [block for block in blocks if all(line.startswith("$ ") for line in block.splitlines())] == []


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_picture_has_a_description_and_no_external_parts(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")
    assert not re.search(r"href|url\(|@import|@font-face|<script|<image", text)
    assert text.count("http") == 1 and len(text) < 10_000
    assert not re.search(
        r"/tmp/(?!callwright-demo-k3v9x2ma)|\b20\d\d-(?!07-28)", text
    )  # nothing of this machine and day


@given(st.lists(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), codec="utf-8"), max_size=30), max_size=5))
def test_picture_text_equals_screen_text(rows: list[str]) -> None:
    screen = "\n".join(rows)
    shown = [line for line in (plain(row) for row in parse_rows(screen)) if line]
    assert [line for line in map(str.rstrip, lines(draw(*parse_rows(screen)))) if line] == shown


def test_colours_and_styles_are_parsed() -> None:
    text = "\x1b[1;31mred\x1b[22m thin\x1b[0m \x1b[38;5;208mo\x1b[48;2;1;2;3mx\x1b[39;49m\x1b[7m!\n\x1b[27;92mg"
    first, second = parse_rows(text)
    styles = {cell.text: cell.style for cell in (*first, *second)}
    assert styles["r"] == Style("red", bold=True) and styles["t"] == Style("red")
    assert styles["o"] == Style("#ff8700") and styles["x"] == Style("#ff8700", "#010203")
    assert styles["!"] == Style(reverse=True)
    assert styles["g"] == Style("bright-green")


def test_wide_characters_take_two_columns() -> None:
    (row,) = parse_rows("a字e\u0301b")
    assert [cell.text for cell in row] == ["a", "字", "e\u0301", "b"]
    places = [(span.get("x"), span.get("textLength"), span.text) for span in spans(draw(row))]
    assert places == [("18", "8.4", "a"), ("26.4", "16.8", "字"), ("43.2", "16.8", "e\u0301b")]


def test_markup_in_text_is_escaped() -> None:
    assert lines(draw(*parse_rows("a <b> & c"))) == ["a <b> & c"]


def test_only_coloured_text_has_a_style() -> None:
    row: Sequence[Cell] = parse_rows("plain \x1b[2;32mfaint\x1b[0m")[0]
    first, second = spans(draw(tuple(row)))
    assert first.get("class") is None and second.get("class") == "d green"


def test_varying_names_are_normalised() -> None:
    home = "/tmp/abcd1234"
    assert len(home) == len(HOME)
    shown = mask_names(f"in {home}/x and callwright-demo-12ab_9zz/y", home)
    assert shown == f"in {HOME}/x and callwright-demo-k3v9x2ma/y"
    assert mask_names("● bash x (12.3 s)\nready in 38 ms", home) == "● bash x\nready in 0.61 s"
    assert mask_names("in /tmp/ab\n  cd1234/x", home) == "in /home/s\n  omeone/x"


def test_page_is_parsed_into_steps(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nSave this as `~/a.py`:\n\n```python\nx = 1\n```\n\n```sh\npip install x\n```\n\n"
        "```sh\ncd ~\n```\n\n"
        "```console\n$ callwright\n> hi\nallow? > y\n[Ctrl-D]\n(close the terminal, open a new one)\n```\n\n"
        "![Two\nlines](../pictures/a.svg)\n"
    )
    save, _, entered, _, *done, picture = steps(page)
    assert save == Save("~/a.py", "x = 1\n") and picture == Picture("a.svg", "Two lines")
    assert entered == Enter("$", "cd ~")
    assert done == [Enter("$", "callwright"), Enter(">", "hi"), Enter("allow? >", "y"), Press("C-d"), Reopen()]
    page.write_text("```console\nwhatever\n```\n")
    with pytest.raises(ValueError, match="cannot parse 'whatever'"):
        list(steps(page))
