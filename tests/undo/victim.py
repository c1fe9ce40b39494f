"""Undoes everything, and dies after some steps of the restore: python victim.py FOLDER STEPS."""

import os
import sys
from pathlib import Path
from typing import Any

from callwright.system.undo import restore
from callwright.system.undo.undo_store import UndoStore


def main() -> None:
    left = int(sys.argv[2])
    perform = restore._perform  # pyright: ignore[reportPrivateUsage] - dies inside

    def perform_or_die(step: Any, result: Any) -> None:
        nonlocal left
        if not left:
            os._exit(9)
        left -= 1
        perform(step, result)

    restore._perform = perform_or_die  # pyright: ignore[reportPrivateUsage]
    log = UndoStore(Path(sys.argv[1])).open("session")
    log.apply(log.plan_undo(0))


if __name__ == "__main__":
    main()
