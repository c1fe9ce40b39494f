"""Hostile text in every place the page shows, very long sessions and lines, damaged records and images."""

import base64
import sqlite3
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, expect

from callwright import Completed, Failed, Image, Output, Text, ToolCall
from callwright.app.locations import Locations
from callwright.core.errors import ToolFailed
from callwright.core.messages import AssistantMessage, Thinking, ToolMessage, UserMessage
from callwright.sessions.records import LimitReached, Record, Said

from .conftest import Serve, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CORPUS = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<svg onload=\"document.title='owned'\"></svg>",
    "[link](javascript:document.title='owned') [data](data:text/html,<script>1</script>)",
    "![image](https://example.invalid/x.png) <https://example.invalid>",
    "</textarea></style></title><iframe srcdoc='x'></iframe>",
    "${document.title='owned'} {{7*7}} `</code><b>bold</b>`",
    "\x1b[31mred\x1b[0m \x1b]8;;http://example.invalid\x07link\x1b]8;;\x07 \x9b2J",
    "moc.\u202etxt.exe \u2066isolated\u2069 zero\u200bwidth \ufeff \u00ad tag\U000e0041",
    "blank\u2800 gra\u034fpheme selector\ufe01\ufe0f r\u200dm sign\U0001d173 two\u00a0words `two\u00a0names`",
    "| a | b |\n|---|---|\n| <b>x</b> | \u202e |",
    "```html\n<script>document.title='owned'</script>\n```",
    "> # heading <img src=x onerror=alert(1)>\n> - [ ] task",
    "*" * 3000 + "_" * 3000 + "[" * 3000,
)
TANGLED = (
    "a" + " " * 150_000 + "x",
    "# " + "#" * 150_000 + "x",
    "# " + " " * 5_000 + "\u2028x",
    "- " + " " * 150_000 + "\u2028x",
    "`" * 75_000 + "a" * 75_000,
    "a|b\n" + " " * 150_000 + "x",
    "```" + "a" * 150_000 + "`",
    "[a](" * 40_000,
)
"""Markdown with so many ways to read it that trying them all would take minutes."""
LONG_LINE = "x" * 5_000_000
MESSAGES = 10_000


def hostile_session() -> list[Record]:
    whole = "\n\n".join(CORPUS)
    calls = tuple(ToolCall(f"c{place}", "read", {text[:60]: text}) for place, text in enumerate(CORPUS))
    outcomes = (
        *(Completed(call, Output(text)) for call, text in zip(calls[:-1], CORPUS[:-1], strict=True)),
        Failed(calls[-1], ToolFailed(whole)),
    )
    return [
        Said(UserMessage(whole)),
        Said(AssistantMessage((Thinking(whole), Text(whole), *calls), model=CORPUS[1])),
        Said(ToolMessage(outcomes)),
        LimitReached(CORPUS[0]),
        Said(UserMessage((Text("a picture"), Image(_PNG)))),
        Said(AssistantMessage((Text("the end"),))),
    ]


def long_session() -> list[Record]:
    texts = (f"message {place} " + "lorem ipsum " * (place % 23) for place in range(MESSAGES))
    return [
        Said(UserMessage(text) if place % 2 == 0 else AssistantMessage((Text(text),)))
        for place, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    line = ToolCall("c1", "bash", {"command": "yes"})
    sessions: dict[str, list[Record]] = {
        "hostile/<b>&?": hostile_session(),
        "long": long_session(),
        "line": [
            Said(UserMessage("one line")),
            Said(AssistantMessage((line,))),
            Said(ToolMessage((Completed(line, Output(LONG_LINE)),))),
        ],
        "tangled": [Said(AssistantMessage(tuple(map(Text, TANGLED)))), Said(AssistantMessage((Text("the end"),)))],
        "damaged": [Said(UserMessage("before")), Said(UserMessage("in between")), Said(UserMessage("after"))],
    }
    found = serve("hello", sessions=sessions)
    file = Locations.of(found.project, home=found.home).sessions
    with sqlite3.connect(file) as database:
        key = "(SELECT key FROM sessions WHERE id = 'damaged')"
        database.execute(f"UPDATE records SET body = '{{' WHERE session = {key} AND position = 1")
    database.close()
    return found


def test_hostile_text_stays_text(served: Served, desktop: BrowserContext):
    problems: list[str] = []
    page = served.open(desktop, "/session?id=" + quote("hostile/<b>&?", safe=""))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if "example.invalid" in request.url else None)
    expect(page.get_by_text("the end")).to_be_visible()
    expect(page.get_by_alt_text("image (image/png)")).to_be_visible()
    for place in range(len(CORPUS)):  # the calls are opened one after the other, so that every text is drawn
        line = page.locator(f'[data-call="c{place}"] .call-line')
        line.scroll_into_view_if_needed()
        if line.get_attribute("aria-expanded") == "false":
            line.click()
    main = page.locator("main")
    assert "owned" not in page.title()
    assert (
        main.locator(
            "script, iframe, object, embed, [onerror], [onload], a[href^='javascript'], a[href^='data']"
        ).count()
        == 0
    )
    assert main.locator("img:not([src^='blob:'])").count() == 0
    shown = main.inner_text()
    for hidden in "\x1b\x9b\u202e\u2066\u200b\ufeff\u00ad\U000e0041\x07\u2800\u034f\ufe01\ufe0f\u200d\U0001d173":
        assert hidden not in shown
    # a space that is none is named where it could be a part of a command, not in a sentence
    said = main.locator(".msg.model .body > .md").first.inner_text()
    assert "two\u00a0words" in said and "twoU+00A0names" in said
    expect(main.locator('[data-call="c9"] .values')).to_contain_text("twoU+00A0words")
    assert "U+202E" in shown
    assert "ESC" in shown
    assert problems == []


def test_emoji_and_joined_letters_are_shown_as_they_are(serve: Serve, desktop: BrowserContext):
    letters = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u65e5\u3000\u672c"
    text = f"\u26a0\ufe0f 1\ufe0f\u20e3 \U0001f469\u200d\U0001f4bb {letters}"
    found = serve("hello", sessions={"one": [Said(UserMessage(f"`{text}`"))]})
    page = found.open(desktop, "/session?id=one")
    expect(page.locator(".msg.user .md code")).to_have_text(text)
    expect(page.locator(".msg .esc")).to_have_count(0)


def test_underscores_inside_a_word_are_part_of_it(serve: Serve, desktop: BrowserContext):
    found = serve(
        "hello", sessions={"one": [Said(UserMessage("set snake__case__ and Cls__init__, __but__ ___this___"))]}
    )
    page = found.open(desktop, "/session?id=one")
    expect(page.locator(".msg.user .md")).to_have_text("set snake__case__ and Cls__init__, but this")
    expect(page.locator(".msg.user .md strong")).to_have_text(["but", "this"])


def test_every_page_survives_hostile_titles(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/")
    expect(page.locator(".card-row")).to_have_count(5)
    page.get_by_label("Filter sessions by title").fill(CORPUS[1])
    page.goto(served.origin + "/search?q=" + quote(CORPUS[8] + CORPUS[0]))
    expect(page.get_by_text("Tools this sentence would find")).to_be_visible()
    page.goto(served.origin + "/tools?name=" + quote(CORPUS[1]))
    expect(page.get_by_text("There is no such tool")).to_be_visible()
    page.goto(served.origin + "/session?id=" + quote(CORPUS[1]))
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.locator("main script, main img").count() == 0
    assert "\u202e" not in page.title()


_SHOWS_MESSAGES_NEAR = """place => {
    const shown = [...document.querySelectorAll(".msg .md")].map(each => Number(each.innerText.split(" ")[1]));
    return shown.length > 0 && Math.abs(shown[Math.floor(shown.length / 2)] - place) < 600;
}"""


def test_ten_thousand_messages_are_a_window(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=long")
    expect(page.get_by_text(f"message {MESSAGES - 1} ", exact=False)).to_be_visible()
    assert page.locator("*").count() < 1500
    box = page.get_by_label("Messages")
    for part in (0.5, 0, 0.9):
        box.evaluate(f"element => element.scrollTo(0, {part} * element.scrollHeight)")
        page.wait_for_function(_SHOWS_MESSAGES_NEAR, arg=part * MESSAGES)
        expect(page.locator(".ghost")).to_have_count(0)
        assert page.locator("*").count() < 1500
    page.keyboard.press("Control+f")
    page.keyboard.type("message 4321 ")
    expect(page.locator(".marked")).to_contain_text("message 4321")


def test_five_megabytes_in_one_line(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=line")
    page.locator("[data-call=c1] .call-line").click()
    expect(page.get_by_text("Show all")).to_be_visible()
    shown = page.locator("[data-call=c1] pre.code").last.inner_text()
    assert len(shown) < 10_000


def test_text_that_can_be_read_in_many_ways_does_not_stop_the_page(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=tangled")
    expect(page.get_by_text("the end")).to_be_visible()
    expect(page.locator(".msg .md")).to_have_count(len(TANGLED) + 1)


def test_damaged_record_is_said(served: Served, desktop: BrowserContext):
    page = served.open(desktop, "/session?id=damaged")
    expect(page.get_by_text("after")).to_be_visible()
    expect(page.locator(".msg").filter(has_text="before")).to_be_visible()
    expect(page.get_by_text("Record 1 is damaged", exact=False)).to_be_visible()


def test_later_version_is_said(serve: Serve, desktop: BrowserContext):
    found = serve("hello", sessions={"one": [Said(UserMessage("hi"))]})
    with sqlite3.connect(Locations.of(found.project, home=found.home).sessions) as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()
    page = found.open(desktop)
    expect(page.get_by_role("alert")).to_contain_text("version")
