"""Model APIs: how each of them is told about tools, and how each of them is spoken to."""

from toolwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from toolwright.providers.anthropic import AnthropicMessages as AnthropicMessages
    from toolwright.providers.base import CallDelta as CallDelta
    from toolwright.providers.base import MessageDone as MessageDone
    from toolwright.providers.base import ModelEvent as ModelEvent
    from toolwright.providers.base import ModelRequest as ModelRequest
    from toolwright.providers.base import Provider as Provider
    from toolwright.providers.base import ProviderError as ProviderError
    from toolwright.providers.base import TextDelta as TextDelta
    from toolwright.providers.base import ThinkingDelta as ThinkingDelta
    from toolwright.providers.google import GoogleGemini as GoogleGemini
    from toolwright.providers.names import ToolMode as ToolMode
    from toolwright.providers.names import provider_for as provider_for
    from toolwright.providers.openai_chat import OpenAIChat as OpenAIChat
    from toolwright.providers.openai_responses import OpenAIResponses as OpenAIResponses
    from toolwright.providers.overhear import Overheard as Overheard
    from toolwright.providers.prices import Prices as Prices
    from toolwright.providers.prices import cost_of as cost_of
    from toolwright.providers.prices import prices_for as prices_for
    from toolwright.providers.schema_mode import AdaptiveTools as AdaptiveTools
    from toolwright.providers.schema_mode import SchemaActions as SchemaActions

__all__ = [
    "AdaptiveTools",
    "AnthropicMessages",
    "CallDelta",
    "GoogleGemini",
    "MessageDone",
    "ModelEvent",
    "ModelRequest",
    "OpenAIChat",
    "OpenAIResponses",
    "Overheard",
    "Prices",
    "Provider",
    "ProviderError",
    "SchemaActions",
    "TextDelta",
    "ThinkingDelta",
    "ToolMode",
    "cost_of",
    "prices_for",
    "provider_for",
]

_HOMES = {
    "anthropic": "AnthropicMessages",
    "base": "CallDelta MessageDone ModelEvent ModelRequest Provider ProviderError TextDelta ThinkingDelta",
    "google": "GoogleGemini",
    "names": "ToolMode provider_for",
    "openai_chat": "OpenAIChat",
    "openai_responses": "OpenAIResponses",
    "overhear": "Overheard",
    "prices": "Prices cost_of prices_for",
    "schema_mode": "AdaptiveTools SchemaActions",
}

__getattr__ = loader(__name__, _HOMES)
