"""`python -m docs.play`: draw every picture of the pages anew."""

import sys
from pathlib import Path

from docs.play.page import title
from docs.play.reader import ROOT, Played, played
from docs.play.svg import svg

PAGES = sorted((ROOT / "docs" / "start").glob("*.md"))
PICTURES = ROOT / "docs" / "pictures"


def drawn(page: Path, seen: Played) -> dict[str, str]:
    """The pictures of a page by their file names."""
    heading = title(page)
    return {
        shown.picture.name: svg(shown.rows, title=heading, about=shown.picture.about, cursor=shown.cursor)
        for shown in seen.shown
    }


def main() -> None:
    """Play the pages that are named, or all, and write their pictures."""
    named = sys.argv[1:]
    for page in PAGES:
        if named and page.stem not in named:
            continue
        with played(page, Path(sys.executable).parent) as seen:
            for name, picture in drawn(page, seen).items():
                (PICTURES / name).write_text(picture, encoding="utf-8")
                print(f"{page.stem}: {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
