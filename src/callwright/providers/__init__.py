"""Model APIs: how each of them is told about tools, and how each of them is spoken to."""

from callwright.core.lazy import loader

TYPE_CHECKING = False  # read as true by type checkers; typing itself would cost the import more than this file
if TYPE_CHECKING:
    from callwright.providers.anthropic import AnthropicMessages as AnthropicMessages
    from callwright.providers.base import CallDelta as CallDelta
    from callwright.providers.base import MessageDone as MessageDone
    from callwright.providers.base import ModelEvent as ModelEvent
    from callwright.providers.base import ModelRequest as ModelRequest
    from callwright.providers.base import Provider as Provider
    from callwright.providers.base import ProviderError as ProviderError
    from callwright.providers.base import TextDelta as TextDelta
    from callwright.providers.base import ThinkingDelta as ThinkingDelta
    from callwright.providers.google import GoogleGemini as GoogleGemini
    from callwright.providers.names import ToolMode as ToolMode
    from callwright.providers.names import provider_for as provider_for
    from callwright.providers.openai_chat import OpenAIChat as OpenAIChat
    from callwright.providers.openai_responses import OpenAIResponses as OpenAIResponses
    from callwright.providers.overhear import Overheard as Overheard
    from callwright.providers.prices import Prices as Prices
    from callwright.providers.prices import cost_of as cost_of
    from callwright.providers.prices import prices_for as prices_for
    from callwright.providers.schema_mode import AdaptiveTools as AdaptiveTools
    from callwright.providers.schema_mode import SchemaActions as SchemaActions

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
