"""What `find` and `rsync` remove: all that is in a folder, or only a part of it."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from callwright.core.access import DeletePath, ReadPath
from callwright.policy.tool_names import words
from callwright.shell.plan import ShellPlan, SimpleCommand

_NAME_TESTS = words("-name -iname -path -ipath -regex -iregex -wholename -iwholename")
_OTHER_TESTS = words("-mtime -mmin -newer -size -empty")
_NOT, _OR = ("!", "-not"), words("-o -or ,")
_ACTIONS = words("-delete -exec -execdir -ok -okdir")
_TRIAL = re.compile("--dry-run|-[avzrltpgoDhuPHAXxcqi]*n[avzrltpgoDhuPHAXxcqi]*")
_WILDCARDS = re.compile(r"\[[^]]*\]|[*?./\\]")


def selects(line: Sequence[str]) -> bool:
    """Whether a line of find has a test that leaves something out: `-name '*'` does not.

    Args:
        line: Its words.
    """
    if any(word in _OR and after in _ACTIONS for word, after in pairwise(line)):
        return False  # `-name a -o -delete` removes all the others
    return not _OTHER_TESTS.isdisjoint(line) or any(_has_letters(text) or no for text, no in _list_names(line))


def selects_by_name(line: Sequence[str]) -> bool:
    """Whether a line of find takes only what has a part of its name in common: `-name '*.pyc'`, and not `-mtime +9`.

    Args:
        line: Its words.
    """
    return _OR.isdisjoint(line) and any(_has_letters(text) and not no for text, no in _list_names(line))


def mirrors(line: Sequence[str]) -> bool:
    """Whether a line of rsync removes what is in its destination and not in its source.

    Args:
        line: Its words.
    """
    removes = any(word == "--del" or word.startswith("--delete") for word in line)
    return line[:1] == ("rsync",) and removes and not _is_trial(line)


def _is_trial(line: Sequence[str]) -> bool:
    """Whether the first option of rsync says to change nothing; a later one may be the value of another."""
    return any(map(_TRIAL.fullmatch, line[1:2]))


def list_removed_folders(command: SimpleCommand, plan: ShellPlan) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the folders from which a command removes whatever find gives it, each with the words of find.

    Args:
        command: One that find or xargs starts, such as `rm {}`.
        plan: The whole line.
    """
    if not any(isinstance(access, DeletePath) and access.path.endswith("{}") for access in command.accesses):
        return
    for other in plan.commands:
        if other.words[:1] != ("find",):
            continue
        for access in other.accesses:
            if not isinstance(access, ReadPath):
                continue
            given = [tree.pattern for tree in command.trees if tree.folder == access.path]
            if given and not any(map(_has_letters, given)):
                yield access.path, other.words


def _list_names(line: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield what names are compared with, and whether the test is turned round."""
    for place, word in enumerate(line[:-1]):
        if word in _NAME_TESTS:
            yield line[place + 1], line[place - 1] in _NOT


def _has_letters(pattern: str) -> bool:
    """Whether a pattern is more than wildcards."""
    return bool(_WILDCARDS.sub("", pattern))
