"""Providers by model name: `anthropic:…`, `openai:…`, `google:…`, a server address and a model on it, or `script:…`."""

from collections.abc import Mapping
from os import environ
from typing import TYPE_CHECKING, Literal, TypeAlias

from callwright.core.errors import UsageError, describe_exception
from callwright.providers.base import Provider

if TYPE_CHECKING:
    from callwright.providers.options import ModelOptions

ToolMode: TypeAlias = Literal["auto", "native", "schema"]
"""How tools are called: by what the server supports, by the API's tool calling, or by one JSON action."""

_FORMS = (
    "anthropic:NAME, openai:NAME, openai-chat:NAME, google:NAME, http://HOST/v1#NAME, script:FILE, "
    "or in the command local:FILE.gguf"
)
_FAMILIES = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google"}
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}


def provider_for(
    model: str,
    *,
    api_key: str | None = None,
    tool_mode: ToolMode = "auto",
    options: "ModelOptions | None" = None,
    environment: Mapping[str, str] = environ,
) -> Provider:
    """Create the provider for a model name.

    Args:
        model: A vendor and a name, an address and a name, or a script file.
        api_key: Used instead of the vendor's environment variable.
        tool_mode: How tools are called; `auto` asks the server.
        options: Temperature, effort and other options of every request.
        environment: Where the keys are looked up.

    Raises:
        UsageError: The name is malformed, a package is not installed or a key is not set; the message says which.
    """
    if model.startswith(("http://", "https://")):
        return _provider_at_url(model, api_key, tool_mode, options)
    vendor, _, name = model.partition(":")
    if vendor == "script" and name:
        return _load_script(name)
    if vendor not in _KEYS or not name:
        raise UsageError(f"unknown model {model!r}: {_suggest(model)}write {_FORMS}")
    provider = _vendor_provider(vendor, name, api_key)  # first: a missing package is reported before a missing key
    if api_key is None and not any(environment.get(key) for key in _KEYS[vendor]):
        instead = f"or in a program write provider_for({model!r}, api_key=…)"
        raise UsageError(f"the model {model!r} needs a key: set {_KEYS[vendor][0]}, {instead}")
    provider = _with_options(provider, options)
    return _with_schema_actions(provider) if tool_mode == "schema" else provider


def _suggest(model: str) -> str:
    """Name the vendor of a well-known model that was written without one, or as `vendor/name`."""
    name = model.rpartition("/")[2]
    vendor = next((vendor for start, vendor in _FAMILIES.items() if name.startswith(start)), "")
    return f"did you mean {vendor}:{name}? If not, " if vendor else ""


def _vendor_provider(vendor: str, name: str, api_key: str | None) -> Provider:
    if vendor == "anthropic":
        from callwright.providers.anthropic import AnthropicMessages

        return AnthropicMessages(name, api_key=api_key)
    if vendor == "openai":
        from callwright.providers.openai.responses import OpenAIResponses

        return OpenAIResponses(name, api_key=api_key)
    if vendor == "openai-chat":
        from callwright.providers.openai.chat import OpenAIChat

        return OpenAIChat(name, api_key=api_key, strict=True)
    from callwright.providers.google import GoogleGemini

    return GoogleGemini(name, api_key=api_key)


def _load_script(file: str) -> Provider:
    from callwright.providers.scripted import ScriptedProvider

    try:
        return ScriptedProvider.from_file(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"the model 'script:{file}' cannot be read: {describe_exception(error)}") from None


def _with_options(provider: Provider, options: "ModelOptions | None") -> Provider:
    from callwright.providers.options import ModelOptions, WithOptions

    return provider if options is None or options == ModelOptions() else WithOptions(provider, options)


def _provider_at_url(model: str, api_key: str | None, tool_mode: ToolMode, options: "ModelOptions | None") -> Provider:
    from callwright.providers.json_actions import AdaptiveTools
    from callwright.providers.openai.chat import OpenAIChat

    url, _, name = model.partition("#")
    if not name:
        raise UsageError(f"the address {model!r} names no model: write {url}#NAME")
    chat = OpenAIChat(name, api_key=api_key, base_url=url)
    provider = _with_options(chat, options)
    if tool_mode == "schema":
        return _with_schema_actions(provider)
    return AdaptiveTools(provider, chat.calls_tools) if tool_mode == "auto" else provider


def _with_schema_actions(provider: Provider) -> Provider:
    from callwright.providers.json_actions import SchemaActions

    return SchemaActions(provider)
