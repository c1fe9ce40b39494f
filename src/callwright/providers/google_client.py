"""Google's client with a door for bodies that are encoded already.

The SDK builds every request anew from typed contents, which takes seconds for a long conversation, and hides the
answer it reads from. So the HTTP client it is given sends our body in place of the SDK's, and notes the answer.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.genai import Client
    from httpx2 import AsyncClient

_METHOD = ":streamGenerateContent"


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    body: bytes
    answer: Any = None
    """The HTTP response, once it has begun."""


current: ContextVar[Exchange | None] = ContextVar("current", default=None)
"""The exchange that the next request belongs to."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The SDK's client, and the HTTP client under it."""

    client: "Client"
    http: "AsyncClient"


def connect(options: Mapping[str, Any], base_url: str | None) -> Connection:
    """Make a client that leaves trying again to us."""
    from google.genai import Client, types
    from httpx2 import AsyncClient

    class Door(AsyncClient):
        def build_request(self, method: str, url: Any, **fields: Any) -> Any:
            exchange = current.get()
            if exchange is not None and _METHOD in str(url):
                fields["content"] = exchange.body
            return super().build_request(method, url, **fields)

    http = Door(event_hooks={"response": [_note_answer]})
    settings = types.HttpOptions(
        base_url=base_url, httpx_async_client=http, retry_options=types.HttpRetryOptions(attempts=1)
    )
    return Connection(Client(**options, http_options=settings), http)


async def disconnect(connection: Connection) -> None:
    """Close a client's connections."""
    await connection.client.aio.aclose()
    connection.client.close()
    await connection.http.aclose()


async def _note_answer(response: Any) -> None:
    exchange = current.get()
    if exchange is not None:
        exchange.answer = response
