"""Words and meaning together: the fusion, the tokens a model reads, and the index over both."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import MiniLM, VectorCache, WordPiece
from callwright.registry.search.index import Hit
from callwright.registry.search.semantic import SemanticIndex, fused

_TOPICS = {"rain": 0, "umbrella": 0, "weather": 0, "money": 1, "dollar": 1, "currency": 1, "letter": 2, "email": 2}


def _by_topic(texts: Sequence[str]) -> Any:
    """A model small enough to see through: one dimension per topic."""
    numpy: Any = import_module("numpy")
    rows = numpy.full((len(texts), 3), 0.01)
    for place, text in enumerate(texts):
        for word, topic in _TOPICS.items():
            rows[place, topic] += word in text.lower()
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


_SPECS = [
    ToolSpec("get_weather", "Weather of a place.", {}),
    ToolSpec("convert_currency", "Currency rates.", {}),
    ToolSpec("send_email", "Send an email.", {}),
]


def test_a_tool_close_in_meaning_beats_one_that_shares_a_common_word() -> None:
    hits = [Hit("send", 2.0, "text: me"), Hit("weather", 1.9, "text: it")]
    assert [hit.name for hit in fused(hits, {"send": 0.1, "weather": 0.7, "far": 0.05}, set(), 3)] == [
        "weather",
        "send",
        "far",
    ]


def test_a_tool_called_by_its_name_stays_first_whatever_it_means() -> None:
    hits = [Hit("send", 9.0, "name: send"), Hit("weather", 1.0, "")]
    assert fused(hits, {"send": -0.2, "weather": 0.9}, {"send"}, 1)[0].name == "send"


def test_the_reason_tells_words_from_meaning() -> None:
    near = {"send": 0.5, "far": 0.25}
    assert [hit.why for hit in fused([Hit("send", 1.0, "name: send")], near, set(), 2)] == [
        "name: send; meaning: 0.50",
        "meaning: 0.25",
    ]


def test_words_alone_decide_where_nothing_is_near() -> None:
    assert fused([Hit("send", 1.0, "")], {"far": -0.1, "send": -0.3}, set(), 1)[0].name == "send"


def test_a_tool_is_found_by_meaning_when_no_word_is_shared() -> None:
    pytest.importorskip("numpy")
    index = SemanticIndex(_SPECS, _by_topic)
    assert index.search("do I need an umbrella?")[0].name == "get_weather"
    assert index.search("Dollar bills, please", 1)[0].name == "convert_currency"
    assert index.search("send_email")[0].name == "send_email"


def test_tools_come_and_go_from_both_halves() -> None:
    pytest.importorskip("numpy")
    index = SemanticIndex(_SPECS[:2], _by_topic)
    before = index.search("umbrella and letter")
    index.add(_SPECS[2])
    assert index.search("a letter")[0].name == "send_email"
    index.remove("send_email")
    assert index.search("umbrella and letter") == before
    with pytest.raises(UsageError, match="send_email"):
        index.remove("send_email")
    assert len(index) == 2


def test_only_tools_that_say_something_new_are_embedded() -> None:
    pytest.importorskip("numpy")
    seen: list[str] = []

    def embed(texts: Sequence[str]) -> Any:
        seen.extend(texts)
        return _by_topic(texts)

    index = SemanticIndex(_SPECS[:2], embed)
    index.search("rain")
    seen.clear()
    index.add(_SPECS[2])
    index.search("rain")
    assert seen == ["send email: Send an email.", "rain"]


def test_nothing_to_find_finds_nothing() -> None:
    assert SemanticIndex([], _by_topic).search("rain") == []
    assert SemanticIndex(_SPECS, _by_topic).search("?") == []
    assert SemanticIndex(_SPECS, _by_topic).search("rain", 0) == []


def test_a_missing_model_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.registry.search.embeddings._VOCABULARY", "no_such_package")
    with pytest.raises(UsageError, match="callwright\\[semantic\\]"):
        MiniLM()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Searching files", ["search", "##ing", "file", "##s"]),
        ("Café, café!", ["cafe", ",", "cafe", "!"]),
        ("zebra file", ["[UNK]", "file"]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_known_pieces(text: str, pieces: list[str]) -> None:
    vocabulary = ["[CLS]", "[SEP]", "[UNK]", "search", "##ing", "file", "##s", "cafe", ",", "!", "sea", "##rch"]
    numbers = WordPiece(vocabulary).encode(text, 32)
    assert [vocabulary[number] for number in numbers] == ["[CLS]", *pieces, "[SEP]"]


def test_long_texts_are_cut_between_the_marks() -> None:
    assert WordPiece(["[CLS]", "[SEP]", "[UNK]", "a"]).encode("a " * 50, 6) == [0, 3, 3, 3, 3, 1]


def test_the_real_model_finds_what_shares_no_word(tmp_path: Path) -> None:
    model = MiniLM()
    index = SemanticIndex(_SPECS, model, cache=VectorCache(model.identity, model.width, tmp_path))
    assert index.search("will I get wet tomorrow?", 1)[0].name == "get_weather"
    assert index.search("how many euros for a hundred bucks", 1)[0].name == "convert_currency"
