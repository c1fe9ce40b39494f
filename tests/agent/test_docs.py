"""The code on the agent's pages runs."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["tutorial-agent.md", "howto/durability.md", "howto/approvals-in-a-web-service.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_on_a_page_runs_from_top_to_bottom(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "docs"})
