"""The messages on the page of troubleshooting are messages of the program."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_HEADINGS = re.findall(
    r"^### `([^`]+)`$", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
)
_CODE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "callwright").rglob("*.py"))
# texts that stand on two lines, and values that are filled in
_TEXT = re.sub(r"\{[^{}\n]*\}", "…", re.sub(r'"\s*\n\s*f?"', "", _CODE)).replace("\\'", "'")


@pytest.mark.parametrize("message", _HEADINGS)
def test_message_is_in_the_code(message: str) -> None:
    fragments = [part.strip() for part in message.split("…") if len(part.strip()) > 3]
    assert fragments
    # in one text: the parts of a message that nothing prints may occur here and there
    found = re.search(".*?".join(map(re.escape, fragments)), _TEXT)
    assert found is not None and '"' in _TEXT[_TEXT.rfind("\n", 0, found.start()) : found.start()]
