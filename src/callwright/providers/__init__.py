"""Model APIs: their tool formats, requests, response streams and prices."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.providers.anthropic import AnthropicMessages as AnthropicMessages
    from callwright.providers.base import (
        CallDelta as CallDelta,
        MessageDone as MessageDone,
        ModelEvent as ModelEvent,
        ModelRequest as ModelRequest,
        Provider as Provider,
        ProviderError as ProviderError,
        TextDelta as TextDelta,
        ThinkingDelta as ThinkingDelta,
    )
    from callwright.providers.fallback import Fallback as Fallback
    from callwright.providers.google import GoogleGemini as GoogleGemini
    from callwright.providers.json_actions import AdaptiveTools as AdaptiveTools, SchemaActions as SchemaActions
    from callwright.providers.openai.chat import OpenAIChat as OpenAIChat
    from callwright.providers.openai.responses import OpenAIResponses as OpenAIResponses
    from callwright.providers.options import ModelOptions as ModelOptions, WithOptions as WithOptions
    from callwright.providers.pricing import Prices as Prices, cost_of as cost_of, prices_for as prices_for
    from callwright.providers.resolve import ToolMode as ToolMode, provider_for as provider_for
    from callwright.providers.streaming import TappedProvider as TappedProvider
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "anthropic": "AnthropicMessages",
            "base": "CallDelta MessageDone ModelEvent ModelRequest Provider ProviderError TextDelta ThinkingDelta",
            "fallback": "Fallback",
            "google": "GoogleGemini",
            "json_actions": "AdaptiveTools SchemaActions",
            "openai.chat": "OpenAIChat",
            "openai.responses": "OpenAIResponses",
            "options": "ModelOptions WithOptions",
            "pricing": "Prices cost_of prices_for",
            "resolve": "ToolMode provider_for",
            "streaming": "TappedProvider",
        },
    )
