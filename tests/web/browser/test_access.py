"""Who gets in: the link and its token, and what an evil page on another port can do."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from callwright.web.assets import SCRIPTS, Assets

from .conftest import Serve, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_EVIL = Path(__file__).with_name("evil.html")


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve("hello")


@pytest.fixture
def evil(served: Served) -> Iterator[str]:
    """The address of a page on another port that attacks the server, even with the right token."""
    known = {"target": served.origin, "token": served.token, "version": Assets().version}
    page = _EVIL.read_text()
    for name, value in known.items():
        page = page.replace("{{" + name + "}}", value)
    content = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_token_leaves_the_address_and_stays_in_the_browser(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/tools")
    expect(page.locator(".status")).to_have_text("live")
    assert page.url == served.origin + "/tools"
    assert served.token not in page.evaluate("JSON.stringify(history.state) + document.cookie + location.href")
    page.reload()
    expect(page.get_by_role("heading", name="Tools")).to_be_visible()
    assert desktop.cookies() == []


def test_without_a_token_the_page_says_how_to_get_one(served: Served, desktop: BrowserContext):
    page = desktop.new_page()
    page.goto(served.origin + "/rules")
    expect(page.get_by_role("alert")).to_contain_text("This browser has no token")
    page.goto(served.origin + "/rules#token=wrong")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("not the server's")
    page.goto(f"{served.origin}/rules#token={served.token}")
    expect(page.get_by_role("heading", name="Rules", level=1)).to_be_visible()


def test_link_with_a_wrong_token_does_not_sign_the_user_out(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/rules")
    expect(page.locator(".status")).to_have_text("live")
    for wrong in ("wrong", "%"):
        other = desktop.new_page()
        other.goto(f"{served.origin}/tools#token={wrong}")
        expect(other.get_by_role("heading", name="Tools", level=1)).to_be_visible()
        page.goto(f"{served.origin}/rules#token={wrong}")  # the same document
        page.reload()
        expect(page.get_by_role("heading", name="Rules", level=1)).to_be_visible()
        expect(page.locator(".status")).to_have_text("live")


def test_evil_page_reaches_nothing(served: Served, desktop: BrowserContext, evil: str):
    own = served.open(desktop)  # the same browser has the token
    expect(own.locator(".status")).to_have_text("live")
    page = desktop.new_page()
    page.goto(evil)
    expect(page.locator("#log")).to_contain_text("end=end")
    log = dict(line.split("=", 1) for line in page.locator("#log").inner_text().strip().splitlines())
    assert log.pop("simple") in ("opaque", "stopped")  # sent at most, and refused: see below
    assert log.pop("opened") == "cut off"
    assert log.pop("frame") == "foreign"  # an error page of the browser: the policy forbids frames
    assert log.pop("end") == "end"
    assert set(log.values()) == {"stopped"}, log
    expect(own.get_by_text("No sessions in this project")).to_be_visible()


def test_scripts_of_others_do_not_run_on_the_page(served: Served, desktop: BrowserContext):
    page = served.open(desktop)
    expect(page.locator(".status")).to_have_text("live")
    said = page.evaluate(
        """() => {
          const attempt = (work) => { try { work(); return "done"; } catch { return "refused"; } };
          const script = document.createElement("script");
          return [
            attempt(() => { document.body.innerHTML = "<b>x</b>"; }),
            attempt(() => { script.text = "document.title = 'owned'"; document.head.append(script); }),
          ];
        }"""
    )
    assert said == ["refused", "refused"]
    assert "owned" not in page.title()


def test_every_script_loads_and_exports_what_the_others_import(served: Served, desktop: BrowserContext):
    page = served.open(desktop)
    expect(page.locator(".status")).to_have_text("live")
    exports = page.evaluate(
        """async ([folder, names]) => Object.fromEntries(await Promise.all(names.map(
          async (name) => [name, Object.keys(await import(folder + name + ".js"))])))""",
        [f"/static/{Assets().version}/", list(SCRIPTS)],
    )
    assert "default" in exports["session"] and "QuestionCard" in exports["question"] and "html" in exports["app"]
