"""The documentation site: no broken link, nothing loaded from another host, every public name, search from the disk."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
CHROMIUM = "/usr/bin/chromium"
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LONG_MILLISECONDS = 120_000


def build_pages() -> dict[str, str]:
    script = str(ROOT / "scripts" / "docs")
    built = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=600)
    assert built.returncode == 0, built.stdout + built.stderr
    return {str(page.relative_to(SITE)): page.read_text("utf-8") for page in SITE.rglob("*.html")}


def check_every_page_is_built_and_in_the_navigation(pages: dict[str, str]) -> None:
    sources = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    wanted = {"index.html" if str(page) == "README.html" else str(page) for page in sources}
    assert wanted <= set(pages)
    navigation = pages["index.html"]
    assert [page for page in wanted - {"index.html"} if f'href="{page}"' not in navigation] == []


def check_pages_load_nothing_from_another_host(pages: dict[str, str]) -> None:
    loads = re.compile(r'<(?:script|img|iframe)[^>]+src="(https?:)?//|<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+//')
    assert [name for name, text in pages.items() if loads.search(text)] == []


def find_private_defaults(page: str) -> list[str]:
    """Return the private names that a reader of the signatures could not look up."""
    return re.findall(r"= (_[A-Z]\w+)", re.sub(r"<[^>]+>", "", page))


def check_reference_has_every_public_name(pages: dict[str, str]) -> None:
    for package, names in runpy.run_path(str(ROOT / "scripts" / "reference"))["list_public"]().items():
        page = pages[f"reference/python/{package}.html"]
        assert [name for name in names if f'id="{package}.{name}"' not in page] == []
    agent = pages["reference/python/callwright.agent.html"]
    assert "Parameters:" in agent
    assert "Raises:" in agent
    assert "Examples:" in agent
    assert [name for name, text in pages.items() if "reference/python" in name and find_private_defaults(text)] == []
    assert 'id="callwright.sessions.SqliteStore.search"' in pages["reference/python/callwright.sessions.html"]
    examples = {
        link for text in pages.values() for link in re.findall(r'From the page <a href="\.\./\.\./([^"]+)"', text)
    }
    assert len(examples) > 20
    assert examples <= set(pages)


def check_tables_show_bars_without_backslash(pages: dict[str, str]) -> None:
    tables = {name: "".join(re.findall(r"<table>.*?</table>", text, re.DOTALL)) for name, text in pages.items()}
    assert [name for name, text in tables.items() if "\\|" in text] == []
    assert "<code>callwright completion bash|zsh|fish</code>" in tables["reference/command.html"]


def check_only_what_can_be_pasted_is_copied(pages: dict[str, str]) -> None:
    blocks = re.findall(r'<div class="([^"]*highlight[^"]*)"><pre>(.*?)</pre>', "".join(pages.values()), re.DOTALL)
    assert any("no-copy" in kind for kind, _ in blocks)
    assert [text for kind, text in blocks if 'class="gp"' in text and "no-copy" not in kind] == []


def check_search_knows_every_page(pages: dict[str, str]) -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert set(pages) - {"404.html"} <= found | {"index.html"}


def check_search_works_from_the_disk() -> None:
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, timeout=90_000)
        page = browser.new_context(offline=True).new_page()
        page.set_default_timeout(LONG_MILLISECONDS)
        page.on("request", lambda request: asked.append(request.url))
        page.goto((SITE / "howto" / "bash.html").as_uri())  # in a folder: the index is found from any depth
        field = page.locator("input.md-search__input")
        field.click()
        field.press_sequentially("idempotent")
        found = page.locator("a.md-search-result__link", has_text=re.compile("idempotent", re.IGNORECASE)).first
        found.wait_for(state="visible")
        page.goto(str(found.get_attribute("href")))
        assert page.url.startswith(SITE.as_uri())
        assert "idempotent" in page.locator("article").inner_text().lower()
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.slow
def test_site_is_complete_and_needs_no_other_host() -> None:
    pages = build_pages()  # in one test: two workers would build into the same folder
    check_every_page_is_built_and_in_the_navigation(pages)
    check_pages_load_nothing_from_another_host(pages)
    check_reference_has_every_public_name(pages)
    check_tables_show_bars_without_backslash(pages)
    check_only_what_can_be_pasted_is_copied(pages)
    check_search_knows_every_page(pages)
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed; scripts/setup installs it")
    check_search_works_from_the_disk()
