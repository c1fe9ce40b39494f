"""Encodings, line breaks, lines of huge files, and reading only what is a file."""

import os
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.counting import count_calls

from callwright.core.errors import ToolFailed
from callwright.system.files import (
    Encoding,
    Identity,
    LineIndex,
    detect_encoding,
    lines_from,
    most_common_break,
    open_regular,
    read_all,
    read_start,
    replace_range,
    replace_ranges,
    unify_line_breaks,
    with_break,
)

_BREAKS = st.sampled_from(["\n", "\r\n"])
_LINES = st.lists(st.tuples(st.text(st.sampled_from("ab \t"), max_size=3), _BREAKS), max_size=8)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "utf-8"),
        (b"plain", "utf-8"),
        ("naïve ✓".encode(), "utf-8"),
        (b"\xef\xbb\xbfmarked", "utf-8"),
        ("wide".encode("utf-16"), "utf-16-le"),
        (b"\xfe\xff" + "wide".encode("utf-16-be"), "utf-16-be"),
        ("wide\nlines\n".encode("utf-16-le"), "utf-16-le"),
        ("wide\nlines\n".encode("utf-16-be"), "utf-16-be"),
        ("wider".encode("utf-32"), "utf-32-le"),
        (b"\x00\x00\xfe\xff" + "wider".encode("utf-32-be"), "utf-32-be"),
        ("caf\xe9 na\xefve".encode("latin-1"), "latin-1"),
        ("✓ ✓ ✓".encode() + b"\xff", "utf-8"),
        (b"\x1b[31mred\x1b[0m\ttext\r\n", "utf-8"),
    ],
)
def test_detected_text_round_trips_unchanged(data: bytes, name: str):
    encoding = detect_encoding(data)
    assert encoding is not None
    assert encoding.name == name
    body = data[len(encoding.mark) :]
    assert encoding.encode(encoding.decode(body)) == body


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03",
        b"\x7fELF\x02\x01",
        b"PK\x03\x04zip",
        bytes(range(32)) * 4,
        b"\xff\xfea\0b",
        b"\xff\xfe\0\0\xff\xff\xff\xff",
        "no mark".encode("utf-16-le") + b"x",
    ],
)
def test_binary_is_detected(data: bytes):
    assert detect_encoding(data) is None


def test_sample_ending_inside_a_character_is_utf8():
    assert detect_encoding("é".encode()[:1], whole=False) == Encoding()
    assert detect_encoding(b"ab" + "✓".encode()[:2], whole=False) == Encoding()


_WIDE = st.sampled_from([b"", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff", b"a\0" * 40])


@given(_WIDE, st.binary(max_size=40))
def test_any_bytes_survive_a_round_trip(start: bytes, rest: bytes):
    data = start + rest
    encoding = detect_encoding(data) or Encoding()
    body = data[len(encoding.mark) :]
    assert encoding.encode(encoding.decode(body)) == body


@given(before=_LINES, cut=_LINES, after=_LINES, new=_LINES)
def test_lines_outside_the_range_keep_their_breaks(
    before: list[tuple[str, str]],
    cut: list[tuple[str, str]],
    after: list[tuple[str, str]],
    new: list[tuple[str, str]],
):
    head, middle, tail = ("".join(line + end for line, end in part) for part in (before, cut, after))
    replacement = "".join(line + "\n" for line, _ in new)
    start = len(unify_line_breaks(head))
    result = replace_range(head + middle + tail, start, start + len(unify_line_breaks(middle)), replacement)
    assert result.startswith(head)
    assert result.endswith(tail)
    assert unify_line_breaks(result) == unify_line_breaks(head) + replacement + unify_line_breaks(tail)


def test_unchanged_line_inside_the_range_keeps_its_break():
    assert replace_range("a\r\nb\nc\r\n", 0, 6, "a\nB\nc\n") == "a\r\nB\r\nc\r\n"
    assert replace_range("a\nb\r\nc\n", 0, 6, "x\nb\nc\n") == "x\nb\r\nc\n"


@given(text=_LINES, old=st.sampled_from(["a", "a\n", "\n", "b\na"]), new=_LINES)
def test_several_ranges_are_replaced_as_one_by_one(text: list[tuple[str, str]], old: str, new: list[tuple[str, str]]):
    mixed, replacement = ("".join(line + end for line, end in part) for part in (text, new))
    replacement = unify_line_breaks(replacement)
    ranges = [found.span() for found in re.finditer(old, unify_line_breaks(mixed))]
    expected = mixed
    for start, end in reversed(ranges):
        expected = replace_range(expected, start, end, replacement)
    assert replace_ranges(mixed, ranges, replacement) == expected


def test_several_ranges_are_replaced_in_linear_time():
    def work(lines: int) -> int:
        ranges = [(4 * line, 4 * line + 2) for line in range(lines)]
        return count_calls(lambda: replace_ranges("a\r\na\n" * lines, ranges, "b\n"))

    assert work(400) < 6 * work(100)


def test_most_common_break_is_that_of_most_lines():
    assert most_common_break("a\r\nb\r\nc\n") == "\r\n"
    assert most_common_break("a\r\nb\n") == "\n"
    assert most_common_break("none") == ""
    assert with_break("a\nb\r\n", "\r\n") == "a\r\nb\r\n"


def find(index: LineIndex, descriptor: int, line: int) -> int | None:
    identity = Identity.of(os.fstat(descriptor))
    while not index.reach(descriptor, identity, line):
        pass
    return index.find(descriptor, identity, line)


def test_every_line_is_found_where_it_begins(tmp_path: Path):
    lines = [b"x" * (index % 97) for index in range(30_000)]
    path = tmp_path / "long"
    path.write_bytes(b"\n".join(lines))
    descriptor, index = os.open(path, os.O_RDONLY), LineIndex()
    offsets = [0]
    for line in lines[:-1]:
        offsets.append(offsets[-1] + len(line) + 1)
    for number in (
        15_000,
        1,
        2,
        29_999,
        14_000,
        29_998,
        30_000,
        7,
    ):  # in no order: later marks must serve earlier lines
        assert find(index, descriptor, number) == offsets[number - 1]
    assert find(index, descriptor, 30_001) is None
    assert index.breaks(Identity.of(os.fstat(descriptor))) == 29_999
    os.close(descriptor)


@given(data=st.binary(max_size=60), lines=st.lists(st.integers(1, 10), min_size=1))
def test_finding_lines_agrees_with_splitting(data: bytes, lines: list[int], tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(data)
    descriptor, index = os.open(path, os.O_RDONLY), LineIndex()
    offsets = [find(index, descriptor, line) for line in lines]
    os.close(descriptor)
    parts = data.split(b"\n")
    assert offsets == [
        sum(len(part) + 1 for part in parts[: line - 1]) if line <= len(parts) else None for line in lines
    ]


def test_a_long_scan_is_done_in_slices(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x\n" * 10_000_000)
    descriptor, index = os.open(path, os.O_RDONLY), LineIndex()
    identity = Identity.of(os.fstat(descriptor))
    assert not index.reach(descriptor, identity, 10_000_000)
    assert find(index, descriptor, 10_000_000) == 19_999_998
    assert index.reach(descriptor, identity, 9_000_000)
    os.close(descriptor)


def test_changed_file_is_scanned_again(tmp_path: Path):
    path = tmp_path / "file"
    index = LineIndex()
    for content, expected in ((b"a\n" * 200_000, 200_000), (b"bb\n" * 200_000, 300_000)):
        path.write_bytes(content)
        descriptor = os.open(path, os.O_RDONLY)
        assert find(index, descriptor, 100_001) == expected
        os.close(descriptor)


def test_giant_line_keeps_only_its_head(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000_000 + b"\nshort\n")
    descriptor = os.open(path, os.O_RDONLY)
    giant, short = filter(None, lines_from(descriptor, 0, 100))
    os.close(descriptor)
    assert (len(giant.head), giant.size) == (100, 1_000_000)
    assert (short.head, short.size) == (b"short", 5)


def test_special_files_are_refused_without_blocking(tmp_path: Path):
    root = Path(os.path.realpath(tmp_path))
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))
        for path in (root / "pipe", root / "s", Path("/dev/zero")):
            with pytest.raises(ToolFailed, match="not a regular file"):
                open_regular(path)
    with pytest.raises(IsADirectoryError):
        open_regular(root)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no proc file system here")
def test_files_with_size_zero_are_read_anyway():
    descriptor = open_regular(Path(os.path.realpath("/proc/self/status")))
    try:
        assert b"Name:" in read_all(descriptor)
    finally:
        os.close(descriptor)


def test_the_start_of_a_file_is_read_only_if_it_is_a_regular_one(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    assert [read_start(tmp_path / name, 3) for name in ("file", "link")] == [b"123", b"123"]
    assert [read_start(tmp_path / name, 3) for name in ("pipe", "zeros", "missing", ".")] == [None] * 4
