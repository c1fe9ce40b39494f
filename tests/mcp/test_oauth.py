"""Signing in: where the browser comes back to, and where tokens are kept."""

import asyncio
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthToken

from callwright.mcp import ServerConfig, TokenFile
from callwright.mcp.oauth import SignIn, Tokens


def a_sign_in() -> tuple[SignIn, str]:
    sign_in = SignIn(ServerConfig("x", url="http://127.0.0.1:9/mcp"), Tokens(), lambda: None)
    uris = sign_in.auth.context.client_metadata.redirect_uris
    assert uris is not None
    return sign_in, str(uris[0])


async def visit(url: str) -> int:
    async with httpx2.AsyncClient() as browser:
        return (await browser.get(url)).status_code


async def test_the_code_comes_back_to_this_machine_and_nowhere_else():
    sign_in, address = a_sign_in()
    assert urlsplit(address).hostname == "127.0.0.1"
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await asyncio.sleep(0.02)
    await visit(address.replace("/callback", "/favicon.ico"))
    await visit(f"{address}?nothing=1")
    assert not waiting.done()
    await visit(f"{address}?code=abc&state=s%201")
    result = await waiting
    assert (result.code, result.state) == ("abc", "s 1")
    sign_in.close()


async def test_a_refused_sign_in_is_a_failure_with_its_reason():
    sign_in, address = a_sign_in()
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await asyncio.sleep(0.02)
    await visit(f"{address}?error=access_denied<script>")
    with pytest.raises(OAuthFlowError, match="access_deniedscript"):
        await waiting
    sign_in.close()


async def test_nobody_listens_when_nobody_signs_in():
    sign_in, address = a_sign_in()
    with pytest.raises(httpx2.ConnectError):
        await visit(address)
    assert parse_qs(urlsplit(address).query) == {}
    sign_in.close()


async def test_tokens_in_a_file_are_for_its_owner_only(tmp_path: Path):
    file = tmp_path / "tokens" / "x.json"
    await TokenFile(file).set_tokens(OAuthToken(access_token="secret", token_type="Bearer"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = await TokenFile(file).get_tokens()
    assert kept is not None
    assert kept.access_token == "secret"
    assert list(file.parent.iterdir()) == [file]
