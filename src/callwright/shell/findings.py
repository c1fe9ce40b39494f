"""What the analysis of one line has found so far, and which paths a pipeline hands to xargs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from callwright.core.access import Access, ReadPath
from callwright.shell.plan import SimpleCommand, Tree, Verdict
from callwright.shell.words import Folders, Word, resolve_paths
from callwright.shell.wrappers import InnerCommand


class Judgement(NamedTuple):
    """The verdict on one program call, the reason and the accesses."""

    verdict: Verdict
    reason: str
    accesses: tuple[Access, ...] = ()
    inner_commands: tuple[InnerCommand, ...] = ()
    """Commands that the call runs (find -exec), which are judged like any other."""
    trees: tuple[Tree, ...] = ()
    """Folders whose files the call may read without naming them."""
    copied: tuple[Tree, ...] = ()
    """Folders whose files the call writes elsewhere under the same names."""
    links: tuple[str, ...] = ()
    """Links that the call makes; a later path through one of them leads elsewhere."""


def unknown(reason: str, accesses: tuple[Access, ...] = (), inner_commands: tuple[InnerCommand, ...] = ()) -> Judgement:
    """Return the judgement of a call whose effect is unknown."""
    return Judgement(Verdict.UNKNOWN, reason, accesses, inner_commands)


class PipedNames(NamedTuple):
    """What a pipeline may hand to xargs, or a substitution to the command around it."""

    accesses: tuple[Access, ...] = ()
    """The paths, where they are written in the line."""
    trees: tuple[Tree, ...] = ()
    """The folders whose files may be named."""


XargsInput: TypeAlias = PipedNames | None
"""None when the names are unknown, for example because they come from the content of a file."""

NO_INPUT: XargsInput = PipedNames()
_READ_ONLY = Verdict.READ_ONLY
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./@:,+=][A-Za-z0-9_./@:,+=-]*\Z")
_GLOB = re.compile(r"[\w.*?-]+\Z")
_LISTERS = frozenset(("find", "fd", "fdfind", "ls"))
_LISTING = {
    "rg": ("-l", "--files", "--files-with-matches", "--files-without-match"),
    "grep": ("-l", "-rl", "-lr", "-L", "-Rl", "-ril", "-rli", "--files-with-matches", "--files-without-match"),
    **dict.fromkeys(("diff", "diff-tree", "diff-index", "diff-files", "ls-tree"), ("--name-only",)),
}
"""The options with which a search, or a sub-command of git, prints names and nothing else."""
_TAKES_VALUE = re.compile(
    r"--(?!cached|staged|recursive|ignore-case|word-regexp|hidden|no-)[^=]+\Z|-\w*[efABCmDdgtTMjErSGOlU]\Z"
)
_TAKES_NONE = frozenset(("-r", "-rl", "-l", "-Rl", "-ril"))
_PLAIN_LS = re.compile(r"-[1aAdRtrSUcu]+\Z")
_PRINTS = frozenset("-print -print0 -exec -execdir -ok -okdir".split())
_LISTED_BY_GIT = frozenset(
    "-c -o -m -d -z --cached --others --modified --deleted --exclude-standard --full-name --deduplicate".split()
)
# the options with which a filter passes lines on as they are
_FILTERS = {
    "sort": re.compile(r"-[bdfghinruV]+\Z|--(?:reverse|unique|numeric-sort|version-sort)\Z"),
    "uniq": re.compile(r"-[udi]+\Z"),
    "head": re.compile(r"-n|-n?[+-]?\d+\Z|\d+\Z"),
    "tail": re.compile(r"-n|-n?[+-]?\d+\Z|\+?\d+\Z"),
    "grep": re.compile(r"-[viEFPwxaeq]+\Z|[^-]"),
    "egrep": re.compile(r"-[viEFPwxaeq]+\Z|[^-]"),
    "fgrep": re.compile(r"-[viEFPwxaeq]+\Z|[^-]"),
    "tac": re.compile(r"(?!)"),
    "shuf": re.compile(r"-n|-n?\d+\Z|\d+\Z"),
}


def find_xargs_input(commands: Sequence[SimpleCommand], before: XargsInput, folders: Folders) -> XargsInput:
    """Return the paths that the next command of a pipeline receives from the commands before it."""
    if len(commands) != 1 or commands[0].verdict is not _READ_ONLY or not commands[0].words:
        return None
    command = commands[0]
    name, rest = command.words[0].rpartition("/")[2], command.words[1:]
    if _prints_names(name, rest):
        return _list_trees(name, rest, command, folders)
    if name in ("echo", "printf") and command.literal:
        return _read_printed_names(name, rest, folders)
    passes = _FILTERS.get(name)
    if passes is not None and not command.accesses and not command.redirected and all(map(passes.match, rest)):
        return before
    return None


def _prints_names(name: str, rest: Sequence[str]) -> bool:
    """Whether a command prints names of files below its folders and nothing else.

    A listing `ls -l` shows where links lead, and an option behind `-e` or `--` is a pattern or a file.
    """
    if name == "ls":
        return all(_PLAIN_LS.match(word) for word in rest if word[:1] == "-")
    if name == "find":
        return "-ls" not in rest
    if name in _LISTERS:
        return not any(word.startswith(("-l", "--list")) for word in rest)
    if name == "git":
        name, rest = (rest[0], rest[1:]) if rest else ("", ())
        if name == "ls-files":
            return True
    previous = ""
    for word in rest:
        if word == "--":
            return False
        if word in _LISTING.get(name, ()):
            return not _TAKES_VALUE.match(previous) or (name == "grep" and previous in _TAKES_NONE)
        previous = word
    return False


def _list_trees(name: str, rest: Sequence[str], command: SimpleCommand, folders: Folders) -> XargsInput:
    """Return the folders that a listing command walks, with the one name pattern that it is restricted to."""
    if any(word.startswith(("-printf", "-fprint", "--format", "--pretty", "--exec")) for word in rest):
        return None  # it prints text of its own, which need not be a name of a file
    pattern = "*"
    if name == "find" and rest.count("-name") == 1 and not {"-o", "-or", "-not", "!", ","} & set(rest):
        place = rest.index("-name")
        pattern = "*" if _PRINTS & set(rest[:place]) else "".join(rest[place + 1 : place + 2])
    elif name == "git" and rest[0] == "ls-files":
        names = [word for word in rest[1:] if word not in _LISTED_BY_GIT]
        # a star of git matches slashes too, so only what stands behind the last one tells about the name
        pattern = f"*{re.split(r'[*?]', names[0])[-1]}" if len(names) == 1 and "*" in names[0] else "*"
    if not _GLOB.match(pattern):
        pattern = "*"
    here = resolve_paths(".", folders)
    walked = [access.path for access in command.accesses if isinstance(access, ReadPath)]
    return PipedNames(
        trees=tuple([Tree(folder, pattern, split=True, follows=True) for folder in dict.fromkeys((*walked, *here))])
    )


def _read_printed_names(name: str, rest: Sequence[str], folders: Folders) -> XargsInput:
    """Return the names that echo or printf prints; xargs reads quotes, and printf spells out letters."""
    words = [word for word in rest if not (name == "echo" and word == "-n")]
    if name == "printf" and words:
        # any other format may join its operands to a new name
        layout, operands = words[0], words[1:]
        words = operands if layout in ("%s\\n", "%s ", "%s\\0") else [layout.replace("\\n", " "), *operands]
    names = [part for word in words for part in word.split()]
    if not all(map(_PLAIN_NAME.match, names)):
        return None
    return PipedNames(tuple([ReadPath(path) for part in names for path in resolve_paths(part, folders)]))


STDIN_SCRIPT = "it runs a script from standard input"


class ScriptContext(NamedTuple):
    """Where a script was found, and the wrappers around it."""

    inside: str = ""
    wrappers: tuple[str, ...] = ()
    wrapped: tuple[tuple[str, ...], ...] = ()
    doubt: str = ""
    """Why no command in this context can count as read-only; empty when there is no reason."""
    cleared: bool = False
    """The variables that keep git from running programs of a repository are not set here."""


class Redirects(NamedTuple):
    """The accesses of the redirects of one command."""

    accesses: tuple[Access, ...] = ()
    doubt: str = ""
    present: bool = False
    stdin_texts: tuple[str, ...] = ()
    """Texts of heredocs and here-strings; a shell that reads them runs them as a script."""


def merge_redirects(parts: Sequence[Redirects]) -> Redirects:
    """Merge the redirects of one command."""
    accesses = tuple([access for part in parts for access in part.accesses])
    doubt = next((part.doubt for part in parts if part.doubt), "")
    stdin_texts = tuple([text for part in parts for text in part.stdin_texts])
    return Redirects(accesses, doubt, any(part.present for part in parts), stdin_texts)


NO_REDIRECTS = Redirects()


class FoundCommand(NamedTuple):
    """A simple command as it stands in the line, not yet judged."""

    words: tuple[Word, ...]
    text: str
    folders: Folders
    context: ScriptContext = ScriptContext()
    assignments: tuple[tuple[str, str | None], ...] = ()
    redirects: Redirects = NO_REDIRECTS
    xargs_input: XargsInput = None
    trees: tuple[Tree, ...] = ()
    """Folders whose files the command receives without their names standing in the line."""


@dataclass(slots=True)
class Findings:
    """Everything found in one line; scripts inside scripts add to the same findings."""

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    objections: list[str] = field(default_factory=list[str])
    dangers: list[str] = field(default_factory=list[str])
    variables: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Literal values set by the line itself; None once a value is not literal."""
    links: bool = False
    """A command so far makes a link."""
    scripts: int = 0
    misread: bool = False
    """The parser took two commands for one, as it sometimes does around redirects."""
    start: Folders = None
    """Where the line begins to run."""

    def add_objection(self, reason: str) -> None:
        """Record why the line is not proven."""
        if reason and len(self.objections) < 8:  # more than a person reads
            self.objections.append(reason)

    def doubt_parser(self, reason: str) -> None:
        """Record that the syntax tree is wrong: nothing is proven, and a rough split adds to the commands."""
        self.misread = True
        self.add_objection(reason)

    def add_danger(self, danger: str) -> None:
        """Record a danger that a guard must stop whatever the rules allow."""
        if danger and danger not in self.dangers:
            self.dangers.append(danger)
