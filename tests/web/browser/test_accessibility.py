"""Every page is clean for axe-core, in light and dark, on a desktop and on a phone."""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.mcp.peers import AXE, node_package

from .conftest import DESKTOP, PHONE, Serve, Served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = {
    "/": "Sessions",
    "/tools?name=edit": "edit",
    "/rules": "Rules",
    "/servers": "Servers",
    "/skills": "Skills",
    "/search?q=find text in files": "Search",
    "/costs": "Costs",
}
_RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map((one) => [one.id, one.nodes.map((node) => node.html)]))"""


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    calls = [{"name": "write", "arguments": {"path": "a.txt", "content": "a\n"}}]
    return serve({"text": "A **file** with `code`:\n\n| a | b |\n|---|---|\n| 1 | 2 |", "calls": calls}, "end")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(served: Served, browser: Browser, scheme: Any, viewport: Any):
    script = (node_package(AXE) / "axe.min.js").read_text()
    found: dict[str, Any] = {}
    with browser.new_context(viewport=viewport, color_scheme=scheme) as context:
        page = served.start(context)
        expect(page.locator("[data-question]").first).to_be_visible()
        expect(page.locator(".question.dead")).to_have_count(0)
        page.evaluate(script + "; 0")
        found["/session"] = page.evaluate(_RUN)
        for path, heading in PAGES.items():
            page.goto(served.origin + path)
            expect(page.get_by_role("heading", level=1).first).to_contain_text(heading)
            expect(page.locator(".status")).to_have_text("live")
            page.evaluate(script + "; 0")
            found[path] = page.evaluate(_RUN)
    assert not any(found.values()), json.dumps(found, indent=1)
