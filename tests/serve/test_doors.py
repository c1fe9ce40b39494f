"""Who is let in over HTTP."""

from typing import TYPE_CHECKING

import httpx2
import pytest

from callwright import UsageError
from callwright.serve import HttpOptions
from callwright.serve.http import is_loopback

if TYPE_CHECKING:
    from tests.serve.conftest import Desk

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def knock(desk: "Desk", **headers: str) -> int:
    """The status a plain request is answered with."""
    async with httpx2.AsyncClient() as client:
        return (await client.post(desk.url, json=HELLO, headers={**ACCEPT, **headers})).status_code


@pytest.mark.parametrize("given", ["", "Bearer wrong", "sesame", "Basic sesame", "bearer sesame", "Bearer sesame2"])
async def test_nobody_gets_in_without_the_token(desk: "Desk", given: str):
    headers = {"Authorization": given} if given else {}
    assert await knock(desk, **headers) == 401


async def test_the_token_opens_the_door(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame") == 200


async def test_web_pages_from_elsewhere_do_not_get_in(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame", Origin="https://evil.example") == 403


async def test_a_name_that_was_rebound_to_this_machine_does_not_get_in(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame", Host="evil.example:80") == 421


def test_serving_to_others_needs_a_token():
    with pytest.raises(UsageError, match="token"):
        HttpOptions(host="0.0.0.0", token="")
    assert HttpOptions(host="0.0.0.0").token


def test_by_default_only_this_machine_is_served():
    assert is_loopback(HttpOptions().host)


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.8.9.1", True), ("0.0.0.0", False), ("host", False)],
)
def test_loopback_is_told_by_address_not_by_guess(host: str, here: bool):
    assert is_loopback(host) is here


def test_a_token_is_not_shown_by_accident():
    assert "sesame" not in repr(HttpOptions(token="sesame"))
