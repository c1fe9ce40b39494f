"""Writes figures into docs/benchmarks.md between their markers."""

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def write_figures(name: str, text: str) -> None:
    """Write the figures of a name into the page."""
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """Return the page with the figures between the markers of a name replaced."""
    begin, end = f"<!-- figures: {name} -->", f"<!-- end of figures: {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page needs exactly one {begin} and one {end}")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"
