"""Options are separated from operands as getopt does it."""

import pytest

from callwright.shell.options import grammar, parse_options
from callwright.shell.words import Form, Word

_COPY = grammar("-r -v --recursive --verbose", "-t --target-directory -S --suffix", "--backup")


def _parse(*words: str) -> tuple[list[str], list[tuple[str, str]], str]:
    call = parse_options([Word(word) for word in words], _COPY)
    return [word.text for word in call.operands], [(name, value.text) for name, value in call.options], call.problem


@pytest.mark.parametrize(
    ("words", "operands", "options"),
    [
        (["a", "-r", "b"], ["a", "b"], [("-r", "")]),
        (["-rvt", "x", "a"], ["a"], [("-r", ""), ("-v", ""), ("-t", "x")]),
        (["-rtx", "a"], ["a"], [("-r", ""), ("-t", "x")]),
        (["--target=x", "a"], ["a"], [("--target-directory", "x")]),
        (["--target", "x", "a"], ["a"], [("--target-directory", "x")]),
        (["--", "-r", "a"], ["-r", "a"], []),
        (["-t", "--", "-r", "a"], ["a"], [("-t", "--"), ("-r", "")]),
        (["--backup", "a"], ["a"], [("--backup", "")]),
        (["--backup=t", "-"], ["-"], [("--backup", "t")]),
        (["--suffix", "-r", "a"], ["a"], [("--suffix", "-r")]),
    ],
)
def test_words_are_separated(words: list[str], operands: list[str], options: list[tuple[str, str]]) -> None:
    assert _parse(*words) == (operands, options, "")


@pytest.mark.parametrize("words", [["-x"], ["-rx"], ["--unknown"], ["--verbose=1"], ["--re=1"], ["-t"], ["--suf"]])
def test_unknown_or_incomplete_option_is_a_problem(words: list[str]) -> None:
    assert _parse(*words)[2]


def test_word_that_may_be_an_option_is_a_problem() -> None:
    for words in ([Word("*", Form.WORDS)], [Word("--"), Word("$x", Form.WORDS)]):
        assert parse_options(words, _COPY).problem
    assert not parse_options([Word("a*", Form.NAMES)], _COPY).problem
