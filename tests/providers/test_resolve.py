"""Providers by model name."""

from pathlib import Path

import pytest

from callwright.agent import Agent, Done
from callwright.core.errors import UsageError
from callwright.providers.anthropic import AnthropicMessages
from callwright.providers.clients import require
from callwright.providers.google import GoogleGemini
from callwright.providers.json_actions import AdaptiveTools, SchemaActions
from callwright.providers.openai.chat import OpenAIChat
from callwright.providers.openai.responses import OpenAIResponses
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
def test_name_selects_provider(name: str, kind: type, model: str) -> None:
    provider = provider_for(name, api_key="k")
    assert isinstance(provider, kind)
    assert provider.model == model


def test_schema_mode_works_for_every_provider() -> None:
    for name in ("anthropic:claude-x", "http://localhost/v1#tiny"):
        assert isinstance(provider_for(name, api_key="k", tool_mode="schema"), SchemaActions)
    assert isinstance(provider_for("http://localhost/v1#tiny", tool_mode="native"), OpenAIChat)


@pytest.mark.parametrize("name", ["claude-x", "anthropic:", "mistral:x", "", "http://localhost/v1", "http://h/v1#"])
def test_unknown_model_name_is_rejected(name: str) -> None:
    with pytest.raises(UsageError, match="write "):
        provider_for(name, api_key="k")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("anthropic/claude-x", "anthropic:claude-x"),
        ("gpt-x", "openai:gpt-x"),
        ("models/gemini-x", "google:gemini-x"),
    ],
)
def test_model_without_its_vendor_is_suggested_with_it(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"did you mean {meant}\? If not, write anthropic:NAME"):
        provider_for(name, api_key="k")


@pytest.mark.parametrize(
    ("name", "key"),
    [("anthropic:x", "ANTHROPIC_API_KEY"), ("openai:x", "OPENAI_API_KEY"), ("google:x", "GEMINI_API_KEY")],
)
def test_missing_key_is_named(name: str, key: str) -> None:
    with pytest.raises(UsageError, match=rf"set {key}, or in a program write provider_for\('{name}', api_key=…\)"):
        provider_for(name, environment={})
    assert provider_for(name, environment={key: "k"}).model == "x"


@pytest.mark.parametrize("package", ["no_such_package", "no_such.package"])
def test_missing_package_is_named(package: str) -> None:
    with pytest.raises(UsageError, match=r"pip install 'callwright\[vendor\]'"):
        require(package, "vendor")


async def test_script_file_works_as_model(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text('["hello"]', encoding="utf-8")
    result = await Agent(provider_for(f"script:{file}")).run("hi")
    assert isinstance(result, Done)
    assert result.text == "hello"


@pytest.mark.parametrize("text", [None, "[", "{}"])
def test_unreadable_script_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "lines.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"lines\.json"):
        provider_for(f"script:{file}")
