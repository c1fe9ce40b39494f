"""Lists the files and folders whose content a git call may print."""

import re
from collections.abc import Iterator, Sequence

from callwright.core.access import Access, ReadPath
from callwright.shell.plan import COMMITTED, Tree
from callwright.shell.words import Folders, Word, resolve_as, resolve_paths

SHOWS_CONTENT = frozenset(
    "diff show blame annotate cat-file grep diff-tree diff-index diff-files format-patch stash log whatchanged "
    "range-diff archive apply patch-id hash-object".split()
)
"""Sub-commands that may print the content of committed files."""
_FILE_OPTIONS = frozenset(
    "--contents --ignore-revs-file --no-index --file -F -f -O -S --pathspec-from-file --template -t".split()
)
_FILE_LETTER = re.compile("[FfOSt]")
"""The letters among these options, which may stand behind others."""
_TEXT_OPTIONS = frozenset("-S -G --grep --author --committer --since --until --after --before".split())


def list_files(verb: str, words: Sequence[Word], folders: Folders) -> tuple[Access, ...]:
    """Return the files whose content git may show, or that it reads outside the repository."""
    shows = verb in SHOWS_CONTENT
    found: list[str] = []
    previous = ""
    pattern = _find_searched(words) if verb == "grep" else None
    for word in words:
        if word is pattern:
            continue
        text = word.text
        name, equals, value = text.partition("=")
        if text[:1] != "-":
            loose = shows or _awaits_file(previous) or text[:1] == "/" or ".." in text
            # the path stands behind the last colon: HEAD:.env, :0:.env, 1,2:.env
            found.extend([text, text.partition(":")[2], text.rpartition(":")[2]] if loose else [])
        elif text[:2] == "-L":
            found.append(text.rpartition(":")[2])
        elif equals and any(option.startswith(name) for option in _FILE_OPTIONS):
            found.append(value)
        elif text[1:2] != "-" and (joined := _FILE_LETTER.search(text)):
            found.append(text[joined.end() :])
        previous = text
    return tuple(resolve_as(ReadPath, filter(None, found), folders))


def _awaits_file(option: str) -> bool:
    """Whether the next word may be a file: behind `-F`, `-qF` and `--fil`, which git takes for `--file`."""
    if option[:2] == "--":
        return len(option) > len("--") and any(each.startswith(option) for each in _FILE_OPTIONS)
    return option[:1] == "-" and f"-{option[-1]}" in _FILE_OPTIONS


def list_shown_trees(verb: str, words: Sequence[Word], folders: Folders) -> tuple[Tree, ...]:
    """Return the folders whose committed files git may show, named or not."""
    named = tuple(_list_named_folders(verb, words, folders)) if verb in SHOWS_CONTENT else ()
    return (*named, *_list_tracked(verb, words, folders)) if _prints_content(verb, words) else named


def _list_named_folders(verb: str, words: Sequence[Word], folders: Folders) -> Iterator[Tree]:
    """Yield the folders that the words may name."""
    pattern = _find_searched(words) if verb == "grep" else None
    previous = ""
    for word in words:
        text = word.text
        before, previous = previous, text
        if word is pattern or not text or text[0] == "-" or _excludes(text):
            continue
        if text[:2] in (":/", ":("):  # counted from the top of the repository, which is not known here
            yield Tree(COMMITTED, secrets=False)
        elif not set(text) & set("*?["):
            # HEAD:secret is a folder of a commit
            spelled = dict.fromkeys((text, text.rpartition(":")[2] or text))
            yield from (Tree(path, secrets=False) for each in spelled for path in resolve_paths(each, folders))
        elif before not in _TEXT_OPTIONS or verb == "grep":
            # a star of git matches slashes too, so only what stands behind the last one tells about the name
            ending = re.split(r"[*?\]]", text)[-1].rpartition("/")[2]
            yield from (Tree(path, f"*{ending}", secrets=False) for path in resolve_paths(".", folders))


def _find_searched(words: Sequence[Word]) -> Word | None:
    """Return the pattern of git grep: the first operand, unless -e or -f gives it."""
    if _gives_pattern(words):
        return None
    return next((word for word in words if word.text[:1] != "-"), None)


def _gives_pattern(words: Sequence[Word]) -> bool:
    return any(word.text[:1] == "-" and word.text[1:2] != "-" and set(word.text) & {"e", "f"} for word in words)


def _excludes(text: str) -> bool:
    return text[:2] in (":!", ":^")


_SHOWS_PATCH = frozenset("diff show difftool range-diff format-patch fast-export".split())
_SHOWS_PATCH_IF_TOLD = frozenset("log whatchanged reflog stash diff-tree diff-index diff-files".split())
_TOLD_TO_SHOW = {
    **dict.fromkeys((*_SHOWS_PATCH, *_SHOWS_PATCH_IF_TOLD), re.compile(
        r"-(?!-)[^SGOI]*?[puUcLW]|--(?:pat|un(?!t)|cc?\Z|che(?!r)|reme|dd\Z|diff-m|wo|color-w|fun)"
    )),
    **dict.fromkeys(("status", "commit"), re.compile(r"-(?!-)[a-zA-Z]*v|--v")),
    "add": re.compile(r"-(?!-)[a-zA-Z]*[pie]|--(?:pat|int|ed)"),
}  # fmt: skip
"""Options with which a sub-command prints lines of files, which are abbreviated as git accepts it."""
_SUMMARIES = frozenset(
    "--stat --numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw --quiet "
    "--no-patch -s".split()
)
_REVISIONS_ONLY = frozenset("stash reflog range-diff".split())
"""Sub-commands whose operands are never files, even if a file has that name."""
_NAMES_OBJECTS = frozenset("show diff difftool grep archive".split())
_PLAIN_LONG = frozenset(
    "--cached --staged --patch --oneline --graph --follow --reverse --word-diff --color --no-color --no-ext-diff "
    "--no-renames --ignore-all-space --merge-base --cc --first-parent --all --stat --name-only --no-index "
    "--line-number --ignore-case --untracked --recurse-submodules --recursive".split()
)
_PLAIN_SHORT = re.compile(r"-(?:[nUlMCB]?\d+%?|[abcgimpqrstuvwzDMCBEFPRW]+)\Z")
_PLAIN_GREP = re.compile(r"-(?:[ABCm]?\d+|[acEFGhHiIlLnopPqrvwWz]+)\Z")


def _prints_content(verb: str, words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    if verb == "grep":
        return True
    if verb == "archive":
        return not any(text in ("-l", "--list") for text in texts)
    told = _TOLD_TO_SHOW.get(verb)
    if told is None:
        return False
    if any(map(told.match, texts)):
        return True
    # a setting can make `stash show` print lines
    shows = verb in _SHOWS_PATCH or (verb == "stash" and texts[:1] == ["show"])
    return shows and not any(text.partition("=")[0] in _SUMMARIES for text in texts)


def _list_tracked(verb: str, words: Sequence[Word], folders: Folders) -> Iterator[Tree]:
    """Yield the tracked files as a whole, where a call is not restricted to paths beyond doubt."""
    operands, closed = _list_certain_operands(verb, words)
    if closed or any(map(_is_pattern, operands)):
        return
    if operands and verb in _NAMES_OBJECTS and all(map(_names_object, operands)):
        return  # HEAD:file, and no commit as a whole
    whole = verb not in ("grep", "archive")  # which begin at the folder they run in
    if folders is None:
        yield Tree(".", secrets=False, tracked=True, whole=whole)
    for folder in sorted(folders or ()):
        # git takes a word for a path if there is such a file, and refuses it if it is also a revision
        paths = resolve_as(str, operands, frozenset((folder,)))
        yield Tree(folder, secrets=False, tracked=True, whole=whole, unless=tuple(paths))


def _list_certain_operands(verb: str, words: Sequence[Word]) -> tuple[list[str], bool]:
    """Return the operands that may be paths and are no values of options, and whether paths stand behind `--`."""
    operands: list[str] = []
    certain = True  # the word before takes no value
    for place, word in enumerate(words):
        text = word.text
        if text == "--" and certain:
            if any(not _excludes(behind.text) for behind in words[place + 1 :]):
                return operands, True
            break
        if text[:1] == "-" and len(text) > 1 and text != "--":
            certain = _takes_no_value(verb, text)
            continue
        if certain and word.literal:
            operands.append(text)
        certain = True
    if verb in _REVISIONS_ONLY:
        return [], False
    first = verb == "archive" or (verb == "grep" and not _gives_pattern(words))  # a commit, or what is searched for
    return operands[1:] if first else operands, False


def _takes_no_value(verb: str, option: str) -> bool:
    if option[:2] == "--":
        return "=" in option or option in _PLAIN_LONG
    if verb == "grep":
        return _PLAIN_GREP.match(option) is not None
    return verb in (_SHOWS_PATCH | _SHOWS_PATCH_IF_TOLD) and _PLAIN_SHORT.match(option) is not None


def _is_pattern(text: str) -> bool:
    """Whether an operand is a pattern for paths: a revision holds such letters only behind ^{, or a colon."""
    return bool(set(text) & set("*?[")) and not set(text) & set("^:@{")


def _names_object(text: str) -> bool:
    """Whether an operand names a file or folder in a commit, and nothing besides it."""
    before, colon, path = text.partition(":")
    return bool(colon and path) and not (set(text) & set("{") or ".." in text or (not before and path[0] in "/(!^"))
