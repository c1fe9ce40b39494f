"""The documentation site: no broken link, nothing loaded from another host, every public name documented."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"


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


def check_reference_has_every_public_name(pages: dict[str, str]) -> None:
    for package, names in runpy.run_path(str(ROOT / "scripts" / "reference"))["list_public"]().items():
        page = pages[f"reference/python/{package}.html"]
        assert [name for name in names if f'id="{package}.{name}"' not in page] == []
    agent = pages["reference/python/callwright.agent.html"]
    assert "Parameters:" in agent
    assert "Raises:" in agent
    assert "Examples:" in agent
    assert 'id="callwright.sessions.SqliteStore.search"' in pages["reference/python/callwright.sessions.html"]
    examples = {
        link for text in pages.values() for link in re.findall(r'From the page <a href="\.\./\.\./([^"]+)"', text)
    }
    assert len(examples) > 20
    assert examples <= set(pages)


def check_search_knows_every_page(pages: dict[str, str]) -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert set(pages) - {"404.html"} <= found | {"index.html"}


@pytest.mark.slow
def test_site_is_complete_and_needs_no_other_host() -> None:
    pages = build_pages()  # in one test: two workers would build into the same folder
    check_every_page_is_built_and_in_the_navigation(pages)
    check_pages_load_nothing_from_another_host(pages)
    check_reference_has_every_public_name(pages)
    check_search_knows_every_page(pages)
