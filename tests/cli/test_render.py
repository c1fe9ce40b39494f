"""Rendering: widths, Markdown, code, tables, progress of running calls."""

import subprocess
import sys
import time

import pytest
from hypothesis import given, strategies as st

from callwright.cli.render.calls import ShownProgress
from callwright.cli.render.markdown import MarkdownLines
from callwright.cli.render.text import Palette, cut, visible, width_of, word_spans, wrap_columns, wrap_line
from callwright.cli.terminal.status import RunningCalls, SessionUsage
from callwright.core.calls import ToolCall
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage, UserMessage
from callwright.providers.pricing import Prices
from callwright.sessions.records import Record, Said

PLAIN, COLOURED = Palette(False), Palette(True)


def rendered(text: str, width: int = 40, palette: Palette = PLAIN) -> list[str]:
    lines = MarkdownLines(palette)
    return [*(row for line in text.split("\n") for row in lines.rows(line, width)), *lines.end(width)]


@given(st.text(max_size=60), st.integers(2, 30))
def test_cut_text_fits_and_ends_with_ellipsis(text: str, width: int) -> None:
    shown = visible(text).replace("\n", " ").replace("\t", " ")
    short = cut(shown, width)
    assert width_of(short) <= width
    assert short == shown or short.endswith("…")


@given(st.text("ab 字é", max_size=80), st.integers(4, 30))
def test_word_wrap_keeps_words_and_fits(text: str, width: int) -> None:
    rows = [text[start:end] for start, end in word_spans(text, width)]
    assert [word for row in rows for word in row.split()] == text.split()
    for row in rows:
        assert width_of(row) <= width or len(row.split()) == 1


def test_widths_of_wide_characters_and_colours() -> None:
    assert width_of("字字") == 4 and width_of("\x1b[1mab\x1b[0m") == 2
    assert cut("字字字", 5) == "字字…"
    assert wrap_line("  one two three", 9) == ["  one two", "  three"]


FAMILY, RAINBOW, THUMB = "👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "👍🏽"


def test_joined_emoji_take_two_columns() -> None:
    assert [width_of(emoji) for emoji in (FAMILY, RAINBOW, THUMB, "🇩🇪", "❤\ufe0f", "한")] == [2] * 6
    assert wrap_columns(FAMILY * 3, 4) == [FAMILY * 2, FAMILY]
    assert cut(FAMILY * 3, 5) == f"{FAMILY * 2}…"
    assert rendered(f"| {FAMILY} | b |\n|--|--|\n| aa | c |") == [f"{FAMILY}  b", "─────", "aa  c"]


def test_joiners_stay_only_between_emoji() -> None:
    assert visible(FAMILY) == FAMILY and visible(RAINBOW) == RAINBOW
    assert visible("rm\u200d -rf\u200d") == "rm\\u200d -rf\\u200d"
    assert visible("👨\u200dx\u200d👩 \u200d👧") == "👨\\u200dx\\u200d👩 \\u200d👧"


def test_table_cells_are_styled() -> None:
    assert "\x1b[1mb\x1b[0m" in rendered("| a | b |\n|--|--|\n| **b** | `c` |", 40, COLOURED)[2]
    assert rendered("| a | b |\n|--|--|\n| **b** | `c` |", 40)[2] == "**b**  `c`"


def test_narrow_screen_shows_the_table_as_written() -> None:
    table = "| a | b | c | d |\n|--|--|--|--|\n| 1 | 2 | 3 | 4 |"
    assert rendered(table, 20) == table.split("\n")


def test_long_items_wrap_under_their_bullet() -> None:
    assert rendered("- one two three four five six seven eight nine", 24) == [
        "• one two three four",
        "  five six seven eight",
        "  nine",
    ]
    assert rendered("  - [x] done\n1. first\n> said", 30) == ["  • ☑ done", "1. first", "│ said"]


def test_overlong_word_stays_whole() -> None:
    address = "https://example.com/" + "x" * 60
    assert address in rendered(f"see {address} there", 30)


def test_table_columns_fit_the_screen() -> None:
    table = "| name | size |\n|:--|--:|\n| a | 1 |\n| 字 and some more words | 22 |\nafter"
    assert rendered(table, 24) == [
        "name                size",
        "─" * 24,
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


def test_link_shows_its_address() -> None:
    assert rendered("[the bank](https://evil.example) [https://a.b](https://a.b)", 80) == [
        "the bank (https://evil.example) https://a.b"
    ]


def code(line: str, language: str, palette: Palette) -> str:
    lines = MarkdownLines(palette)
    lines.rows(f"```{language}", 40)
    return lines.rows(line, 40)[0]


def test_code_is_coloured_by_language() -> None:
    assert code('return "x"  # why', "python", COLOURED) == (
        '\x1b[94mreturn\x1b[0m \x1b[33m"\x1b[0m\x1b[33mx\x1b[0m\x1b[33m"\x1b[0m  \x1b[2m# why\x1b[0m'
    )
    assert code("+ new", "diff", COLOURED) == "\x1b[92m+ new\x1b[0m"
    assert code("return 1", "klingon", COLOURED) == code("return 1", "python", PLAIN) == "return 1"
    assert code("    return", "python", COLOURED) == "    \x1b[94mreturn\x1b[0m"


def test_code_block_ends_at_its_fence_or_message() -> None:
    lines = MarkdownLines(PLAIN)
    shown = [row for line in ("````md", "```py", "- x", "```", "````", "- y") for row in lines.rows(line, 40)]
    assert shown[2] == "- x" and shown[-1] == "• y"
    lines.rows("```", 40)
    lines.end(40)
    assert lines.rows("- z", 40) == ["• z"]


def test_markdown_escapes_control_characters() -> None:
    for text in ("a\x1b[2Jb", "| a\x1b[2J | b |\n|--|--|\n| \x07 | c |", "```\n\x1b]0;title\x07\n```"):
        assert all("\x1b" not in row and "\x07" not in row for row in rendered(text))
    assert rendered("`\x07` [\x9b2J](https://a.b) &#x202e;x &#27; **\u200b**", 80) == [
        "`\\x07` \\x9b2J (https://a.b) \\u202ex \ufffd **\\u200b**"
    ]
    assert "\\u202e" in rendered("![\u202e](u\u202e) # \x1b", 80)[0]


@given(st.text(max_size=80), st.integers(20, 60))
def test_no_text_sends_codes_to_the_terminal(text: str, width: int) -> None:
    for row in rendered(text, width):
        assert all(character.isprintable() or character in "\t\u200d" for character in row)


def test_rich_is_loaded_with_the_first_rendered_text() -> None:
    probe = (
        "import sys; from callwright.cli.terminal.app import run; from callwright.cli.render.markdown import *; "
        "from callwright.cli.terminal.ui import Terminal; from callwright.cli.terminal.screen import Screen; "
        "import asyncio; asyncio.run(asyncio.to_thread(lambda: None)); "
        "print(*(sys.modules.keys() & {'rich', 'markdown_it', 'pygments', 'pydantic', 'callwright.app', 'json'})); "
        "MarkdownLines(Palette(True)).rows('x', 20); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["json", "True"]


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
def test_progress_reports_are_parsed(report: object, share: float | None, text: str) -> None:
    assert ShownProgress.read(report) == ShownProgress(share, text)


def test_progress_bar_shows_share_and_time() -> None:
    assert ShownProgress(0.25, "files").line(10, 80) == "█████░░░░░░░░░░░░░░░  25% · 10 s, 30 s left · files"
    assert ShownProgress(None, "compiling").line(0.2, 80) == "compiling"
    assert ShownProgress(None, "compiling").line(3, 80) == "3 s · compiling"


def test_running_calls_have_one_row_each() -> None:
    running = RunningCalls(PLAIN)
    calls = [ToolCall(str(number), "fetch", {"url": f"http://localhost/{number}{'x' * 90}"}) for number in range(12)]
    for call in calls:
        running.add(call)
        running.report(call, {"progress": 1, "total": 2})
    rows = running.rows(60)
    assert len(rows) == 9 and "50%" in rows[0] and rows[-1] == "  … and 4 more are running"
    assert all(width_of(row) <= 60 for row in rows)
    for call in calls:
        running.remove(call)
        running.report(call, "too late")
    assert running.rows(60) == []


@pytest.mark.parametrize(
    ("tokens", "prices", "shown"),
    [(0, None, []), (10**6, None, []), (10**6, Prices(0, 0), ["$0.00"]), (10**6, Prices(3, 15), ["$3.00"])],
)
def test_continued_session_shows_a_cost_only_if_it_is_known(
    tokens: int, prices: Prices | None, shown: list[str]
) -> None:
    reply = AssistantMessage((Text("hi"),), usage=Usage(tokens), model="m")
    records: list[Record] = [Said(UserMessage((Text("hello"),))), *([Said(reply)] if tokens else [])]
    session = SessionUsage()
    session.load(records, lambda model: prices)
    assert session.status_parts(0) == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", ("# x", " ", "y")),
        ("", ("# x", "#", "y")),
        ("| a | b |", ("", " ", "-|x")),
        ("", ("", "\N{LATIN SMALL LETTER E WITH ACUTE} ", "")),
    ],
)
def test_time_for_a_long_line_grows_with_its_length_alone(before: str, line: tuple[str, str, str]) -> None:
    def seconds(count: int) -> float:
        start, piece, end = line
        found: list[float] = []
        for _ in range(3):
            markdown = MarkdownLines(Palette(True))
            markdown.rows(before or "\N{LATIN SMALL LETTER E WITH ACUTE}", 80)
            began = time.process_time()
            markdown.rows(start + piece * count + end, 80)
            found.append(time.process_time() - began)
        return min(found)

    # ten times the text: quadratic time would be a hundred times; the margin is for a busy machine
    assert seconds(20_000) < 30 * max(seconds(2_000), 0.002)
