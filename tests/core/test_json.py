"""Frozen JSON values, and JSON text."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_core import to_json

from callwright.core.json import FrozenDict, FrozenList, canonical, compact, freeze, make_json_writer, thaw

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_frozen_value_equals_and_thaws_to_the_plain_one(value: Any) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert compact(frozen) == compact(value)
    thawed = thaw(frozen)
    assert thawed == value
    assert type(thawed) is type(value)
    assert hash(freeze(value)) == hash(frozen)


@given(VALUES)
def test_frozen_value_survives_copying_and_pickling(value: Any) -> None:
    frozen = freeze(value)
    assert freeze(frozen) is frozen
    assert copy.copy(frozen) is frozen or not isinstance(value, (dict, list))
    assert copy.deepcopy(frozen) == value
    loaded = pickle.loads(pickle.dumps(frozen))
    assert loaded == value
    assert type(loaded) is type(frozen)


DICT_CHANGES: list[Callable[[Any], object]] = [
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("b", 1),
    lambda d: d.update(b=1),
    lambda d: d.__ior__({"b": 1}),
]
LIST_CHANGES: list[Callable[[Any], object]] = [
    lambda x: x.__setitem__(0, 2),
    lambda x: x.__delitem__(0),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: x.append(1),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.pop(),
    lambda x: x.remove(1),
    lambda x: x.clear(),
    lambda x: x.sort(),
    lambda x: x.reverse(),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_frozen_dict_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = freeze({"a": 1})
    with pytest.raises(TypeError, match=r"immutable; make a copy with thaw\(\)"):
        change(frozen)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_frozen_list_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = freeze([1, 2])
    with pytest.raises(TypeError, match=r"immutable; make a copy with thaw\(\)"):
        change(frozen)
    assert frozen == [1, 2]


def test_every_mutating_method_is_blocked() -> None:
    for plain, frozen in ((dict, FrozenDict), (list, FrozenList)):
        reading = set(dir(tuple)) | {"copy", "fromkeys", "get", "items", "keys", "values", "__init__", "__reversed__"}
        reading |= {"__or__", "__ror__", "__class_getitem__"}
        for name in set(dir(plain)) - reading:
            assert getattr(frozen, name) is not getattr(plain, name), name


def test_frozen_copy_is_independent_of_the_original() -> None:
    original: dict[str, Any] = {"a": [1, {"b": 2}]}
    frozen = freeze(original)
    original["a"][1]["b"] = 3
    assert frozen == {"a": [1, {"b": 2}]}
    thawed = thaw(frozen)
    thawed["a"].append(4)
    assert frozen == {"a": [1, {"b": 2}]}


def test_canonical_text_ignores_key_order() -> None:
    assert canonical({"b": 1, "a": {"d": [1], "c": None}}) == canonical({"a": {"c": None, "d": [1]}, "b": 1})
    assert canonical({"é": 1}) == '{"\\u00e9":1}'
    assert compact({"b": 1, "a": "é"}) == '{"b":1,"a":"é"}'


@pytest.mark.parametrize("write", [compact, canonical])
def test_nan_and_infinity_are_not_written(write: Callable[[object], str]) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write({"a": float("nan")})


@given(VALUES)
def test_other_encoders_accept_frozen_values(value: Any) -> None:
    frozen = freeze(value)
    assert json.loads(json.dumps(frozen)) == value
    assert to_json(frozen) == to_json(value)


class Foreign:
    def __str__(self) -> str:
        return "foreign"


@pytest.mark.parametrize(
    "encoder",
    [
        json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False),
        json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False),
        json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str),
    ],
    ids=["compact", "canonical", "with default"],
)
@given(value=VALUES)
def test_writer_writes_what_the_encoder_writes(encoder: json.JSONEncoder, value: Any) -> None:
    write = make_json_writer(encoder)
    assert write(value) == encoder.encode(value)
    assert write({"text\ud800\n\x00": value}) == encoder.encode({"text\ud800\n\x00": value})
    for odd in (Foreign(), {"x": float("nan")}, {"x": {1, 2}}, {(1, 2): 3}, b"bytes"):
        assert _try(write, odd) == _try(encoder.encode, odd)


def test_writer_refuses_cycles_and_deep_values_as_the_encoder_does() -> None:
    cycle: list[Any] = []
    cycle.append({"self": cycle})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value, error in ((cycle, ValueError), (deep, RecursionError)):
        with pytest.raises(error):
            compact(value)
    while deep:  # freeing it at once would be as deep
        deep = deep.pop()
    assert compact({"after": [1]}) == '{"after":[1]}'


def _try(write: Callable[[Any], str], value: Any) -> object:
    try:
        return write(value)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
