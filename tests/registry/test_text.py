"""Splitting and stemming of search terms."""

import pytest
from hypothesis import given, strategies as st

from callwright.registry.search.text import normalize_name, split_words, stem, term_of, terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getCurrentWeather", ["get", "current", "weather"]),
        ("get_current_weather", ["get", "current", "weather"]),
        ("github.create-issue", ["github", "create", "issue"]),
        ("HTTPServer", ["http", "server"]),
        ("parseHTTPResponse", ["parse", "http", "response"]),
        ("list URLs and IDs", ["list", "urls", "and", "ids"]),
        ("address2", ["address", "2"]),
        ("upload_to_s3", ["upload", "to", "s3"]),
        ("convertToMp3File", ["convert", "to", "mp3", "file"]),
        ("São Paulo café", ["sao", "paulo", "cafe"]),
        ("天気予報", ["天気", "気予", "予報"]),
        ("--- ...", []),
    ],
)
def test_identifiers_are_split_into_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("cats", "cat"), ("feed", "feed"),
        ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing"),
        ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size"), ("hopping", "hop"), ("falling", "fall"),
        ("hissing", "hiss"), ("failing", "fail"), ("filing", "file"), ("happy", "happi"), ("sky", "sky"),
        ("relational", "relat"), ("conditional", "condit"), ("digitizer", "digit"), ("operator", "oper"),
        ("hopefulness", "hope"), ("sensibility", "sensibl"), ("triplicate", "triplic"), ("electrical", "electr"),
        ("revival", "reviv"), ("adjustment", "adjust"), ("adoption", "adopt"), ("rate", "rate"), ("cease", "ceas"),
        ("controlling", "control"), ("roll", "roll"), ("is", "is"), ("v2", "v2"), ("天気", "天気"),
    ],
)  # fmt: skip
def test_stems_follow_porter(word: str, root: str) -> None:
    assert stem(word) == root


@pytest.mark.parametrize(
    "family",
    [
        ("search", "searches", "searching", "searched"),
        ("delete", "deletes", "deleting", "deleted"),
        ("translate", "translation", "translator", "translating"),
        ("calculate", "calculator", "calculation", "calculating"),
        ("repository", "repositories"),
    ],
)
def test_inflections_share_a_term(family: tuple[str, ...]) -> None:
    assert len({term for word in family for term in terms(word)}) == 1


def test_stop_words_are_dropped_unless_alone() -> None:
    assert terms("please tell me the weather") == terms("weather")
    assert terms("help") == ["help"]


def test_spellings_of_a_name_normalize_alike() -> None:
    assert normalize_name("readFile") == normalize_name("read_file") == normalize_name("Read file") == "read file"


@given(st.text())
def test_any_text_can_be_split_and_stemmed(text: str) -> None:
    assert all(word == word.lower() for word in split_words(text) if word.isascii())
    assert all(terms(text))


@given(st.text() | st.text("abdeginstAB019_-.,() é"))
def test_terms_are_the_terms_of_the_words(text: str) -> None:
    words = split_words(text)
    assert terms(text) == ([term for word in words if (term := term_of(word))] or words)


@given(st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=1, max_size=5))
def test_case_style_does_not_change_words(words: list[str]) -> None:
    camel = words[0] + "".join(map(str.capitalize, words[1:]))
    assert split_words("_".join(words)) == split_words(".".join(words)) == split_words(camel) == words
