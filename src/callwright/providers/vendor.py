"""What the SDKs raise, as `ProviderError`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from callwright.core.errors import CallwrightError
from callwright.providers.base import ProviderError
from callwright.providers.faults import broken, connection_failure, status_failure

_NO_KEY = ("resolve authentication", "Missing credentials", "No API key", "Missing key inputs")
_NO_HEADERS: Mapping[str, str] = {}


@asynccontextmanager
async def vendor_errors(*, key: str) -> AsyncGenerator[None]:
    """Turn whatever an SDK raises into a `ProviderError`; `key` is the variable a missing key is looked for in.

    By name and shape instead of by class, so that no SDK is imported to find out that another one failed.
    """
    try:
        yield
    except CallwrightError:
        raise
    except Exception as error:  # SDKs let the HTTP library's own errors through, and JSON's
        raise _failure(error, key) from error


def _failure(error: Exception, key: str) -> ProviderError:
    anything = cast("Any", error)
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or _NO_HEADERS
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(status, int):
        return status_failure(status, body, headers, str(error))
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "APIError" in kinds and "APIConnectionError" not in kinds:
        return status_failure(200, body, headers, str(anything.message))
    if any(mark in str(error) for mark in _NO_KEY):
        return ProviderError(f"no key for the model API: set {key} or pass api_key=", fault="auth")
    if isinstance(error, ValueError) or "ProtocolError" in kinds:  # a line that is only half a JSON text
        return broken(f"{type(error).__name__}: {error}")
    if "HTTPError" in kinds or "APIConnectionError" in kinds or isinstance(error, OSError):
        return connection_failure(error)
    return ProviderError(f"the model API's client failed: {type(error).__name__}: {error}", fault="invalid")
