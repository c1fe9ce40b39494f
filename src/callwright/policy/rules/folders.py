"""Finds files that a rule is about in folders that a call uses as a whole, and among the words of unknown programs."""

import os
import re
from collections.abc import Iterable, Iterator

from callwright.policy.paths import PossiblePaths
from callwright.policy.rules.patterns import PathPattern
from callwright.policy.trees import find_in_tree
from callwright.shell.plan import SimpleCommand, Tree, Verdict

ANY_NAME = "\ue000" * 12
"""A name that only wildcards match."""
_READS_WHAT_IT_IS_GIVEN = (Verdict.UNKNOWN, Verdict.READS_NETWORK)
"""Commands whose files the analysis does not list."""
_BEFORE_NAME = re.compile(r"file://|[=,@:]|\A-\w")
"""What may stand before the name of a file in a word: an option, another part, a mark that it is a file."""


def may_use_denied(pattern: PathPattern, command: SimpleCommand, named: dict[SimpleCommand, tuple[str, ...]]) -> bool:
    """Whether a command is given a file that the pattern matches, or walks or copies a folder that may hold one.

    Args:
        pattern: The files of the rule.
        command: The command.
        named: The files that commands are given, as far as another rule has asked for them already.
    """
    if command.verdict in _READS_WHAT_IT_IS_GIVEN:
        if command not in named:
            named[command] = tuple(_named_files(command))
        if any(map(pattern.matches, named[command])):
            return True
    return any(_may_hold(tree, pattern) for tree in dict.fromkeys((*command.trees, *command.copied)))


def _named_files(command: SimpleCommand) -> Iterator[str]:
    """Yield the files that words of a command may name: `perl -pe 1 x`, `prog --file=x`, `prog -fx`, `prog @x`."""
    words = dict.fromkeys(command.words if command.cwd else ())
    parts = (part for word in words for part in (word, word.partition("=")[2], *_BEFORE_NAME.split(word)))
    for text in dict.fromkeys(parts):
        path = os.path.join(command.cwd or "", os.path.expanduser(text))  # noqa: PTH111, PTH118 - a path as text
        if text and "\0" not in path and os.path.exists(path) and ("/" in text or not os.path.isdir(path)):  # noqa: PTH110, PTH112 - as above
            yield os.path.normpath(path)
            yield os.path.realpath(path)


def is_denied_folder(pattern: PathPattern, places: PossiblePaths) -> bool:
    """Whether one of the places is a folder that only holds what the pattern matches, or the folder it is bound to."""
    folders = [place for place in places.all if os.path.isdir(place)]  # noqa: PTH112 - a path as text
    return any(pattern.below(folder) or pattern.matches(f"{folder}/{ANY_NAME}") for folder in folders)


def may_hold_denied(pattern: PathPattern, places: PossiblePaths) -> bool:
    """Whether one of the places is a folder with a file that the pattern matches, or with too many to search."""
    # a link is removed or moved itself, not what it leads to
    folders = [place for place in places.written if os.path.isdir(place) and not os.path.islink(place)]  # noqa: PTH112, PTH114 - as above
    return _may_hold_any(folders, pattern)


def find_in_folders(pattern: PathPattern, places: PossiblePaths) -> int:
    """Return 2 if a place is a folder with nothing but what the pattern matches, 1 if it may hold such a file, or 0."""
    folders = [place for place in places.all if os.path.isdir(place)]  # noqa: PTH112 - a path as text
    if any(pattern.matches(f"{folder}/{ANY_NAME}") for folder in folders):
        return 2
    return int(_may_hold_any(folders, pattern))


def _may_hold_any(folders: Iterable[str], pattern: PathPattern) -> bool:
    return any(pattern.reaches(folder) and _may_hold(Tree(folder), pattern) for folder in folders)


def _may_hold(tree: Tree, pattern: PathPattern) -> bool:
    return find_in_tree(tree, pattern.matches, folders=True, every=True) != ""
