"""Answers from a real terminal and two pages at once: one takes effect, the other places are told who was first."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from docs.play.terminal import Tmux
from playwright.sync_api import BrowserContext, Page, expect

from callwright.app.locations import Locations
from callwright.core.calls import Approve
from callwright.sessions import SqliteStore
from callwright.sessions.records import Answered, Record

from .conftest import Serve, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROUNDS = 20
_CLICK = """([line, delay]) => {
    const click = () => {
        const card = [...document.querySelectorAll("[data-question]")].find((each) => each.textContent.includes(line));
        if (!card) return;
        [...card.querySelectorAll("button")].find((each) => each.textContent.startsWith("Yes"))?.click();
        setTimeout(click, 400);  // a card that has just moved takes no click
    };
    setTimeout(click, delay);
}"""


@pytest.fixture
def terminal(served: Served, tmp_path: Path) -> Iterator[Tmux]:
    """An agent in a terminal that asks before each of its commands."""
    lines = [{"calls": [{"name": "bash", "arguments": {"command": f"echo {n} >> done.txt"}}]} for n in range(ROUNDS)]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*lines, "All rounds are over."]))
    window = Tmux(tmp_path, {**os.environ, "CALLWRIGHT_HOME": str(served.home), "HOME": str(tmp_path)})
    window.open(served.project)
    window.enter(f"clear; {sys.executable} -m callwright --model=script:{script}")
    window.shows("default mode")
    yield window
    window.close_and_wait()


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve("never said")


def read_answers(served: Served, session: str) -> list[Answered]:
    async def read() -> list[Record]:
        async with SqliteStore(Locations.of(served.project, home=served.home).sessions) as store:
            return [each.record for each in await store.read_from(session)]

    with ThreadPoolExecutor(1) as thread:  # Playwright keeps a loop of its own running in this one
        records = thread.submit(asyncio.run, read()).result()
    return [record for record in records if isinstance(record, Answered)]


def test_first_answer_counts_and_the_others_learn_whose_it_was(
    served: Served, terminal: Tmux, desktop: BrowserContext, phone: BrowserContext
):
    terminal.enter("go")
    pages = [served.open(desktop), served.open(phone)]
    for page in pages:
        page.locator("a.card-row").first.click()
        page.wait_for_url("**/session?id=*")
    session = pages[0].url.partition("id=")[2]
    chance = Random(7)
    for number in range(ROUNDS):
        terminal.shows(f"echo {number} >> done.txt")
        for page in pages:
            card = page.locator("[data-question]").filter(has_text=f"echo {number} >> done.txt")
            expect(card).to_have_count(1)
            expect(page.locator(".question.dead")).to_have_count(0)
        # who is first differs: all say yes, within a few milliseconds
        for page in pages:
            page.evaluate(_CLICK, [f"echo {number} >> done.txt", chance.randrange(30)])
        if chance.random() < 0.7:
            terminal.type("y")
        for page in pages:
            expect(page.locator("[data-question]").filter(has_text=f"echo {number} >> done.txt")).to_have_count(0)
    for page in pages:
        expect(page.get_by_text("All rounds are over.")).to_be_visible()
    # every line was run exactly once, and every question has exactly one answer on record
    assert (served.project / "done.txt").read_text().split() == [str(number) for number in range(ROUNDS)]
    replies = [pair for record in read_answers(served, session) for pair in record.replies.items()]
    assert len(replies) == len(dict(replies)) == ROUNDS
    assert all(isinstance(reply, Approve) for _, reply in replies)
    places = Counter(reply.by for _, reply in replies)
    told = terminal.shows("All rounds are over.")
    assert told.count("answered on the page") == sum(count for by, count in places.items() if "page" in by), places
    check_what_pages_say(pages, places)


def check_what_pages_say(pages: list[Page], places: Counter[str]) -> None:
    """Each page says of each answer where it was given."""
    for page in pages:
        for words, place in (("on a page", "page"), ("in the terminal", "terminal")):
            if any(place in by for by in places):
                expect(page.get_by_text(f"Allowed once {words}", exact=False).first).to_be_attached()
