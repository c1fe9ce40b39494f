"""Judges programs that are known to write, and lists the paths they touch."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from callwright.core.access import Access, DeletePath, Reach, ReadPath, WritePath
from callwright.core.spec import Effect
from callwright.shell.plan import Judgement, Verdict, unknown
from callwright.shell.rule_tables import ProgramRule
from callwright.shell.words import Folders, Word, resolve_paths

_Kind = type[ReadPath] | type[WritePath] | type[DeletePath]
_HELP = frozenset(("--help", "--version"))


def _iter_accesses(kind: _Kind, words: Iterable[Word], folders: Folders) -> Iterator[Access]:
    for word in words:
        for path in resolve_paths(word.text, folders):
            yield kind(path)


def _list_operands(arguments: Sequence[Word], values: str = "") -> list[Word]:
    return list(ProgramRule(values=frozenset(values.split())).operand_words(arguments))


def _has_flag(arguments: Sequence[Word], letters: str, *names: str) -> bool:
    for word in arguments:
        text = word.text
        if text.startswith("--"):
            if len(text) > 2 and any(name.startswith(text.partition("=")[0]) for name in names):  # not "--"
                return True
        elif text[:1] == "-" and set(text[1:]) & set(letters):
            return True
    return False


def _find_option(arguments: Sequence[Word], short: str, long: str) -> Word | None:
    for place, word in enumerate(arguments):
        if word.text in (short, long):
            return arguments[place + 1] if place + 1 < len(arguments) else None
        if word.text.startswith(f"{long}="):
            return Word(word.text.partition("=")[2], word.certainty)
    return None


def _make_judgement(verdict: Verdict, reason: str, arguments: Sequence[Word], touched: Iterable[Access]) -> Judgement:
    if len(arguments) == 1 and arguments[0].text in _HELP:
        return Judgement(Verdict.READ_ONLY, "it shows its help or version")
    return Judgement(verdict, reason, tuple(touched))


def _remove(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    hard = name in ("shred", "srm") or _has_flag(arguments, "rRf", "--recursive", "--force")
    touched = _iter_accesses(
        DeletePath, _list_operands(arguments, "-n -s --iterations --size" if name == "shred" else ""), folders
    )
    return _make_judgement(Verdict.DESTRUCTIVE if hard else Verdict.WRITES, f"{name} removes", arguments, touched)


def _move(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands = _list_operands(arguments, "-t -S -g -o -m --target-directory --suffix --owner --group --mode")
    target = _find_option(arguments, "-t", "--target-directory")
    sources = operands if target else operands[:-1]
    targets = [target] if target else operands[-1:]
    touched = [*_iter_accesses(ReadPath, sources, folders), *_iter_accesses(WritePath, targets, folders)]
    if name == "mv":
        touched.extend(_iter_accesses(DeletePath, sources, folders))
    return _make_judgement(
        Verdict.WRITES, f"{name} writes {' '.join(word.text for word in targets)}", arguments, touched
    )


def _write(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    values = "-m --mode -r --reference -d --date -t -s --size -Z --context --from -b -n -l -a -o -w"
    touched = _iter_accesses(
        WritePath, _list_operands(arguments, values if name not in ("tee", "mkdir") else "-m --mode"), folders
    )
    return _make_judgement(Verdict.WRITES, f"{name} writes", arguments, touched)


def _change_mode(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands = _list_operands(
        [word for word in arguments if not re.match(r"-[rwxXst]+\Z", word.text)], "--reference --from"
    )
    files = operands if _has_flag(arguments, "", "--reference") else operands[1:] or operands
    hard = _has_flag(arguments, "R", "--recursive")
    verdict = Verdict.DESTRUCTIVE if hard else Verdict.WRITES
    return _make_judgement(
        verdict, f"{name} changes file permissions or ownership", arguments, _iter_accesses(WritePath, files, folders)
    )


def _link(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands = _list_operands(arguments, "-t -S --target-directory --suffix")
    target = _find_option(arguments, "-t", "--target-directory") or (operands[-1] if len(operands) > 1 else Word("."))
    return _make_judgement(Verdict.WRITES, "ln makes a link", arguments, _iter_accesses(WritePath, [target], folders))


def _dd(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    touched: list[Access] = []
    for word in arguments:
        key, _, value = word.text.partition("=")
        if key in ("if", "of"):
            touched.extend(
                _iter_accesses(ReadPath if key == "if" else WritePath, [Word(value, word.certainty)], folders)
            )
    device = any(isinstance(access, WritePath) and access.path.startswith("/dev/") for access in touched)
    return _make_judgement(Verdict.DESTRUCTIVE if device else Verdict.WRITES, "dd copies raw data", arguments, touched)


def _compress(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands = _list_operands(arguments, "-S --suffix")
    touched = [*_iter_accesses(WritePath, operands, folders), *_iter_accesses(DeletePath, operands, folders)]
    return _make_judgement(Verdict.WRITES, f"{name} replaces files by packed ones", arguments, touched)


def _write_here(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    touched = _iter_accesses(WritePath, [Word(".")], folders)
    return _make_judgement(Verdict.WRITES, f"{name} writes into this folder", arguments, touched)


def _sync(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    operands = _list_operands(arguments, "-e --rsh -f --filter --exclude --include --files-from --log-file")
    touched: list[Access] = []
    for place, word in enumerate(operands):
        last = place == len(operands) - 1
        if re.match(r"[^/]+:|rsync://", word.text):
            touched.append(Reach(word.text, Effect.WRITE if last else Effect.READ))
        else:
            touched.extend(_iter_accesses(WritePath if last else ReadPath, [word], folders))
    hard = any(word.text.startswith(("--del", "--remove-source")) for word in arguments)
    if any(word.text.startswith(("-e", "--rsh", "--rsync-path")) for word in arguments):
        return unknown(f"{name} may run a program", tuple(touched))
    return _make_judgement(Verdict.DESTRUCTIVE if hard else Verdict.WRITES, f"{name} copies", arguments, touched)


def _destroy(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    devices = [word for word in _list_operands(arguments) if word.text.startswith("/dev/")]
    return _make_judgement(
        Verdict.DESTRUCTIVE, f"{name} cannot be undone", arguments, _iter_accesses(WritePath, devices, folders)
    )


_FAMILIES: dict[str, Callable[[str, Sequence[Word], Folders], Judgement]] = {
    "rm rmdir unlink shred srm": _remove,
    "mv cp install gcp gmv": _move,
    "mkdir touch tee truncate mkfifo mknod fallocate gtouch": _write,
    "chmod chown chgrp chattr setfacl": _change_mode,
    "ln link": _link,
    "dd": _dd,
    "compress uncompress zip 7zip": _compress,
    "split csplit patch cpio": _write_here,
    "rsync scp": _sync,
    "mkfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkswap wipefs fdisk sfdisk sgdisk parted "
    "blkdiscard "
    "shutdown reboot halt poweroff init killall pkill userdel groupdel dropdb": _destroy,
}
WRITERS = {name: writer for names, writer in _FAMILIES.items() for name in names.split()}
