"""Searching contents: both engines give the same answer."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from tests.waiting import within

from callwright.core.errors import InvalidArguments, ToolFailed
from callwright.system.search.content import SearchResult, search, search_python
from callwright.system.search.python_grep import find_required_literal
from callwright.system.search.ripgrep import ContentQuery, Globs, Mode, find_ripgrep, run_ripgrep

Engine: TypeAlias = Callable[[ContentQuery], Awaitable[SearchResult]]

needs_ripgrep = pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is not installed")


def _plain(found: SearchResult) -> tuple[object, ...]:
    lines = [(line.path, *line.read(), line.after_gap) for line in found.lines]
    return list(found.files), list(found.counts), lines


_TEXTS = st.lists(st.sampled_from(["ab", "a b", "", "b", "é ab", "AB", "ab ab", "x\ty"]), max_size=8)
_PATTERNS = [
    "a",
    "ab",
    "^a",
    "b$",
    "a\\s*b",
    "[^a]b",
    "\\bab\\b",
    "a|x",
    "é",
    "(?i)AB",
    "a.b",
    "$",
    "\\w+\\s",
    "(?<n>a)b",
]


@pytest.mark.slow
@needs_ripgrep
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(_TEXTS, min_size=1, max_size=3),
    st.sampled_from(_PATTERNS),
    st.sampled_from(["files", "content", "count"]),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@example(texts=[["ab", "", "", "", "ab"]], pattern="a", mode="content", around=1, ignore_case=False, ending="\n")
def test_without_ripgrep_the_same_lines_are_found(
    texts: list[list[str]], pattern: str, mode: Mode, around: int, ignore_case: bool, ending: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        for place, lines in enumerate(texts):
            (folder / f"{place}.txt").write_bytes(ending.join(lines).encode())
        query = ContentQuery(pattern, folder, folder, mode=mode, ignore_case=ignore_case, before=around, after=around)
        assert _plain(asyncio.run(search(query))) == _plain(asyncio.run(search_python(query)))


@pytest.mark.slow
@needs_ripgrep
@pytest.mark.parametrize("pattern", ["a\\nb", "a.b", "b\\n", "(?s)a.*b", "x\\s+y"])
@pytest.mark.parametrize("mode", ["files", "content", "count"])
async def test_matches_over_lines_are_the_same_without_ripgrep(tmp_path: Path, pattern: str, mode: Mode) -> None:
    (tmp_path / "one").write_text("a\nb\nc\na b\nx\n\ny\n")
    query = ContentQuery(pattern, tmp_path, tmp_path, mode=mode, multiline=True)
    with_ripgrep, without = await search(query), await search_python(query)
    assert with_ripgrep.files == without.files
    assert [line.read() for line in with_ripgrep.lines] == [line.read() for line in without.lines]


@pytest.mark.parametrize("engine", [search, search_python])
async def test_binary_files_are_skipped_and_utf_16_is_read(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a.bin").write_bytes(b"needle\0")
    (tmp_path / "b.txt").write_bytes("needle".encode("utf-16"))
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbfneedle")
    found = await engine(ContentQuery("needle", tmp_path, tmp_path))
    assert found.files == ["b.txt", "c.txt"]
    alone = await engine(ContentQuery("needle", tmp_path, tmp_path, name="a.bin", mode="content"))
    assert (alone.lines, alone.binary) == ([], ["a.bin"])


@pytest.mark.parametrize("engine", [search, search_python])
async def test_ignore_case_covers_non_ascii_letters(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "kelvin").write_text("two \N{KELVIN SIGN}ELVIN")
    (tmp_path / "plain").write_text("two Kelvin")
    (tmp_path / "none").write_text("two elvin")
    found = await engine(ContentQuery("kelvin", tmp_path, tmp_path, ignore_case=True))
    assert found.files == ["kelvin", "plain"]


@pytest.mark.parametrize("engine", [search, search_python])
async def test_a_file_larger_than_one_read_is_searched_to_its_end(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "large").write_text("filler\n" * 300_000 + "needle")
    found = await engine(ContentQuery("needle", tmp_path, tmp_path, mode="content"))
    assert [line.read()[0] for line in found.lines] == [300_001]


@pytest.mark.parametrize("engine", [search, search_python])
async def test_a_link_out_of_the_folder_is_not_searched(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "outside").write_text("needle")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to("../outside")
    assert (await engine(ContentQuery("needle", tmp_path / "in", tmp_path / "in"))).files == []


@pytest.mark.parametrize("engine", [search, search_python])
async def test_a_line_break_in_the_pattern_needs_multiline(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(InvalidArguments, match="multiline"):
        await engine(ContentQuery("a\\nb", tmp_path, tmp_path))


@needs_ripgrep
async def test_look_around_works(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("foobar\nfoobaz\n")
    found = await search(ContentQuery("foo(?!bar)", tmp_path, tmp_path, mode="content"))
    assert [line.read()[2] for line in found.lines] == ["foobaz"]


async def test_ignore_files_above_the_workspace_do_not_count(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    folder = tmp_path / "workspace" / "sub"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("needle")
    assert (await search(ContentQuery("needle", folder, tmp_path / "workspace"))).files == ["a.txt"]
    assert (await search(ContentQuery("needle", folder.parent, folder.parent))).files == ["sub/a.txt"]


def test_globs_are_split_outside_braces_only() -> None:
    globs = Globs.parse("*.{ts,tsx}, src/**/*.py !*.test.ts")
    assert globs == Globs(("*.{ts,tsx}", "src/**/*.py"), ("*.test.ts",))
    assert globs.accepts("deep/a.tsx")
    assert globs.accepts("src/x/b.py")
    assert not globs.accepts("lib/b.py")
    assert not globs.accepts("a.test.ts")
    assert globs.accepts("x/b.py", "src/x/b.py")


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("foo.bar_", "bar_"),
        ("abc*", "ab"),
        ("abc+d", "abc"),
        ("(abc)?d", "d"),
        ("((a)bcd)*ef", "ef"),
        ("a\\.b", "a.b"),
        ("[]abc]de", "de"),
        ("[[:alpha:]x]yz", "yz"),
        ("ab|cd", ""),
        ("(?i)ab", ""),
        ("\\x41b", ""),
    ],
)
def test_required_literal_is_found_only_where_certain(pattern: str, literal: str) -> None:
    assert find_required_literal(pattern) == literal


async def test_a_search_that_is_killed_is_not_taken_for_one_without_matches(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\nkill -KILL $$\n")
    program.chmod(0o755)
    with pytest.raises(ToolFailed, match=r"ended by signal 9, .*; search fewer files, or see whether"):
        await run_ripgrep(str(program), ContentQuery("a", tmp_path, tmp_path))


@needs_ripgrep
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another process can be limited on Linux only")
async def test_an_ignore_file_without_an_end_does_not_take_all_memory(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / ".gitignore").symlink_to("/dev/zero")
    program = find_ripgrep() or ""
    with pytest.raises(ToolFailed, match="too much memory"):
        await run_ripgrep(program, ContentQuery("a", tmp_path, tmp_path), memory_bytes=256 << 20)
    assert (await search(ContentQuery("a", tmp_path, tmp_path, ignored=True))).files == ["a.txt"]


@needs_ripgrep
@pytest.mark.parametrize("place", ["sub/.gitignore", ".ignore", ".git/info/exclude", "sub/.git/info/exclude"])
async def test_pipe_in_place_of_an_ignore_file_does_not_stop_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "sub" / "inner").mkdir(parents=True)
    (tmp_path / "sub" / "inner" / "a.txt").write_text("a\n")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / place)
    monkeypatch.setattr("callwright.system.search.content.PATIENCE_SECONDS", 0.1)
    for folder in (tmp_path, tmp_path / "sub"):
        found = await within(search(ContentQuery("a", folder, tmp_path)))
        assert [Path(name).name for name in found.files] == ["a.txt"]


@needs_ripgrep
async def test_long_search_is_left_to_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / ".gitignore").write_text("b\n")
    monkeypatch.setattr("callwright.system.search.content.PATIENCE_SECONDS", 0.0)
    found = await search(ContentQuery("a", tmp_path, tmp_path))
    assert (found.files, found.engine) == (["a.txt"], "ripgrep")


def test_program_in_the_working_folder_is_not_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("work", "bin"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rg").write_text("#!/bin/sh\n")
        (tmp_path / folder / "rg").chmod(0o755)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("sysconfig.get_path", str(tmp_path).format)  # whatever is asked for
    monkeypatch.setenv("PATH", f".::{tmp_path / 'bin'}")
    assert find_ripgrep.__wrapped__() == str(tmp_path / "bin/rg")
