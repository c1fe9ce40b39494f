"""Settings and hook events on the documentation pages match the code."""

import re
from pathlib import Path

import pytest

from callwright.app.settings_file import parse_layer
from callwright.hooks.shell.config import EVENTS, UNSUPPORTED_EVENTS

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["settings", "hooks"])
def test_settings_in_the_docs_are_valid(page: str) -> None:
    blocks = re.findall(r"```json\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    settings = [block for block in blocks if re.match(r'\{\s*"(model|hooks|permissions)"', block)]
    assert settings
    for block in settings:
        assert parse_layer("user", page, block).problems == ()


def test_hooks_page_lists_every_event() -> None:
    served, _, never = (PAGES / "hooks.md").read_text(encoding="utf-8").partition("events that cannot happen here")
    table = served.partition("## Events")[2]
    assert [event for event in EVENTS if f"`{event}`" not in table] == []
    assert [event for event in UNSUPPORTED_EVENTS if f"`{event}`" not in never] == []
