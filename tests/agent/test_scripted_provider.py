"""`ScriptedProvider`, and `check_provider` on valid and broken providers."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from callwright import ToolCall, UsageError
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.testing.checks import check_provider
from callwright.testing.fakes import ScriptedProvider


def sensible(request: ModelRequest) -> str | ToolCall:
    asked = request.tools and len(request.messages) == 1
    return ToolCall("1", "check_add", '{"a": 17, "b": 25}') if asked else "42"


async def test_scripted_provider_passes_check_provider() -> None:
    messages = await check_provider(ScriptedProvider.answering(sensible))
    assert [bool(message.calls) for message in messages] == [False, True, False]


class Broken:
    """Gives whatever it was made with."""

    model = "broken"

    def __init__(self, *events: ModelEvent) -> None:
        self.events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self.events:
            yield event


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((), "must have events"),
        ((TextDelta("x"),), "last event must be MessageDone"),
        ((TextDelta("x"), MessageDone(AssistantMessage((Text("y"),)))), "text deltas are 'x'"),
        ((MessageDone(AssistantMessage((ToolCall("1", "missing", "{}"),), "calls")),), "was not offered"),
        ((MessageDone(AssistantMessage((ToolCall("", "check_add", "{}"),), "calls")),), "must have an id"),
        (
            (MessageDone(AssistantMessage((ToolCall("1", "check_add", "{}"),), "end")),),
            "must stop with 'calls' or 'length'",
        ),
    ],
)
async def test_check_provider_reports_the_fault(events: tuple[ModelEvent, ...], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        await check_provider(Broken(*events))


async def test_script_reports_exhausted_and_unused_lines() -> None:
    provider = ScriptedProvider("one")
    with pytest.raises(AssertionError, match="not used"):
        provider.assert_used_up()
    with pytest.raises(AssertionError, match="not used"), ScriptedProvider("one"):
        pass
    request = ModelRequest(())
    assert [event async for event in provider.stream(request)][-1] == MessageDone(AssistantMessage((Text("one"),)))
    with pytest.raises(ProviderError, match="used up"):
        _ = [event async for event in provider.stream(request)]


def test_invalid_script_file_is_rejected(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "s.json"
    calls = ('["read"]', '[{"nme": "read"}]', '[{"name": "read", "argumnts": {}}]', '{"name": "read"}')
    for text in (
        '{"text": "x"}',
        "[5]",
        '[{"say": "x"}]',
        '[{"text": 5}]',
        *(f'[{{"calls": {one}}}]' for one in calls),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"s\.json"):
            ScriptedProvider.from_file(path)


@pytest.mark.parametrize("line", [["one", "two"], [None], {"text": "x"}, 3, None])
def test_what_is_not_a_reply_is_rejected(line: Any) -> None:
    with pytest.raises(
        UsageError, match=r"a reply is a text, a ToolCall, .*; write several replies as several arguments"
    ):
        ScriptedProvider("one", line)


async def test_function_that_returns_no_reply_is_named() -> None:
    provider = ScriptedProvider.answering(lambda _: cast("Any", ["one", "two"]))
    with pytest.raises(UsageError, match="a reply is a text"):
        _ = [event async for event in provider.stream(ModelRequest(()))]
