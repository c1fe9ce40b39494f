"""Names and texts that a model or a server chose reach the terminal as text, in every command."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Machine

HIDDEN = "\x1b]52;c;cHduZWQ=\x07\x9b2J\u202e\u3164\u2800\u034f\ufe00\u200b"


@pytest.fixture
def session(machine: "Machine") -> str:
    script = machine.says(
        {"text": f"text{HIDDEN}", "calls": [{"name": f"tool{HIDDEN}\nfake", "arguments": {"path": HIDDEN}}]},
        f"done{HIDDEN}",
    )
    assert machine("-p", f"go{HIDDEN}", script, "--session-id", "s1").code == 0
    return "s1"


@pytest.mark.parametrize(
    "line",
    [
        ("stats",),
        ("stats", "--json"),
        ("sessions", "list"),
        ("sessions", "list", "--json"),
        ("sessions", "show", "s1"),
        ("sessions", "search", "text"),
        ("call", "bash", '{"command": "cat hidden"}'),
        ("call", "bash", '{"command": "cat hidden"}', "--json"),
        ("call", "list", "{}"),
        (f"nothing{HIDDEN}",),
    ],
    ids=lambda line: " ".join(line).partition("\x1b")[0],
)
def test_command_shows_hidden_characters(machine: "Machine", session: str, line: tuple[str, ...]) -> None:
    (machine.project / "hidden").write_text(HIDDEN)
    (machine.project / f"name{HIDDEN}").write_text("x")
    ended = machine(*line)
    assert not set(HIDDEN).intersection(ended.out + ended.err) - set("]52;c;cHduZWQ=2J")


def test_tool_name_with_a_line_break_stays_in_its_row(machine: "Machine", session: str) -> None:
    rows = machine("stats").out.splitlines()
    assert not any(row.startswith("fake") for row in rows) and any(row.startswith("tool\\x1b]52") for row in rows)


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 119, 200])
@pytest.mark.parametrize(
    "line", [("--help",), ("-p", "--help"), ("call", "--help"), ("sessions", "--help")], ids=" ".join
)
def test_help_breaks_at_words(machine: "Machine", line: tuple[str, ...], columns: int) -> None:
    machine.patch.setenv("COLUMNS", "400")
    words = set(machine(*line).out.split())
    machine.patch.setenv("COLUMNS", str(columns))
    narrow = machine(*line).out
    assert all(len(row) < columns or len(row.split()) == 1 for row in narrow.splitlines())
    assert set(narrow.split()) == words


def test_unknown_command_is_suggested_as_one_prompt(machine: "Machine") -> None:
    ended = machine("what", "is", "this?")
    assert ended.code == 2 and "callwright -p 'what is this?'" in ended.err
