"""Figures of the page in Chromium: size, first paint, long sessions, bursts of events, delays between screens."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.measure import table
from callwright.app.live import LiveAgent
from callwright.app.locations import Locations
from callwright.core.calls import Completed
from callwright.core.content import Output, Text
from callwright.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from callwright.providers.base import TextDelta
from callwright.registry import Registry
from callwright.sessions import SqliteStore
from callwright.sessions.records import Said

CHROMIUM = "/usr/bin/chromium"
_MESSAGES = 10_000
_EVENTS = 20_000
_TABS = 9
_SCREENS = 5
_OBSERVE = """([wanted, present]) => {
    const look = () => document.body.innerText.includes(wanted) === present;
    window.seenAt = look() ? Date.now() : 0;
    const observer = new MutationObserver(() => {
        if (!window.seenAt && look()) { window.seenAt = Date.now(); observer.disconnect(); }
    });
    observer.observe(document.body, {subtree: true, childList: true, characterData: true});
}"""
_FRAMES = """() => {
    window.frames_ = []; window.framing = true;
    let last = performance.now();
    const step = (now) => {
        window.frames_.push(now - last);
        last = now;
        if (window.framing) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
}"""
_WRITE = [{"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]}] * 20


def main() -> None:
    """Print the figures beside their targets."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="callwright-bench-") as folder:
        locations = Locations.of(Path(folder, "project"), home=Path(folder, "home"))
        asyncio.run(_fill(locations))
        with _serve(Path(folder)) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            rows = [
                *_measure_page(browser, server),
                *_measure_long_session(browser, server),
                *_measure_events(browser, server),
                *_measure_commits(browser, server),
                *_measure_answers(browser, server),
                *_measure_tabs(browser, server),
            ]
            browser.close()
        table("The page in Chromium", rows)


Row = tuple[str, str, str, bool]


class _Server:
    """A running `callwright web`."""

    def __init__(self, link: str, locations: Locations) -> None:
        self.url, _, self.token = link.partition("/#token=")
        self.link = link
        self.locations = locations

    def open(self, context: Any, path: str = "/") -> Any:
        """Open a page with the token; the first one brings it into the storage."""
        page = context.new_page()
        page.goto(f"{self.url}{path}#token={self.token}")
        return page

    def post(self, path: str, body: object) -> Any:
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)


@contextmanager
def _serve(folder: Path) -> Generator[_Server, None, None]:
    project, home = folder / "project", folder / "home"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    script = folder / "script.json"
    script.write_text(json.dumps([*_WRITE, "done"]))
    command = [sys.executable, "-m", "callwright", "web", "--port", "0", "--model", f"script:{script}"]
    environment = {**os.environ, "CALLWRIGHT_HOME": str(home)}
    process = subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        link = next(line for line in process.stdout if b"#token=" in line).decode().strip()
        yield _Server(link, Locations.of(project, home=home))
    finally:
        process.terminate()
        process.wait()


async def _fill(locations: Locations) -> None:
    locations.record.mkdir(parents=True, exist_ok=True)
    async with SqliteStore(locations.sessions) as store:
        for session, count in (("short", 6), ("long", _MESSAGES)):
            hold = await store.hold(session)
            for number in range(0, count, 2):
                question = Said(UserMessage(f"question {number} of {session}"))
                answer = Said(AssistantMessage((Text(f"answer {number + 1} of {session}, with **marks** and `code`"),)))
                hold.note(question) if number else await hold.append(question)
                hold.note(answer)
            await hold.release()
        hold = await store.hold("calls")
        call = ToolCall("c1", "edit", {"path": "words.py", "old_text": "count + 1", "new_text": "count"})
        await hold.append(
            Said(UserMessage("question 0 of calls")),
            Said(AssistantMessage((Text("I change the file."), call))),
            Said(ToolMessage((Completed(call, Output("words.py: 1 change")),))),
            Said(AssistantMessage((Text("answer 5 of calls"),))),
        )
        await hold.release()


def _measure_page(browser: Any, server: _Server) -> list[Row]:
    paints: list[float] = []
    sizes = [_weigh(browser, server, "/session?id=short", "answer 5 of short", paints) for _ in range(_SCREENS)]
    first, again = min(size for size, _ in sizes), min(size for _, size in sizes)  # a slow start asks twice
    listed, _ = _weigh(browser, server, "/", "question 0 of short", [])
    called, _ = _weigh(browser, server, "/session?id=calls", "answer 5 of calls", [])
    paint = min(paints)
    return [
        ("page with one session, on the wire", f"{first:.1f} KB", "<= 30 KB", first <= 30),
        ("the same page opened again", f"{again:.1f} KB", "", True),
        ("page with the list of sessions", f"{listed:.1f} KB", "<= 30 KB", listed <= 30),
        ("page with a session with calls and a timeline", f"{called:.1f} KB", "", True),
        ("first paint", f"{paint:.0f} ms", "<= 400 ms", paint <= 400),
    ]


def _weigh(browser: Any, server: _Server, path: str, text: str, paints: list[float]) -> tuple[float, float]:
    """Return the kilobytes of all responses, heads included, of a page in a new browser and when it is opened again."""
    context = browser.new_context()
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    heads: dict[str, float] = {}
    ended: dict[str, float] = {}
    network.on("Network.responseReceived", lambda event: heads.update({event["requestId"]: _read_size(event)}))
    network.on("Network.dataReceived", lambda event: heads.update(_add_data(heads, event)))
    network.on("Network.loadingFinished", lambda event: ended.update({event["requestId"]: event["encodedDataLength"]}))
    sizes: list[float] = []
    for _ in range(2):
        heads.clear()
        ended.clear()
        page.goto(f"{server.url}{path}#token={server.token}")
        page.get_by_text(text).first.wait_for()
        page.locator(".status.live").wait_for()
        page.wait_for_timeout(500)  # what comes after the text
        sizes.append(sum({**heads, **ended}.values()) / 1024)  # the live stream does not end
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        page.goto("about:blank")
    context.close()
    return sizes[0], sizes[1]


def _read_size(event: Any) -> float:
    response = event["response"]
    return 0 if response["url"].startswith("data:") or response.get("fromDiskCache") else response["encodedDataLength"]


def _add_data(heads: dict[str, float], event: Any) -> dict[str, float]:
    return {event["requestId"]: heads.get(event["requestId"], 0) + event["encodedDataLength"]}


def _measure_long_session(browser: Any, server: _Server) -> list[Row]:
    context = browser.new_context()
    server.open(context).close()
    page = context.new_page()
    began = time.perf_counter()
    page.goto(f"{server.url}/session?id=long")
    page.get_by_text(f"answer {_MESSAGES - 1} of long").first.wait_for()
    seconds = time.perf_counter() - began
    nodes = page.evaluate("document.querySelectorAll('*').length")
    metrics = context.new_cdp_session(page)
    metrics.send("HeapProfiler.collectGarbage")
    metrics.send("Performance.enable")
    found = {each["name"]: each["value"] for each in metrics.send("Performance.getMetrics")["metrics"]}
    heap = found["JSHeapUsedSize"] / 2**20
    context.close()
    return [
        (f"{_MESSAGES:,} messages shown", f"{seconds:.2f} s", "<= 1.5 s", seconds <= 1.5),
        ("nodes of that page", f"{nodes}", "< 1,500", nodes < 1_500),
        ("heap of that page", f"{heap:.1f} MB", "<= 15 MB", heap <= 15),
    ]


def _measure_events(browser: Any, server: _Server) -> list[Row]:
    """Send text in small pieces from a running agent, and record the frames of a page that shows it."""
    context = browser.new_context()
    page = server.open(context, "/session?id=short")
    page.get_by_text("answer 5 of short").first.wait_for()
    page.evaluate(_FRAMES)
    page.evaluate(_OBSERVE, ["the very end", True])
    times: list[float] = []

    async def stream() -> None:
        async with LiveAgent(server.locations.live, "terminal", Registry()) as live:
            live.open_session("short")
            await asyncio.sleep(1.5)  # until the server has found the agent
            times.append(time.time())
            for number in range(_EVENTS):
                live.on_model_event(TextDelta(f"word {number} " + ("\n\n" if number % 50 == 49 else "")))
                if number % 100 == 99:
                    await asyncio.sleep(0.002)
            live.on_model_event(TextDelta("the very end"))
            times.append(time.time())
            await asyncio.sleep(4)

    thread = Thread(target=asyncio.run, args=(stream(),))
    thread.start()
    deadline = time.monotonic() + 60
    while not page.evaluate("window.seenAt") and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    page.evaluate("window.framing = false")
    frames = sorted(page.evaluate("window.frames_.slice(1)"))
    seen = page.evaluate("window.seenAt") / 1000
    thread.join()
    context.close()
    rate = _EVENTS / (max(seen, times[1]) - times[0])
    p95 = frames[int(len(frames) * 0.95)]
    return [
        (f"{_EVENTS:,} events shown", f"{rate:,.0f} events/s", ">= 4,000 events/s", rate >= 4_000),
        ("frames meanwhile, p95", f"{p95:.0f} ms", "<= 50 ms", p95 <= 50),
    ]


def _measure_commits(browser: Any, server: _Server) -> list[Row]:
    """Append to a session in this process, and see when the page of the other one shows it."""
    context = browser.new_context()
    page = server.open(context, "/session?id=short")
    page.get_by_text("answer 5 of short").first.wait_for()
    delays: list[float] = []

    async def append(text: str) -> float:
        async with SqliteStore(server.locations.sessions) as store:
            hold = await store.hold("short")
            await hold.append(Said(UserMessage(text)))
            stored = time.time()
            await hold.release()
            return stored

    for number in range(_SCREENS * 2):
        page.evaluate(_OBSERVE, [f"stored now {number}", True])
        with _own_loop() as loop:
            stored = loop.run_until_complete(append(f"stored now {number}"))
        delays.append(_wait_seen(page) - stored)
    context.close()
    delay = sorted(delays)[len(delays) // 2] * 1000
    return [("commit of another process visible, p50", f"{delay:.0f} ms", "<= 200 ms", delay <= 200)]


def _measure_answers(browser: Any, server: _Server) -> list[Row]:
    """Answer on one screen, and see when the other one no longer asks."""
    first, second = browser.new_context(), browser.new_context()
    session = server.post("/api/say", {"session": None, "text": "go"})["session"]
    one = server.open(first, f"/session?id={session}")
    other = server.open(second, f"/session?id={session}")
    delays: list[float] = []
    for _ in range(_SCREENS):
        for page in (one, other):
            page.locator(".ask-head").first.wait_for()
        one.wait_for_timeout(500)  # a new card does not take clicks at once
        other.evaluate("""() => {
            const asked = document.querySelector(".ask-head");
            window.seenAt = 0;
            new MutationObserver((_, observer) => {
                if (!asked.isConnected) { window.seenAt = window.seenAt || Date.now(); observer.disconnect(); }
            }).observe(document.body, {subtree: true, childList: true});
        }""")
        one.evaluate("document.addEventListener('click', () => { window.clickedAt = Date.now(); }, true)")
        one.get_by_role("button", name="Yes").first.click()
        seen = _wait_seen(other)
        delays.append(seen - one.evaluate("window.clickedAt") / 1000)
    first.close()
    second.close()
    delay = sorted(delays)[len(delays) // 2] * 1000
    return [("answer seen on another screen, p50", f"{delay:.0f} ms", "<= 300 ms", delay <= 300)]


def _measure_tabs(browser: Any, server: _Server) -> list[Row]:
    context = browser.new_context()
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if "/api/events" in request.url else None)
    pages = [server.open(context, "/session?id=short") for _ in range(_TABS)]
    for page in pages:
        page.get_by_text("answer 5 of short").first.wait_for()
    context.close()
    return [(f"streams of {_TABS} tabs", str(len(streams)), "1", len(streams) == 1)]


@contextmanager
def _own_loop() -> Generator[asyncio.AbstractEventLoop, None, None]:
    """Yield an event loop beside the one that Playwright keeps running in this thread."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()
        asyncio._set_running_loop(running)


def _wait_seen(page: Any) -> float:
    deadline = time.monotonic() + 20
    while not (seen := page.evaluate("window.seenAt")):
        if time.monotonic() > deadline:
            raise TimeoutError("the page never showed it")
        page.wait_for_timeout(10)
    return seen / 1000
