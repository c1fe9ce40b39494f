"""`SemanticIndex`: score fusion, tokenization and the embedding model."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import MiniLM, VectorCache
from callwright.registry.search.index import Hit
from callwright.registry.search.semantic import SemanticIndex, fuse

_TOPICS = {"rain": 0, "umbrella": 0, "weather": 0, "money": 1, "dollar": 1, "currency": 1, "letter": 2, "email": 2}


def _by_topic(texts: Sequence[str]) -> Any:
    """A tiny model: one dimension per topic."""
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


def test_meaning_beats_a_common_word() -> None:
    hits = [Hit("send", 2.0, "text: me"), Hit("weather", 1.9, "text: it")]
    near = {"send": 0.1, "weather": 0.7, "far": 0.05}
    assert [hit.name for hit in fuse(hits, near, set(), 3, coverage=0.3)] == ["weather", "send", "far"]


def test_words_count_by_their_share_of_the_query() -> None:
    hits = [Hit("send", 2.0, "text: me"), Hit("weather", 0.5, "text: it")]
    near = {"send": 0.5, "weather": 1.0, "far": 0.2, "other": 0.1}
    assert fuse(hits, near, set(), 1, coverage=0.1)[0].name == "weather"
    assert fuse(hits, near, set(), 1, coverage=0.9)[0].name == "send"


def test_words_count_less_if_one_tool_is_clearly_closest() -> None:
    hits, others = [Hit("send", 2.0, "text: me")], {f"far{number}": 0.0 for number in range(20)}
    assert fuse(hits, {"weather": 1.0, "send": 0.1, **others}, set(), 1, coverage=0.3)[0].name == "weather"
    crowd = {f"close{number}": 0.9 for number in range(9)}
    near = {"weather": 1.0, "send": 0.1, **others, **crowd}
    assert fuse(hits, near, set(), 1, coverage=0.3)[0].name == "send"


def test_named_tool_stays_first() -> None:
    hits = [Hit("send", 9.0, "name: send"), Hit("weather", 1.0, "")]
    for coverage in (0.0, 1.0):
        assert fuse(hits, {"send": -0.2, "weather": 0.9}, {"send"}, 1, coverage=coverage)[0].name == "send"


def test_why_separates_words_and_meaning() -> None:
    near = {"send": 0.5, "far": 0.25}
    assert [hit.why for hit in fuse([Hit("send", 1.0, "name: send")], near, set(), 2, coverage=1.0)] == [
        "name: send; meaning: 0.50",
        "meaning: 0.25",
    ]


def test_words_decide_without_similarity() -> None:
    near = {"far": -0.1, "send": -0.3}
    assert fuse([Hit("send", 1.0, "")], near, set(), 1, coverage=1.0)[0].name == "send"


def test_equally_close_tools_are_ordered_by_words() -> None:
    assert fuse([Hit("b", 1.0, "")], {"a": 0.5, "b": 0.5}, set(), 1, coverage=0.1)[0].name == "b"
    assert [hit.name for hit in fuse([], {"only": 0.5}, set(), 1, coverage=0.0)] == ["only"]


@given(
    near=st.dictionaries(st.sampled_from("abcdefghijkl"), st.sampled_from([-0.1, 0.0, 0.2, 0.5, 0.9]), min_size=1),
    words=st.dictionaries(st.sampled_from("abcdefghijkl"), st.sampled_from([0.5, 1.0, 2.0])),
    k=st.integers(1, 12),
)
def test_fewer_results_are_the_first_of_many(near: dict[str, float], words: dict[str, float], k: int) -> None:
    hits = [Hit(name, score, "") for name, score in words.items() if name in near]
    many = fuse(hits, near, set(), len(near), coverage=0.5)
    assert len(many) == len(near)
    assert fuse(hits, near, set(), k, coverage=0.5) == many[:k]


def test_tool_is_found_by_meaning() -> None:
    pytest.importorskip("numpy")
    index = SemanticIndex(_SPECS, _by_topic)
    assert index.search("do I need an umbrella?")[0].name == "get_weather"
    assert index.search("Dollar bills, please", 1)[0].name == "convert_currency"
    assert index.search("send_email")[0].name == "send_email"


def test_add_and_remove_apply_to_both_indexes() -> None:
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


def test_only_new_texts_are_embedded() -> None:
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


def test_empty_index_or_query_finds_nothing() -> None:
    assert SemanticIndex([], _by_topic).search("rain") == []
    assert SemanticIndex(_SPECS, _by_topic).search("?") == []
    assert SemanticIndex(_SPECS, _by_topic).search("rain", 0) == []


@pytest.mark.parametrize("package", ["_MODEL_PACKAGE", "_TOKENIZER_PACKAGE"])
def test_missing_model_names_the_extra(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(f"callwright.registry.search.embeddings.{package}", "no_such_package")
    with pytest.raises(UsageError, match=r"'no_such_package', which is missing; .*callwright\[semantic\]"):
        MiniLM()


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


CLS, SEP, UNK = 101, 102, 100  # as numbered in the vocabulary of bert-base-uncased


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Searching files", [6575, 6764]),
        ("searchingly", [6575, 2135]),  # search, ##ing is one word of the vocabulary; ##ly the rest
        ("Café, café!", [7668, 1010, 7668, 999]),
        ("\U0001f6ef file", [UNK, 5371]),
        ("", []),
        ("[SEP]", [1031, 19802, 1033]),
        ("fi\ud800le", [5371]),
        ("a" * 101, [UNK]),
    ],
)
def test_text_is_encoded_as_the_model_was_trained(model: MiniLM, text: str, tokens: list[int]) -> None:
    assert model.encode(text) == [CLS, *tokens, SEP]


def test_long_text_keeps_both_special_tokens(model: MiniLM) -> None:
    assert model.encode("a " * 500) == [CLS, *([1037] * 126), SEP]


def test_vector_does_not_depend_on_the_other_texts(model: MiniLM) -> None:
    alone, beside = model(["send a letter"]), model(["send a letter", "a much longer text " * 20])
    assert beside.shape == (2, model.width)
    assert alone[0].tolist() == beside[0].tolist()


def test_real_model_finds_tool_without_shared_words(model: MiniLM, tmp_path: Path) -> None:
    index = SemanticIndex(_SPECS, model, cache=VectorCache(model.identity, model.width, tmp_path))
    assert index.search("will I get wet tomorrow?", 1)[0].name == "get_weather"
    assert index.search("how many euros for a hundred bucks", 1)[0].name == "convert_currency"
