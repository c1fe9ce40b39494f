"""The checks plug-in authors run: a sound provider passes, a broken one is told what is wrong."""

from collections.abc import AsyncIterator

import pytest

from callwright import ToolCall, UsageError
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.testing.fakes import ScriptedProvider
from callwright.testing.providers import check_provider


def sensible(request: ModelRequest) -> str | ToolCall:
    asked = request.tools and len(request.messages) == 1
    return ToolCall("1", "check_add", '{"a": 17, "b": 25}') if asked else "42"


async def test_a_scripted_provider_keeps_the_contract() -> None:
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
        ((TextDelta("x"),), "must be the whole message"),
        ((TextDelta("x"), MessageDone(AssistantMessage((Text("y"),)))), "deltas say 'x'"),
        ((MessageDone(AssistantMessage((ToolCall("1", "nobody", "{}"),), "calls")),), "was not offered"),
        ((MessageDone(AssistantMessage((ToolCall("", "check_add", "{}"),), "calls")),), "must have an id"),
        ((MessageDone(AssistantMessage((ToolCall("1", "check_add", "{}"),), "end")),), "stops for them"),
    ],
)
async def test_a_broken_provider_is_told_what_is_wrong(events: tuple[ModelEvent, ...], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        await check_provider(Broken(*events))


async def test_a_script_says_when_it_is_used_up_and_when_it_was_not() -> None:
    provider = ScriptedProvider("one")
    with pytest.raises(AssertionError, match="not used"):
        provider.assert_used_up()
    with pytest.raises(AssertionError, match="not used"), ScriptedProvider("one"):
        pass
    request = ModelRequest(())
    assert [event async for event in provider.stream(request)][-1] == MessageDone(AssistantMessage((Text("one"),)))
    with pytest.raises(ProviderError, match="used up"):
        _ = [event async for event in provider.stream(request)]


def test_a_script_file_that_is_none_is_refused(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "s.json"
    for text in ('{"text": "x"}', "[5]", '[{"say": "x"}]'):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"s\.json"):
            ScriptedProvider.from_file(path)
