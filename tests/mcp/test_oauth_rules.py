"""OAuth with a hostile server or page: addresses it may name, the state of the callback, damaged token files."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callwright.mcp.config import ServerConfig
from callwright.mcp.http import _GuardedTransport  # type: ignore[reportPrivateUsage] - there is no other seam
from callwright.mcp.oauth import TokenFile, _read_callback  # type: ignore[reportPrivateUsage] - as above
from callwright.system.addresses import is_public


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://127.0.0.1:1/", "http://192.0.0.192/x"),
        *("http://[::ffff:169.254.169.254]/", "http://2852039166/", "http://0x7f000001/", "http://127.1/", "http://0/"),
        *("http://localhost/", "http://[::]/", "http://0.0.0.0/", "http://[::1]/", "http://[64:ff9b::7f00:1]/"),
        *("http://[2002:7f00:1::]/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://[fe80::1]/"),
        *(
            "https://mcp.example.com@127.0.0.1/",
            "http://mcp.example.com:80@169.254.169.254/",
            "https://[::ffff:7f00:1]/",
        ),
    ],
)
async def test_server_cannot_name_private_addresses(url: str) -> None:
    transport = _GuardedTransport(ServerConfig("s", url="https://mcp.example.com/mcp"), signs_in=True)
    with pytest.raises(httpx2.ConnectError, match="not on the public network"):
        await transport.handle_async_request(httpx2.Request("GET", url))


async def test_name_that_leads_to_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", ("169.254.169.254", 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    transport = _GuardedTransport(ServerConfig("s", url="https://mcp.example.com/mcp"), signs_in=True)
    with pytest.raises(httpx2.ConnectError, match=r"169\.254\.169\.254, which is not on the public network"):
        await transport.handle_async_request(httpx2.Request("GET", "https://auth.example.com/"))


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        ("code=a&state=right", True),
        ("code=a", False),
        ("code=a&state=", False),
        ("code=a&state=wrong", False),
        ("code=a&state=wrong&state=right", False),
        ("error=access_denied", False),
        ("error=access_denied&state=wrong", False),
        ("error=access_denied&state=right", True),
    ],
)
async def test_callback_counts_only_with_the_state(query: str, accepted: bool) -> None:
    back: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    page = _read_callback(f"/callback?{query}", back, "right")
    assert back.done() is accepted and (page == "There is nothing here.") is not accepted
    if accepted:
        back.exception()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": 5}', '{"tokens": {"x": 1}}', "null", "\x00"])
async def test_damaged_token_file_means_signed_out(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    tokens = TokenFile(file)
    assert await tokens.get_tokens() is None and await tokens.get_client_info() is None


@pytest.mark.parametrize(
    "address",
    [
        *("192.0.0.1", "192.0.0.192", "192.0.0.9", "192.88.99.1", "198.18.0.1", "100.64.0.1", "0.1.2.3", "240.0.0.1"),
        *("169.254.169.254", "203.0.113.9", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "fec0::1", "2001:10::1"),
    ],
)
def test_special_ranges_are_not_public(address: str) -> None:
    import ipaddress

    assert not is_public(ipaddress.ip_address(address))
