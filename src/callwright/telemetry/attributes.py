"""Attribute names: OpenTelemetry's semantic conventions for generative AI, and callwright's own.

They are copied here because the package that defines them marks all of them as unstable.
"""

from callwright.core.messages import Stop, Usage

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
MAX_TOKENS = "gen_ai.request.max_tokens"
OUTPUT_TYPE = "gen_ai.output.type"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
TOKEN_TYPE = "gen_ai.token.type"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
SYSTEM = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ERROR = "error.type"
EXCEPTION = "exception.type"

COST = "callwright.cost_usd"
ENDED = "callwright.ended"
OUTCOME = "callwright.outcome"
STARTED = "callwright.started"
ATTEMPTS = "callwright.attempts"
TURN = "callwright.turn.id"
TURNS = "callwright.turns"
QUESTION = "callwright.question.kind"
DELAY = "callwright.delay_seconds"

UNKNOWN = "_OTHER"
"""The conventions' value for anything outside their lists."""

FINISHES: dict[Stop, str] = {"end": "stop", "calls": "tool_call", "refusal": "content_filter"}
"""Stop reasons that the conventions name differently."""


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Return token counts as the conventions define them.

    Input tokens include tokens read from the cache and written to it, unlike in `Usage`. Counts of 0 are left out.
    """
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    return {name: count for name, count in counts.items() if count}
