"""Encoding of requests: cached messages, call ids, arguments and retry delays."""

import json
import re
import subprocess
import sys
from email.utils import formatdate
from time import process_time, time

import pytest
from hypothesis import given, strategies as st

from callwright.core.calls import ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.messages import History, Message, UserMessage
from callwright.providers.encoding import (
    IdentityCache,
    assemble,
    call_arguments,
    encode_history,
    fit_media,
    list_pieces,
    parse_cut_object,
    parse_object,
    read_arguments,
    to_bytes,
    wire_id,
    wire_name,
)
from callwright.providers.errors import retry_after

_VENDORS = ("anthropic", "openai", "google.genai", "httpx2", "genai_prices")


def _encode(message: Message) -> bytes:
    assert isinstance(message, UserMessage)
    return to_bytes(message.content)


_STEPS = st.tuples(st.integers(0, 4), st.integers(0, 5), st.sampled_from(["", "be brief", "be exact"]), st.booleans())


@given(st.lists(_STEPS, max_size=12))
def test_growing_history_encodes_like_whole_history(steps: list[tuple[int, int, str, bool]]) -> None:
    history, said, kept = History([UserMessage("first")]), ["first"], list[tuple[bytes, object]]()
    for count, unjoined, system, held in steps:
        for _ in range(count):
            said.append(f"{len(said)}")
            history.append(UserMessage(said[-1]))
        settled, last = encode_history(history, "key", _encode, unjoined=unjoined)
        body = assemble({"system": to_bytes(system), "messages": list_pieces(settled, *last)})
        expected = {"system": system, "messages": [*said]}
        assert json.loads(body) == expected
        assert len(last) == min(unjoined, len(said))
        if held:
            kept.append((body, expected))
    for body, expected in kept:  # a body that is still being sent does not change with the next one
        assert json.loads(body) == expected


def test_empty_list_is_encoded() -> None:
    assert json.loads(assemble({"messages": list_pieces(b"")})) == {"messages": []}


@given(st.text())
def test_any_text_can_be_encoded(text: str) -> None:
    assert isinstance(json.loads(to_bytes({"text": text + "\ud800"})), dict)


@given(st.text())
def test_wire_ids_are_valid_and_unique(call_id: str) -> None:
    sent = wire_id(call_id)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", sent)
    assert wire_id(call_id) == sent
    assert wire_id(call_id + "!") != sent


@given(st.text())
def test_unknown_tool_name_becomes_valid(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_name(name))


@pytest.mark.parametrize("text", ["", "[1]", '{"a": NaN}', '{"a": 1e999}', '{"a": ', "[" * 100_000, "null"])
def test_parse_object_rejects_non_objects(text: str) -> None:
    assert parse_object(text) is None


def test_deep_arguments_are_shown_as_text_on_every_python_and_sent_as_they_are() -> None:
    for depth, text in ((100, '{"a":' * 100 + "1" + "}" * 100), (101, '{"a":' * 101 + "1" + "}" * 101)):
        call = ToolCall("a", "b", text)
        assert isinstance(read_arguments(call), dict if depth == 100 else str)
        assert to_bytes(call_arguments(call)) == text.encode()
    wide = json.dumps({"text": '{[\\"' * 200, "items": [[]] * 200})
    assert isinstance(read_arguments(ToolCall("a", "b", wide)), dict)


@given(st.one_of(st.text(), st.binary()))
def test_call_arguments_are_always_an_object(arguments: str | bytes) -> None:
    assert isinstance(json.loads(to_bytes(call_arguments(ToolCall("a", "b", arguments)))), dict)


def test_cache_matches_by_identity() -> None:
    kept: IdentityCache[object] = IdentityCache()
    one, other = [1], [1]
    first = kept.get(one, make=object)
    assert kept.get(one, make=object) is first
    assert kept.get(other, make=object) is not first
    for number in range(100):
        kept.get([number], make=object)
    assert kept.get(one, make=object) is not first  # forgotten, so that no provider keeps every tool it has met


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(time() - 60)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400", "retry-after-ms": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_headers_are_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_date_is_read() -> None:
    assert retry_after({"retry-after": formatdate(time() + 30)}) == pytest.approx(30, abs=2)


def test_importing_providers_loads_no_sdk() -> None:
    modules = "anthropic openai.chat openai.responses google json_actions resolve pricing".split()
    lines = [f"import callwright.providers.{name}" for name in modules]
    check = f"import sys; print([name for name in {_VENDORS!r} if name in sys.modules])"
    script = "\n".join([*lines, check])
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


_PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x02IDAT..crc." + b"\x00\x00\x00\x00IEND\xaeB`\x82"
_WEBP = b"RIFF\x08\x00\x00\x00WEBPVP8 "


@pytest.mark.parametrize(
    "part",
    [
        Image(_PNG),
        Image(_PNG + b"more"),
        Image(_WEBP, "image/webp"),
        Image(b"\xff\xd8\xff\xe0", "image/jpeg"),
        File(b"\n%PDF-1.7", "application/pdf"),
    ],
)
def test_whole_media_are_sent(part: Part) -> None:
    assert fit_media(part) is part


@pytest.mark.parametrize(
    ("part", "said"),
    [
        *((Image(_PNG[:end]), f"[an image: image/png, {end} bytes, which is damaged") for end in (0, 4, 8, 20, 30)),
        (Image(_WEBP[:-1], "image/webp"), "[an image: image/webp, 15 bytes, which is damaged"),
        (Image(b"<html>", "image/jpeg"), "[an image: image/jpeg, 6 bytes, which is damaged"),
        (File(b"<html>", "application/pdf", "a.pdf"), "[a.pdf: application/pdf, 6 bytes, which is damaged"),
    ],
)
def test_damaged_media_are_described(part: Part, said: str) -> None:
    """A server refuses the whole request with it, and every later one of the session."""
    fitted = fit_media(part)
    assert isinstance(fitted, Text) and fitted.text.startswith(said)


def test_cut_object_of_many_levels_is_given_up():
    began = process_time()
    assert parse_cut_object('{"a": ' + "[" * 1_000_000) is None
    assert process_time() - began < 3  # to write all that closes it anew for each level takes 20 s
    assert parse_cut_object('{"a": ' + "[" * 50) == {"a": json.loads("[" * 50 + "]" * 50)}
