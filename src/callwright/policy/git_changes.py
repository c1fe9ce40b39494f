"""Finds the files whose changes a git command would discard."""

import os
from collections.abc import Sequence

from callwright.policy.git_reads import split_verb
from callwright.shell.programs.git_branches import makes_branch


def find_restored_file(arguments: Sequence[str], folder: str) -> str:
    """Return the word of `git checkout` that is a file or folder, and therefore no branch; empty if there is none.

    Args:
        arguments: The words behind `git`.
        folder: Where git would run.
    """
    verb, rest = split_verb(arguments)
    if verb != "checkout" or makes_branch(rest):
        return ""
    operands = (word for word in rest if word[:1] != "-")
    return next((word for word in operands if os.path.lexists(os.path.join(folder, word))), "")  # noqa: PTH118 - a path as text
