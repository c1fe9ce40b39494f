"""What a tool returned, as the model reads it."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, field_serializer

from callwright import Image, Output, Text, ToolFailed
from callwright.core.content import File
from callwright.tool.render import render


class Sum(BaseModel):
    sum: int


@dataclass
class Spot:
    x: int
    label: str | None = None


class Pair(NamedTuple):
    a: int
    b: str


class Mood(StrEnum):
    GOOD = "good"


class Named(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
    ONE = "one"


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("abc", "abc", None),
        ("", "", None),
        (Mood.GOOD, "good", None),
        (Named.ONE, "one", None),
        (None, "(no output)", None),
        (b"abc", "abc", None),
        ({"sum": 5}, '{"sum":5}', {"sum": 5}),
        (Sum(sum=5), '{"sum":5}', {"sum": 5}),
        (Spot(1), '{"x":1,"label":null}', {"x": 1, "label": None}),
        (Pair(1, "b"), '[1,"b"]', [1, "b"]),
        ([1, "a", None], '[1,"a",null]', [1, "a", None]),
        ((1, 2), "[1,2]", [1, 2]),
        ([], "[]", []),
        ({}, "{}", {}),
        (5, "5", 5),
        (2.5, "2.5", 2.5),
        (True, "true", True),
        ({7}, "[7]", [7]),
        ({"a": {1: date(2024, 1, 2)}}, '{"a":{"1":"2024-01-02"}}', {"a": {"1": "2024-01-02"}}),
        (Decimal("1.50"), '"1.50"', "1.50"),
        ({"n": float("nan")}, '{"n":null}', {"n": None}),
        ([float("inf")], "[null]", [None]),
        ("é\u2028", "é\u2028", None),
        ({"é": "日本"}, '{"é":"日本"}', {"é": "日本"}),
    ],
)
def test_a_value_becomes_text_and_data(value: object, text: str, structured: Any) -> None:
    output = render(value)
    assert (output.text, output.structured) == (text, structured)


def test_text_is_exactly_what_was_returned() -> None:
    assert type(render(Named.ONE).content) is str
    assert render("a\r\nb").content == "a\r\nb"


def test_parts_stay_parts() -> None:
    image, file = Image(b"png"), File(b"pdf", "application/pdf", "a.pdf")
    assert render(image) == Output((image,))
    assert render(file) == Output((file,))
    assert render(Text("a")) == Output((Text("a"),))
    assert render(["look:", image, Text("and"), file]) == Output((Text("look:"), image, Text("and"), file))
    assert render((image, "caption")).text == "caption"


def test_a_list_of_text_without_a_part_is_data() -> None:
    assert render(["a", "b"]).structured == ["a", "b"]


def test_an_output_is_kept_as_it_is() -> None:
    output = Output("text", {"a": 1})
    assert render(output) is output


class Failing(BaseModel):
    a: int = 1

    @field_serializer("a")
    def _fail(self, value: int) -> int:
        raise LookupError("no such thing")


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {"a": object()},
        [lambda: 1],
        Failing(),
        CIRCLE,
        _nested(230),
        _nested(100_000),
        b"\xff",
        "\ud800".join,
        10**5000,
    ],
    ids=["object", "inside", "function", "serialiser", "circle", "deep", "deeper", "bytes", "method", "integer"],
)
def test_unwritable_output_raises_tool_failed(value: object) -> None:
    with pytest.raises(ToolFailed, match=r"^tool failed: output serialize: ") as caught:
        render(value)
    assert caught.value.message.startswith("output serialize: ")
    assert len(caught.value.message) < 300
    caught.value.message.encode()


def test_mixed_parts_and_data_raise() -> None:
    with pytest.raises(ToolFailed, match="output serialize"):
        render([Image(b"\xff"), {"a": 1}])
