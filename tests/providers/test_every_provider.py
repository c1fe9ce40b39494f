"""Behaviour common to all providers, through the vendors' SDKs: broken streams, errors, cancelling, encoding."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.waiting import LONG_SECONDS, until

from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output
from callwright.core.messages import AssistantMessage, AssistantPart, History, ToolMessage, UserMessage
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    ProviderError,
    TextDelta,
    ThinkingDelta,
)
from callwright.testing.loopback import Ending, Loopback, LoopbackReply

from .vendors import VENDORS, Closable, Recorded, Requests, asked, said_by


@pytest.fixture(params=list(VENDORS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def answer(name: str, recorded: Recorded) -> bytes:
    return recorded(name)


@pytest.fixture
async def provider(name: str, server: Loopback) -> AsyncIterator[Closable]:
    made = VENDORS[name].make(server.url)
    yield made
    await made.aclose()


async def _failure(provider: Closable, request: ModelRequest) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await asked(provider, request)
    return caught.value


def _same(one: AssistantMessage, other: AssistantMessage) -> bool:
    """Ids are made here where a server gives none, so they may differ."""
    written = [[(call.name, call.arguments) for call in message.calls] for message in (one, other)]
    return one.text == other.text and written[0] == written[1] and (one.stop, one.usage) == (other.stop, other.usage)


async def test_request_contains_whole_conversation(
    server: Loopback,
    provider: Closable,
    name: str,
    answer: bytes,
    request_for: Requests,
    conversation: tuple[Any, ...],
    golden: Callable[[str, Any], None],
) -> None:
    vendor = VENDORS[name]
    server.reply(LoopbackReply([answer]))
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    await asked(provider, request_for(*conversation, output_schema=schema, options=vendor.options, max_tokens=99))
    golden(name, server.received[0].json)
    assert server.received[0].path.endswith(vendor.path)
    assert vendor.headers.items() <= server.received[0].headers.items()


async def test_body_is_dropped_with_the_message(
    server: Loopback, provider: Any, answer: bytes, request_for: Requests, conversation: tuple[Any, ...]
) -> None:
    request, build, bodies = request_for(*conversation), provider._body, list[bytes]()

    def note(*given: Any) -> bytes:
        bodies.append(build(*given))
        return bodies[-1]

    note(request, provider._encoder.encode(request))
    unsent = sys.getrefcount(bodies[0])
    bodies.clear()
    provider._body = note
    server.reply(LoopbackReply([answer]))
    await asked(provider, request)
    # otherwise every turn would copy the whole conversation; a stream that was left early is closed by the event loop
    await until(lambda: sys.getrefcount(bodies[0]) == unsent)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_deltas_add_up_to_message(
    server: Loopback, provider: Closable, name: str, answer: bytes, request_for: Requests, mark: bytes
) -> None:
    server.reply(LoopbackReply([mark + answer]))
    *deltas, last = [event async for event in provider.stream(request_for(UserMessage("hi")))]
    expected = said_by(name, server.url)
    assert isinstance(last, MessageDone)
    ids = [call.id for call in last.message.calls]
    assert last == MessageDone(replace(expected, parts=tuple(_with_ids(expected.parts, ids))))
    assert deltas[:3] == [ThinkingDelta("hm…"), TextDelta("Grüße "), TextDelta("🌍")]
    calls = [delta for delta in deltas[3:] if isinstance(delta, CallDelta)]
    assert len(calls) == len(deltas) - 3
    for call in last.message.calls:
        pieces = [delta.arguments for delta in calls if (delta.call_id, delta.name) == (call.id, call.name)]
        assert ("".join(pieces) or "{}") == (call.arguments or "{}")


def _with_ids(parts: Iterable[AssistantPart], ids: list[str]) -> Iterator[AssistantPart]:
    """The parts with an id made here where the server gave none."""
    given = iter(ids)
    for part in parts:
        if isinstance(part, ToolCall):
            made = next(given)
            yield part if part.id else replace(part, id=made)
        else:
            yield part


async def test_stream_chunks_may_be_split_anywhere(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests
) -> None:
    request = request_for(UserMessage("hi"))
    server.reply(LoopbackReply([answer]))
    whole = await asked(provider, request)
    server.reply(LoopbackReply([bytes([byte]) for byte in answer]))
    assert _same(await asked(provider, request), whole)
    places = range(1, len(answer), 101)
    server.reply(*(LoopbackReply([answer[:place], answer[place:]]) for place in places))
    for _ in places:
        assert _same(await asked(provider, request), whole)


@pytest.mark.slow
async def test_stream_may_be_split_in_two_at_many_bytes(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests
) -> None:
    request = request_for(UserMessage("hi"))
    server.reply(LoopbackReply([answer]))
    whole = await asked(provider, request)
    for place in range(1, len(answer), 5):  # that it may be split at every byte is tested by default, byte by byte
        server.reply(LoopbackReply([answer[:place], answer[place:]]))
        assert _same(await asked(provider, request), whole)


async def test_no_list_of_parts_is_sent_empty(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests
) -> None:
    call = ToolCall("a", "look", "{}")
    said = (UserMessage(()), AssistantMessage((call,), "calls"), ToolMessage((Completed(call, Output(())),)))
    server.reply(LoopbackReply([answer]))
    await asked(provider, request_for(*said))
    assert b"[]" not in server.received[0].body.replace(b" ", b"")


@pytest.mark.parametrize("size", [7, 10**6])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n\n", "\n\n: keep-alive\n\n"),
        ("\n\n", "\n\nevent: heartbeat\n\n"),
        ("\n\n", "\n\ndata:\n\n"),
        ("data: ", ": keep-alive\ndata:"),
        ("data: ", "id: 3\nretry: 9\ndata: "),
        ("\n", "\r\n"),
        (re.compile(r"^event:.*\n", re.MULTILINE), ""),
        (re.compile(r"\Z"), "data: [DONE]\n\n"),
        ("Grüße", "Gr\u2028\x85ße"),
    ],
)
async def test_stream_may_have_any_form_of_the_standard(
    server: Loopback,
    provider: Closable,
    answer: bytes,
    request_for: Requests,
    old: str | re.Pattern[str],
    new: str,
    size: int,
) -> None:
    server.reply(LoopbackReply([answer]))
    plain = await asked(provider, request_for(UserMessage("hi")))
    pattern = old if isinstance(old, re.Pattern) else re.escape(old)
    sent = re.sub(pattern, lambda _: new, answer.decode()).encode()
    server.reply(LoopbackReply([sent[place : place + size] for place in range(0, len(sent), size)]))
    found = await asked(provider, request_for(UserMessage("hi")))
    assert found.text == (plain.text.replace(old, new) if isinstance(old, str) else plain.text)
    assert _same(replace(found, parts=()), replace(plain, parts=())) and len(found.calls) == len(plain.calls)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
async def test_last_event_needs_no_blank_line(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests, ending: bytes
) -> None:
    request = request_for(UserMessage("hi"))
    server.reply(LoopbackReply([answer]), LoopbackReply([answer.rstrip() + ending]))
    assert _same(await asked(provider, request), await asked(provider, request))


@pytest.mark.parametrize("step", [149, pytest.param(37, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ending", ["whole", "broken"])
async def test_truncated_stream_gives_no_message(
    server: Loopback, provider: Closable, name: str, answer: bytes, request_for: Requests, ending: Any, step: int
) -> None:
    request = request_for(UserMessage("hi"))
    for place in range(0, answer.rindex(VENDORS[name].last_event), step):
        server.reply(LoopbackReply([answer[:place]], ending=ending))
        assert (await _failure(provider, request)).fault == "transient"


async def test_deltas_before_a_break_are_delivered(
    server: Loopback, provider: Closable, name: str, answer: bytes, request_for: Requests
) -> None:
    server.reply(LoopbackReply([answer[: answer.rindex(VENDORS[name].last_event)]], ending="broken"))
    events: list[ModelEvent] = []
    with pytest.raises(ProviderError):
        async for event in provider.stream(request_for(UserMessage("hi"))):
            events.append(event)
    assert TextDelta("Grüße ") in events
    assert not any(isinstance(event, MessageDone) for event in events)


@pytest.mark.parametrize(
    ("status", "said", "fault"),
    [
        (429, "slow down", "transient"),
        (500, "oops", "transient"),
        (503, "overloaded", "transient"),
        (529, "overloaded", "transient"),
        (400, "tools.0: bad", "invalid"),
        (404, "no such model", "invalid"),
        (401, "bad key", "auth"),
        (403, "not yours", "auth"),
        (413, "too many bytes", "too_large"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "too_large"),
        (400, "This model's maximum context length is 8192 tokens", "too_large"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "too_large"),
    ],
)
async def test_error_status_sets_fault(
    server: Loopback, provider: Closable, request_for: Requests, status: int, said: str, fault: str
) -> None:
    body = json.dumps({"error": {"message": said, "code": status}}).encode()
    server.reply(LoopbackReply([body], status, {"content-type": "application/json", "retry-after": "7"}))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert (failure.fault, failure.retry_after) == (fault, 7.0 if fault == "transient" else None)
    assert said in str(failure)
    assert len(server.received) == 1  # trying again is the loop's business


async def test_html_error_page_is_handled(server: Loopback, provider: Closable, request_for: Requests) -> None:
    page = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    server.reply(LoopbackReply([page], 502, {"content-type": "text/html"}))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert failure.fault == "transient"
    assert str(failure) == "the model API answered 502: a web page with the title '502 Bad Gateway'"


async def test_error_without_a_message_shows_its_detail(
    server: Loopback, provider: Closable, request_for: Requests
) -> None:
    detail = {"loc": ["body", "seed"], "msg": "Field required", "input": "about the context length"}
    server.reply(LoopbackReply([json.dumps({"detail": [detail]}).encode()], 422, {"content-type": "application/json"}))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert failure.fault == "invalid" and str(failure) == "the model API answered 422: body.seed: Field required"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize(
    "error",
    [
        '{"detail": "no such model"}',
        '{"error": "no such model"}',
        '"no such model"',
        '["no such model"]',
        '[{"error": {"message": "no such model"}}]',
        "no such model",
    ],
)
async def test_error_in_place_of_an_answer_is_told(
    server: Loopback, provider: Closable, request_for: Requests, error: str, kind: str
) -> None:
    server.reply(LoopbackReply([error[:3].encode(), error[3:].encode()], headers={"content-type": kind}))
    assert "no such model" in str(await _failure(provider, request_for(UserMessage("hi"))))


@pytest.mark.parametrize("begun", [True, False])
async def test_error_in_a_stream_needs_no_name(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests, *, begun: bool
) -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "code": 401, "message": "wrong key"}}
    first = answer.split(b"\n\n", 1)[0] + b"\n\n" if begun else b""
    server.reply(LoopbackReply([first + b"data: " + json.dumps(error).encode() + b"\n\n"]))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert failure.fault == "auth" and "wrong key" in str(failure)


async def test_error_that_is_not_utf_8_is_told(server: Loopback, provider: Closable, request_for: Requests) -> None:
    body = '{"error": {"message": "gesperrt für Gäste"}}'.encode("latin-1")
    server.reply(LoopbackReply([body], 401, {"content-type": "application/json"}))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert failure.fault == "auth" and "answered 401: gesperrt" in str(failure)


_PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>data: none</body></html>"


@pytest.mark.parametrize(
    "kind",
    ["text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "text/event-stream", "application/json", ""],
)
async def test_web_page_in_place_of_an_answer_is_named(
    server: Loopback, provider: Closable, request_for: Requests, kind: str
) -> None:
    server.reply(LoopbackReply([_PAGE[:1], _PAGE[1:]], headers={"content-type": kind} if kind else {}))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    host = server.url.removeprefix("http://").partition("/")[0]
    assert f"the server at {host} answered with HTML instead of the API's format: check base_url" in str(failure)
    assert failure.fault == "unavailable"  # sent again, the answer would be the same page


async def test_redirect_to_a_login_page_names_both_hosts(
    server: Loopback, provider: Closable, request_for: Requests
) -> None:
    async with Loopback() as login:
        login.reply(LoopbackReply([_PAGE], headers={"content-type": "text/html"}))
        server.reply(LoopbackReply([], 302, {"location": f"{login.url}/login"}))
        hosts = [each.url.removeprefix("http://").partition("/")[0] for each in (login, server)]
        error = await _failure(provider, request_for(UserMessage("hi")))
    failure = str(error)
    assert error.fault == "unavailable"
    if login.received:  # not every SDK follows redirects
        assert f"the server at {hosts[0]} answered with HTML" in failure
        assert f"after a redirect from {hosts[1]}" in failure
    else:
        assert "the model API answered 302" in failure


async def test_unreachable_server_is_not_retried(name: str, request_for: Requests) -> None:
    provider = VENDORS[name].make("http://127.0.0.1:9")
    assert (await _failure(provider, request_for(UserMessage("hi")))).fault == "unavailable"
    await provider.aclose()


async def test_cancelling_closes_connection(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests
) -> None:
    server.reply(LoopbackReply([answer[:20]], ending="held"))
    task = asyncio.create_task(asked(provider, request_for(UserMessage("hi"))))
    await server.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(server.left.wait(), LONG_SECONDS)


async def test_leaving_stream_closes_connection(
    server: Loopback, provider: Closable, name: str, answer: bytes, request_for: Requests
) -> None:
    server.reply(LoopbackReply([answer[: answer.rindex(VENDORS[name].last_event)]], ending="held"))
    stream = cast("AsyncGenerator[ModelEvent, None]", provider.stream(request_for(UserMessage("hi"))))
    await anext(stream)
    await stream.aclose()
    await asyncio.wait_for(server.left.wait(), LONG_SECONDS)


async def test_old_messages_are_encoded_once(
    server: Loopback, provider: Closable, answer: bytes, request_for: Requests, conversation: tuple[Any, ...]
) -> None:
    server.reply(LoopbackReply([answer]))
    history = History(conversation)
    request = request_for(messages=history)
    await asked(provider, request)
    assert isinstance(conversation[2], ToolMessage)
    outcome = conversation[2].outcomes[0]
    object.__setattr__(outcome, "output", None)  # encoding it again would fail
    history.append(UserMessage("more"))
    await asked(provider, request)
    assert b"hello" in server.received[1].body
    assert b"more" in server.received[1].body


@pytest.mark.parametrize("name", [each for each in VENDORS if each != "google"])  # whose last event has no mark
@pytest.mark.parametrize("ending", ["held", "broken"])
async def test_whole_message_counts_however_the_response_ends(
    server: Loopback,
    provider: Closable,
    name: str,
    answer: bytes,
    request_for: Requests,
    ending: Ending,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway may leave a response open after the last event: waiting for its end took ten minutes, then failed."""
    monkeypatch.setattr("callwright.providers.streaming._DRAIN_SECONDS", 0.05)
    server.reply(LoopbackReply([answer], ending=ending))
    async with asyncio.timeout(LONG_SECONDS):
        message = await asked(provider, request_for(UserMessage("hi")))
    assert message.parts == said_by(name, server.url).parts


async def test_wait_out_of_range_is_no_wait(server: Loopback, provider: Closable, request_for: Requests) -> None:
    headers = {"content-type": "application/json", "retry-after": "Wed, 21 Oct 2035 07:28:00 +99999999999999"}
    server.reply(LoopbackReply([b'{"error": {"message": "busy"}}'], 429, headers))
    failure = await _failure(provider, request_for(UserMessage("hi")))
    assert (failure.fault, failure.retry_after) == ("transient", None)
