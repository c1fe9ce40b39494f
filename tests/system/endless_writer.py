"""Writes a file until it is killed, alternating between two contents: python endless_writer.py FILE."""

import sys
from pathlib import Path

from callwright.system.atomic_write import digest, replace_file


def main() -> None:
    path = Path(sys.argv[1])
    contents = [letter * 200_000 for letter in (b"a", b"b")]
    current = digest(path.read_bytes())
    while True:
        for content in contents:
            replace_file(path, content, expected=current)
            current = digest(content)


if __name__ == "__main__":
    main()
