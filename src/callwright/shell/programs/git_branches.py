"""Tells whether `git checkout` makes a new branch, so that its other words are no files."""

import re
from collections.abc import Iterable

_NEW_BRANCH = re.compile(r"-[a-zA-Z]*[bB]|--orphan\Z")


def makes_branch(arguments: Iterable[str]) -> bool:
    """Whether an option of `git checkout` names a new branch.

    Args:
        arguments: The words behind `checkout`.
    """
    return any(map(_NEW_BRANCH.match, arguments))
