"""Folders that the machine or a user's home depends on."""

import os
from functools import lru_cache

_HOMES = ("/home", "/Users")


def is_vital(folder: str, home: str) -> bool:
    """Whether a folder must not be removed: the root, what lies directly below it, a home folder.

    Args:
        folder: The folder, from `whole_folder`.
        home: The user's home folder.
    """
    return folder in _vital_folders(home) or _is_top_level(folder)


def whole_folder(place: str) -> str:
    """Cut off components that are only wildcards: `/usr/*` is all of `/usr`."""
    while place.startswith("/") and place != "/":
        parent, _, last = place.rpartition("/")
        if last.strip("*?.[]!^") and not last.startswith("["):
            return place
        place = parent or "/"
    return place


@lru_cache(maxsize=8)
def _vital_folders(home: str) -> frozenset[str]:
    return frozenset({"/", *_HOMES, home, os.path.realpath(home), "/root"})


def _is_top_level(place: str) -> bool:
    """Whether a path lies directly below the root, or is a home folder."""
    parent = os.path.dirname(place)  # noqa: PTH120 - compared as text
    return place.startswith("/") and (parent == "/" or parent in _HOMES)
