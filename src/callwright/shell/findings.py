"""What the analysis of one line has found so far, and which paths a pipeline hands to xargs."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from callwright.core.access import Access, ReadPath
from callwright.shell.options import grammar, parse_options
from callwright.shell.plan import COMMITTED, SimpleCommand, Tree, Verdict
from callwright.shell.words import Folders, Word, literal_words, resolve_as, resolve_paths
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
    loose: bool = False
    """Names stay whole only where they are split at zeros: otherwise a part of one, or two joined, may name a file."""


XargsInput: TypeAlias = PipedNames | None
"""None when the names are unknown, for example because they come from the content of a file."""

NO_INPUT: XargsInput = PipedNames()
_READ_ONLY = Verdict.READ_ONLY
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./@:,+=][A-Za-z0-9_./@:,+=-]*\Z")
_GLOB = re.compile(r"[\w.*?-]+\Z")
_DIFFERENCES = grammar(
    "--name-only -z -r -t -m -R -w -b --cached --staged --merge-base --no-renames --no-commit-id --root --relative "
    "--exit-code --quiet --no-color --no-ext-diff --no-textconv --ignore-all-space --ignore-space-change "
    "--ignore-space-at-eol --ignore-blank-lines --pickaxe-all --pickaxe-regex",
    "-S -G --diff-filter",
    "-M -C -B --find-renames --find-copies --ignore-submodules",
)
_MATCHES = ("-l", "--files-with-matches", "--files-without-match")
FD_OPTIONS = grammar(
    "-H -I -u -s -i -g -F -a -L -p -0 -1 -q --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted "
    "--case-sensitive --ignore-case --glob --regex --fixed-strings --literal --absolute-path --relative-path --follow "
    "--full-path --print0 --prune --quiet --show-errors --one-file-system --mount --xdev --strip-cwd-prefix "
    "--no-require-git --no-follow --no-hidden --ignore --help --version -h -V",
    "-d -t -e -E -S -o -j -C --max-depth --min-depth --exact-depth --type --extension --exclude --size --owner "
    "--changed-within --changed-before --newer --older --change-newer-than --change-older-than --threads --max-results "
    "--base-directory --search-path --and --max-buffer-time --ignore-file -c --color",
)
"""The options with which fd prints names of files as they are."""
_LISTINGS = {
    "fd": (FD_OPTIONS, ()),
    "fdfind": (FD_OPTIONS, ()),
    "rg": (
        grammar(
            "-l -i -s -S -w -x -v -F -P -u -L -0 -n -N -a -U -H -. --files --files-with-matches --files-without-match "
            "--null --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --no-require-git --follow --ignore-case "
            "--smart-case --case-sensitive --word-regexp --line-regexp --fixed-strings --pcre2 --invert-match "
            "--multiline --multiline-dotall --no-messages --no-config --text --no-heading --line-number "
            "--no-line-number --sort-files --one-file-system --glob-case-insensitive",
            "-e -g -t -T -m -d -j --regexp --glob --iglob --type --type-not --max-count --max-depth --threads --sort "
            "--sortr --color --max-filesize",
        ),
        (*_MATCHES, "--files"),
    ),
    "grep": (
        grammar(
            "-l -L -r -R -i -y -w -x -v -E -F -G -P -s -I -a -n -H -U -Z --files-with-matches --files-without-match "
            "--recursive --dereference-recursive --ignore-case --no-ignore-case --word-regexp --line-regexp "
            "--invert-match --extended-regexp --fixed-strings --basic-regexp --perl-regexp --no-messages --null "
            "--line-number --with-filename --text",
            "-e -f -m -A -B -C -D -d --regexp --file --include --exclude --exclude-dir --max-count --directories "
            "--devices --binary-files",
            "--color --colour",
        ),
        (*_MATCHES, "-L"),
    ),
    "git grep": (
        grammar(
            "-l -L -i -w -v -E -F -G -P -I -r -n --name-only --files-with-matches --files-without-match --recursive "
            "--cached --untracked --no-color --ignore-case --word-regexp --invert-match --extended-regexp "
            "--fixed-strings --perl-regexp --basic-regexp --line-number --full-name --recurse-submodules --all-match "
            "--and --or --not -z --null",
            "-e --max-depth",
        ),
        (*_MATCHES, "-L", "--name-only"),
    ),
    "git ls-files": (
        grammar(
            "-c -o -m -d -z -i -k --cached --others --modified --deleted --ignored --killed --exclude-standard "
            "--full-name --deduplicate --directory --no-empty-directory --error-unmatch --recurse-submodules",
            "-x --exclude",
        ),
        (),
    ),
    "git ls-tree": (grammar("--name-only -r -t -d -z --full-name --full-tree"), ("--name-only",)),
    **dict.fromkeys(
        ("git diff", "git diff-tree", "git diff-index", "git diff-files"), (_DIFFERENCES, ("--name-only",))
    ),
}
"""The options with which a search or a sub-command of git prints names and nothing else; one of the last is needed."""
_PLAIN_LS = re.compile(r"-[1aAdRtrSUcu]+\Z")
_PRINTS = frozenset("-print -print0 -exec -execdir -ok -okdir".split())
_PRINTS_ZEROS = re.compile(r"-[A-Za-z]*[0zZ][A-Za-z]*\Z|--null\Z|--print0\Z")
_SPLITS = re.compile(r"[\s'\"\\]")
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
    name, rest = command.program, command.words[1:]
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

    A listing `ls -l` shows where links lead, and other options print text that the line or a file chooses.
    """
    if name == "ls":
        return all(_PLAIN_LS.match(word) for word in rest if word[:1] == "-")
    if name == "find":
        return not any(word == "-ls" or word.startswith(("-printf", "-fprint")) for word in rest)
    if name == "git" and rest:
        name, rest = f"git {rest[0]}", rest[1:]
    if name not in _LISTINGS:
        return False
    options, needed = _LISTINGS[name]
    if any(word[:2] == "--" and len(word) > 2 and word.partition("=")[0] not in options.names for word in rest):
        return False  # also an abbreviation, which may stand for another option
    if name == "git ls-files" and any(word[:1] == ":" and word[1:2] not in ("!", "^") for word in rest):
        return False  # `:/` lists the whole repository, which may begin above
    call = parse_options(literal_words(rest), options)
    return not call.problem and (not needed or call.has(*needed))


def _list_trees(name: str, rest: Sequence[str], command: SimpleCommand, folders: Folders) -> XargsInput:
    """Return the folders that a listing command walks, with the one name pattern that it is restricted to."""
    pattern = "*"
    if name == "find" and rest.count("-name") == 1 and not {"-o", "-or", "-not", "!", ","} & set(rest):
        place = rest.index("-name")
        pattern = "*" if _PRINTS & set(rest[:place]) else "".join(rest[place + 1 : place + 2])
    elif name == "git" and rest[0] == "ls-files":
        names = parse_options(literal_words(rest[1:]), _LISTINGS["git ls-files"][0]).operands
        # a star of git matches slashes too, so only what stands behind the last one tells about the name
        pattern = f"*{re.split(r'[*?]', names[0].text)[-1]}" if len(names) == 1 and "*" in names[0].text else "*"
    if not _GLOB.match(pattern):
        pattern = "*"
    here = resolve_paths(".", folders)
    walked = [access.path for access in command.accesses if isinstance(access, ReadPath)]
    bare = name != "find"  # which puts the folder before each name
    found = [Tree(folder, pattern, split=True, bare=bare, follows=True) for folder in dict.fromkeys((*walked, *here))]
    if name == "git" and _lists_commit(rest[0], rest[1:]):
        found.append(Tree(COMMITTED, split=True))
    return PipedNames(trees=tuple(found), loose=_prints_loose_names(name, rest, walked, folders))


def _lists_commit(verb: str, rest: Sequence[str]) -> bool:
    """Whether the names may come from another commit than the one that is checked out: such files need not exist."""
    if verb not in ("diff", "diff-index", "ls-tree"):
        return verb == "diff-tree"
    revisions = parse_options(literal_words(rest), _LISTINGS[f"git {verb}"][0]).operands
    named = len(rest) - rest.index("--") - 1 if "--" in rest else 0
    if verb == "ls-tree":
        named = len(revisions) - 1
    return any(word.text != "HEAD" for word in revisions[: len(revisions) - named])


def _prints_loose_names(name: str, rest: Sequence[str], walked: Sequence[str], folders: Folders) -> bool:
    """Whether a name is preceded by a folder that would be split, or followed by a zero, which a shell drops."""
    if any(word == "-print0" if name == "find" else _PRINTS_ZEROS.match(word) for word in rest):
        return True
    split = [word for word in rest if word[:1] != "-" and _SPLITS.search(word)]
    return any(name == "ls" or not set(walked).isdisjoint(resolve_paths(word, folders)) for word in split)


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
    return PipedNames(tuple(resolve_as(ReadPath, names, folders)))


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
    xargs_input: XargsInput = NO_INPUT
    """What the standard input of the script may name."""
    stdin_texts: tuple[str, ...] = ()
    """Texts that a redirect around the commands puts there: `while read x; do …; done <<< 'a b'`."""


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


TOO_DEEP = "it is nested too deeply to analyze"
MAX_FILLED_CHARS = 100_000
"""A line whose variables stand for more text than this is refused: filled in, a short line may become gigabytes."""
_MAX_VALUES = 4
_MAX_JOINED = 64


class Findings:
    """Everything found in one line; scripts inside scripts add to the same findings."""

    def __init__(
        self, dangers: Sequence[str] = (), unread: str = "", *, holds_texts: bool = True, holds_globs: bool = True
    ) -> None:
        self.commands: list[SimpleCommand] = []
        self.objections: list[str] = []
        self.dangers = list(dangers)
        self.unread = unread
        """Why a part of the line was not looked at; empty if all of it was."""
        self.holds_texts, self.holds_globs = holds_texts, holds_globs
        """Whether variables may be replaced by the texts they hold, and those of loops by the glob they run over."""
        self.repeated = 0
        self.values: dict[str, list[tuple[str, ...]]] = {}
        """What the line itself puts into its variables: one text, those of an array, or none where it is not literal.

        The newest is the first. Earlier ones may still hold: `x=rm; (x=ls); $x a`.
        """
        self.most_values = 1
        """How many values a variable has at most."""
        self.joined: dict[str, list[tuple[str, ...]]] = {}
        """The same values with what the line adds to them, as by `x+=y`."""
        self.lost: set[str] = set()
        """The variables that may hold more than these values."""
        self.combined_chars = 0
        self.constants: set[str] = set()
        """The variables that were replaced by the text they hold."""
        self.links = False
        """A command so far makes a link."""
        self.runners: set[str] = set()
        """The functions of the line that run their arguments: `run() { "$@"; }`."""
        self.inputs = self.duplicates = False
        """Whether a redirect opens a file as 3 or above to read it, and whether one copies such a descriptor."""
        self.filled_chars = 0
        self.scripts = 0
        self.misread = False
        """The parser took two commands for one, as it sometimes does around redirects."""

    def add_objection(self, reason: str) -> None:
        """Record why the line is not proven."""
        if reason and len(self.objections) < 8:  # more than a user reads
            self.objections.append(reason)

    @property
    def overfilled(self) -> bool:
        """Whether variables stand for too much text, so that what the line does is not known."""
        return self.filled_chars > MAX_FILLED_CHARS

    def may_fill(self, value: str) -> bool:
        """Count a text that is to take the place of a variable, and return whether it may."""
        self.filled_chars += len(value)
        return not self.overfilled

    def add_value(self, name: str, *texts: str | None) -> None:
        """Record that the line sets a variable; to None where the value is not literal."""
        values = self.values.setdefault(name, [])
        known = tuple([text for text in texts if text is not None])
        if known in values:
            values.remove(known)
        values.insert(0, known)
        del values[_MAX_VALUES:]
        self.most_values = max(self.most_values, len(values))
        self.set_joined(name, [known, *self.joined.get(name, ())])

    def set_joined(self, name: str, values: Iterable[tuple[str, ...]]) -> None:
        """Record what a variable may hold if everything that the line adds to it is added, the newest first."""
        self.joined[name] = list(dict.fromkeys(values))
        if len(self.joined[name]) > _MAX_JOINED:
            del self.joined[name][_MAX_JOINED:]
            self.lost.add(name)

    def list_possible(self, name: str) -> list[tuple[str, ...]]:
        """Return all values that a variable may hold as far as the line tells."""
        return list(dict.fromkeys([*self.joined.get(name, ()), *self.values.get(name, ())]))

    def give_up(self, reason: str) -> None:
        """Record that a part of the line is not looked at, so that no rule and no guard sees what it does."""
        self.unread = self.unread or reason

    def doubt_parser(self, reason: str) -> None:
        """Record that the syntax tree is wrong: nothing is proven, and a rough split adds to the commands."""
        self.misread = True
        self.add_objection(reason)

    def add_danger(self, danger: str) -> None:
        """Record a danger that a guard must stop whatever the rules allow."""
        if danger and danger not in self.dangers:
            self.dangers.append(danger)
