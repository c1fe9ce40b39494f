"""Parsing takes bounded time, keeps the place of every character, and refuses what bash refuses."""

import gc
import time

import pytest

from callwright.shell import analyze, parsing


def test_characters_beyond_ascii_keep_the_places_of_the_others() -> None:
    plan = analyze("cat 'é x' 𐍈b > ü; rm ñ€/a", "/w")
    assert [command.words for command in plan.commands] == [("cat", "é x", "𐍈b"), ("rm", "ñ€/a")]
    assert [access.path for access in plan.commands[0].accesses][-1:] == ["/w/ü"]  # type: ignore[attr-defined] - paths only


@pytest.mark.parametrize("line", ["; ls", "& ls", "| ls", "&& ls", ";", "&", ") ls", "\n;ls"])
def test_line_that_begins_with_an_operator_is_not_bash(line: str) -> None:
    plan = analyze(line, "/w")
    assert not plan.proven and "cannot be parsed" in plan.problem


def test_loading_the_parser_does_not_count_as_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    load = parsing._parser  # pyright: ignore[reportPrivateUsage] - what is slow is loading it

    def load_slowly() -> object:
        began = time.thread_time()
        while time.thread_time() - began < 0.05:
            pass
        return load()

    monkeypatch.setattr(parsing, "_parser", load_slowly)
    assert analyze(f"(ls); cat {'x' * 400}", "/w/loading").problem == ""


def test_no_garbage_is_collected_while_a_line_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    collecting: list[bool] = []

    def look() -> float:
        collecting.append(gc.isenabled())
        return 0.0

    monkeypatch.setattr(parsing, "thread_time", look)
    assert analyze(f"(ls); cat {'x' * 400}", "/w/collecting").problem == ""
    assert len(collecting) > 1 and not any(collecting) and gc.isenabled()


def test_long_line_that_takes_too_long_to_parse_is_split_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_SECONDS", -10)
    short, long = "(ls); rm x", f"(ls); rm {'x' * 400}"
    assert analyze(short, "/w/short").problem == ""
    plan = analyze(long, "/w/long")
    assert not plan.proven and "cannot be parsed" in plan.problem
    assert any(command.words[:1] == ("rm",) for command in plan.commands)


@pytest.mark.parametrize(
    "word",
    "if then elif else fi for while until do done case esac in function select time coproc declare typeset export "
    "readonly local unset unsetenv".split(),
)
def test_script_with_a_word_of_the_language_needs_the_parser(word: str) -> None:
    assert parsing.split_plain(f"ls; {word} rm x") is None
    assert parsing.split_plain(f"ls; rm {word}") == ["ls", f"rm {word}"]
