"""Translation of vendor failures (HTTP statuses, error codes, SDK exceptions) into `ProviderError`."""

import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import Any, cast

from callwright.core.errors import CallwrightError, UsageError
from callwright.core.json import read_object
from callwright.providers.base import ProviderError, ProviderFault
from callwright.providers.encoding import parse_object

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


_DECISIVE = frozenset(("too_large", "auth"))  # named so under misleading statuses, such as 429 for no credit
_BY_STATUS: dict[int, ProviderFault] = {
    401: "auth",
    402: "auth",
    403: "auth",
    408: "transient",
    409: "transient",
    413: "too_large",
    425: "transient",
    429: "transient",
}
_RETRY_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_LONGEST_MESSAGE = 600
_MESSAGE_KEYS = ("message", "Message", "detail", "error", "errors")
_ANSWER_KEYS = ("choices", "content", "output", "candidates")
_NAME_KEYS = ("code", "type", "status", "param")
_PAGE = re.compile(r"\s*<(?:!doctype|html|head)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


def status_failure(status: int, body: object, headers: Mapping[str, str], message: str = "") -> ProviderError:
    """Build the error for a response with an error in it."""
    error = _error_of(body)
    own = "" if error else _read_title(message)  # the SDK's message repeats the whole body
    messages = _find_messages(error) or [("", own)]
    words = "; ".join(text for _, text in messages)[:_LONGEST_MESSAGE]
    shown = "; ".join(f"{place}: {text}" if place else text for place, text in messages)
    detail = (shown or _list_names(error) or f"status {status}")[:_LONGEST_MESSAGE]
    fault = _fault(status, error, words)
    wait = (retry_after(headers) or _delay_in(error)) if fault == "transient" else None
    prefix = f"the model API answered {status}" if status >= 300 else "the model API broke off the response"
    return ProviderError(f"{prefix}: {detail}", fault=fault, retry_after=wait)


def _find_messages(value: object) -> list[tuple[str, str]]:
    """Return what an error says, each message with the field it is about.

    Nothing else of it: FastAPI repeats the request in its `detail`, and a failed response repeats the instructions.
    """
    if isinstance(value, str):
        return [("", _read_title(value))] if value else []
    if isinstance(value, list):
        return [each for part in cast("list[object]", value) for each in _find_messages(part)]
    if not isinstance(value, Mapping):
        return []
    error = cast("Mapping[str, Any]", value)
    if isinstance(error.get("msg"), str):
        place = error.get("loc")
        steps = cast("list[object]", place) if isinstance(place, list) else []
        return [(".".join(str(step) for step in steps), error["msg"])]
    for key in _MESSAGE_KEYS:
        if found := _find_messages(error.get(key)):
            return found
    return []


def find_body_error(body: bytes) -> object | None:
    """Return the error that is a whole body, if it is one: JSON that says something and has no answer, or bare text."""
    # in an object, because a text or a list is no object
    found: object = parse_object(body) or (parse_object(b'{"bare":%b}' % body) or {}).get("bare")
    # lines of JSON or of events are an answer that broke off, and Bedrock's events have zeros in them
    if found is None and not body.startswith((b"{", b"[")) and b"data:" not in body and b"\0" not in body:
        found = body.decode(errors="replace").strip()
    says = read_object(found).get("error") or _find_messages(found)
    return found if says and not _has_answer(found) else None


def _has_answer(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_answer, cast("list[object]", value)))
    return any(key in read_object(value) for key in _ANSWER_KEYS)


def _list_names(error: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {error[key]}" for key in _NAME_KEYS if isinstance(error.get(key), (str, int)))


def _read_title(text: str) -> str:
    """Return the title of a web page, such as that of a proxy; any other text as it is."""
    if not _PAGE.match(text):
        return text
    title = _TITLE.search(text)
    return f"a web page{f' with the title {title[1].strip()!r}' if title else ''}"


def broken_stream(why: object) -> ProviderError:
    """Build the error for a stream that ended before its message was complete."""
    return ProviderError(f"the stream broke off: {why}"[:_LONGEST_MESSAGE], fault="transient")


def context_is_full(reason: str) -> ProviderError:
    """Build the error for an answer that ended because the model's context was full."""
    return ProviderError(f"the model's context is full: it stopped with {reason}", fault="too_large")


def connection_failure(error: BaseException) -> ProviderError:
    """Build the error for an exception of the HTTP library, or of a vendor's wrapper around one."""
    names = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    detail = next((str(cause) for cause in reversed(_causes(error)) if str(cause)), type(error).__name__)
    if "ConnectError" in names or "ConnectionRefusedError" in names or "gaierror" in names:
        return ProviderError(
            f"the model API cannot be reached: {detail}; check its address and that the server runs",
            fault="unavailable",
        )
    if any("Timeout" in name for name in names):
        return ProviderError(f"the model API did not answer in time: {detail}", fault="transient")
    return ProviderError(f"the connection to the model API broke: {detail}", fault="transient")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a server asks for."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return None


def _fault(status: int, error: Mapping[str, Any], words: str) -> ProviderFault:
    names = [name for name in _names_in(error) if name in ERROR_NAMES]
    for name in names:
        if name in DECISIVE_NAMES:
            return ERROR_NAMES[name]
    named: list[ProviderFault] = [ERROR_NAMES[name] for name in names]
    for fault in named:
        if fault in _DECISIVE:
            return fault
    for wording in WORDINGS:
        if wording.applies(status, words):
            return wording.fault
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:  # a redirect that the client does not follow
        return "unavailable"
    if status >= 500:
        return "transient"
    return "invalid" if status >= 400 else _fault_inside(error, named, words)


def _names_in(error: Mapping[str, Any]) -> list[str]:
    """Return the error's names in lower case; Google puts the reason among the details."""
    found: list[object] = [error.get("code"), error.get("type"), error.get("status")]
    found += [detail.get("reason") for detail in _details_of(error)]
    return [name.lower() for name in found if isinstance(name, str)]


def _details_of(error: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = error.get("details")
    return [read_object(detail) for detail in cast("list[object]", details)] if isinstance(details, list) else []


def _fault_inside(error: Mapping[str, Any], named: list[ProviderFault], words: str) -> ProviderFault:
    """Classify an error inside a stream whose status was 200."""
    code = error.get("code")
    if named:
        return named[0]
    if isinstance(code, int) and code >= 400:
        return _fault(code, error, words)
    return "invalid" if isinstance(code, str) and code.startswith(("invalid", "image")) else "transient"


def _error_of(body: object) -> Mapping[str, Any]:
    """Find the error in a body: most vendors nest it, Google puts it in a list, some servers send it bare."""
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if not isinstance(body, Mapping):
        return {"message": body} if isinstance(body, str) else {}
    error = cast("Mapping[str, Any]", body)
    nested = error.get("error")
    if isinstance(nested, Mapping):
        return cast("Mapping[str, Any]", nested)
    return {"message": nested} if isinstance(nested, str) else error


def _delay_in(error: Mapping[str, Any]) -> float | None:
    """Return the retry delay that Google puts in the body."""
    delays = (_RETRY_DELAY.fullmatch(str(detail.get("retryDelay"))) for detail in _details_of(error))
    return next((_number(found[1]) for found in delays if found), None)


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _number(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if isfinite(seconds) else None


_NO_KEY = ("resolve authentication", "Missing credentials", "No API key", "Missing key inputs")
_NO_HEADERS: Mapping[str, str] = {}


@asynccontextmanager
async def vendor_errors(*, key: str) -> AsyncGenerator[None]:
    """Turn any exception of an SDK into a `ProviderError`; `key` is the environment variable to name for a missing key.

    Exceptions are recognised by name and attributes, so that no SDK is imported to classify another one's error.
    """
    try:
        yield
    except CallwrightError:
        raise
    except Exception as error:  # SDKs let the HTTP library's own errors through, and JSON's
        raise _failure(error, key) from error


@contextmanager
def reading_errors() -> Generator[None]:
    """Turn what a response of an unknown form causes into a `ProviderError`: a field is missing, or of another type."""
    try:
        yield
    except ProviderError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError, UsageError) as error:
        raise broken_stream(f"it has an unexpected form ({type(error).__name__}: {error})") from error


def _failure(error: Exception, key: str) -> ProviderError:
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or _NO_HEADERS
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(status, int):
        failure = status_failure(status, body, headers, str(error))
        if failure.fault == "auth" and key not in str(failure):
            return ProviderError(f"{failure}; check {key}", fault="auth")
        return failure
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "APIError" in kinds and "APIConnectionError" not in kinds:
        return status_failure(200, body, headers, str(cast("Any", error).message))
    if any(mark in str(error) for mark in _NO_KEY):
        return ProviderError(f"no key for the model API: set {key}, or make the provider with api_key=…", fault="auth")
    if isinstance(error, ValueError) or "ProtocolError" in kinds:  # a line with only half of its JSON
        return broken_stream(f"{type(error).__name__}: {error}")
    if "HTTPError" in kinds or "APIConnectionError" in kinds or isinstance(error, OSError):
        return connection_failure(error)
    return ProviderError(f"the model API's client failed: {type(error).__name__}: {error}", fault="invalid")
