"""What is shown of text and of running calls: columns, Markdown, code, tables, progress."""

import pytest
from hypothesis import given, strategies as st

from callwright.cli.render.calls import Progress
from callwright.cli.render.markdown import MarkdownLines, code_line
from callwright.cli.render.text import Palette, cut, filled, padded, visible, width_of, word_rows
from callwright.cli.terminal.status import RunningCalls
from callwright.core.calls import ToolCall

PLAIN, COLOURED = Palette(False), Palette(True)


def rendered(text: str, width: int = 40, palette: Palette = PLAIN) -> list[str]:
    lines = MarkdownLines(palette)
    return [*(row for line in text.split("\n") for row in lines.rows(line, width)), *lines.end(width)]


@given(st.text(max_size=60), st.integers(2, 30))
def test_a_cut_text_fits_and_says_that_something_is_missing(text: str, width: int) -> None:
    shown = visible(text).replace("\n", " ").replace("\t", " ")
    short = cut(shown, width)
    assert width_of(short) <= width
    assert short == shown or short.endswith("…")


@given(st.text("ab 字é", max_size=80), st.integers(4, 30))
def test_rows_of_words_lose_no_word_and_fit_unless_a_word_does_not(text: str, width: int) -> None:
    rows = [text[start:end] for start, end in word_rows(text, width)]
    assert [word for row in rows for word in row.split()] == text.split()
    for row in rows:
        assert width_of(row) <= width or len(row.split()) == 1


def test_wide_characters_count_twice_and_colours_nothing() -> None:
    assert width_of("字字") == 4 and width_of("\x1b[1mab\x1b[0m") == 2 and padded("字", 4, "right") == "  字"
    assert cut("字字字", 5) == "字字…"
    assert filled("  one two three", 9) == ["  one two", "  three"]


def test_long_lines_are_broken_between_words_and_stand_under_their_bullet() -> None:
    assert rendered("- one two three four five six seven eight nine", 24) == [
        "• one two three four",
        "  five six seven eight",
        "  nine",
    ]
    assert rendered("  - [x] done\n1. first\n> said", 30) == ["  • ☑ done", "1. first", "│ said"]


def test_a_word_that_fits_nowhere_is_left_whole() -> None:
    address = "https://example.com/" + "x" * 60
    assert address in rendered(f"see {address} there", 30)


def test_tables_become_columns_that_fit_the_screen() -> None:
    table = "| name | size |\n|:--|--:|\n| a | 1 |\n| 字 and some more words | 22 |\nafter"
    assert rendered(table, 24) == [
        "name                size",
        "─" * 18 + "  ────",
        "a                      1",
        "字 and some more      22",
        "words",
        "after",
    ]
    assert rendered("| a | b |\nno table", 24) == ["| a | b |", "no table"]


@given(st.lists(st.lists(st.text("ab| 字", max_size=30), min_size=1, max_size=6), min_size=1, max_size=5))
def test_no_table_is_wider_than_the_screen(cells: list[list[str]]) -> None:
    count = len(cells[0])
    lines = [f"| {' | '.join(cell.replace('|', ' ') for cell in row)} |" for row in cells]
    rows = rendered("\n".join([lines[0], "|" + "---|" * count, *lines[1:]]), 60)
    assert all(width_of(row) <= 60 for row in rows)


def test_a_link_shows_where_it_leads() -> None:
    assert rendered("[the bank](https://evil.example) [https://a.b](https://a.b)", 80) == [
        "the bank (https://evil.example) https://a.b"
    ]


def test_code_is_coloured_by_its_language_and_left_as_it_is_otherwise() -> None:
    assert code_line('return "x"  # why', "python", COLOURED) == (
        '\x1b[34mreturn\x1b[0m \x1b[32m"x"\x1b[0m  \x1b[2m# why\x1b[0m'
    )
    assert code_line("+ new", "diff", COLOURED) == "\x1b[32m+ new\x1b[0m"
    assert code_line("return 1", "klingon", COLOURED) == code_line("return 1", "python", PLAIN) == "return 1"


def test_a_block_ends_at_its_own_fence_and_with_its_message() -> None:
    lines = MarkdownLines(PLAIN)
    shown = [row for line in ("````md", "```py", "- x", "```", "````", "- y") for row in lines.rows(line, 40)]
    assert shown[2] == "- x" and shown[-1] == "• y"
    lines.rows("```", 40)
    lines.end(40)
    assert lines.rows("- z", 40) == ["• z"]


def test_nothing_that_is_said_can_steer_the_terminal() -> None:
    for text in ("a\x1b[2Jb", "| a\x1b[2J | b |\n|--|--|\n| \x07 | c |", "```\n\x1b]0;title\x07\n```"):
        assert all("\x1b" not in row and "\x07" not in row for row in rendered(text))


@pytest.mark.parametrize(
    ("report", "share", "text"),
    [
        (0.25, 0.25, ""),
        ((3, 4), 0.75, "3 of 4"),
        ({"progress": 1, "total": 2, "message": "half"}, 0.5, "half"),
        ({"progress": 7}, None, "7"),
        ({"total": 3, "done": 5}, 1.0, "5 of 3"),
        ({"progress": 1, "total": 0}, None, "1 of 0"),
        (float("nan"), None, "nan"),
        ("one\ntwo\x1b[2J", None, "two\\x1b[2J"),
        (12, None, "12"),
        ({"phase": "linking"}, None, "{'phase': 'linking'}"),
    ],
)
def test_what_a_tool_reports_is_understood(report: object, share: float | None, text: str) -> None:
    assert Progress.read(report) == Progress(share, text)


def test_a_bar_shows_the_share_the_time_and_what_is_left() -> None:
    assert Progress(0.25, "files").line(10, 80) == "█████░░░░░░░░░░░░░░░  25% · 10 s, 30 s left · files"
    assert Progress(None, "compiling").line(0.2, 80) == "compiling"
    assert Progress(None, "compiling").line(3, 80) == "3 s · compiling"


def test_running_calls_have_one_row_each_and_leave_nothing_behind() -> None:
    running = RunningCalls(PLAIN)
    calls = [ToolCall(str(number), "fetch", {"url": f"http://localhost/{number}{'x' * 90}"}) for number in range(12)]
    for call in calls:
        running.began(call)
        running.progressed(call, {"progress": 1, "total": 2})
    rows = running.rows(60)
    assert len(rows) == 9 and "50%" in rows[0] and rows[-1] == "  … and 4 more are running"
    assert all(width_of(row) <= 60 for row in rows)
    for call in calls:
        running.ended(call)
        running.progressed(call, "too late")
    assert running.rows(60) == []
