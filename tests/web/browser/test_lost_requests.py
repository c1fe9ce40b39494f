"""Requests that fail while a page is open: it asks again, after a pause, until they work."""

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, UserMessage
from callwright.sessions.records import Record, Said

from .conftest import Serve, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MESSAGES = 600


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    long: list[Record] = [Said(UserMessage(f"message {number}")) for number in range(MESSAGES)]
    return serve("the answer", sessions={"long": long, "short": [Said(UserMessage("hi")), _reply("hello")]})


def _reply(text: str) -> Record:
    return Said(AssistantMessage((Text(text),)))


def refuse_messages(page: Page) -> list[str]:
    """Let every further request for messages fail; return the list of them."""
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=409, json={"error": "the file is locked", "code": "unreadable"})

    page.route("**/api/messages*", refuse)
    return asked


def test_new_records_are_asked_for_again_after_a_pause(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=short")
    expect(page.get_by_text("hello")).to_be_visible()
    asked = refuse_messages(page)
    page.get_by_label("Say something to this session").fill("go on")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the file is locked").first).to_be_visible()
    page.wait_for_timeout(2_000)
    assert len(asked) < 10
    page.unroute("**/api/messages*")
    expect(page.get_by_text("the answer")).to_be_visible()


def test_rows_in_view_are_asked_for_again_after_a_pause(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=long")
    expect(page.get_by_text(f"message {MESSAGES - 1}", exact=True)).to_be_visible()
    asked = refuse_messages(page)
    page.get_by_label("Messages").evaluate("element => element.scrollTo(0, 0)")
    expect(page.get_by_text("the file is locked").first).to_be_visible()
    page.wait_for_timeout(2_000)
    assert len(asked) < 10
    page.unroute("**/api/messages*")
    expect(page.get_by_text("message 1", exact=True)).to_be_visible()
