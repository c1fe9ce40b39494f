"""Escaping of text for a terminal: what is hidden or obeyed is shown, and what is meant to be seen stays."""

import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from callwright.core.escaping import remove_hidden, visible, visible_json, visible_line, visible_prose

HIDDEN = [
    *("\x1b", "\x07", "\x9b", "\r", "\x7f", "\u202e", "\u2066", "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad"),
    *("\u3164", "\u2800", "\u034f", "\u115f", "\u1160", "\uffa0", "\u180b", "\ufe00", "\ufe0f", "\u00a0", "\u3000"),
    *("\U000e0041", "\U000e0100", "\U0001d159", "\u2028", "\u061c", "\ue000", "\ud800", "\x85"),
]


@pytest.mark.parametrize("character", HIDDEN, ids=lambda character: f"U+{ord(character):04X}")
def test_hidden_character_is_escaped(character: str) -> None:
    for text in (f"a{character}b", character, f"{character}x", f"a {character}"):
        assert character not in visible(text) and character not in visible_line(text)
        assert "\\" in visible(text)


@pytest.mark.parametrize(
    "text",
    [
        *("👨‍👩‍👧‍👦", "👩🏽‍🚀", "🏳️‍🌈", "❤️", "1️⃣", "🙂‍↔️", "🇩🇪", "👁️‍🗨️"),
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        *("größe", "e\u0301te\u0301", "日本語 のテキスト", "日本　語", "привет", "שלום", "한국어", "ไทย", "naïve → ∑"),
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert visible(text) == visible_line(text) == text


def test_pile_of_marks_is_escaped() -> None:
    shown = visible("Z" + "\u0301" * 40)
    assert shown.count("\u0301") == 3 and shown.count("\\u0301") == 37
    assert visible("\u0301x") == "\\u0301x" and visible(" \u0336") == " \\u0336"


def test_line_breaks_are_shown_in_one_line() -> None:
    assert visible("a\n\tb") == "a\n\tb"
    assert visible_line("a\n\tb\\n") == "a⏎\\tb\\n"
    assert visible_line("é⏎b") == "é\\u23ceb"  # a sign in the text cannot pass for a line break


@given(st.text(max_size=60))
def test_escaped_text_is_printable(text: str) -> None:
    for character in visible_line(text):
        assert character.isprintable() or unicodedata.category(character) == "Cf" or character == "\u3000"
    assert "\n" not in visible_line(text) and "\x1b" not in visible(text)


@given(st.recursive(st.text(max_size=10), lambda inner: st.lists(inner, max_size=3)))
def test_escaped_json_means_the_same(value: object) -> None:
    text = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == json.loads(json.dumps(value)) and "\u202e" not in text


def test_escaped_json_hides_nothing() -> None:
    assert visible_json(json.dumps("\x9b\u202e\U000e0041", ensure_ascii=False)) == r'"\u009b\u202e\udb40\udc41"'


@pytest.mark.parametrize(
    "text",
    [
        *(
            "می\u200cخواهم",
            "क्\u200dष",
            "শ্\u200cক",
            "ខ្មែរ\u200bភាសា",
            "Attention\u00a0!",
            "10\u202f000",
            "👩🏽‍🚀 ❤️",
            "a\n\tb",
        ),
        "ordinary",
    ],
)
def test_spelling_stays_in_prose(text: str) -> None:
    assert visible_prose(text) == remove_hidden(text) == text


@pytest.mark.parametrize("character", HIDDEN, ids=lambda character: f"U+{ord(character):04X}")
def test_hidden_character_is_no_prose(character: str) -> None:
    for text in (character, f"{character}x", f"a {character}", f"می{character} {character}", f"a{character * 2}b"):
        assert character not in visible_prose(text) and character not in remove_hidden(text)
        assert "\\" in visible_prose(text)


@pytest.mark.parametrize("text", ["a\u200cb", "a\u200bb", "می\u200c\u200cخ", "می\u200d", "\u200cخ", "می\u200ca"])
def test_joiners_elsewhere_are_removed(text: str) -> None:
    assert remove_hidden(text).isprintable() and "\\u20" in visible_prose(text)


def test_non_joiners_stay_in_what_is_read_and_show_in_names() -> None:
    for text in ("می\u200cخواهم", "ខ្មែរ\u200bភាសា"):
        assert visible(text) == text and "\\u20" in visible_line(text)
    assert visible("a\u00a0b می\u200c x") == "a\\xa0b می\\u200c x"


def test_removed_spaces_do_not_join_words() -> None:
    assert remove_hidden("a\u3000b\u2028c\u00a0\u00a0d\x00") == "a b c  d"
