"""Runs of workers on the page: listed and answered in their store while no worker runs."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import RealServer, Serve

from callwright import Agent, Executor, Paused, Registry, ToolCall, tool
from callwright.sessions import SqliteStore
from callwright.sessions.records import Answered
from callwright.testing import ScriptedProvider

paid: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    paid.append(amount)
    return f"paid {amount}"


def make_agent(store: SqliteStore, *lines: Any) -> Agent:
    return Agent(ScriptedProvider(*lines), executor=Executor(Registry(pay)), sessions=store)


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[SqliteStore, None]:
    """The store of workers with one run that waits, named in the environment; nothing runs."""
    paid.clear()
    monkeypatch.setenv("CALLWRIGHT_STORE", str(tmp_path / "runs.db"))
    async with SqliteStore(tmp_path / "runs.db") as opened:
        paused = await make_agent(opened, [ToolCall("c1", "pay", {"amount": 7})]).run("pay the bill", session="run/1")
        assert isinstance(paused, Paused)
        yield opened


async def test_waiting_run_is_listed_answered_once_and_goes_on(serve: Serve, store: SqliteStore) -> None:
    async with serve() as web:
        assert (await web.get("/api/state")).data["runs"] is True
        (run,) = (await web.get("/api/runs")).data["runs"]
        (question,) = run["questions"]
        assert (run["session"], run["title"], question["arguments"]) == ("run/1", "pay the bill", {"amount": 7})
        body = {"session": "run/1", "question": question["id"], "approved": True}
        for wrong in ({"approved": "yes"}, {"approved": 1}, {"scope": "for ever"}, {"x": 1}):
            assert (await web.post("/api/runs/answer", {**body, **wrong})).status == 400
        for other in ({"question": "0" * 64}, {"session": "run/2"}):  # what was shown is not what waits
            assert (await web.post("/api/runs/answer", {**body, **other})).status == 409
        assert (await web.get("/api/runs")).data["runs"]
        answered = (await web.post("/api/runs/answer", body)).data
        assert answered["settled"]["approved"] is True
        late = await web.post("/api/runs/answer", {**body, "approved": False})
        assert (late.status, late.data["code"]) == (409, "answered")
        assert (await web.get("/api/runs")).data == {"runs": [], "error": None}
    assert paid == []
    done = await make_agent(store, "thanks").resume("run/1")
    assert done.text == "thanks" and paid == [7]
    (recorded,) = [record for record in await store.read("run/1") if isinstance(record, Answered)]
    assert next(iter(recorded.replies.values())).by.endswith("the page")


async def test_read_only_page_answers_no_run(serve: Serve, store: SqliteStore) -> None:
    async with serve(read_only=True) as web:
        (run,) = (await web.get("/api/runs")).data["runs"]
        body = {"session": run["session"], "question": run["questions"][0]["id"], "approved": True}
        assert (await web.post("/api/runs/answer", body)).status == 403
        assert (await web.get("/api/runs")).data["runs"] == [run]


@pytest.mark.slow
async def test_store_that_cannot_be_used_is_said(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve() as web:
        assert (await web.get("/api/runs")).data == {"runs": [], "error": None}
    monkeypatch.setenv("CALLWRIGHT_STORE", str(tmp_path / "none.db"))
    async with serve() as web:
        said = (await web.get("/api/runs")).data
        assert said["runs"] == [] and "there is no such file" in said["error"] and not (tmp_path / "none.db").exists()
        answer = await web.post("/api/runs/answer", {"session": "a", "question": "b", "approved": True})
        assert answer.status == 400 and "there is no such file" in answer.data["error"]


@pytest.mark.slow
async def test_waiting_run_is_answered_in_the_browser(
    web: Callable[..., RealServer], store: SqliteStore, tmp_path: Path
) -> None:
    from playwright.async_api import Error, async_playwright, expect
    from tests.web.conftest import CHROMIUM, CHROMIUM_OPTIONS

    server = web(replies=["never said"])
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, timeout=90_000)
        page = await browser.new_page()
        page.set_default_timeout(60_000)
        await page.goto(server.link)
        card = page.locator("[data-question]")
        await card.wait_for()
        await expect(page.locator(".question.dead")).to_have_count(0, timeout=60_000)
        deadline = time.monotonic() + 120
        while await card.count() and time.monotonic() < deadline:  # a card that has just moved takes no click
            with suppress(Error):  # it may go while this looks for it
                await card.get_by_role("button", name="Yes").click(timeout=5_000)
            await page.wait_for_timeout(300)
        await page.get_by_text("Allowed once on a page").wait_for()
        await browser.close()
    assert (await make_agent(store, "thanks").resume("run/1")).text == "thanks" and paid == [7]


async def test_store_that_cannot_be_looked_at_is_said(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLWRIGHT_STORE", "a" * 300)
    async with serve() as web:
        found = (await web.get("/api/runs")).data
        assert found["runs"] == [] and "name too long" in found["error"]
