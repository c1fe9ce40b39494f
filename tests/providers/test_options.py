"""Model options by every API's own names, and models that answer in place of others."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from callwright import Agent, UsageError
from callwright.agent import Done, RunLimits
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage, UserMessage
from callwright.providers import Fallback, ModelOptions, Prices, WithOptions, provider_for
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, Provider, ProviderError, TextDelta
from callwright.providers.google import GoogleGemini
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses
from callwright.testing import ScriptedProvider, check_provider
from callwright.testing.loopback import Loopback, LoopbackReply
from callwright.testing.requests import (
    FindFaults,
    anthropic_faults,
    google_faults,
    openai_chat_faults,
    openai_responses_faults,
)

from .vendors import Recorded

_OPTIONS = ModelOptions(temperature=0.5, max_tokens=77, effort="low", stop=("END",))
_SPARSE = ModelOptions(temperature=0.5, max_tokens=77, effort="low")
_SENT: list[tuple[str, Callable[[str], Provider], FindFaults, ModelOptions, dict[str, Any]]] = [
    (
        "anthropic",
        lambda url: AnthropicMessages("claude-test", api_key="k", base_url=url),
        anthropic_faults,
        ModelOptions(max_tokens=77, effort="low", stop=("END",)),
        {"max_tokens": 77, "stop_sequences": ["END"]},
    ),
    (
        "openai_chat",
        lambda url: OpenAIChat("gpt-test", api_key="k", base_url=url),
        openai_chat_faults,
        _OPTIONS,
        {"temperature": 0.5, "max_tokens": 77, "stop": ["END"], "reasoning_effort": "low"},
    ),
    (
        "openai_responses",
        lambda url: OpenAIResponses("gpt-test", api_key="k", base_url=url),
        openai_responses_faults,
        _SPARSE,
        {"temperature": 0.5, "max_output_tokens": 77, "reasoning": {"effort": "low"}},
    ),
    (
        "google",
        lambda url: GoogleGemini("gemini-3-pro", api_key="k", base_url=url),
        google_faults,
        _OPTIONS,
        {},
    ),
]


@pytest.mark.parametrize(("name", "make", "find_faults", "options", "expected"), _SENT)
async def test_options_have_the_names_of_the_api(
    server: Loopback,
    recorded: Recorded,
    name: str,
    make: Any,
    find_faults: FindFaults,
    options: ModelOptions,
    expected: Any,
) -> None:
    server.reply(LoopbackReply([recorded(name)]))
    provider = WithOptions(make(server.url), options)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    request = ModelRequest([UserMessage("hi")], output_schema=schema)
    _ = [event async for event in provider.stream(request)]
    sent = server.received[0].json
    assert expected.items() <= sent.items()
    assert find_faults(server.received[0]) == []
    assert "schema" in json.dumps(sent).lower()  # the answer's own format is still there
    if name == "anthropic":
        assert sent["output_config"]["effort"] == "low"
    if name == "google":
        shape = sent["generationConfig"]
        assert (shape["temperature"], shape["maxOutputTokens"], shape["stopSequences"]) == (0.5, 77, ["END"])
        assert shape["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "low"}
    await provider.aclose()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"temperature": 3}, "temperature must be a number from 0 to 2, got 3"),
        ({"temperature": "hot"}, "got 'hot'"),
        ({"temperature": True}, "got True"),
        ({"max_tokens": 0}, "max_tokens must be a whole number above 0, got 0"),
        ({"threads": 1.5}, "threads must be a whole number above 0, got 1.5"),
        ({"effort": "huge"}, "effort must be one of none, minimal"),
        ({"stop": ("",)}, "stop must be"),
        ({"stop": "END"}, "stop must be"),
    ],
)
def test_invalid_option_is_named(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ModelOptions(**fields)


@pytest.mark.parametrize(
    ("model", "accepted"),
    [
        ("claude-sonnet-4-20250514", True),
        ("claude-opus-4-6", True),
        ("claude-opus-4-7", False),
        ("claude-sonnet-5-5", False),
    ],
)
def test_newer_claude_has_no_temperature(model: str, accepted: bool) -> None:
    claude = AnthropicMessages(model, api_key="k")
    if accepted:
        assert claude.wire_options(ModelOptions(temperature=0)) == {"temperature": 0}
        return
    with pytest.raises(UsageError, match=f"{model} has no temperature"):
        claude.wire_options(ModelOptions(temperature=0))


def test_option_that_the_api_has_not_is_named() -> None:
    with pytest.raises(UsageError, match="claude-test has no effort 'minimal': use one of low"):
        provider_for("anthropic:claude-test", api_key="k", options=ModelOptions(effort="minimal"))
    with pytest.raises(UsageError, match="no stop texts; use openai-chat:gpt-test"):
        provider_for("openai:gpt-test", api_key="k", options=ModelOptions(stop=("x",)))


class Failing:
    """A provider that always fails, before or after its first text."""

    def __init__(self, fault: Any, *, started: bool = False, model: str = "big") -> None:
        self.model = model
        self.asked = 0
        self._fault = fault
        self._started = started

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        if self._started:
            yield TextDelta("half")
        raise ProviderError("no", fault=self._fault)


def _small(*lines: Any) -> Provider:
    return ScriptedProvider(*lines, model="small")


@pytest.mark.parametrize("fault", ["transient", "unavailable", "too_large"])
async def test_next_model_answers(fault: str) -> None:
    told: list[str] = []
    fallback = Fallback(Failing(fault), _small("hello"), report=told.append)
    result = await Agent(fallback).run("hi")
    assert isinstance(result, Done) and result.text == "hello"
    assert fallback.model == "small"
    assert told == ["big cannot answer (no); asking small"]


@pytest.mark.parametrize(("fault", "started"), [("auth", False), ("invalid", False), ("transient", True)])
async def test_other_failures_are_raised(fault: str, started: bool) -> None:
    small = _small("hello")
    fallback = Fallback(Failing(fault, started=started), small)
    with pytest.raises(ProviderError):
        _ = [event async for event in fallback.stream(ModelRequest([UserMessage("hi")]))]


async def test_failed_model_rests() -> None:
    big = Failing("transient")
    fallback = Fallback(big, _small("one", "two"))
    for _ in range(2):
        _ = [event async for event in fallback.stream(ModelRequest([UserMessage("hi")]))]
    assert big.asked == 1


async def test_too_small_model_is_asked_again() -> None:
    big = Failing("too_large")
    fallback = Fallback(big, _small("one", "two"))
    for _ in range(2):
        _ = [event async for event in fallback.stream(ModelRequest([UserMessage("hi")]))]
    assert big.asked == 2


async def test_all_failures_are_told() -> None:
    fallback = Fallback(Failing("too_large", model="a"), Failing("unavailable", model="b"))
    with pytest.raises(ProviderError, match="no model can answer: a: no; b: no") as caught:
        _ = [event async for event in fallback.stream(ModelRequest([UserMessage("hi")]))]
    assert caught.value.fault == "too_large"  # which compaction can help


async def test_answer_names_its_model_and_is_charged_at_its_price() -> None:
    said = AssistantMessage((Text("hello"),), usage=Usage(1_000_000, 0), model="small-2026")
    fallback = Fallback(Failing("unavailable"), _small(said))
    events = [event async for event in Fallback(Failing("unavailable"), _small(said)).stream(ModelRequest([]))]
    assert isinstance(events[-1], MessageDone) and events[-1].message.model == "small"
    limits = RunLimits(prices=Prices(10, 10), other_prices={"small": Prices(1, 1)})
    result = await Agent(fallback, limits=limits).run("hi")
    assert isinstance(result, Done) and result.cost == 1.0


async def test_fallback_keeps_the_contract(server: Loopback, recorded: Recorded) -> None:
    server.reply(
        LoopbackReply([recorded("openai_chat").replace(b"fs_read", b"check_add").replace(b"look", b"check_add")])
    )
    provider = Fallback(Failing("unavailable"), OpenAIChat("m", api_key="k", base_url=server.url))
    await check_provider(provider)
    await provider.aclose()


def test_options_are_given_to_each_model() -> None:
    with pytest.raises(UsageError, match="each model of a Fallback"):
        WithOptions(Fallback(_small("a"), _small("b")), ModelOptions(temperature=0))


def test_one_model_is_no_fallback() -> None:
    with pytest.raises(UsageError, match="at least two models"):
        Fallback("anthropic:claude-test")
