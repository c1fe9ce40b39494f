"""Sign-in: the callback of the browser, and the storage of tokens."""

import asyncio
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthToken
from tests.waiting import LONG_SECONDS

from callwright.mcp import ServerConfig, TokenFile
from callwright.mcp.oauth import SignIn, Tokens


def a_sign_in() -> tuple[SignIn, str]:
    sign_in = SignIn(ServerConfig("x", url="http://127.0.0.1:9/mcp"), Tokens(), lambda: None)
    uris = sign_in.auth.context.client_metadata.redirect_uris
    assert uris is not None
    return sign_in, str(uris[0])


async def visit(url: str) -> int:
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as browser:
        return (await browser.get(url)).status_code


async def visit_soon(url: str) -> int:
    """Visit an address whose port may not be open yet."""
    while True:
        with suppress(httpx2.ConnectError):
            return await visit(url)
        await asyncio.sleep(0.01)


async def test_code_is_received_on_callback_path_only():
    sign_in, address = a_sign_in()
    assert urlsplit(address).hostname == "127.0.0.1"
    await sign_in._request_sign_in("https://auth.example/authorize?state=s%201")  # pyright: ignore[reportPrivateUsage] - the SDK calls it
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await visit_soon(address.replace("/callback", "/favicon.ico"))
    await visit(f"{address}?nothing=1")
    assert not waiting.done()
    await visit(f"{address}?code=abc&state=s%201")
    result = await waiting
    assert (result.code, result.state) == ("abc", "s 1")
    sign_in.close()


async def test_refused_sign_in_reports_reason():
    sign_in, address = a_sign_in()
    await sign_in._request_sign_in("https://auth.example/authorize?state=s%201")  # pyright: ignore[reportPrivateUsage] - the SDK calls it
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await visit_soon(f"{address}?error=access_denied<script>&state=s%201")
    with pytest.raises(OAuthFlowError, match="access_deniedscript"):
        await waiting
    sign_in.close()


async def test_port_is_closed_without_sign_in():
    sign_in, address = a_sign_in()
    with pytest.raises(httpx2.ConnectError):
        await visit(address)
    assert parse_qs(urlsplit(address).query) == {}
    sign_in.close()


async def test_token_file_is_private(tmp_path: Path):
    file = tmp_path / "tokens" / "x.json"
    await TokenFile(file).set_tokens(OAuthToken(access_token="secret", token_type="Bearer"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = await TokenFile(file).get_tokens()
    assert kept is not None
    assert kept.access_token == "secret"
    assert list(file.parent.iterdir()) == [file]
