"""Words of a shell line and how certain their text is, the folders a command may run in, harmless variables."""

import os
import os.path
import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

Folders: TypeAlias = frozenset[str] | None
"""Every folder a command may run in; None when it is unknown."""

HARMLESS_TARGETS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"))
"""Files that can be written to without changing anything."""
_MAX_FOLDERS = 4  # with more possible folders a line is treated as running anywhere


def merge_folders(one: Folders, other: Folders) -> Folders:
    """Return the folders possible after either of two paths through a line."""
    if one == other:
        return one
    if one is None or other is None:
        return None
    both = one | other
    return both if len(both) <= _MAX_FOLDERS else None


def single_folder(folders: Folders) -> str | None:
    """Return the folder if exactly one is possible."""
    if folders is None or len(folders) != 1:
        return None
    [folder] = folders
    return folder


def enter_folder(folders: Folders, target: str, *, physical: bool = False) -> Folders:
    """Return the folders after a cd with a literal target.

    Args:
        folders: The folders before.
        target: The folder to enter.
        physical: Links are followed before `..`, as by every program but cd, so a path with `..` is kept as written.
    """
    if not target.startswith("/") and folders is None:
        return None
    joined = [target] if target.startswith("/") else [f"{folder}/{target}" for folder in folders or ()]
    return frozenset([path if physical and _CLIMBS.search(path) else normalize_path(path) for path in joined])


_CLIMBS = re.compile(r"/\.\.(?:/|\Z)")
_WORKING = re.compile(r".*(?:/proc/[^/]+(?:/task/[^/]+)?|/dev/fd/\.\.)/cwd(?:/|\Z)", re.DOTALL)
"""The working folder of a process, which is another one for the program than for us."""


def resolve_paths(target: str, folders: Folders) -> tuple[str, ...]:
    """Return the absolute paths a word may mean; the word itself when the folder is unknown.

    A path with `..` is returned as written too: what stands before the `..` may be a link, which leads elsewhere.
    """
    if target[:1] == "/":
        if "/cwd" in target and (working := _WORKING.match(re.sub(r"/(?:\.?/)+", "/", target))):
            rest = working.string[working.end() :]
            return tuple(dict.fromkeys((*resolve_paths(rest.lstrip("/"), folders), normalize_path(target))))
        joined = [target]
    elif folders is None:
        return (target or ".",)
    elif len(folders) == 1:
        [folder] = folders
        joined = [f"{folder}/{target}"]
    else:
        joined = [f"{folder}/{target}" for folder in sorted(folders)]
    if len(joined) == 1 and "/.." not in joined[0]:
        return (normalize_path(joined[0]),)
    found = [normalize_path(path) for path in joined]
    return tuple(dict.fromkeys([*found, *(path for path in joined if _CLIMBS.search(path))]))


_Made = TypeVar("_Made")


def resolve_as(kind: Callable[[str], _Made], names: "Iterable[Word | str]", folders: Folders) -> list[_Made]:
    """Return something of a kind, such as `ReadPath` or `Tree`, for each path that words or texts may mean."""
    texts = [name if isinstance(name, str) else name.text for name in names]
    return [kind(path) for text in texts for path in resolve_paths(text, folders)]


def normalize_path(path: str) -> str:
    """Normalize a path without reading the disk."""
    if "/." not in path and "//" not in path and path[-1:] != "/":
        return path
    tidy = os.path.normpath(path)
    return tidy[1:] if tidy.startswith("//") else tidy


def absolute_folder(cwd: str | os.PathLike[str]) -> str:
    """Normalize the folder of a line; a relative one is in the working folder of this process, as for a program."""
    path = os.fspath(cwd)
    if path[:1] != "/":
        try:
            path = os.path.abspath(path)  # noqa: PTH100 - lexical: links are not followed
        except OSError:  # the working folder is gone
            path = os.path.join("/nowhere", path)  # noqa: PTH118 - a path as text
    return normalize_path(path)


_HARMLESS = frozenset(
    (
        "LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM NODE_ENV CI "
        "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING RUST_BACKTRACE RUST_LOG GREP_COLOR GREP_COLORS "
        "LS_COLORS BLOCK_SIZE TIME_STYLE QUOTING_STYLE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC "
        "LC_TIME GIT_OPTIONAL_LOCKS AWS_REGION AWS_DEFAULT_REGION AWS_DEFAULT_OUTPUT "
        "HOMEBREW_NO_AUTO_UPDATE HOMEBREW_NO_ANALYTICS PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT FOO BAR BAZ QUX "
        "DEBUG VERBOSE LOG_LEVEL"
    ).split()
)
_PAGERS = frozenset("PAGER GIT_PAGER MANPAGER GH_PAGER AWS_PAGER SYSTEMD_PAGER".split())
# names that scripts use for their own values and that no common program reads
_CONVENTIONAL = frozenset(
    (
        "NAME VERSION TAG BRANCH COMMIT SHA HASH REV COUNT TOTAL NUM RESULT RESULTS OUTPUT OUT LINE "
        "FILE FILES SRC DST DEST START END NOW TODAY STATUS CODE MSG MESSAGE URL VALUE VALUES ITEM ITEMS LIST SIZE "
        "PORT PROJECT MODULE PACKAGE SERVICE TARGET VAR TEST_VAR MY_VAR"
    ).split()
)
# lower-case names belong to the script, except for the few that programs or bash itself read
_OWN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_TAKEN = re.compile(
    r".*_proxy\Z|p?npm_config_.*|histchars\Z|auto_resume\Z|_\Z|cdpath\Z|path\Z|fpath\Z|prompt\Z|ps[1-4]\Z"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_harmless_variable(name: str, value: str | None, *, exported: bool = True) -> bool:
    """Whether setting the variable cannot change what later commands do.

    Args:
        name: The variable.
        value: Its value; None if it is not literal.
        exported: Whether programs see it; a variable that only the script itself reads may have more names.
    """
    if name in _PAGERS:  # a pager is a program
        return value in ("", "cat")
    if name in _HARMLESS:
        return name != "GIT_OPTIONAL_LOCKS" or value == "0"  # git writes its index without the 0
    if not exported and (name in _CONVENTIONAL or (len(name) == 1 and name.isupper())):
        return True
    return bool(_OWN.match(name)) and not _TAKEN.match(name)


def is_name(text: str) -> bool:
    """Whether the text is a plain variable name, without a subscript that bash would evaluate."""
    return bool(_NAME.match(text))


class Form(IntEnum):
    """What bash may make of a word."""

    TEXT = 0
    """Exactly its text."""
    NAME = 1
    """One word that begins with a letter or digit, or as its text does, and never with a dash: `a"$x"`."""
    NAMES = 2
    """Any number of such words: `a*`."""
    VALUE = 3
    """One word, which may be an option: `"$x"`."""
    WORDS = 4
    """Any number of words, which may include options: `$x`, `"$@"`, `*`."""

    __hash__ = int.__hash__  # the one of Enum is a Python function, and words are many


# module constants: an attribute lookup on the enum costs more than the comparison, and words are many
TEXT, NAME, NAMES, VALUE, WORDS = Form


class Word(NamedTuple):
    """One argument: its literal text, or its source when the text is unknown."""

    text: str
    form: Form = TEXT
    named: bool = False
    """It stands for a path below one that is already counted, so it adds no access."""

    @property
    def literal(self) -> bool:
        """Whether the text is what the program will receive."""
        return self.form is TEXT

    @property
    def single(self) -> bool:
        """Whether bash makes exactly one word of it."""
        return self.form in _SINGLE

    @property
    def may_be_option(self) -> bool:
        """Whether a word that bash makes of it may be an option, an operator or the end of the command."""
        return self.form >= VALUE

    @property
    def computed(self) -> bool:
        """Whether more than the names of files decides what it becomes: `a"$x"`, `{}` of xargs, but not `a*`."""
        return self.form is not TEXT and _COMPUTED.search(self.text) is not None


_SINGLE = frozenset((TEXT, NAME, VALUE))
_COMPUTED = re.compile(r"[$`{]")


def all_literal(words: Iterable[Word]) -> bool:
    """Whether the text of every word is what the program will receive."""
    for word in words:  # noqa: SIM110 - every command passes here, and `all` takes three times as long
        if word[1] is not TEXT:
            return False
    return True


def literal_words(texts: Iterable[str]) -> tuple[Word, ...]:
    """Return literal words, made without the constructor of a named tuple, which is a Python function."""
    return tuple([_new(Word, (text, TEXT, False)) for text in texts])


_new: Callable[[type[Word], tuple[object, ...]], Word] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any tuple


class Piece(NamedTuple):
    """A part of a word, with a same-length shadow that masks what quotes protect from expansion."""

    text: str
    shadow: str
    dynamic: bool = False
    named: bool = False
    """A substitution that only lists files of folders which are counted already."""
    glob: bool = False
    """A loop's variable, replaced by the glob it runs over."""


_MASK = "x"
_PLAIN_START = re.compile(r"[A-Za-z0-9_./]")
_QUOTED_START = tuple('^#[("\\ ')  # how patterns begin; to no program a mark of options
_COUNTS = ("$?", "$#")  # bash replaces them by digits
_MULTIPLIES = re.compile(r"[*?\[{]")
_EXPANDS = re.compile(r"[*?\[{]|\A~|[=:]~")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_BALANCED = re.compile(r"[^{}]*(?:\{[^{}]*\}[^{}]*)*")
_COUNTED = re.compile(r"(0|-?[1-9][0-9]{0,5})\.\.(0|-?[1-9][0-9]{0,5})")
_MAX_WORDS = 100
_ALL_PARAMETERS = re.compile(r"\$\{?@")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_IN_DOUBLE = re.compile(r'\\([$`"\\])')
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MAX_CODE_POINT = 0x10FFFF


def read_unquoted(source: str) -> Piece:
    """Read unquoted text: a backslash protects the next letter."""
    if "\\" not in source:
        return Piece(source, source)
    return Piece(_ESCAPED.sub(r"\1", source), _ESCAPED.sub(_MASK, source))


def read_double_quoted(source: str, *, dynamic: bool = False) -> Piece:
    """Read the inside of double quotes."""
    text = _IN_DOUBLE.sub(r"\1", source) if "\\" in source else source
    return Piece(text, _MASK * len(text), dynamic)


def read_single_quoted(text: str) -> Piece:
    """Read the inside of single quotes."""
    return Piece(text, _MASK * len(text))


def read_ansi_c(source: str) -> Piece:
    """Read the inside of $'...', so that spelled-out letters cannot hide a name."""
    text = _ANSI.sub(_ansi_letter, source)
    return Piece(text, _MASK * len(text))


def _ansi_letter(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return _code_point(int(code[1:], 16))
    if code[0] in "01234567":
        return _code_point(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    return _ANSI_NAMED.get(code, code)


def _code_point(code: int) -> str:
    return chr(code) if code <= _MAX_CODE_POINT else "�"


def join_pieces(pieces: Iterable[Piece], source: str) -> Word:
    """Join pieces into a word; an unknown text keeps its source."""
    pieces = tuple(pieces)
    for piece in pieces:
        if piece.dynamic:
            return Word(source, _dynamic_form(pieces, source), named=piece.named and len(pieces) == 1)
    text = "".join([piece.text for piece in pieces])
    shadow = "".join([piece.shadow for piece in pieces])
    if not _may_expand(shadow):
        return Word(text)
    if "~" in shadow and not all(piece.text for piece in pieces):  # ~'' is no home folder
        return Word(source, WORDS)
    return _read_expanding(text, shadow, source)


def join_words(pieces: Iterable[Piece], source: str) -> list[Word]:
    """Join pieces into the words that bash makes of them: braces give several, `a{1,2}` is `a1 a2`."""
    pieces = tuple(pieces)
    if all(piece.text and not piece.dynamic for piece in pieces):
        text, shadow = "".join([piece.text for piece in pieces]), "".join([piece.shadow for piece in pieces])
        if _BRACES.search(shadow) and (expanded := _expand_braces(text, shadow)):
            return [_read_expanding(each, mask, each) if _may_expand(mask) else Word(each) for each, mask in expanded]
    return [join_pieces(pieces, source)]


def _expand_braces(text: str, shadow: str) -> list[tuple[str, str]]:
    """Return text and shadow of every word; none if there are too many, or the braces are not of a plain form."""
    if "$" in shadow or not _BALANCED.fullmatch(shadow):
        return []
    words, end = [("", "")], 0
    for group in _BRACES.finditer(shadow):
        before, mask = text[end : group.start()], shadow[end : group.start()]
        choices = _split_braces(text[group.start() + 1 : group.end() - 1], group[0][1:-1])
        end = group.end()
        if not 0 < len(words) * len(choices) <= _MAX_WORDS:
            return []
        words = [(one + before + each, other + mask + same) for one, other in words for each, same in choices]
    words = [(one + text[end:], other + shadow[end:]) for one, other in words]
    return words if all(one for one, _ in words) else []  # bash drops an empty word, unless it is quoted


def _split_braces(text: str, shadow: str) -> list[tuple[str, str]]:
    if "," in shadow:
        commas = [-1, *(place for place, letter in enumerate(shadow) if letter == ","), len(shadow)]
        return [(text[one + 1 : other], shadow[one + 1 : other]) for one, other in pairwise(commas)]
    counted = _COUNTED.fullmatch(shadow)
    if counted is None or abs(int(counted[2]) - int(counted[1])) >= _MAX_WORDS:
        return []
    first, last = int(counted[1]), int(counted[2])
    step = 1 if first <= last else -1
    return [(str(number), str(number)) for number in range(first, last + step, step)]


def _may_expand(shadow: str) -> bool:
    return _EXPANDS.search(shadow) is not None


def _read_expanding(text: str, shadow: str, source: str) -> Word:
    # braces inside braces: bash may drop the outer ones, even if what stands in them is quoted
    nested = not _BALANCED.fullmatch(shadow) and ("," in text or ".." in text)
    if nested or _BRACES.search(shadow):
        return Word(source, WORDS)
    if shadow.startswith("~"):
        if shadow[1:2] not in ("", "/"):
            return Word(source, WORDS)
        text = home_folder() + text[1:]
        shadow = _MASK * len(home_folder()) + shadow[1:]
    elif (assigned := _ASSIGNS.match(shadow)) and (shadow.startswith("~", assigned.end()) or ":~" in shadow):
        # in `dd of=~/x`, bash expands it too; a name that is quoted is none
        start = assigned.end()
        plain = source.startswith(shadow[:start]) and text.startswith(shadow[:start])
        if not plain or shadow[start + 1 : start + 2] not in ("", "/") or ":~" in shadow:
            return Word(source, WORDS)
        text = text[:start] + home_folder() + text[start + 1 :]
        shadow = shadow[:start] + _MASK * len(home_folder()) + shadow[start + 1 :]
    first = min((shadow.find(letter) for letter in "*?[" if letter in shadow), default=-1)
    if first < 0:
        return Word(text)
    safe = first > 0 and text[0] != "-"
    return Word(text, NAMES if safe else WORDS)


def _is_loose(piece: Piece) -> bool:
    """Whether bash makes any number of words of a piece: of an unquoted expansion, and of `"$@"`."""
    return piece.dynamic and (piece.shadow != _MASK * len(piece.text) or _ALL_PARAMETERS.search(piece.text) is not None)


def _dynamic_form(pieces: tuple[Piece, ...], source: str) -> Form:
    if any(map(_is_loose, pieces)):  # an unquoted variable is split into words, and any of them may start with a dash
        return WORDS
    first, single = pieces[0], not _MULTIPLIES.search("".join([piece.shadow for piece in pieces]))
    letter = first.text[:1] if not first.dynamic else "0" if first.text in _COUNTS else ""
    # of '@'"$x" the text does not show the first letter, which makes a file of options of it
    quoted = first.shadow[:1] == _MASK and letter in _QUOTED_START  # "^$x"
    if quoted or _PLAIN_START.match(letter) or (letter and letter == source[0] and letter not in "-~*?[{"):
        return NAME if single else NAMES
    return VALUE if single else WORDS


def home_folder() -> str:
    """Return the home folder, as a tilde and $HOME resolve to it."""
    return os.path.expanduser("~")  # noqa: PTH111 - a lexical answer: pathlib raises where there is no home
