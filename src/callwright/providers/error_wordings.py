"""What the vendors' error names and messages mean, where the status alone says something else."""

import re
from dataclasses import dataclass

from callwright.providers.base import ProviderFault

ERROR_NAMES: dict[str, ProviderFault] = {
    # Anthropic
    "overloaded_error": "transient",
    "rate_limit_error": "transient",
    "api_error": "transient",
    "timeout_error": "transient",
    "invalid_request_error": "invalid",
    "not_found_error": "invalid",
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "auth",
    "request_too_large": "too_large",
    # OpenAI and those who copy it
    "server_error": "transient",
    "rate_limit_exceeded": "transient",
    "insufficient_quota": "auth",
    "invalid_api_key": "auth",
    "context_length_exceeded": "too_large",
    "model_context_window_exceeded": "too_large",
    # Google
    "api_key_invalid": "auth",
    "unauthenticated": "auth",
    "permission_denied": "auth",
    "resource_exhausted": "transient",
    "unavailable": "transient",
    # Bedrock
    "throttlingexception": "transient",
    "serviceunavailableexception": "transient",
    "internalserverexception": "transient",
    "modelstreamerrorexception": "transient",
    "modeltimeoutexception": "transient",
    "modelnotreadyexception": "transient",
    "accessdeniedexception": "auth",
    "unrecognizedclientexception": "auth",
    "expiredtokenexception": "auth",
    # GitHub Copilot, Moonshot, Qwen, llama.cpp
    "model_max_prompt_tokens_exceeded": "too_large",
    "exceeded_current_quota_error": "auth",
    "invalidapikey": "auth",
    "exceed_context_size_error": "too_large",
}
"""The vendors' own error names, in lower case. They outrank the status, which is 200 inside a stream."""
DECISIVE_NAMES = frozenset(("throttlingexception",))
"""Names that outrank wordings: Bedrock throttles with "too many tokens"."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A phrase in error messages, and what it means."""

    vendor: str
    pattern: re.Pattern[str]
    fault: ProviderFault
    statuses: frozenset[int] = frozenset()
    """The statuses it counts for; all but 429 and server errors where empty."""

    def applies(self, status: int, text: str) -> bool:
        """Return whether an error with this status and message is meant."""
        counts = status in self.statuses if self.statuses else status < 500 and status != 429
        return counts and self.pattern.search(text) is not None


def _word(vendor: str, pattern: str, fault: ProviderFault, *statuses: int) -> Wording:
    return Wording(vendor, re.compile(pattern, re.IGNORECASE), fault, frozenset(statuses))


WORDINGS: tuple[Wording, ...] = (
    # waiting does not make such a request smaller
    _word("OpenAI, Groq", r"request too large for", "too_large", 200, 400, 413, 429),
    _word("GitHub", r"secondary rate limit|rate limit (?:exceeded|reached)", "transient", 200, 400, 403),
    _word("Google", r"api key (?:not valid|not found|expired)|api_key_invalid", "auth"),
    _word("xAI, OpenAI", r"incorrect api key|invalid api[- ]key", "auth"),
    _word("Bedrock", r"security token (?:included in the request )?is (?:invalid|expired)", "auth"),
    _word("Anthropic", r"credit balance is too low", "auth"),
    _word("Anthropic", r"prompt is too long|exceed context limit", "too_large"),
    _word("OpenAI", r"maximum context|context[ _](?:length|window|size|limit)", "too_large"),
    _word("Google", r"input token count .* exceeds|payload size exceeds", "too_large"),
    _word("Bedrock", r"input is too long|input tokens exceeded|exceeds the maximum (?:input )?length", "too_large"),
    _word("xAI", r"maximum prompt length", "too_large"),
    _word("Moonshot", r"exceeded (?:the )?model token limit", "too_large"),
    _word("GitHub Copilot", r"prompt token count of \d+ exceeds", "too_large"),
    _word("Qwen", r"range of input length should be|input length .* exceeds", "too_large"),
    _word("Zhipu", r"prompt exceeds max length", "too_large"),
    _word("Mistral", r"too large for model with \d+ maximum", "too_large"),
    _word("Groq, Cerebras", r"reduce the length of the messages", "too_large"),
    _word("vLLM", r"longer than the maximum model length|input prompt .* is too long", "too_large"),
    _word("Hugging Face", r"`inputs` (?:must have less than|tokens \+)", "too_large"),
    _word("Cohere", r"too many (?:input )?tokens", "too_large"),
    _word(
        "llama.cpp", r"larger than the max(?:imum)? context|exceeds the available context", "too_large", 200, 400, 500
    ),
    _word("any", r"request (?:entity )?too large", "too_large"),
)
"""In order: the first that applies counts."""
