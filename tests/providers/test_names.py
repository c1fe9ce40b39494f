"""Models by name, and what they cost."""

import pytest

from toolwright.core.errors import UsageError
from toolwright.core.message import Usage
from toolwright.providers.anthropic import AnthropicMessages
from toolwright.providers.clients import require
from toolwright.providers.google import GoogleGemini
from toolwright.providers.names import provider_for
from toolwright.providers.openai_chat import OpenAIChat
from toolwright.providers.openai_responses import OpenAIResponses
from toolwright.providers.prices import cost_of, prices_for
from toolwright.providers.schema_mode import AdaptiveTools, SchemaActions


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
    with pytest.raises(UsageError, match=r"pip install 'toolwright\[vendor\]'"):
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


def test_an_unknown_model_has_no_price() -> None:
    assert cost_of("claude-opus-9", Usage(1)) is None
    assert cost_of("gpt-5-nano", Usage(1)) is None


def test_every_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    assert cost_of("claude-opus-5", Usage(million, million, million, million)) == pytest.approx(5 + 25 + 0.5 + 6.25)
