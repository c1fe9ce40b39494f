"""Models by name, and what they cost."""

from pathlib import Path

import pytest

from callwright.agent import Agent, Done, RunLimits
from callwright.agent.run_limits import Spending
from callwright.app.models import choose_model
from callwright.app.settings import Settings
from callwright.core.errors import UsageError
from callwright.core.messages import Usage
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.clients import require
from callwright.providers.google import GoogleGemini
from callwright.providers.json_actions import AdaptiveTools, SchemaActions
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses
from callwright.providers.pricing import PRICES, Prices, cost_of, prices_for
from callwright.providers.resolve import provider_for


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("anthropic:claude-x", AnthropicMessages, "claude-x"),
        ("openai:gpt-x", OpenAIResponses, "gpt-x"),
        ("openai-chat:gpt-x", OpenAIChat, "gpt-x"),
        ("google:gemini-x", GoogleGemini, "gemini-x"),
        ("http://localhost:8080/v1#tiny", AdaptiveTools, "tiny"),
        ("https://host/v1#org/model:7b", AdaptiveTools, "org/model:7b"),
    ],
)
def test_a_name_finds_its_provider(name: str, kind: type, model: str) -> None:
    provider = provider_for(name, api_key="k")
    assert isinstance(provider, kind)
    assert provider.model == model


def test_tools_can_be_called_by_schema_everywhere() -> None:
    for name in ("anthropic:claude-x", "http://localhost/v1#tiny"):
        assert isinstance(provider_for(name, api_key="k", tool_mode="schema"), SchemaActions)
    assert isinstance(provider_for("http://localhost/v1#tiny", tool_mode="native"), OpenAIChat)


@pytest.mark.parametrize("name", ["claude-x", "anthropic:", "mistral:x", "", "http://localhost/v1", "http://h/v1#"])
def test_a_name_nobody_knows_is_told_apart(name: str) -> None:
    with pytest.raises(UsageError, match="write "):
        provider_for(name, api_key="k")


@pytest.mark.parametrize(
    ("name", "key"),
    [("anthropic:x", "ANTHROPIC_API_KEY"), ("openai:x", "OPENAI_API_KEY"), ("google:x", "GEMINI_API_KEY")],
)
def test_a_missing_key_is_named(name: str, key: str) -> None:
    with pytest.raises(UsageError, match=f"set {key} or pass api_key="):
        provider_for(name, environment={})
    assert provider_for(name, environment={key: "k"}).model == "x"


@pytest.mark.parametrize("package", ["no_such_package", "no_such.package"])
def test_a_missing_package_is_named(package: str) -> None:
    with pytest.raises(UsageError, match=r"pip install 'callwright\[vendor\]'"):
        require(package, "vendor")


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic:claude-sonnet-5", "claude-sonnet-5"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_dated_name_costs_what_the_model_costs(model: str, known: str) -> None:
    assert prices_for(model) is prices_for(known) is not None


@pytest.mark.parametrize(
    "model", ["claude-opus-9", "gpt-5-nano-next", "gemini-2.5-pro-tts", "qwen3:8b", "scripted", ""]
)
def test_what_an_unknown_model_costs_is_not_known(model: str) -> None:
    assert cost_of(model, Usage(1)) is None


def test_every_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    prices = prices_for("claude-opus-5")
    assert prices is not None
    assert prices.cost(Usage(million, million, million, million)) == pytest.approx(5 + 25 + 0.5 + 6.25)


def test_cached_tokens_without_a_price_of_their_own_cost_what_others_do() -> None:
    assert cost_of("gpt-5-pro", Usage(1_000, 0, 1_000, 1_000)) == pytest.approx(3_000 * 15 / 1_000_000)
    assert Prices(3, 15).cost(Usage(0, 0, 1_000_000, 1_000_000)) == pytest.approx(6)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(200_000, 1_000), 200_000 * 1.25 + 1_000 * 10),
        (Usage(200_001, 1_000), 200_001 * 2.5 + 1_000 * 15),
        (Usage(1, 1_000, 200_000), 2.5 + 1_000 * 15 + 200_000 * 0.25),  # what is cached makes it no shorter
    ],
)
def test_a_long_request_costs_more_from_its_first_token_on(usage: Usage, cost: float) -> None:
    assert cost_of("gemini-2.5-pro", usage) == pytest.approx(cost / 1_000_000)


def test_many_short_requests_are_not_one_long_one() -> None:
    spending = Spending(RunLimits(prices=prices_for("gemini-2.5-pro")))
    for _ in range(3):
        spending.add(Usage(100_000))
    assert spending.cost == pytest.approx(0.3 * 1.25)
    spending.add(Usage(400_000), whole_run=True)
    assert spending.cost == pytest.approx(0.7 * 1.25)
    spending.add(Usage(400_000))
    assert spending.cost == pytest.approx(0.7 * 1.25 + 0.4 * 2.5)


@pytest.mark.parametrize("prices", PRICES.values(), ids=PRICES)
def test_no_price_is_nothing(prices: Prices) -> None:
    told = [prices, prices.long or prices]
    assert all(price is None or price > 0 for p in told for price in (p.input, p.output, p.cache_read, p.cache_write))
    assert (prices.long is None) == (prices.above_tokens == 0)


@pytest.mark.parametrize("key", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_what_a_key_offers_by_itself_has_a_known_price(key: str) -> None:
    chosen = choose_model(Settings(()), environment={key: "x"})
    assert chosen is not None
    assert prices_for(chosen.name) is not None


async def test_a_script_is_a_model_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text('["hello"]', encoding="utf-8")
    result = await Agent(provider_for(f"script:{file}")).run("hi")
    assert isinstance(result, Done)
    assert result.text == "hello"


@pytest.mark.parametrize("text", [None, "[", "{}"])
def test_a_script_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "lines.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"lines\.json"):
        provider_for(f"script:{file}")
