"""Finds what a git command would print without naming its file: objects by their ids, and folders outside a repository.

A file's name tells whether it may hold a secret. An object's id does not, so the content of a file that is named by
its id is asked about. The objects are read here instead of by git, because judging a line runs nothing.
"""

import mmap
import os
import re
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from glob import has_magic, iglob
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

from callwright.core.access import is_below
from callwright.policy.git_folders import list_repositories, read_settings
from callwright.policy.tool_names import words
from callwright.policy.trees import find_in_tree
from callwright.shell.plan import Tree
from callwright.system.sensitive_paths import comparable, is_secret, may_hold_secret

_OBJECT_ID = re.compile(r"(?:.*-g)?([0-9a-fA-F]{4,64})(?:[\^~@].*)?")
_PRINTS_FILES = words("show cat-file tag notes")
"""Sub-commands that print a file or keep it under another name; of a folder they print only names."""
_COMPARES_FOLDERS = words("diff grep diff-tree diff-index archive")
"""Sub-commands that print the files of a folder too, whose names begin at that folder."""
_EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
_MESSAGE = re.compile(r"-[adefilsv]*m|--m")  # behind another letter, the m is the value of that one
_MESSAGE_NEXT = re.compile(r"-[adefilsv]*m|--m[a-z]*")
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_UNKNOWN = "unknown"
_MAX_STEPS = 10_000
_MAX_STORES = 20
_MAX_IDS = 200
_MAX_MATCHES = 1_000
"""A strange repository or line must not keep the judge busy: beyond these, the user is asked."""


def find_unnamed_object(arguments: Sequence[str], folder: str) -> str:
    """Return the word of a git call that is the id of a file or folder in the repository; empty if there is none.

    Args:
        arguments: The words behind `git`.
        folder: Where git would run.
    """
    verb, rest = split_verb(arguments)
    if verb in _PRINTS_FILES:
        objected = {"blob", _UNKNOWN}
    elif verb in _COMPARES_FOLDERS:
        objected = {"blob", "tree", _UNKNOWN}
    else:
        return ""
    if verb in ("tag", "notes") and (kept := next(_list_kept(rest), "")):
        return kept
    if verb in _COMPARES_FOLDERS and (cut := next((word for word in rest if _cuts_names(word, folder)), "")):
        return cut
    named = list(_list_ids(rest, values=verb in ("tag", "notes")))
    stores = [repository.shared / "objects" for repository in list_repositories(folder)] if named else []
    if not stores:
        return ""
    for word, start, inside in named[:_MAX_IDS]:
        if any(empty.startswith(start) for empty in _EMPTY_TREES):
            continue
        # the path behind the id of a folder begins at that folder
        kinds = {"tree", _UNKNOWN} if inside else objected
        if any(kinds & _find_kinds(store, start) for store in stores):
            return word
    if len(named) > _MAX_IDS:
        return named[_MAX_IDS][0]
    return ""


def _list_kept(rest: Sequence[str]) -> Iterator[str]:
    """Yield the words that may name a file or folder of a commit, which is kept under another name: `HEAD:.env`."""
    for before, word in pairwise(("", *rest)):
        if ":" in word and not _MESSAGE.match(word) and not _MESSAGE_NEXT.fullmatch(before):
            yield word


def _cuts_names(word: str, folder: str) -> bool:
    """Whether a word names a folder of a commit by whose name a file in it is a secret: `HEAD:.config/gh`."""
    _, colon, path = word.rpartition(":")
    full = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - of `HEAD:./` too, which begins at the folder
    return bool(colon and path) and may_hold_secret(comparable(full))


def find_compared_secret(arguments: Sequence[str], folder: str) -> str | None:
    """Return a secret in the folders that git compares or searches as plain folders; None if that is not known.

    `git diff` does so with --no-index, outside a repository, and when one of the two paths lies outside of it.
    """
    verb, rest = split_verb(arguments)
    if verb not in ("diff", "grep"):
        return ""
    plain = any(word.startswith("--no-i") for word in rest) or (verb == "diff" and not _is_in_repository(folder))
    operands = [word for word in rest if word[:1] != "-"]
    if any(_is_hard_to_match(word) and (plain or _leads_out(word)) for word in operands):
        return None
    paths = [path for word in operands for path in _expand(word, folder)]
    if len(paths) > _MAX_MATCHES:
        return None
    found = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112 - a path as text
    if not found or not (plain or (verb == "diff" and _leaves_repository(found, folder))):
        return ""
    for path in found:
        tree = Tree(os.path.normpath(path), follows=True, enters=True)
        secret = find_in_tree(tree, lambda each: is_secret(comparable(each)))
        if secret != "":
            return secret
    return ""


def _is_in_repository(folder: str) -> bool:
    return any(repository.certain for repository in list_repositories(folder))


def _leads_out(word: str) -> bool:
    return word[:1] in ("/", "~") or ".." in word


def _is_hard_to_match(word: str) -> bool:
    """Whether matching takes long, or bash matches other names than Python does: `[^a]`, `[[:alpha:]]`."""
    return "[" in word or sum(has_magic(part) for part in word.split("/")) > 1


def _expand(word: str, folder: str) -> Iterator[str]:
    path = os.path.join(folder, os.path.expanduser(word))  # noqa: PTH111, PTH118 - a path as text
    yield path
    if has_magic(word) and not _is_hard_to_match(word):
        yield from islice(iglob(path), _MAX_MATCHES)  # noqa: PTH207 - a path as text


def _leaves_repository(paths: Sequence[str], folder: str) -> bool:
    """Whether a path lies outside of the repository around a folder, which there must be."""
    root = next((start for start in (Path(folder), *Path(folder).parents) if (start / ".git").exists()), Path(folder))
    inside = (os.path.realpath(root),)
    return not all(is_below(os.path.realpath(path), inside) for path in paths)


def split_verb(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the sub-command of a git call and the words behind it."""
    place = 0
    while place < len(arguments) and arguments[place][:1] == "-":
        place += 2 if arguments[place] in ("-C", "-c") else 1
    return (arguments[place], arguments[place + 1 :]) if place < len(arguments) else ("", ())


def _list_ids(rest: Sequence[str], *, values: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield the words that may be ids of objects, each with the id in lower case and whether a path follows it."""
    for word in rest:
        text = word
        if word[:1] == "-":
            if not values:
                continue
            text = word.partition("=")[2] if word[:2] == "--" else word[2:]
        for part in text.split(".."):
            name, colon, _ = part.strip(".").lstrip("^").partition(":")
            if found := _OBJECT_ID.fullmatch(name):
                yield word, found[1].lower(), bool(colon)


def _find_kinds(objects: Path, start: str) -> set[str]:
    """Return the kinds of the objects whose ids begin so, in a store and in those it borrows from."""
    stores, kinds = [os.path.realpath(objects)], set[str]()
    for store in stores:  # which grows
        kinds |= set(_find_loose(Path(store), start))
        for index in sorted(Path(store, "pack").glob("*.idx")):
            try:
                kinds |= set(_find_packed(index, start))
            except (OSError, ValueError, IndexError, struct.error):
                kinds.add(_UNKNOWN)
        stores += [each for each in dict.fromkeys(_list_alternates(Path(store))) if each not in stores]
        if len(stores) > _MAX_STORES:
            return kinds | {_UNKNOWN}
    return kinds


def _list_alternates(store: Path) -> Iterator[str]:
    file = store / "info" / "alternates"
    if file.is_file():
        for line in read_settings(file).splitlines():
            if line and line[0] != "#":
                yield os.path.realpath(store / line)


def _open_file(path: Path) -> BinaryIO:
    if not path.is_file():
        raise OSError(f"{path} is not a file")  # opening a pipe would wait for what is written to it
    return path.open("rb")


def _find_loose(objects: Path, start: str) -> Iterator[str]:
    folder = objects / start[:2]
    try:
        names = [name for name in os.listdir(folder) if name.startswith(start[2:])]  # noqa: PTH208 - names only
    except OSError:
        return
    for name in names:
        try:
            with _open_file(folder / name) as file:
                header = zlib.decompressobj().decompress(file.read(64), 16)
        except (OSError, zlib.error):
            yield _UNKNOWN
        else:
            kind = header.partition(b" ")[0].decode("latin-1")
            yield kind if kind in _KINDS.values() else _UNKNOWN


def _find_packed(index: Path, start: str) -> Iterator[str]:
    """Yield the kinds of objects in a pack, from its index: a table by first byte, sorted ids, and places."""
    with _open_file(index) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:8] != b"\xfftOc\x00\x00\x00\x02":
            yield _UNKNOWN  # the first version of the format, which no git has written since 2008
            return
        pack = _Pack(data)
        place = bisect_left(range(pack.count), start, key=pack.id_at)
        if place == pack.count or not pack.id_at(place).startswith(start):
            return
        with _open_file(index.with_suffix(".pack")) as content:
            while place < pack.count and pack.id_at(place).startswith(start):
                kind = pack.find_kind(content, place)
                yield kind
                if kind == _UNKNOWN:
                    return
                place += 1


class _Pack:
    """A pack and its index; looks up kinds only."""

    def __init__(self, index: mmap.mmap) -> None:
        self._index = index
        self._steps = 0
        (self.count,) = struct.unpack_from(">I", index, 8 + 255 * 4)
        long_places = len(index) - 1032 - 40 - 28 * self.count
        # with ids of 20 bytes, this much is left for places beyond 2 GiB; otherwise the ids have 32 bytes
        self._id_bytes = 20 if 0 <= long_places <= 8 * self.count and long_places % 8 == 0 else 32

    def id_at(self, place: int) -> str:
        start = 1032 + place * self._id_bytes
        return self._index[start : start + self._id_bytes].hex()

    def _offset(self, place: int) -> int:
        table = 1032 + self.count * (self._id_bytes + 4)
        (offset,) = struct.unpack_from(">I", self._index, table + 4 * place)
        if offset & 0x80000000:
            (offset,) = struct.unpack_from(">Q", self._index, table + 4 * self.count + 8 * (offset & 0x7FFFFFFF))
        return offset

    def find_kind(self, file: BinaryIO, place: int) -> str:
        """Follow the chain of differences from an object to the one it is based on, which has the same kind."""
        offset = self._offset(place)
        while self._steps < _MAX_STEPS:
            self._steps += 1
            file.seek(offset)
            head = file.read(64)
            number, at = (head[0] >> 4) & 7, 1
            while head[at - 1] & 0x80:  # the rest of the object's size
                at += 1
            if number in _KINDS:
                return _KINDS[number]
            if number == 6:
                back = head[at] & 0x7F
                while head[at] & 0x80:
                    at += 1
                    back = ((back + 1) << 7) | (head[at] & 0x7F)
                offset -= back
            elif number == 7:
                base = head[at : at + self._id_bytes].hex()
                found = bisect_left(range(self.count), base, key=self.id_at)
                if found == self.count or self.id_at(found) != base:
                    return _UNKNOWN
                offset = self._offset(found)
            else:
                return _UNKNOWN
        return _UNKNOWN
