"""Judges find and fd calls: tests are read-only, actions may run, write or delete."""

import re
from collections.abc import Sequence

from callwright.core.access import Access, DeletePath, ReadPath, WritePath
from callwright.shell.findings import FD_OPTIONS, Judgement, unknown
from callwright.shell.options import Grammar, parse_options
from callwright.shell.plan import Tree, Verdict
from callwright.shell.words import NAMES, WORDS, Folders, Word, enter_folder, resolve_as
from callwright.shell.wrappers import InnerCommand

_WITH_VALUE = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype -size "
    "-mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user -group -uid -gid -maxdepth "
    "-mindepth -samefile -fstype -links -inum -used -printf -context -Btime -Bmin -Bnewer -flags -acl -depth".split()
)
_ALONE = frozenset(
    "-print -print0 -ls -prune -quit -true -false -empty -readable -writable -executable -nouser -nogroup -mount "
    "-xdev -x -d -follow -daystart -noleaf -nowarn -warn -ignore_readdir_race -noignore_readdir_race -a -and -o "
    "-or -not ! ( ) , -depth -H -L -P -E -X -s --help --version -help -version -sparse".split()
)
_RUN = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_ODD = re.compile(r"[^\w./\"]")  # to nm, @file names a file of options
_WRITE = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))


def find(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a find call by its starting points and its expression."""
    split = next((place for place, word in enumerate(arguments) if _starts_expression(word)), len(arguments))
    starts = [word for word in arguments[:split] if word.text[:1] != "-"] or [Word(".")]
    touched = tuple(resolve_as(ReadPath, starts, folders))
    objection = next(
        (f"{word.text} may become part of the expression" for word in arguments[:split] if word.may_be_option), ""
    )
    follows = any(word.text == "-L" for word in arguments[:split])
    return _judge_expression(name, arguments[split:], starts, (touched, folders, objection), follows=follows)


def _starts_expression(word: Word) -> bool:
    return word.text[:1] in ("-", "(", ")", "!", ",") and word.text not in (
        "-H",
        "-L",
        "-P",
        "-E",
        "-X",
        "-x",
        "-d",
        "-s",
    )


def _judge_expression(
    name: str,
    words: Sequence[Word],
    starts: Sequence[Word],
    before: tuple[tuple[Access, ...], Folders, str],
    *,
    follows: bool,
) -> Judgement:
    touched, folders, objection = before
    inner_commands: list[InnerCommand] = []
    written: list[Access] = []
    # tests before an action decide which files it receives; -L stands before the folders
    tests = ["-L"] if follows else []
    deletes, place = False, 0
    while place < len(words):
        text = words[place].text
        if text in _RUN:
            command, end = _read_exec(name, words, place, _list_trees(tests, touched))
            odd = next(
                (f"{word.text} may be more than a path to what runs" for word in starts if _ODD.match(word.text)), ""
            )
            objection = objection or odd or _find_end(words[place:end])
            inner_commands.append(command)
            place = end
            continue
        start = place
        if text == "-delete":
            deletes = True
        elif text in _WRITE:
            written.extend(resolve_as(WritePath, words[place + 1 : place + 2], folders))
            place += 2 if text == "-fprintf" else 1
        elif text in _WITH_VALUE or (text.startswith("-newer") and len(text) == len("-newerXY")):
            objection = objection or _value_problem(text, words[place + 1 : place + 2])
            place += 0 if text == "-depth" and not _is_number(words[place + 1 : place + 2]) else 1
        elif text not in _ALONE and not text.startswith(("-O", "-D")):
            objection = objection or f"{text} is an unknown option"
        if place < len(words) and words[place].may_be_option:
            objection = objection or f"{words[place].text} may become part of the expression"
        place += 1
        tests.extend(word.text for word in words[start:place])
    commands = tuple(inner_commands)
    if deletes:
        gone = tuple(resolve_as(DeletePath, starts, folders))
        return Judgement(
            Verdict.DESTRUCTIVE, f"{name} -delete removes what it finds", (*touched, *gone, *written), commands
        )
    if written and objection:
        return unknown(objection, (*touched, *written), commands)
    if written:
        return Judgement(Verdict.WRITES, f"{name} writes a list", (*touched, *written), commands)
    if objection:
        return unknown(objection, touched, commands)
    return Judgement(Verdict.READ_ONLY, f"{name} is read-only", touched, commands)


def _find_end(words: Sequence[Word]) -> str:
    """Object to a word of an action that may be the `;` which ends it, if what follows may be another action.

    Behind the `;` find accepts nothing but expressions: at a path or a second `;` it stops before it runs anything.
    """
    for place, word in enumerate(words):
        if _may_end(word) and (not word.single or any(map(_may_be_expression, words[place + 1 :]))):
            return f"{word.text} may end the command"
    return ""


def _may_end(word: Word) -> bool:
    """Whether a word may become `;` or `+`, also one that begins with it: `+"$x"`."""
    return word.may_be_option or (not word.literal and word.text[:1] == "+")


def _may_be_expression(word: Word) -> bool:
    return not word.literal or word.text[:1] in ("-", "(", ")", "!", ",")


def _is_number(words: Sequence[Word]) -> bool:
    return bool(words) and words[0].text.lstrip("+-").isdigit()


def _value_problem(flag: str, words: Sequence[Word]) -> str:
    if flag == "-depth":
        return ""
    if not words:
        return f"{flag} has no value"
    text = words[0].text
    if not words[0].literal:
        return f"the value of {flag} is not literal"
    # -mtime -7 is a number; -name -delete may be an attempt to hide an action
    numeric = text[1:2].isdigit() or flag == "-perm"
    return f"{text} may be an action" if text[:1] == "-" and not numeric else ""


def _list_trees(tests: Sequence[str], touched: Sequence[Access]) -> tuple[Tree, ...]:
    """Return the folders whose files an action receives, with the one name they are restricted to."""
    pattern = "*"
    if tests.count("-name") == 1 and not {"-o", "-or", "-not", "!", ","} & set(tests):
        pattern = "".join(tests[tests.index("-name") + 1 :][:1]) or "*"
    walks = bool({"-L", "-follow"} & set(tests))
    paths = [access.path for access in touched if isinstance(access, ReadPath)]
    return tuple([Tree(path, pattern, follows=True, enters=walks) for path in paths])


def _read_exec(name: str, words: Sequence[Word], place: int, trees: tuple[Tree, ...]) -> tuple[InnerCommand, int]:
    flag = words[place].text
    end = place + 1
    while end < len(words) and words[end].text != ";" and not (words[end].text == "+" and words[end - 1].text == "{}"):
        end += 1
    inner = tuple(_mark_found_path(word) for word in words[place + 1 : end])
    doubt = "it asks on the terminal" if flag.startswith("-ok") else ""
    if end >= len(words):
        doubt = f"{flag} is not closed"
    folder = Word("?", WORDS) if flag.endswith("dir") else None
    return InnerCommand(f"{name} {flag}", inner, doubt=doubt, folder=folder, trees=trees), end + 1


def _mark_found_path(word: Word) -> Word:
    """Mark the word that find fills in: a path that begins with its starting point, so never an option."""
    if "{}" not in word.text or not word.literal:
        return word
    return Word(word.text, NAMES if word.text.startswith("{}") else WORDS, named=True)


_FD = Grammar(
    FD_OPTIONS.flags | {"-l", "--list-details"},
    FD_OPTIONS.values | {"--path-separator", "--format", "--batch-size"},
    frozenset(("--hyperlink", "--gen-completions")),
)


def fd(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an fd call: like find, with everything after -x a command."""
    split = next((place for place, word in enumerate(arguments) if _read_fd_run(word.text) is not None), len(arguments))
    starts, folder = _list_fd_folders(arguments[:split])
    inside = folders if folder is None else enter_folder(folders, folder.text, physical=True)
    touched = tuple(dict.fromkeys([*resolve_as(ReadPath, starts, folders), *resolve_as(ReadPath, starts, inside)]))
    attached = [Word(text) for word in arguments[split : split + 1] if (text := _read_fd_run(word.text))]
    inner = tuple(_mark_fd_path(word) for word in (*attached, *arguments[split + 1 :]))
    if inner and all(word.literal for word in inner):
        inner = (*inner, Word("{}", WORDS, named=True))
    walks = any(word.text == "--follow" or re.match(r"-\w*L", word.text) for word in arguments[:split])
    trees = tuple([Tree(access.path, bare=True, follows=True, enters=walks) for access in touched])
    inner_commands = (InnerCommand(f"{name} -x", inner, folder=folder, trees=trees),) if inner else ()
    for word in arguments[:split]:
        if word.may_be_option:
            return unknown(f"{word.text} may become an option", touched, inner_commands)
        text = word.text
        if text.startswith(("--exec", "--exe")) or (text[:1] == "-" and text[1:2] != "-" and set(text) & {"x", "X"}):
            return unknown(f"{text} runs a command", touched, inner_commands)
    if split < len(arguments) and not inner:
        return unknown("it names no command to run", touched)
    if end := next(filter(_may_end, arguments[split + 1 :]), None):  # what follows are patterns and folders
        return unknown(f"{end.text} may end the command", touched, inner_commands)
    if any(word.text == ";" for word in arguments[split + 1 : -1]):
        return unknown("further arguments follow the command", touched, inner_commands)
    return Judgement(Verdict.READ_ONLY, f"{name} is read-only", touched, inner_commands)


def _read_fd_run(option: str) -> str | None:
    """Return the command that stands attached to -x or -X, often none; None if it is another option."""
    name, _, value = option.partition("=")
    if name in ("--exec", "--exec-batch"):
        return value
    for place, letter in enumerate(option[1:] if option[:1] == "-" else "", 2):
        if letter in "xX":
            return option[place:].removeprefix("=")
        if f"-{letter}" not in _FD.flags:
            break
    return None


def _list_fd_folders(arguments: Sequence[Word]) -> tuple[list[Word], Word | None]:
    """Return the folders that fd searches, and the one that it changes to before."""
    call = parse_options(arguments, _FD)
    folder = call.value("-C", "--base-directory")
    # the first operand is the pattern; where an option is not known, it may be the second
    operands = call.operands if call.problem else call.operands[1:]
    named = [*operands, *call.list_values("--search-path"), *([folder] if folder else [])]
    return [Word("."), *named], folder


def _mark_fd_path(word: Word) -> Word:
    marked = word.literal and any(mark in word.text for mark in ("{}", "{/}", "{//}", "{.}", "{/.}"))
    return Word(word.text, WORDS, named=True) if marked else word
