"""Judges calls of tar, zip, unzip and packers of single files: listing is read-only, most else writes."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from callwright.core.access import Access, DeletePath, ReadPath, WritePath
from callwright.shell import tables
from callwright.shell.findings import Judgement, unknown
from callwright.shell.judge import judge_by_rule
from callwright.shell.options import grammar, parse_options
from callwright.shell.plan import Tree, Verdict
from callwright.shell.programs.outputs import list_inputs, list_outputs
from callwright.shell.rule_tables import parse_table
from callwright.shell.words import Folders, Word, resolve_as, resolve_paths

_TAR_LETTERS = frozenset("tvzjJafk")
_TAR_LONG = frozenset(
    "--list --verbose --gzip --bzip2 --xz --zstd --file --auto-compress --wildcards --no-wildcards --exclude "
    "--strip-components --full-time --numeric-owner --utc --version --help".split()
)
_PACK_LETTERS = frozenset("cruvzjJafhpPkOWwlo")
_PACK_LONG = _TAR_LONG | frozenset(
    "--create --append --update --directory --exclude-vcs --exclude-vcs-ignores --exclude-from --exclude-caches "
    "--dereference --owner --group --mtime --mode --sort --format --transform --no-recursion --absolute-names "
    "--lzma --lzip --compress --posix --one-file-system --null --totals --xattrs --acls".split()
)
_UNZIP_LISTS = re.compile(r"-[a-zA-Z]*[lvtZ][a-zA-Z0-9]*\Z")
_UNZIP_LETTERS = frozenset("lvtqZ1shmzCM2")


def tar(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a tar call: only -t with known options is read-only."""
    words = [word.text for word in arguments]
    if words in (["--version"], ["--help"]):
        return Judgement(Verdict.READ_ONLY, f"{name} shows its version or help")
    letters, problem = _read_tar_letters(words)
    archive = _find_value(words, "f", "--file")
    named = [_find_value(pair, "f", "--file") for pair in pairwise((*words, "")) if pair[0][:1] == "-"]
    if len(set(filter(None, (archive, *named)))) > 1:  # of which bsdtar takes the last
        written = resolve_as(WritePath, filter(None, (archive, *named)), folders)
        return unknown(f"{name} names several archives", tuple(written))
    files = tuple(resolve_paths(archive, folders)) if archive and archive != "-" else ()
    if any(word.may_be_option for word in arguments):
        problem = problem or "a word of the tar call may become an option"
    if ":" in archive or (archive.startswith("/dev/") and archive != "/dev/stdin"):
        problem = problem or f"{archive} may be a machine or a device"
    if letters & set("xcruAd") or any(
        re.match(r"--(?:ext|get|cre|app|upd|cat|con|del|dif|com)", word) for word in words
    ):
        found = _judge_write(name, words, files, folders, problem)
        return found._replace(accesses=(*found.accesses, *_list_other_files(arguments, folders)))
    lists = "t" in letters or "--list" in words
    if problem or not lists:
        used = (*(ReadPath(path) for path in files), *_list_other_files(arguments, folders))
        return unknown(f"{name}: {problem or 'it does not list'}", used)
    return Judgement(Verdict.READ_ONLY, f"{name} lists an archive", tuple(ReadPath(path) for path in files))


def _list_other_files(arguments: Sequence[Word], folders: Folders) -> Iterator[Access]:
    """Yield the files that further options of tar name."""
    others = [word for word in arguments if word.text.partition("=")[0] not in ("--exclude", "--file")]
    yield from list_inputs(others, ("--add-file", "--files-from", "--exclude-from"), folders)
    yield from list_outputs(arguments, ("-g", "--listed-incremental", "--index-file"), folders, joined=False)


def _read_tar_letters(words: Sequence[str]) -> tuple[set[str], str]:
    letters, problem = set[str](), ""
    for place, word in enumerate(words):
        if word.startswith("--"):
            if word.partition("=")[0] not in _TAR_LONG:
                problem = problem or f"{word} may do more than list"
        elif word[:1] == "-" or place == 0:
            cluster, _, attached = word.lstrip("-").partition("f") if word[:1] == "-" else (word, "", "")
            letters |= set(cluster) | ({"f"} if "f" in word else set())
            strange = set(cluster) - _TAR_LETTERS - {"f"}
            problem = problem or (f"{word} may do more than list" if strange else "")
            if attached and set(attached) & set("I") and "/" not in attached and "." not in attached:
                problem = problem or f"{word} is not clear"
    return letters, problem


def _find_value(words: Sequence[str], letter: str, long: str) -> str:
    for place, word in enumerate(words):
        if word.startswith(f"{long}="):
            return word.partition("=")[2]
        following = words[place + 1] if place + 1 < len(words) else ""
        if word == long:
            return following
        if letter in word and not word.startswith("--") and (word[:1] == "-" or place == 0):
            attached = word.partition(letter)[2] if word[:1] == "-" else ""
            return attached or following
    return ""


def _judge_write(name: str, words: Sequence[str], files: Sequence[str], folders: Folders, problem: str) -> Judgement:
    target = _find_value(words, "C", "--directory") or "."
    touched: tuple[Access, ...] = tuple(WritePath(path) for path in (*resolve_paths(target, folders), *files))
    # every other word may be a file that is packed
    packed = [path for word in words if word[:1] != "-" for path in resolve_paths(word, folders) if path not in files]
    touched = (*touched, *(ReadPath(path) for path in packed))
    unpacks = any(re.match(r"--(?:ext|get)|-?[a-zA-Z]*x", word) for word in words[:1]) or any(
        re.match(r"--(?:ext|get)|-[a-zA-Z]*x", word) for word in words
    )
    if unpacks:
        return unknown(f"{name} writes files that only the archive names", touched)
    named = [_find_value(words, "T", "--files-from"), _find_value(words, "X", "--exclude-from")]
    touched = (*touched, *resolve_as(ReadPath, filter(None, named), folders))
    strange = next((word for place, word in enumerate(words) if not _is_plain_packing(word, first=place == 0)), "")
    entered = [word for word in words if re.match(r"--dir|-[a-zA-Z]*C", word)]
    if len(entered) > 1:
        strange = strange or entered[1]
    if strange or "become an option" in problem or "machine or a device" in problem:
        return unknown(f"{name}: {strange or problem} may do more than pack files", touched)
    follows = any(re.match(r"--deref|-[a-zA-Z]*h", word) for word in words) or "h" in words[0]
    trees = tuple([Tree(path, follows=follows, enters=follows) for path in packed])
    return Judgement(Verdict.WRITES, f"{name} packs files", touched, trees=trees)


def _is_plain_packing(word: str, *, first: bool) -> bool:
    """Whether a word is a file, or an option that runs nothing, removes nothing and writes no other file."""
    if word.startswith("--"):
        return word.partition("=")[0] in _PACK_LONG or word == "--"
    if word[:1] == "-":
        # what follows f, C or X in its word is the value; with T only a file names what is packed
        return set(re.split("[fCX]", word[1:], maxsplit=1)[0]) <= _PACK_LETTERS
    return not first or set(word) <= _PACK_LETTERS


def unzip(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an unzip call: -l, -v, -t and -Z are read-only."""
    flags = [word.text for word in arguments if word.text[:1] == "-"]
    files = [word for word in arguments if word.text[:1] != "-"]
    touched = resolve_as(ReadPath, files[:1], folders)
    known = all(set(flag[1:]) <= _UNZIP_LETTERS for flag in flags)
    if known and flags and any(map(_UNZIP_LISTS.match, flags)):
        return Judgement(Verdict.READ_ONLY, f"{name} lists or tests an archive", tuple(touched))
    target = _find_value([word.text for word in arguments], "d", "--unused-long") or "."
    written = tuple(resolve_as(WritePath, [target], folders))
    return unknown(f"{name} writes files that only the archive names", (*touched, *written))


_ZIP = grammar(
    "-r -q -v -j -u -f -m -T -9 -0 -1 -2 -3 -4 -5 -6 -7 -8 -e -y -X -D -A -g -o -S -l -ll -@",
    "-x -i -b -t -P -TT -s -O",
)
# zip has options of two letters, such as -lf and -tt, and a list behind -x or -i ends with @
_ZIP_OTHER = re.compile(r"@\Z|-(?!-)[^xiPbO]*(?:l[afi]|tt)")


def zip_files(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a zip call."""
    if len(arguments) == 1 and arguments[0].text in ("--help", "--version"):
        return Judgement(Verdict.READ_ONLY, "it shows its help or version")
    call = parse_options(arguments, _ZIP)
    sources = resolve_as(str, call.operands[1:], folders)
    written = [word.text for word in call.operands[:1]]
    written += [f"{text}.zip" for text in written if "." not in text.rpartition("/")[2]]
    written += [word.text.removeprefix("=") for word in call.list_values("-O", "-b")]
    strange = next((word.text for word in arguments if _ZIP_OTHER.match(word.text)), "")
    if strange:
        written += [word.text for word in arguments if word.text[:1] != "-"]
    touched = (*resolve_as(WritePath, written, folders), *map(ReadPath, sources))
    if strange:
        return unknown(f"{name} {strange} changes which word is the archive, or names a log", touched)
    letters = "".join(word.text[1:] for word in arguments if word.text[:1] == "-" and word.text[1:2] != "-")
    if "T" in letters:
        return unknown(f"{name} -T may run a program", touched)
    if "@" in letters:
        return unknown(f"{name} -@ packs files that only its input names", touched)
    follows = "y" not in letters
    trees = tuple([Tree(path, follows=follows, enters=follows) for path in sources])
    if "m" in letters:
        gone = (*touched, *(DeletePath(path) for path in sources))
        return Judgement(Verdict.DESTRUCTIVE, f"{name} -m removes the files it packs", gone, trees=trees)
    if call.problem:
        return unknown(call.problem, touched)._replace(trees=trees)
    return Judgement(Verdict.WRITES, f"{name} packs files", touched, trees=trees)


_PACKAGE_FILES = {"dpkg": re.compile(r"-(?!-)\w*[cI]|--(?:con|inf)"), "rpm": re.compile(r"-(?!-)\w*p")}
"""The options with which operands are files, not names of packages."""


def package(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a call of dpkg or rpm, which show an installed package or a file."""
    rule = tables.find_rule(name)
    if rule is None:
        return unknown(f"{name} is not a known program")
    found = judge_by_rule(name, rule, arguments, folders)
    if not any(_PACKAGE_FILES[name].match(word.text) for word in arguments):
        return found
    files = [word.text for word in rule.operand_words(arguments) if "://" not in word.text]
    reads = resolve_as(ReadPath, files, folders)
    return found._replace(accesses=(*found.accesses, *reads))


_PRINTS = "-c --stdout --to-stdout"
_PACKER = parse_table(
    f"""
packer: reads; last; needs {_PRINTS} -l --list -t --test --version --help -V -h;
      only {_PRINTS} -l --list -t --test -v -q -k --keep -d --decompress --version --help -V -h
"""
)["packer"]
_PRINTER = parse_table(f"packer: needs {_PRINTS}")["packer"]
_CHECKER = parse_table("packer: needs -l --list -t --test; only -l --list -t --test -v -q -k --keep")["packer"]


def packer(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a call of xz and its like: of -t, -l and -d the last counts, so -d is read-only only with -c."""
    found = judge_by_rule(name, _PACKER, arguments, folders)
    if found.verdict is not Verdict.READ_ONLY or not _PACKER.operand_words(arguments):
        return found
    # bzip2 shows its version, and then packs the file
    if _PRINTER.objection(arguments) and _CHECKER.objection(arguments):
        return unknown(f"{name} may replace a file by another", found.accesses)
    return found
