"""Questions on the page: live, from two screens, edited, on a phone, by keyboard, and when the server is gone."""

import signal
from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from .conftest import Serve, Served, cards, press, settle_down

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run_line(line: str) -> dict[str, object]:
    return {"name": "bash", "arguments": {"command": line}}


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    both = [run_line("echo one > one.txt"), run_line("echo two > two.txt")]
    return serve({"text": "Two **files**, please.", "calls": both}, "All done.")


_CLICK_WHEN_MOVED = """() => {
    const observer = new MutationObserver(() => {
        const left = document.querySelectorAll("[data-question]");
        if (left.length !== 1) return;
        observer.disconnect();
        const yes = [...left[0].querySelectorAll("button")].find((each) => each.textContent.startsWith("Yes"));
        window.tapped = yes.textContent;
        yes.click();
        dispatchEvent(new KeyboardEvent("keydown", { key: "y" }));
    });
    observer.observe(document.body, { childList: true, subtree: true });
}"""


def test_answer_on_one_screen_is_seen_on_the_other(served: Served, desktop: BrowserContext, phone: BrowserContext):
    here = served.start(desktop)
    expect(cards(here)).to_have_count(2)
    expect(here.locator(".msg.model strong")).to_have_text("files")
    there = served.open(phone, "/session?id=" + here.url.partition("id=")[2])
    expect(cards(there)).to_have_count(2)
    press(there, "Yes")
    expect(cards(there)).to_have_count(1)
    expect(cards(here)).to_have_count(1)
    expect(here.get_by_text("Allowed once on a page").first).to_be_visible()
    press(here, "Yes")
    expect(there.get_by_text("All done.")).to_be_visible()
    expect(here.get_by_text("All done.")).to_be_visible()
    assert (served.project / "one.txt").read_text() == "one\n"
    assert (served.project / "two.txt").read_text() == "two\n"


def test_second_tap_on_the_same_place_answers_nothing(served: Served, phone: BrowserContext):
    page = served.start(phone)
    expect(cards(page)).to_have_count(2)
    settle_down(page)
    yes = cards(page).first.get_by_role("button", name="Yes")
    yes.scroll_into_view_if_needed()
    settle_down(page)
    answers: list[str] = []
    page.on("request", lambda request: answers.append(request.url) if "/api/answer" in request.url else None)
    page.evaluate(_CLICK_WHEN_MOVED)  # in the page: from here, a slow machine clicks when the card stands still
    yes.tap()
    expect(cards(page)).to_have_count(1)
    # the second card had just moved: nothing that was tapped or typed then may answer it
    assert page.evaluate("window.tapped").startswith("Yes")
    settle_down(page)
    assert len(answers) == 1
    expect(cards(page)).to_have_count(1)
    expect(page.get_by_text("All done.")).to_have_count(0)


def test_card_shows_all_that_the_call_would_use(serve: Serve, desktop: BrowserContext):
    disguised = {"command": "rm -rf x > log.txt", "description": "tidy up\ncommand: ls"}
    long = {"path": "long.txt", "content": "\n".join(map(str, range(5_100)))}
    served = serve({"calls": [{"name": "bash", "arguments": disguised}, {"name": "write", "arguments": long}]})
    page = served.start(desktop)
    card, written = cards(page).first, cards(page).last
    rows = card.get_by_label("arguments").inner_text().split("\n")
    assert "│ command: ls" in rows and "command: ls" not in rows  # a value must not look like two arguments
    expect(card).to_contain_text(f"in {served.project}")
    expect(card).to_contain_text(f"writes {served.project / 'log.txt'}")
    written.get_by_role("button", name="Show all 5,101 lines").click()
    expect(written).to_contain_text("101 further lines not shown")


def press_until(page: Page, key: str, expected: Callable[[], None]) -> None:
    """Press a key, as often as a card ignores it because it has just moved, until something is seen."""
    for _ in range(5):
        settle_down(page)
        page.keyboard.press(key)
        with suppress(AssertionError):
            return expected()
    return expected()


def test_yes_shows_what_is_folded_before_it_counts(serve: Serve, desktop: BrowserContext):
    lines = "\n".join(f"row {number}." for number in range(80))
    command = f"cat > b.txt <<'END'\n{lines}\nEND"
    write = {"name": "write", "arguments": {"path": "a.txt", "content": lines}}
    served = serve({"calls": [write]}, {"calls": [run_line(command)]}, "All done.")
    page = served.start(desktop)
    for key in "ys":
        expect(cards(page)).to_have_count(1)
        expect(cards(page)).not_to_contain_text("row 79.")
        card = page.locator(f'[data-question="{cards(page).get_attribute("data-question")}"]')
        press_until(page, key, lambda: expect(card).to_contain_text("row 79.", timeout=3_000))  # noqa: B023 - called at once
        expect(card).to_contain_text("read them, then answer again")
        settle_down(page)
        card.get_by_role("button", name="Show less").click()  # it has been read
        press_until(page, key, lambda: expect(card).to_have_count(0, timeout=3_000))  # noqa: B023 - called at once
    expect(page.get_by_text("All done.")).to_be_visible()
    assert (served.project / "b.txt").read_text() == f"{lines}\n"


def test_end_of_a_run_is_said_in_words(serve: Serve, desktop: BrowserContext):
    page = serve().start(desktop)  # the script is used up at once
    said = page.get_by_text("The run ended: the request to the model failed")
    expect(said).to_be_visible()  # also if it ended before the page was opened
    page.reload()
    expect(said).to_have_count(1)


def test_card_shows_the_arguments_beside_a_preview(serve: Serve, desktop: BrowserContext):
    asking = serve({"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]})
    page = asking.start(desktop)
    expect(cards(page)).to_have_count(1)
    asking.process.kill()
    served = serve("never said", beside=asking)

    def add_arguments(route: Route) -> None:  # as a tool of a plug-in has
        data = route.fetch().json()
        data["questions"][0]["arguments"] |= {"tags": [], "label": "", "note": "long " * 100 + "end"}
        route.fulfill(json=data)

    desktop.route("**/api/session?*", add_arguments)
    page = served.open(desktop, "/session?id=" + page.url.partition("id=")[2])
    further = cards(page).get_by_label("further arguments")
    expect(further).to_contain_text("long end")
    expect(further).to_contain_text("tags: []")
    expect(further).to_contain_text('label: ""')


def test_edited_arguments_run_instead(served: Served, desktop: BrowserContext):
    page = served.start(desktop)
    expect(cards(page)).to_have_count(2)
    settle_down(page)
    page.keyboard.press("e")
    field = cards(page).first.get_by_label("command")
    field.fill("echo edited > edited.txt")
    press(page, "Run with these arguments")
    expect(cards(page)).to_have_count(1)
    settle_down(page)
    page.keyboard.press("n")
    page.keyboard.type("not the second one")
    settle_down(page)
    page.keyboard.press("Enter")
    # the changed call touches what the question did not show, so it is asked about with what will run
    expect(cards(page).filter(has_text="echo edited > edited.txt")).to_be_visible()
    settle_down(page)
    page.keyboard.press("y")
    expect(page.get_by_text("All done.")).to_be_visible()
    expect(page.get_by_text("with changed arguments").first).to_be_visible()
    expect(page.get_by_text("not the second one").first).to_be_visible()
    assert (served.project / "edited.txt").read_text() == "edited\n"


def test_keys_do_not_approve_what_is_being_edited_or_declined(serve: Serve, desktop: BrowserContext):
    served = serve({"calls": [run_line("echo one > one.txt")]}, "All done.")
    page = served.start(desktop)
    expect(cards(page)).to_have_count(1)
    settle_down(page)
    page.keyboard.press("e")
    cards(page).get_by_label("command").fill("echo edited > edited.txt")
    cards(page).get_by_role("button", name="Run with these arguments").focus()
    for key in "ysa":
        settle_down(page)
        page.keyboard.press(key)
    cards(page).get_by_role("button", name="Cancel").click()
    settle_down(page)
    page.keyboard.press("n")
    cards(page).get_by_role("button", name="Back").focus()
    for key in "ysa":
        settle_down(page)
        page.keyboard.press(key)
    cards(page).get_by_role("button", name="Back").click()
    press(page, "Yes")  # the question was open until now
    expect(page.get_by_text("All done.")).to_be_visible()


def test_key_does_not_answer_a_card_that_is_out_of_sight(serve: Serve, desktop: BrowserContext):
    lines = "\n\n".join(f"line {number}" for number in range(200))
    served = serve({"text": lines, "calls": [run_line("echo one > one.txt")]}, "All done.")
    page = served.start(desktop)
    expect(cards(page)).to_be_in_viewport()
    page.get_by_label("Messages").evaluate("element => element.scrollTo(0, 0)")
    expect(cards(page)).not_to_be_in_viewport()
    settle_down(page)
    page.keyboard.press("y")
    expect(cards(page)).to_be_in_viewport()
    settle_down(page)
    assert not (served.project / "one.txt").exists()
    page.keyboard.press("y")
    expect(page.get_by_text("All done.")).to_be_visible()
    assert (served.project / "one.txt").read_text() == "one\n"


def test_second_enter_sends_nothing_again(serve: Serve, desktop: BrowserContext):
    served = serve("First.", "Second.", "Third.")
    page = served.open(desktop)
    said: list[str] = []
    page.on("request", lambda request: said.append(request.post_data or "") if "/api/say" in request.url else None)
    page.get_by_label("Start a session: what should be done?").fill("go")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_url("**/session?id=*")
    expect(page.get_by_text("First.")).to_be_visible()
    page.get_by_label("Say something to this session").fill("and now")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Second.")).to_be_visible()
    assert len(said) == 2


def test_prompt_that_did_not_arrive_stays(serve: Serve, desktop: BrowserContext):
    served = serve("First.")
    page = served.start(desktop)
    expect(page.get_by_text("First.")).to_be_visible()
    served.process.kill()
    field = page.get_by_label("Say something to this session")
    field.fill("and now")
    page.keyboard.press("Enter")
    expect(page.locator(".composer").get_by_role("alert")).to_contain_text("does not answer")
    expect(field).to_have_value("and now")


def test_everything_works_by_keyboard(served: Served, desktop: BrowserContext):
    page = served.open(desktop)
    start = page.get_by_label("Start a session: what should be done?")
    expect(start).to_be_enabled()
    for _ in range(20):
        page.keyboard.press("Tab")
        if start.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    for left in (2, 1):
        expect(cards(page)).to_have_count(left)
        settle_down(page)
        page.keyboard.press("s")
    expect(page.get_by_text("All done.")).to_be_visible()
    page.keyboard.press("Control+f")
    page.keyboard.type("all done")
    expect(page.locator(".find [role=status]")).to_contain_text("1 of")
    page.keyboard.press("Escape")
    for key, heading in (("t", "Tools"), ("r", "Rules"), ("c", "Costs"), ("s", "Sessions")):
        page.locator("main").focus()
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


def test_nine_tabs_share_one_stream(served: Served, desktop: BrowserContext):
    streams: list[str] = []
    desktop.on("request", lambda request: streams.append(request.url) if "/api/events" in request.url else None)
    tabs = [served.open(desktop, "/tools") for _ in range(9)]
    for tab in tabs:
        expect(tab.locator(".status")).to_have_text("live")
    assert len(streams) == 1
    working = served.start(desktop)
    expect(cards(working)).to_have_count(2)
    for tab in tabs:
        expect(tab.locator(".asks")).to_be_visible()
    tabs[0].close()  # the tab that reads the stream: another one takes over
    expect(tabs[1].locator(".status")).to_have_text("live")
    settle_down(working)
    working.keyboard.press("s")
    expect(cards(working)).to_have_count(1)
    assert len(streams) == 2


def test_tabs_that_cannot_share_a_stream_get_each_event_once(serve: Serve, desktop: BrowserContext):
    served = serve({"calls": [run_line("echo one > one.txt")]})
    # as in a page over plain HTTP from another machine
    desktop.add_init_script("Object.defineProperty(navigator, 'locks', { value: undefined })")
    other = served.open(desktop)
    expect(other.locator(".status")).to_have_text("live")
    page = served.start(desktop)
    expect(cards(page)).to_have_count(1)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped: stopped on the page")).to_have_count(1)
    page.wait_for_timeout(300)
    expect(page.get_by_text("stopped: stopped on the page")).to_have_count(1)


def test_stop_ends_the_run(served: Served, desktop: BrowserContext):
    page = served.start(desktop)
    expect(cards(page)).to_have_count(2)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_killed_agent_is_said_and_its_questions_can_be_answered(serve: Serve, desktop: BrowserContext):
    watching = serve("Went on.")
    both = [run_line("echo one > one.txt"), run_line("echo two > two.txt")]
    agent = serve({"text": "asking", "calls": both}, "never said", beside=watching)
    home = watching.open(desktop)
    expect(home.locator(".status")).to_have_text("live")
    with desktop.browser.new_context() as other:  # pyright: ignore[reportOptionalMemberAccess]
        session = agent.start(other).url.partition("id=")[2]
        page = watching.open(desktop, f"/session?id={session}")
        expect(cards(page)).to_have_count(2)
        agent.process.kill()
        expect(page.get_by_text("The process that ran this session has ended", exact=False)).to_be_visible()
    expect(page.locator(".talk-head .state")).to_contain_text("paused")
    second = cards(page).nth(1).get_attribute("data-question")
    press(page, "Yes")
    expect(page.locator(".talk-head .state")).to_contain_text("page")
    expect(page.locator(f'[data-question="{second}"]')).to_have_count(0)  # it asks again for what is left
    expect(cards(page)).to_have_count(1)
    press(page, "Yes")
    expect(page.get_by_text("Went on.")).to_be_visible()
    expect(page.locator(".talk-head .state")).to_contain_text("open")
    page.wait_for_timeout(500)  # the page fetches the session once more
    expect(cards(page)).to_have_count(0)
    assert [(watching.project / f"{name}.txt").read_text() for name in ("one", "two")] == ["one\n", "two\n"]


def test_silent_server_is_said_and_found_again(serve: Serve, desktop: BrowserContext):
    served = serve("end")
    page = desktop.new_page()
    page.clock.install()
    page.goto(served.link)
    expect(page.locator(".status")).to_have_text("live")
    served.process.send_signal(signal.SIGSTOP)  # as a network that went away: nothing comes, and nothing ends
    page.clock.fast_forward(60_000)
    expect(page.locator(".status")).to_have_text("server gone")
    served.process.send_signal(signal.SIGCONT)
    page.clock.fast_forward(60_000)
    expect(page.locator(".status")).to_have_text("live")


def test_answer_to_a_tried_call_that_did_not_arrive_can_be_given_again(serve: Serve, desktop: BrowserContext):
    served = serve("never said")
    page = served.open(desktop, "/tools?name=bash")
    page.get_by_label("command").first.fill("echo one > one.txt")
    page.get_by_role("button", name="Run").click()
    expect(cards(page)).to_have_count(1)
    desktop.route("**/api/run", lambda route: route.abort())
    yes = cards(page).get_by_role("button", name="Yes")
    yes.scroll_into_view_if_needed()
    settle_down(page)
    yes.click()
    expect(cards(page).get_by_role("alert")).to_contain_text("does not answer")
    desktop.unroute("**/api/run")
    press(page, "Yes")
    expect(page.get_by_text("As the model reads it")).to_be_visible()
    assert (served.project / "one.txt").read_text() == "one\n"


def test_vanished_server_is_said_and_the_page_stays(serve: Serve, desktop: BrowserContext):
    served = serve({"text": "asking", "calls": [run_line("echo one > one.txt")]}, "end")
    page = served.start(desktop)
    expect(cards(page)).to_have_count(1)
    served.process.kill()
    expect(page.get_by_role("alert").filter(has_text="The server does not answer")).to_be_visible()
    expect(page.locator(".status")).to_have_text("server gone")
    expect(page.get_by_text("asking")).to_be_visible()
    settle_down(page)
    page.keyboard.press("y")
    expect(cards(page).get_by_role("alert")).to_contain_text("does not answer")
    assert not (served.project / "one.txt").exists()
