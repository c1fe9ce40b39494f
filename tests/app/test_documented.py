"""The settings on the documentation pages are settings."""

import re
from pathlib import Path

import pytest

from toolwright.app.layer import parse_layer

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["settings", "hooks"])
def test_the_settings_on_a_page_are_valid_and_every_key_is_known(page: str) -> None:
    blocks = re.findall(r"```json\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    settings = [block for block in blocks if re.match(r'\{\s*"(model|hooks|permissions)"', block)]
    assert settings
    for block in settings:
        assert parse_layer("user", page, block).problems == ()
