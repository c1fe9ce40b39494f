"""What commands remove: folders that must stay, what `find` and `rsync` select, changes that git discards."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from callwright.core.access import DeletePath, ReadPath
from callwright.policy.git_reads import split_verb
from callwright.policy.tool_names import words
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict
from callwright.shell.programs.git_branches import makes_branch

_ABOVE_VITAL = ("/", "/home", "/Users")
_EXPANDED = re.compile(r"[$`]")
_RECURSIVE = re.compile("-(?=[a-zA-Z]*[rR])[a-zA-Z]+|--rec[a-z]*")


def is_vital(folder: str, home: str) -> bool:
    """Whether a folder must not be removed: the root, what lies directly below it, a home folder.

    Args:
        folder: The folder, from `whole_folder`.
        home: The user's home folder.
    """
    return folder in _names_of_home(home) or os.path.dirname(folder) in _ABOVE_VITAL  # noqa: PTH120 - compared as text


def whole_folder(place: str) -> str:
    """Cut off components that are only wildcards: `/usr/*` is all of `/usr`."""
    while place.startswith("/") and place != "/":
        parent, _, last = place.rpartition("/")
        if last.strip("*?.[]!^") and not last.startswith("["):
            return place
        place = parent or "/"
    return place


def find_endangered(line: Sequence[str], home: str) -> str:
    """Return a vital folder that is given whole to a program that only the shell knows; empty if none is: `$x -rf /`.

    Args:
        line: The words of a command.
        home: The user's home folder.
    """
    if not line or not _EXPANDED.search(line[0]) or not removes_folders(line):
        return ""
    places = (home + word[1:] if word == "~" or word.startswith("~/") else word for word in line[1:])
    folders = (whole_folder(os.path.normpath(place).replace("//", "/")) for place in places)
    return next((folder for folder in folders if folder != "/tmp" and is_vital(folder, home)), "")


_EXPANSION = re.compile(r"\$(?:\w+|[@*]|\{(?:\w+[#%/^,][^{}]*|[^{}/]*)\})|(\$\([^()]*\)|`[^`]*`)")
_UNQUOTED = {ord(mark): None for mark in "\"'"}


def may_be_vital(word: str, home: str) -> bool:
    """Whether a word is a vital folder where what it expands is empty: `$x/$y`, `$(y)/`, `/usr/$x`.

    A substitution alone is then no word at all.

    Args:
        word: The word as it is written.
        home: The user's home folder.
    """
    bare = word.translate(_UNQUOTED)
    found = _EXPANSION.search(bare)
    if found is None or _EXPANSION.sub("", bare[found.start() :]).strip("/*.?"):
        return False
    before = bare[: found.start()]
    if not before.strip("/*.?~"):
        return not (found[1] and found[0] == bare)
    place = home + before[1:] if before.startswith("~/") else before
    folder = whole_folder(os.path.normpath(place).replace("//", "/"))
    return before.endswith("/") and folder != "/tmp" and is_vital(folder, home)


def removes_folders(line: Sequence[str]) -> bool:
    """Whether a line has an option such as `-r` or `--recursive`.

    Args:
        line: Its words.
    """
    return any(map(_RECURSIVE.fullmatch, line))


@lru_cache(maxsize=8)
def _names_of_home(home: str) -> tuple[str, str]:
    return home, os.path.realpath(home)


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
    return not _OTHER_TESTS.isdisjoint(line) or any(_has_letters(text) for text, _ in _list_names(line))


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
    return any(word == "--del" or word.startswith("--delete") for word in line) and not _is_trial(line)


def _is_trial(line: Sequence[str]) -> bool:
    """Whether the first option of rsync says to change nothing; a later one may be the value of another."""
    return any(map(_TRIAL.fullmatch, line[1:2]))


def list_removed_folders(command: SimpleCommand, plan: ShellPlan) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the folders from which a command removes whatever it is handed, each with the words of a find.

    Args:
        command: One that find or xargs starts, such as `rm {}`.
        plan: The whole line.
    """
    if not any(isinstance(access, DeletePath) and access.path.endswith("{}") for access in command.accesses):
        return
    if "xargs" in command.wrappers:  # the names in `echo / | xargs rm -rf` count as read
        yield from ((access.path, ()) for access in command.accesses if isinstance(access, ReadPath))
    patterns: dict[str, list[str]] = {}
    for tree in command.trees:
        patterns.setdefault(tree.folder, []).append(tree.pattern)
    for other in plan.commands:
        if other.words[:1] != ("find",):
            continue
        for access in other.accesses:
            if not isinstance(access, ReadPath):
                continue
            given = patterns.get(access.path)
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


_BRINGS_FILES = words(
    "checkout switch merge pull cherry-pick revert rebase am stash bisect worktree submodule sparse-checkout"
)
_NEW_BRANCH = words("-b -B -c -C --create")


def brings_files(command: SimpleCommand) -> bool:
    """Whether a git call may put other files into the work tree, and links among them."""
    if command.program != "git" or command.verdict in (Verdict.READ_ONLY, Verdict.READS_NETWORK):
        return False
    verb, rest = split_verb(command.words[1:])
    operands = [word for word in rest if word[:1] != "-" or word == "-"]  # a dash alone is the last branch
    # a branch that begins here has the files that are there already
    begins = verb in ("checkout", "switch") and len(operands) == 1 and not _NEW_BRANCH.isdisjoint(rest)
    return verb in _BRINGS_FILES and not begins


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
