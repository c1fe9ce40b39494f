"""The direct compiler agrees with pydantic for every annotation it supports and every value."""

import json
from collections.abc import Mapping, Sequence
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from callwright.tool.compile import INTEGER_RANGE, compact_schema, compile_annotation, schema_of


class Fruit(Enum):
    """Grows on trees."""

    APPLE = "apple"
    PEAR = "pear"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Word(StrEnum):
    YES = "yes"


class Lenient(Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> "Lenient":
        return cls.A


class Rescuing(Enum):
    @classmethod
    def _missing_(cls, value: object) -> Any:
        return next(iter(cls))


class Inherited(Rescuing):
    A = "a"


class Leaf(BaseModel):
    """A leaf."""

    n: int
    s: str | None = None


class Twig(BaseModel):
    leaf: Leaf
    size: Size = Size.SMALL


SCALARS: list[Any] = [str, int, float, bool, Any, object, list, dict, Fruit, Size, Word, Leaf, Twig]
LITERALS: list[Any] = [Literal["a"], Literal["a", "b"], Literal[1], Literal[1, 2, 3], Literal["1", "true", "null"]]
ANNOTATIONS = st.recursive(
    st.sampled_from(SCALARS + LITERALS),
    lambda inner: (
        inner.map(lambda kind: list[kind])
        | inner.map(lambda kind: dict[str, kind])
        | inner.map(lambda kind: Sequence[kind])
        | inner.map(lambda kind: Mapping[str, kind])
        | inner.map(lambda kind: Optional[kind])  # noqa: UP045 - kinds that have no |
        | st.lists(inner, min_size=2, max_size=3).map(lambda kinds: Union[tuple(kinds)])  # noqa: UP007 - the same
    ),
    max_leaves=4,
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(*INTEGER_RANGE)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "b", "1", "apple", "yes", "true", "null", "", "5.0", "{}"])
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["n", "s", "leaf", "size", "x"]), inner, max_size=3)
        | st.fixed_dictionaries({"n": st.integers(-5, 5) | PLAIN}, optional={"s": PLAIN})
    ),
    max_leaves=6,
)


def verdict(validate: Any, text: str) -> tuple[bool, str]:
    try:
        return True, repr(validate(text, strict=True))
    except ValidationError:
        return False, ""


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(ANNOTATIONS, st.lists(VALUES, min_size=3, max_size=8))
def test_the_compiler_and_pydantic_agree(annotation: Any, values: list[Any]) -> None:
    compiled = compile_annotation(annotation)
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    if compiled is None:
        return
    assert schema_of(annotation) == compact_schema(adapter.json_schema())
    validator = SchemaValidator(compiled.core)
    for value in values:
        text = json.dumps(value)
        assert verdict(validator.validate_json, text) == verdict(adapter.validator.validate_json, text), text


@pytest.mark.parametrize("annotation", [*SCALARS, *LITERALS, list[Leaf] | None, dict[str, list[int]] | Fruit])
def test_common_annotations_are_compiled(annotation: Any) -> None:
    assert compile_annotation(annotation) is not None


@pytest.mark.parametrize(
    "annotation",
    [
        Lenient,
        Inherited,
        Literal["a", 1],
        Literal[True],
        set[int],
        tuple[int, ...],
        dict[int, str],
        bytes,
        complex,
        Enum,
    ],
)
def test_other_annotations_are_left_to_pydantic(annotation: Any) -> None:
    assert compile_annotation(annotation) is None


def test_only_nan_and_long_integers_differ() -> None:
    compiled = compile_annotation(int)
    assert compiled is not None
    assert compiled.tight
    validator = SchemaValidator(compiled.core)
    assert verdict(validator.validate_json, str(2**64)) == (False, "")
    assert verdict(TypeAdapter(int).validator.validate_json, str(2**64))[0]
    number = compile_annotation(float)
    assert number is not None
    assert not verdict(SchemaValidator(number.core).validate_json, "NaN")[0]
