"""`python -m docs.play`: redraw the pictures of the pages."""

import sys
from pathlib import Path

from docs.play.page import title
from docs.play.reader import ROOT, Played, play_page
from docs.play.svg import draw_svg

PAGES = sorted((ROOT / "docs" / "start").glob("*.md"))
PICTURES = ROOT / "docs" / "pictures"


def draw_pictures(page: Path, seen: Played) -> dict[str, str]:
    """Return the pictures of a page by their file names."""
    heading = title(page)
    return {
        shown.picture.name: draw_svg(shown.rows, title=heading, about=shown.picture.about, cursor=shown.cursor)
        for shown in seen.shown
    }


def main() -> None:
    """Run the named pages, or all, and write their pictures."""
    named = sys.argv[1:]
    for page in PAGES:
        if named and page.stem not in named:
            continue
        with play_page(page, Path(sys.executable).parent) as seen:
            for name, picture in draw_pictures(page, seen).items():
                (PICTURES / name).write_text(picture, encoding="utf-8")
                print(f"{page.stem}: {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
