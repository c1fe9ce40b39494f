"""Questions to a server about itself: bounded in time and size, and without credentials."""

import asyncio
from typing import Any

from callwright.providers.encoding import parse_object

_SECONDS = 2.0
_MAX_BYTES = 1 << 20


async def fetch_json(url: str) -> dict[str, Any] | None:
    """Return the JSON object at an address; None for anything else, also for a server that does not answer in time.

    No key is sent: the address need not belong to the API that the key is for.
    """
    from httpx2 import AsyncClient

    try:
        async with (
            asyncio.timeout(_SECONDS),
            AsyncClient(timeout=_SECONDS) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as response,
        ):
            text = b""
            async for piece in response.aiter_bytes():
                text += piece
                if len(text) > _MAX_BYTES:
                    return None
            return parse_object(text) if response.status_code == 200 else None
    except Exception:  # noqa: BLE001 - other servers have no such page and answer with anything
        return None
