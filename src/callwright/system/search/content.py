"""Searches file contents with ripgrep, or with Python in worker processes where ripgrep cannot be used."""

import asyncio
import marshal
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from callwright.core.errors import InvalidArguments, ToolFailed
from callwright.system.search import python_grep as matcher
from callwright.system.search.gitignore import IGNORE_FILES
from callwright.system.search.ripgrep import (
    MAX_COLUMNS,
    MAX_OUTPUT_BYTES,
    ContentQuery,
    Globs,
    describe_killed,
    find_ripgrep,
    run_ripgrep,
)
from callwright.system.search.walk import Walk, walk_files
from callwright.system.subprocesses import ChildResult, run_child

_TYPES = {
    "c": "*.[chH] *.h.in *.cats",
    "cpp": "*.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl",
    "cs": "*.cs",
    "css": "*.css *.scss",
    "go": "*.go",
    "html": "*.html *.htm *.ejs",
    "java": "*.java *.jsp *.jspx *.properties",
    "js": "*.js *.jsx *.vue *.cjs *.mjs",
    "json": "*.json *.sarif composer.lock",
    "kotlin": "*.kt *.kts",
    "lua": "*.lua",
    "make": "[Gg][Nn][Uu]makefile [Mm]akefile *.mk *.mak",
    "markdown": "*.markdown *.md *.mdown *.mdwn *.mkd *.mkdn *.mdx",
    "php": "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml",
    "py": "*.py *.pyi",
    "ruby": "*.rb *.gemspec .irbrc Gemfile Rakefile config.ru",
    "rust": "*.rs",
    "sh": "*.sh *.bash *.zsh *.ksh *.csh *.tcsh .bashrc .profile .zshrc",
    "sql": "*.sql *.psql",
    "swift": "*.swift",
    "toml": "*.toml Cargo.lock",
    "ts": "*.ts *.tsx *.cts *.mts",
    "txt": "*.txt",
    "xml": "*.xml *.xml.dist *.dtd *.xsl *.xslt *.xsd *.xjb *.rng *.sch *.xhtml",
    "yaml": "*.yaml *.yml",
}
_ALIASES = {"md": "markdown", "python": "py", "rb": "ruby", "typescript": "ts"}


def _globs_of_type(name: str) -> Globs:
    """Return the globs of a common file type, for searches without ripgrep.

    Raises:
        InvalidArguments: The type is not in our table; ripgrep may support it.
    """
    known = _TYPES.get(_ALIASES.get(name, name))
    if known is None:
        offered = ", ".join(sorted(_TYPES))
        raise InvalidArguments(
            f"type {name!r} is not supported without ripgrep; supported: {offered}; use glob instead"
        )
    return Globs.parse(known)


Result = TypeVar("Result")

_MARK = re.compile(rb"([:-])")
_BINARY = re.compile(rb"^([^\0\n]+): binary file matches \(found", re.MULTILINE)
_MAX_WORKERS = 8
_RULE_FILES = frozenset(IGNORE_FILES)
_EXCLUDES = ".git/info/exclude"
PATIENCE_SECONDS = 3.0
"""How long a search may take before it is checked whether ripgrep waits for something that never comes."""


class MatchLine(NamedTuple):
    """A line that matches, or one of its context lines. Decoded only when shown: a search may find many."""

    path: str
    """Relative to the searched folder."""
    raw: bytes
    """Line number, mark and text as the engine wrote them."""
    after_gap: bool
    """Whether lines of the same file are left out before this one, in a search with context lines."""

    def read(self) -> tuple[int, bool, str]:
        """Return the line's number, whether it matches, and its text."""
        number, mark, text = _MARK.split(self.raw, maxsplit=1)
        return int(number), mark == b":", text.decode("utf-8", "replace").removesuffix("\r")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, sorted by path. The query's mode decides which of the three lists is filled."""

    files: Sequence[str] = ()
    counts: Sequence[tuple[str, int]] = ()
    lines: Sequence[MatchLine] = ()
    binary: Sequence[str] = ()
    """Binary files that match; their lines are not shown."""
    cut: bool = False
    """Whether the result is incomplete, because it was too large."""
    engine: str = "ripgrep"


async def search(query: ContentQuery) -> SearchResult:
    """Search file contents.

    Raises:
        InvalidArguments: The engine cannot read the pattern, glob or type.
    """
    program = None if query.foreign_rules else find_ripgrep()
    if not program:
        return await search_python(query)
    running = asyncio.ensure_future(run_ripgrep(program, query))
    try:
        await asyncio.wait({running}, timeout=PATIENCE_SECONDS)
        if not running.done() and not query.ignored:
            stop = threading.Event()
            if await run_in_thread(lambda: _has_odd_rules(query.folder, stop), stop) and not running.done():
                return await search_python(query)
        return _read_result(query, await running, "ripgrep")
    finally:
        if not running.done():
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def _has_odd_rules(folder: Path, stop: threading.Event) -> bool:
    """Whether an ignore file is a pipe, or something else that is no file: ripgrep may wait at it for ever."""
    if any(_is_odd(f"{above}/{name}") for above in (folder, *folder.parents) for name in (*IGNORE_FILES, _EXCLUDES)):
        return True
    for place, folders, files in os.walk(folder):
        if stop.is_set():
            return False
        names = [*_RULE_FILES.intersection(files), *([_EXCLUDES] if ".git" in folders else [])]
        if any(_is_odd(f"{place}/{name}") for name in names):
            return True
    return False


def _is_odd(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many times per search
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


async def search_python(query: ContentQuery) -> SearchResult:
    """Search without ripgrep."""
    return _read_result(query, await _run_python(query), "python")


def _read_result(query: ContentQuery, done: ChildResult, engine: str) -> SearchResult:
    output = done.output[: done.output.rfind(b"\n") + 1] if done.cut and query.mode != "files" else done.output
    binary = sorted(_decode_path(query, each) for each in _BINARY.findall(output))
    files, counts, lines = _parse_output(query, output)
    return SearchResult(files, counts, lines, binary, done.cut, engine)


def _parse_output(query: ContentQuery, output: bytes) -> tuple[list[str], list[tuple[str, int]], list[MatchLine]]:
    if query.mode == "files":
        return sorted(_decode_path(query, name) for name in output.split(b"\0")[:-1]), [], []
    if query.mode == "count":
        rows = ((name, count) for name, count in _split_rows(output) if name)
        return [], sorted((_decode_path(query, name), int(count)) for name, count in rows), []
    return [], [], sorted(_parse_lines(query, output), key=itemgetter(0))  # a stable sort keeps a file's lines in order


def _parse_lines(query: ContentQuery, output: bytes) -> Iterator[MatchLine]:
    gap, last, path = False, b"", ""
    for name, raw in _split_rows(output):
        if not name:
            gap = raw in (b"--", b"--\r")  # ripgrep ends its own rows like the lines of the file
            continue
        if name != last:
            # the order of files is arbitrary, so there is no gap between two of them
            gap, last, path = False, name, _decode_path(query, name)
        yield MatchLine(path, raw, gap)
        gap = False


def _split_rows(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the rest of each row; the name is empty in rows about no file. A name may hold line breaks."""
    begun = b""
    for row in output.split(b"\n"):
        name, found, raw = row.partition(b"\0")
        if found:
            yield begun + name, raw
            begun = b""
        elif begun or not (row in (b"", b"\r", b"--", b"--\r") or _BINARY.match(row)):
            begun += row + b"\n"
        else:
            yield b"", row


def _decode_path(query: ContentQuery, name: bytes) -> str:
    if query.name:  # the only one that is searched, whichever way it was opened
        return query.name
    return os.fsdecode(name.removeprefix(b"./"))


async def _run_python(query: ContentQuery) -> ChildResult:
    _check_pattern(query)
    typed = _globs_of_type(query.type) if query.type else Globs()
    workers = 1 if query.name else min(os.cpu_count() or 1, _MAX_WORKERS)
    command = [sys.executable, "-I", "-S", str(Path(matcher.__file__))]
    async with asyncio.TaskGroup() as group:  # the workers start while the files are still being listed
        names = group.create_task(_list_candidates(query, typed))
        runs = [
            group.create_task(
                run_child(
                    command,
                    query.start,
                    max_bytes=MAX_OUTPUT_BYTES // workers,
                    feed=_encode_job(query, names, slice(place, None, workers)),
                )
            )
            for place in range(workers)
        ]
    return _merge_results([run.result() for run in runs])


def _merge_results(done: Sequence[ChildResult]) -> ChildResult:
    if errors := "".join(each.errors for each in done):
        raise ToolFailed(f"a search worker failed: {errors.strip().splitlines()[-1]}")
    if ended := [each.code for each in done if each.code < 0]:
        raise ToolFailed(describe_killed(ended[0]))
    return ChildResult(b"".join(each.output for each in done), "", 0, cut=any(each.cut for each in done))


def _check_pattern(query: ContentQuery) -> None:
    try:
        matcher.compile_pattern(query.pattern, ignore_case=query.ignore_case, multiline=query.multiline)
    except re.error as error:
        raise InvalidArguments(
            f"pattern {query.pattern!r}: {error} (read as a Python expression, because ripgrep is not installed)"
        ) from None
    if not query.multiline and ("\n" in query.pattern or re.search(r"(?<!\\)(\\\\)*\\n", query.pattern)):
        raise InvalidArguments("pattern: a line break is not allowed in it; set multiline to true to match over lines")


async def _encode_job(query: ContentQuery, names: asyncio.Task[list[str]], share: slice) -> bytes:
    job = {
        "pattern": query.pattern,
        "mode": query.mode,
        "ignore_case": query.ignore_case,
        "multiline": query.multiline,
        "before": query.before,
        "after": query.after,
        "max_columns": MAX_COLUMNS,
        "explicit": bool(query.name),
    }
    chosen = (await names)[share]
    return marshal.dumps((job, os.fsencode("\0".join(chosen))))


async def _list_candidates(query: ContentQuery, typed: Globs) -> list[str]:
    if query.name:
        return [query.name]
    walk = Walk(query.folder, query.top, ignored=query.ignored, descriptor=query.descriptor)
    if typed == query.globs == Globs():
        return await run_in_thread(lambda: list(walk_files(walk)), walk.stop)
    return await run_in_thread(
        lambda: [name for name in walk_files(walk) if typed.accepts(name) and query.globs.accepts(name)], walk.stop
    )


async def run_in_thread(work: Callable[[], Result], stop: threading.Event) -> Result:
    """Run blocking work in a thread; cancellation sets `stop` and does not wait for the work."""
    try:
        return await asyncio.to_thread(work)
    finally:
        stop.set()
