"""Fixtures: windows of a real Chromium, and the server of the page as a process of its own."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.conftest import PATIENCE_MS

from callwright.app.locations import Locations
from callwright.sessions import SqliteStore
from callwright.sessions.records import Record

if TYPE_CHECKING:  # importing it takes half a second in every worker
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

DESKTOP: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 390, "height": 780}
_STILL = """() => new Promise((resolve) => {
    let still = 0;
    const look = () => {
        still = document.querySelector(".question.dead") ? 0 : still + 1;
        still < 5 ? requestAnimationFrame(look) : resolve();  // a move is seen one frame later
    };
    requestAnimationFrame(look);
})"""


@dataclass
class Served:
    """A running `callwright web` and the project it serves."""

    project: Path
    home: Path
    link: str
    process: "subprocess.Popen[str]"

    @property
    def origin(self) -> str:
        return self.link.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.link.partition("#token=")[2]

    def open(self, context: "BrowserContext", path: str = "/") -> "Page":
        """Open a page of the server in a browser that has the token."""
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{self.origin}{path}#token={self.token}")
        return page

    def start(self, context: "BrowserContext", text: str = "go") -> "Page":
        """Start a session on the page and return the page that shows it."""
        page = self.open(context)
        page.get_by_label("Start a session: what should be done?").fill(text)
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/session?id=*")
        return page


Serve = Callable[..., Served]


@pytest.fixture
def desktop(browser: "Browser") -> "Iterator[BrowserContext]":
    with browser.new_context(viewport=DESKTOP) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture
def phone(browser: "Browser") -> "Iterator[BrowserContext]":
    with browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serve, None, None]:
    """A function that starts the server of a fresh project whose model follows a script."""
    running: list[subprocess.Popen[str]] = []

    def start(
        *replies: object, sessions: dict[str, list[Record]] | None = None, beside: Served | None = None
    ) -> Served:
        folder = tmp_path_factory.mktemp("web")
        project, home = (beside.project, beside.home) if beside else (folder / "words", folder / "home")
        (project / ".git").mkdir(parents=True, exist_ok=True)
        home.mkdir(exist_ok=True)
        script = folder / "script.json"
        script.write_text(json.dumps(replies))
        if sessions:
            # Playwright keeps a loop of its own running in this thread
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _store(Locations.of(project, home=home), sessions)).result()
        command = [sys.executable, "-m", "callwright", "web", "--port", "0", f"--model=script:{script}"]
        environment = {**os.environ, "CALLWRIGHT_HOME": str(home), "HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        running.append(process)
        return Served(project, home, read_link(process), process)

    yield start
    for process in running:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def cards(page: "Page") -> "Locator":
    return page.locator("[data-question]")


def settle_down(page: "Page") -> None:
    """Wait until the buttons of all cards take clicks."""
    page.evaluate(_STILL)


def press(page: "Page", name: str) -> None:
    """Press a button of the first card, as often as the card moves under the pointer, until the card has gone."""
    from playwright.sync_api import Error, expect

    card = page.locator(f'[data-question="{cards(page).first.get_attribute("data-question")}"]')
    button = card.get_by_role("button", name=name)
    for _ in range(20):
        with suppress(Error):  # it may go while this looks for it
            button.scroll_into_view_if_needed(timeout=5_000)
            settle_down(page)
            button.click(timeout=5_000)
        with suppress(AssertionError):
            expect(card).to_have_count(0, timeout=3_000)
            return
    raise AssertionError(f"the card stays after {name}")


def read_link(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if "#token=" in line:
            return line.strip()
    raise AssertionError("the server ended: " + "".join(said))


async def _store(locations: Locations, sessions: dict[str, list[Record]]) -> None:
    locations.sessions.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(locations.sessions)
    for session_id, records in sessions.items():
        hold = await store.hold(session_id)
        await hold.append(*records)
        await hold.release()
