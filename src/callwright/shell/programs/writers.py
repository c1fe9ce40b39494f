"""Judges programs that are known to write, by their manuals' options, and lists the paths they touch.

An option that the grammar of a program does not list makes the call unknown.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from callwright.core.access import Access, DeletePath, Reach, ReadPath, WritePath
from callwright.core.spec import Effect
from callwright.shell.findings import Judgement, unknown
from callwright.shell.options import Grammar, ParsedCall, grammar, parse_options
from callwright.shell.plan import Tree, Verdict
from callwright.shell.words import HARMLESS_TARGETS, NAMES, Folders, Word, resolve_as
from callwright.system.sensitive_paths import PROTECTED_FILES

_HELP = frozenset(("--help", "--version"))

_COPY = "-a -b -d -f -i -H -l -L -n -P -p -R -r -s -T -u -v -x -Z --archive --attributes-only --force --interactive "
_GRAMMARS = {
    "cp": grammar(
        f"{_COPY} --link --dereference --no-clobber --no-dereference --recursive --symbolic-link "
        "--strip-trailing-slashes --no-target-directory --verbose --one-file-system --copy-contents --debug",
        "-S --suffix -t --target-directory --no-preserve --sparse",
        "--backup --preserve --reflink --update --context --parents",
    ),
    "mv": grammar(
        "-b -f -i -n -T -u -v -Z --force --interactive --no-clobber --strip-trailing-slashes --no-target-directory "
        "--verbose --no-copy --exchange --context --debug",
        "-S --suffix -t --target-directory",
        "--backup --update",
    ),
    "install": grammar(
        "-b -c -C -D -d -p -s -T -v -Z --compare --directory --preserve-timestamps --strip --no-target-directory "
        "--verbose --preserve-context --debug",
        "-g --group -m --mode -o --owner -S --suffix -t --target-directory --strip-program",
        "--backup --context",
    ),
    "rm": grammar(
        "-f -i -I -r -R -d -v --force --recursive --dir --verbose --one-file-system --no-preserve-root",
        "",
        "--interactive --preserve-root",
    ),
    "rmdir": grammar("-p -v --parents --verbose --ignore-fail-on-non-empty"),
    "unlink": grammar(),
    "shred": grammar(
        "-f -u -v -x -z --force --verbose --exact --zero", "-n -s --iterations --size --random-source", "--remove"
    ),
    "srm": grammar("-f -r -v -s -m -z"),
    "mkdir": grammar("-p -v -Z --parents --verbose", "-m --mode", "--context"),
    "touch": grammar("-a -c -f -h -m --no-create --no-dereference", "-d --date -r --reference -t --time"),
    "tee": grammar("-a -i -p --append --ignore-interrupts", "", "--output-error"),
    "truncate": grammar("-c -o --no-create --io-blocks", "-r --reference -s --size"),
    "mkfifo": grammar("-Z", "-m --mode", "--context"),
    "mknod": grammar("-Z", "-m --mode", "--context"),
    "fallocate": grammar(
        "-c -d -i -n -p -x -z -v --dig-holes --punch-hole --zero-range --keep-size --posix --verbose",
        "-l -o --length --offset",
    ),
    "chown": grammar(
        "-c -f -v -h -H -L -P -R --changes --silent --quiet --verbose --dereference --no-dereference --recursive "
        "--preserve-root --no-preserve-root",
        "--from --reference",
    ),
    "chmod": grammar(
        "-c -f -v -R -r -w -x -X -s -t --changes --silent --quiet --verbose --recursive --preserve-root "
        "--no-preserve-root",
        "--reference",
    ),
    "setfacl": grammar("-b -k -R -n -d", "-m -x -M -X --set --set-file --restore"),
    "chattr": grammar("-R -V -f", "-v -p"),
    "chcon": grammar(
        "-h -v -R -H -L -P --dereference --no-dereference --preserve-root --no-preserve-root --recursive --verbose",
        "-u -r -t -l --user --role --type --range --reference",
    ),
    "ln": grammar(
        "-b -d -F -f -i -L -n -P -r -s -T -v --directory --force --interactive --logical --no-dereference --physical "
        "--relative --symbolic --no-target-directory --verbose",
        "-S --suffix -t --target-directory",
        "--backup",
    ),
    "split": grammar(
        "-d -x -e -u --elide-empty-files --unbuffered --verbose",
        "-a -b -C -l -n -t --suffix-length --bytes --line-bytes --lines --number --separator --additional-suffix "
        "--filter",
        "--numeric-suffixes --hex-suffixes",
    ),
    "csplit": grammar(
        "-k -s -q -z --keep-files --silent --quiet --elide-empty-files --suppress-matched",
        "-b -f -n --suffix-format --prefix --digits",
    ),
    "compress": grammar("-f -v -c -d -k", "-b"),
}
_GRAMMARS["gcp"] = _GRAMMARS["cp"]
_GRAMMARS["gmv"] = _GRAMMARS["mv"]
_GRAMMARS["gtouch"] = _GRAMMARS["touch"]
_GRAMMARS["chgrp"] = _GRAMMARS["chown"]
_GRAMMARS["link"] = _GRAMMARS["unlink"]
_GRAMMARS["uncompress"] = _GRAMMARS["compress"]
_NONE = Grammar(frozenset(), frozenset())
_SUFFIX = ("-S", "--suffix")


def _make_judgement(
    verdict: Verdict, reason: str, arguments: Sequence[Word], touched: Iterable[Access], call: ParsedCall | None = None
) -> Judgement:
    if len(arguments) == 1 and arguments[0].text in _HELP:
        return Judgement(Verdict.READ_ONLY, "it shows its help or version")
    if call is not None and call.problem and verdict is Verdict.WRITES:
        return unknown(call.problem, tuple(touched))
    return Judgement(verdict, reason, tuple(touched))


def _parse(name: str, arguments: Sequence[Word]) -> ParsedCall:
    return parse_options(arguments, _GRAMMARS.get(name, _NONE))


def _remove(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    hard = name in ("shred", "srm") or call.has("-r", "-R", "-f", "--recursive", "--force") or bool(call.problem)
    touched: list[Access] = [*resolve_as(DeletePath, call.operands, folders)]
    touched.extend(resolve_as(ReadPath, call.list_values("--random-source"), folders))  # shred writes what it holds
    return _make_judgement(Verdict.DESTRUCTIVE if hard else Verdict.WRITES, f"{name} removes", arguments, touched)


def _place_below(targets: Sequence[Word], sources: Sequence[Word]) -> list[Word]:
    """Return the targets, and each source's name below them: a target may be a folder."""
    found = list(targets)
    for target in targets:
        for source in sources:
            name = source.text.rstrip("/").rpartition("/")[2]
            if name not in ("", ".", ".."):
                found.append(Word(f"{target.text.rstrip('/') or '/'}/{name}", source.form))
    return found


def _move(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    target = call.value("-t", "--target-directory")
    if name == "install" and call.has("-d", "--directory"):
        sources, targets = list[Word](), call.operands
    else:
        sources = call.operands if target else call.operands[:-1]
        targets = [target] if target else call.operands[-1:]
    written = _place_below(targets, sources)
    touched: list[Access] = [*resolve_as(ReadPath, sources, folders), *resolve_as(WritePath, written, folders)]
    if name in ("mv", "gmv"):
        touched.extend(resolve_as(DeletePath, sources, folders))
    deep = name in ("mv", "gmv") or call.has("-r", "-R", "-a", "--recursive", "--archive")
    deep = deep or call.has("-P", "-d", "--no-dereference")  # which copies a link as a link
    trees = resolve_as(Tree, sources, folders) if deep else []
    judgement = _make_judgement(
        Verdict.WRITES, f"{name} writes {' '.join(word.text for word in targets)}", arguments, touched, call
    )
    if call.has(*_SUFFIX):
        return unknown(f"{name} keeps the old file under a name that ends as given", tuple(touched))
    if call.has("--strip-program", "-s", "--strip") and name == "install":
        return unknown("install runs a program that strips files", tuple(touched))
    if call.has("-l", "-s", "--link", "--symbolic-link") and name in ("cp", "gcp"):
        return unknown(f"{name} makes links", tuple(touched))
    if call.has("--parents") and name in ("cp", "gcp"):
        return unknown(f"{name} --parents writes below the folders that its sources name", tuple(touched))
    read = [tree._replace(follows=True, enters=True) for tree in trees] if call.has("-L", "--dereference") else []
    return judgement._replace(copied=tuple(trees), trees=tuple(read))


def _write(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    touched: list[Access] = [*resolve_as(WritePath, call.operands, folders)]
    touched.extend(resolve_as(ReadPath, call.list_values("-r", "--reference"), folders))
    judgement = _make_judgement(Verdict.WRITES, f"{name} writes", arguments, touched, call)
    if name == "mknod" and judgement.verdict is Verdict.WRITES and [word.text for word in call.operands[1:]] != ["p"]:
        return unknown("mknod makes a device, through which disks and memory can be written", tuple(touched))
    nowhere = name == "tee" and all(word.literal and word.text in HARMLESS_TARGETS for word in call.operands)
    if nowhere and judgement.verdict is Verdict.WRITES:
        return Judgement(Verdict.READ_ONLY, "tee writes nowhere")
    return judgement


_MODE = re.compile(r"[-+=]?[0-7]+\Z|[ugoa]*(?:[-+=][rwxXstugo]*)+(?:,[ugoa]*(?:[-+=][rwxXstugo]*)+)*\Z")


_CONTEXT_OPTIONS = ("-u", "-r", "-t", "-l", "--user", "--role", "--type", "--range")


def _change_mode(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    # `chmod -w file` and `chcon -t type file` say what to change as an option: the first operand is a file only then
    given = (
        call.has("--reference")
        or (name == "chcon" and call.has(*_CONTEXT_OPTIONS))
        or (
            name == "chmod"
            and any(_MODE.match(word.text) and word.text[:1] == "-" for word in arguments)
            and call.has("-r", "-w", "-x", "-X", "-s", "-t")
        )
    )
    files = call.operands if given or name in ("setfacl", "chattr") else call.operands[1:] or call.operands
    verdict = Verdict.DESTRUCTIVE if call.has("-R", "--recursive") else Verdict.WRITES
    touched = resolve_as(WritePath, files, folders)
    return _make_judgement(verdict, f"{name} changes file permissions or ownership", arguments, touched, call)


def _link(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    target = call.value("-t", "--target-directory")
    alone = target is None and len(call.operands) == 1
    sources = call.operands if target or alone else call.operands[:-1]
    targets = [target] if target else [Word(".")] if alone else call.operands[-1:]
    made = _place_below(targets, sources)
    touched = [*resolve_as(WritePath, made, folders), *resolve_as(ReadPath, sources, folders)]
    symbolic = call.has("-s", "--symbolic")
    leads = [_link_target(word, made) for word in sources] if symbolic else []
    # what is written to a hard link is written to its source
    touched.extend(() if symbolic else resolve_as(WritePath, sources, folders))
    touched.extend(resolve_as(ReadPath, [word for group in leads for word in group], folders))
    links = tuple(resolve_as(str, made, folders))
    if call.has(*_SUFFIX):
        return unknown("ln keeps the old file under a name that ends as given", tuple(touched))._replace(links=links)
    return _make_judgement(Verdict.WRITES, "ln makes a link", arguments, touched, call)._replace(links=links)


def _link_target(source: Word, made: Sequence[Word]) -> list[Word]:
    """Return what a symbolic link may mean: a relative target starts from the folder that the link is in."""
    if source.text.startswith("/"):
        return []
    return [Word(f"{word.text.rpartition('/')[0]}/{source.text}", source.form) for word in made if "/" in word.text]


def _dd(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    touched: list[Access] = []
    for word in arguments:
        key, _, value = word.text.partition("=")
        if key in ("if", "of"):
            touched.extend(resolve_as(ReadPath if key == "if" else WritePath, [value], folders))
    device = any(isinstance(access, WritePath) and access.path.startswith("/dev/") for access in touched)
    return _make_judgement(Verdict.DESTRUCTIVE if device else Verdict.WRITES, "dd copies raw data", arguments, touched)


def _compress(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    touched = [*resolve_as(WritePath, call.operands, folders), *resolve_as(DeletePath, call.operands, folders)]
    return _make_judgement(Verdict.WRITES, f"{name} replaces files by packed ones", arguments, touched, call)


def _split(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    call = _parse(name, arguments)
    if name == "split":
        sources, prefix = call.operands[:1], call.operands[1:] or [Word("x")]
    else:
        sources, prefix = call.operands[:1], call.list_values("-f", "--prefix") or [Word("xx")]
    touched: list[Access] = [*resolve_as(ReadPath, [word for word in sources if word.text != "-"], folders)]
    pieces = [Word(f"{word.text}*", NAMES) for word in prefix]  # one of them may be a link that leads elsewhere
    touched.extend(resolve_as(WritePath, [*prefix, *pieces, *_complete_protected(prefix)], folders))
    if call.has("--filter"):
        return unknown("split --filter runs a program", tuple(touched))
    if call.has("--additional-suffix") or (call.has("-b", "--suffix-format") and name == "csplit"):
        return unknown(f"{name} writes files whose names end as given", tuple(touched))
    return _make_judgement(Verdict.WRITES, f"{name} writes pieces of a file", arguments, touched, call)


def _complete_protected(prefixes: Sequence[Word]) -> Iterator[Word]:
    """Yield the protected files whose names begin as the pieces of a file do: `.bash` and `rc` make `.bashrc`."""
    for word in prefixes:
        folder, slash, start = word.text.rpartition("/")
        for name in PROTECTED_FILES if start else ():
            if name.startswith(start.casefold()):
                yield Word(f"{folder}{slash}{name}")


def _unpack(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge patch and cpio, which write files that only their input names."""
    if len(arguments) == 1 and arguments[0].text in _HELP:
        return Judgement(Verdict.READ_ONLY, "it shows its help or version")
    touched = tuple(resolve_as(WritePath, ["."], folders))
    return unknown(f"{name} writes files that only its input names", touched)


_RSYNC_LETTERS = frozenset("avrtpogDzhnucPHAXLlqWxdiIFkKJOUSC0")
_RSYNC_OPTIONS = frozenset(
    "--archive --verbose --recursive --progress --stats --dry-run --exclude --include --filter --human-readable "
    "--compress --times --perms --links --copy-links --update --checksum --quiet --whole-file --existing "
    "--ignore-existing --itemize-changes --one-file-system --owner --group --hard-links --max-size "
    "--min-size --size-only --exclude-from --include-from --files-from --bwlimit --timeout --partial --info "
    "--omit-dir-times --no-perms --no-owner --no-group --cvs-exclude --prune-empty-dirs --mkpath --help".split()
)
_SCP_LETTERS = frozenset("rpqvCB346OsT")


def _is_plain_copy(name: str, word: Word) -> bool:
    """Whether a word of rsync or scp is an operand, or an option that runs nothing and names no file to write."""
    text = word.text
    if text[:1] != "-" or text == "-":
        return True
    if text[:2] != "--":
        return set(text[1:]) <= (_RSYNC_LETTERS if name == "rsync" else _SCP_LETTERS) or text in ("-i", "-P", "-l")
    return name == "rsync" and (
        text.partition("=")[0] in _RSYNC_OPTIONS or text.startswith(("--del", "--remove-source"))
    )


_SYNC_VALUES = {
    "rsync": frozenset(
        "-e --rsh -f --filter --exclude --include --files-from --log-file --exclude-from --include-from --max-size "
        "--min-size --bwlimit --timeout --info".split()
    ),
    "scp": frozenset("-P -i -F -l -o -S -c -J -D -X".split()),
}
_LIST_FILE = re.compile(r"--(?:exclude|include|files)-from\Z")
_MERGES = re.compile(r"[.:]|(?:dir-)?merge")


def _split_sync(name: str, arguments: Sequence[Word]) -> tuple[list[Word], list[tuple[str, Word]]]:
    """Separate the operands of rsync or scp from the options, each with its value."""
    operands: list[Word] = []
    options: list[tuple[str, Word]] = []
    waiting = False
    for word in arguments:
        flag, equals, value = word.text.partition("=")
        if waiting:
            options[-1] = (options[-1][0], word)
            waiting = False
        elif word.text[:1] == "-":
            options.append((flag, Word(value, word.form)))
            waiting = not equals and flag in _SYNC_VALUES[name]
        else:
            operands.append(word)
    return operands, options


def _sync(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands, options = _split_sync(name, arguments)
    lists = [value for flag, value in options if _LIST_FILE.match(flag)]
    touched: list[Access] = [*resolve_as(ReadPath, lists, folders)]
    for place, word in enumerate(operands):
        last = place == len(operands) - 1
        if re.match(r"[^/]+:|rsync://", word.text):
            touched.append(Reach(word.text, Effect.WRITE if last else Effect.READ))
        else:
            words = _place_below([word], operands[:-1]) if last else [word]
            touched.extend(resolve_as(WritePath if last else ReadPath, words, folders))
    hard = any(word.text.startswith(("--del", "--remove-source")) for word in arguments)
    strange = next((word.text for word in arguments if not _is_plain_copy(name, word)), "")
    strange = strange or next((flag for flag, value in options if flag == "--filter" and _MERGES.match(value.text)), "")
    if strange:
        return unknown(f"{name} {strange} may run a program or use another file", tuple(touched))
    copied = [Tree(access.path) for access in touched if isinstance(access, ReadPath)]
    follows = name == "scp" or any(re.match(r"-\w*[Lk]|--copy-links", word.text) for word in arguments)
    read = [tree._replace(follows=True, enters=True) for tree in copied] if follows else []
    return _make_judgement(
        Verdict.DESTRUCTIVE if hard else Verdict.WRITES, f"{name} copies", arguments, touched
    )._replace(copied=tuple(copied), trees=tuple(read))


def _destroy(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    devices = [word for word in arguments if word.text.startswith("/dev/")]
    return _make_judgement(
        Verdict.DESTRUCTIVE, f"{name} cannot be undone", arguments, resolve_as(WritePath, devices, folders)
    )


_FAMILIES: dict[str, Callable[[str, Sequence[Word], Folders], Judgement]] = {
    "rm rmdir unlink shred srm": _remove,
    "mv cp install gcp gmv": _move,
    "mkdir touch tee truncate mkfifo mknod fallocate gtouch": _write,
    "chmod chown chgrp chattr chcon setfacl": _change_mode,
    "ln link": _link,
    "dd": _dd,
    "compress uncompress": _compress,
    "split csplit": _split,
    "patch cpio": _unpack,
    "rsync scp": _sync,
    "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkswap wipefs fdisk sfdisk sgdisk parted "
    "blkdiscard "
    "shutdown reboot halt poweroff init killall pkill userdel groupdel dropdb": _destroy,
}
WRITERS = {name: writer for names, writer in _FAMILIES.items() for name in names.split()}
