"""Error wordings of the vendors: what each means, whatever its status."""

import pickle
from copy import copy, deepcopy
from typing import Any

import pytest

from callwright.agent.compaction import BadSummary
from callwright.core.calls import Completed, ToolCall
from callwright.core.content import Output
from callwright.core.errors import CallwrightError
from callwright.core.messages import Usage
from callwright.executor.turn_context import TurnCancelled
from callwright.providers.base import ProviderError
from callwright.providers.errors import WORDINGS, status_failure
from callwright.sessions.base import SessionDamaged

_TPM = "Request too large for gpt-6 in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000."
_USED = "Rate limit reached for gpt-6 on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 8s."
SAID: list[tuple[str, int, dict[str, Any] | str, str]] = [
    ("anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum", "too_large"),
    ("anthropic", 400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", "too_large"),
    ("anthropic", 400, "Your credit balance is too low to access the Anthropic API.", "auth"),
    ("anthropic", 529, {"type": "overloaded_error", "message": "Overloaded"}, "transient"),
    ("anthropic in a stream", 200, {"type": "overloaded_error", "message": "Overloaded"}, "transient"),
    ("openai", 400, {"code": "context_length_exceeded", "message": "too long"}, "too_large"),
    ("openai", 400, "Your input exceeds the context window of this model.", "too_large"),
    ("openai", 429, {"code": "rate_limit_exceeded", "type": "tokens", "message": _TPM}, "too_large"),
    ("openai", 429, {"code": "rate_limit_exceeded", "type": "tokens", "message": _USED}, "transient"),
    ("openai", 429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "auth"),
    ("openai", 401, {"code": "invalid_api_key", "message": "Incorrect API key provided: sk-x"}, "auth"),
    ("openai", 400, "Invalid schema for function 'look'", "invalid"),
    ("google", 400, "API key not valid. Please pass a valid API key.", "auth"),
    ("google", 400, "API key expired. Please renew the API key.", "auth"),
    (
        "google",
        400,
        {"message": "bad", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]},
        "auth",
    ),
    ("google", 400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "too_large"),
    ("google", 503, "The model is overloaded. Please try again later.", "transient"),
    ("google", 429, "You exceeded your current quota, please check your plan and billing details.", "transient"),
    ("bedrock", 400, "Input is too long for requested model.", "too_large"),
    ("bedrock", 400, "The model returned the following errors: Input is too long for requested model.", "too_large"),
    ("bedrock", 403, "The security token included in the request is invalid.", "auth"),
    ("bedrock", 400, "The security token included in the request is expired", "auth"),
    ("bedrock", 429, "Too many tokens, please wait before trying again.", "transient"),
    (
        "bedrock in a stream",
        200,
        {"type": "throttlingException", "message": "Too many tokens, wait."},
        "transient",
    ),
    ("bedrock in a stream", 200, {"type": "validationException", "message": "Input is too long"}, "too_large"),
    ("bedrock in a stream", 200, {"type": "modelStreamErrorException", "message": "broken"}, "transient"),
    ("xai", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", "too_large"),
    ("xai", 400, "Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai.", "auth"),
    ("moonshot", 400, "Invalid request: Your request exceeded model token limit: 262144", "too_large"),
    ("moonshot", 429, {"type": "exceeded_current_quota_error", "message": "account suspended"}, "auth"),
    ("copilot", 400, {"code": "model_max_prompt_tokens_exceeded", "message": "too big"}, "too_large"),
    ("copilot", 400, "prompt token count of 130000 exceeds the limit of 128000", "too_large"),
    ("github", 403, "You have exceeded a secondary rate limit. Please wait a few minutes.", "transient"),
    (
        "qwen",
        400,
        "<400> InternalError.Algo: Range of input length should be [1, 129024]",
        "too_large",
    ),
    ("zhipu", 400, {"code": "1261", "message": "Prompt exceeds max length"}, "too_large"),
    (
        "mistral",
        400,
        "Prompt has 70000 tokens, too large for model with 32768 maximum context length",
        "too_large",
    ),
    ("groq", 413, {"code": "rate_limit_exceeded", "message": _TPM}, "too_large"),
    ("groq", 400, "Please reduce the length of the messages or completion.", "too_large"),
    ("deepseek", 402, "Insufficient Balance", "auth"),
    ("openrouter", 400, "This endpoint's maximum context length is 131072 tokens.", "too_large"),
    ("minimax", 400, "invalid params, context window exceeds limit (2013)", "too_large"),
    ("vllm", 400, "The decoder prompt (length 9) is longer than the maximum model length of 8", "too_large"),
    ("vllm", 400, "You passed 9 input tokens. However, the model's context length is only 8 tokens", "too_large"),
    ("hugging face", 422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", "too_large"),
    ("cohere", 400, "too many tokens: total number of tokens in the prompt cannot exceed 4081", "too_large"),
    ("llama.cpp", 400, {"type": "exceed_context_size_error", "message": "x"}, "too_large"),
    ("llama.cpp", 500, "input is larger than the max context size. skipping", "too_large"),
    ("lm studio", 400, "the model is loaded with context length of only 4096 tokens", "too_large"),
    ("a proxy", 413, "Request Entity Too Large", "too_large"),
]


@pytest.mark.parametrize(("vendor", "status", "error", "fault"), SAID)
def test_error_means(vendor: str, status: int, error: dict[str, Any] | str, fault: str) -> None:
    body = {"error": error if isinstance(error, dict) else {"message": error}}
    assert status_failure(status, body, {}).fault == fault, vendor


def test_every_wording_has_an_example() -> None:
    texts = [(status, str(error["message"] if isinstance(error, dict) else error)) for _, status, error, _ in SAID]
    unused = [wording.vendor for wording in WORDINGS if not any(wording.applies(*text) for text in texts)]
    assert unused == []


_ECHO = {"role": "user", "content": "Why does it say 'context length exceeded'? The password is hunter2."}
_REFUSED = [{"type": "missing", "loc": ["body", "context_length"], "msg": "Field required", "input": _ECHO}]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (422, {"detail": _REFUSED}, "answered 422: body.context_length: Field required"),
        (
            422,
            {"object": "error", "message": {"detail": _REFUSED}},
            "answered 422: body.context_length: Field required",
        ),
        (422, {"errors": [{"message": "no seed", "input": _ECHO}]}, "answered 422: no seed"),
        (400, {"error": {"code": 7, "param": "context_length", **_ECHO}}, "answered 400: code 7, param context_length"),
        (400, {"input": _ECHO}, "answered 400: status 400"),
    ],
)
def test_request_in_an_error_is_ignored(status: int, body: dict[str, Any], said: str) -> None:
    failure = status_failure(status, body, {}, f"Error code: {status} - {body}")
    assert (failure.fault, str(failure)) == ("invalid", f"the model API {said}")


def test_failed_response_without_an_error_is_transient() -> None:
    body = {"object": "response", "status": "failed", "error": None, "instructions": "Keep the context window small."}
    failure = status_failure(200, body, {})
    assert (failure.fault, str(failure)) == ("transient", "the model API broke off the response: status failed")


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("busy", fault="transient", retry_after=3.0),
        BadSummary("none", Usage(1, 2)),
        SessionDamaged("s", {3: "half a record"}, ()),
        TurnCancelled([Completed(ToolCall("1", "look"), Output("seen"))]),
    ],
)
def test_error_can_be_pickled_and_copied(error: CallwrightError) -> None:
    for back in (pickle.loads(pickle.dumps(error)), copy(error), deepcopy(error)):
        assert type(back) is type(error) and str(back) == str(error) and vars(back) == vars(error)
