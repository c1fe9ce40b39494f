"""The `edit` tool on real files."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from callwright import Completed, Executor, Failed, Registry, ToolCall
from callwright.core.access import ReadPath, WritePath
from callwright.core.errors import InvalidArguments, Unsafe
from callwright.core.json import Json
from callwright.policy import AllowEverything
from callwright.system.paths import Workspace
from callwright.testing import check_tool
from callwright.toolbox.edit import edit_tool
from callwright.toolbox.edit.edit_tool import Edit
from callwright.toolbox.read import SMALL_BYTES, Read
from callwright.toolbox.write import Write


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    return Executor(Registry(Read(tmp_path), Write(tmp_path), Edit(tmp_path)), policies=AllowEverything())


async def edited(executor: Executor, path: str, **arguments: Json) -> str:
    await executor.run("read", {"path": path})
    outcome = await executor.run("edit", {"path": path, **arguments})
    assert isinstance(outcome, Completed), outcome
    return outcome.text


async def refused(executor: Executor, path: str, **arguments: Json) -> str:
    outcome = await executor.run("edit", {"path": path, **arguments})
    assert isinstance(outcome, Failed), outcome
    return outcome.text


async def test_result_is_a_diff_with_numbered_lines(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\ntwo\nthree\n")
    assert await edited(executor, "f", old_string="two", new_string="2\n2b") == (
        "Edited f at 1 place\n--- f\n+++ f\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n\n"
        "now:\n1\tone\n2\t2\n3\t2b\n4\tthree"
    )
    assert (tmp_path / "f").read_text() == "one\n2\n2b\nthree\n"


async def test_diff_shows_missing_final_break(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\ntwo")
    text = await edited(executor, "f", old_string="two", new_string="two\n")
    assert "-two\n\\ No newline at end of file\n+two\n" in text
    assert text.endswith("now:\n1\tone\n2\ttwo")


async def test_other_hard_links_keep_the_old_content_and_are_reported(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "g").hardlink_to(tmp_path / "f")
    text = await edited(executor, "f", old_string="one", new_string="two")
    assert text.startswith("Edited f at 1 place (1 other hard link to the old file unchanged)\n")
    assert (tmp_path / "f").read_text() == "two\n" and (tmp_path / "g").read_text() == "one\n"
    assert "hard link" not in await edited(executor, "f", old_string="two", new_string="three")
    (tmp_path / "h").hardlink_to(tmp_path / "f")
    outcome = await executor.run("write", {"path": "f", "content": "four\n"})
    assert isinstance(outcome, Completed) and "1 other hard link" in outcome.text


async def test_huge_file_shows_only_changes(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("".join(f"line {n}\n" for n in range(1, 50_001)))
    text = await edited(executor, "f", old_string="line 40000\n", new_string="line forty thousand\n")
    assert "@@ -39997,7 +39997,7 @@" in text
    assert len(text.splitlines()) < 25


async def test_corrected_typo_is_reported(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("def f():\n    a = 1\n    b = 2\n")
    text = await edited(executor, "f", old_string="a = 1\nb = 2\n", new_string="a = 1\nb = 3\n")
    assert "corrected: indentation" in text
    assert (tmp_path / "f").read_text() == "def f():\n    a = 1\n    b = 3\n"


async def test_replace_all_replaces_every_occurrence(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a b a\r\na\n")
    assert "at 3 places" in await edited(executor, "f", old_string="a", new_string="x\ny", replace_all=True)
    assert (tmp_path / "f").read_bytes() == b"x\r\ny b x\r\ny\r\nx\ny\n"
    assert "not found" in await refused(executor, "f", old_string="absent", new_string="x", replace_all=True)
    (tmp_path / "f").write_text("a\n\n\nb\n")
    await edited(executor, "f", old_string="\n\n", new_string="\n", replace_all=True)  # found twice, one over the other
    assert (tmp_path / "f").read_text() == "a\n\nb\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"aaa\r\naaa\r\n", "aa", "x", b"xa\r\nxa\r\n"),
        (b"aaa\r\naaa\r\n", "a\na", "b\nb", b"aab\r\nbaa\r\n"),
        (b"a\r\nb\r\na\r\nb\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\na\r\nx\r\nb\r\n"),
        (b"a\r\nb\na\nb\r\n", "a", "x", b"x\r\nb\nx\nb\r\n"),
        (b"\n\n\n\r\n", "\n\n", "\n", b"\n\n"),
    ],
)
async def test_replace_all_goes_from_the_left_whatever_the_line_breaks(
    executor: Executor, tmp_path: Path, before: bytes, old: str, new: str, after: bytes
):
    (tmp_path / "f").write_bytes(before)
    await edited(executor, "f", old_string=old, new_string=new, replace_all=True)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize("new", ["", "x", "\n"])
async def test_half_of_a_line_break_is_not_replaced_everywhere(executor: Executor, tmp_path: Path, new: str):
    (tmp_path / "f").write_bytes(b"ab\r\ncd\r\n")
    await executor.run("read", {"path": "f"})
    said = await refused(executor, "f", old_string="\r", new_string=new, replace_all=True)
    assert "line break" in said and (tmp_path / "f").read_bytes() == b"ab\r\ncd\r\n"


async def test_edits_are_applied_in_order_or_not_at_all(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\ntwo\n")
    await edited(
        executor,
        "f",
        edits=[{"old_string": "one", "new_string": "1\n1b"}, {"oldString": "1b", "newString": "1c"}],
    )
    assert (tmp_path / "f").read_text() == "1\n1c\ntwo\n"
    edits: Json = [{"old_string": "two", "new_string": "2"}, {"old_string": "absent", "new_string": ""}]
    assert "edit 2 of 2" in await refused(executor, "f", edits=edits)
    assert (tmp_path / "f").read_text() == "1\n1c\ntwo\n"


async def test_unread_or_changed_file_is_refused(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\n")
    assert "was not read" in await refused(executor, "f", old_string="one", new_string="two")
    await executor.run("read", {"path": "f"})
    (tmp_path / "f").write_text("one\nmore\n")
    assert "was changed" in await refused(executor, "f", old_string="one", new_string="two")
    assert (tmp_path / "f").read_text() == "one\nmore\n"


async def test_consecutive_edits_need_no_read(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\ntwo\n")
    await edited(executor, "f", old_string="one", new_string="1")
    outcome = await executor.run("edit", {"path": "f", "old_string": "two", "new_string": "2"})
    assert isinstance(outcome, Completed)
    await executor.run("write", {"path": "g", "content": "written\n"})
    assert isinstance(await executor.run("edit", {"path": "g", "old": "written", "new": "edited"}), Completed)


async def test_shown_part_of_large_file_can_be_edited(executor: Executor, tmp_path: Path):
    line = "x" * 99 + "\n"
    count = SMALL_BYTES // 100 + 10
    (tmp_path / "f").write_text(line * count + "needle\n")
    await executor.run("read", {"path": "f", "offset": count})
    assert isinstance(await executor.run("edit", {"path": "f", "old": "needle", "new": "pin"}), Completed)
    assert (tmp_path / "f").read_text() == line * count + "pin\n"


async def test_line_breaks_are_kept(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\nd\r\n")
    await edited(executor, "f", old_string="a\nb\nc\n", new_string="a\nB\nB2\nc\n")
    assert (tmp_path / "f").read_bytes() == b"a\r\nB\r\nB2\r\nc\nd\r\n"
    (tmp_path / "g").write_bytes(b"a\nb\n")
    await edited(executor, "g", old_string="a\r\nb\r\n", new_string="a\r\nc\r\n")
    assert (tmp_path / "g").read_bytes() == b"a\nc\n"


async def test_undecodable_bytes_survive(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("✓ ✓ ✓\n".encode() + b"\xff\xfe bad\nedit me\n")
    await edited(executor, "f", old_string="edit me", new_string="édited")
    assert (tmp_path / "f").read_bytes() == "✓ ✓ ✓\n".encode() + b"\xff\xfe bad\n" + "édited\n".encode()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
async def test_encoding_is_kept(executor: Executor, tmp_path: Path, encoding: str):
    (tmp_path / "f").write_bytes("caf\xe9\none\n".encode(encoding))
    await edited(executor, "f", old_string="one", new_string="d\xe9ux")
    assert (tmp_path / "f").read_bytes() == "caf\xe9\nd\xe9ux\n".encode(encoding)


async def test_character_missing_in_encoding_is_named(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("caf\xe9\n".encode("latin-1"))
    await executor.run("read", {"path": "f"})
    assert "'✓'" in await refused(executor, "f", old_string="caf", new_string="✓")


async def test_empty_old_string_only_creates_files(executor: Executor, tmp_path: Path):
    outcome = await executor.run("edit", {"path": "new/f", "old_string": "", "new_string": "hello\n"})
    assert isinstance(outcome, Completed)
    assert (tmp_path / "new" / "f").read_text() == "hello\n"
    text = await refused(executor, "new/f", old_string="", new_string="x")
    assert "only creates" in text and text.endswith('the last lines of the file are "hello"')
    assert "does not exist" in await refused(executor, "new/g", old_string="x", new_string="y")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_empty_old_string_fills_an_empty_file(executor: Executor, tmp_path: Path, mark: bytes):
    (tmp_path / "f").write_bytes(mark)
    assert "now:\n1\thello" in await edited(executor, "f", old_string="", new_string="hello\n")
    assert (tmp_path / "f").read_bytes() == mark + b"hello\n"


@pytest.mark.parametrize(("old", "new"), [("one", "one"), ("one\r\n", "one\n")])
async def test_edit_without_change_is_an_error(executor: Executor, tmp_path: Path, old: str, new: str):
    (tmp_path / "f").write_text("one\n")
    await executor.run("read", {"path": "f"})
    assert "nothing to change" in await refused(executor, "f", old_string=old, new_string=new)


async def test_doubted_edit_is_applied_when_repeated(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x = 1\n")
    await executor.run("read", {"path": "f"})
    doubt = await refused(executor, "f", old_string="x = 1", new_string="x = “1”")
    assert "send the same edit again" in doubt
    assert isinstance(await executor.run("edit", {"path": "f", "old": "x = 1", "new": "x = “1”"}), Completed)
    assert (tmp_path / "f").read_text() == "x = “1”\n"


@pytest.mark.parametrize("old", ["x = ‘1’\n", "1\tx = '1'\n"])
@pytest.mark.parametrize("every", [False, True])
async def test_doubted_edit_of_a_text_with_a_typo_is_applied_when_repeated(
    executor: Executor, tmp_path: Path, old: str, every: bool
):
    (tmp_path / "f").write_text("x = '1'\n\ty = 2\n")
    await executor.run("read", {"path": "f"})
    change: dict[str, Json] = {"old_string": old, "new_string": "x = 1\n    z = 2\n", "replace_all": every}
    assert "send the same edit again" in await refused(executor, "f", **change)
    assert isinstance(await executor.run("edit", {"path": "f", **change}), Completed)
    assert (tmp_path / "f").read_text() == "x = 1\n    z = 2\n\ty = 2\n"


async def test_read_resets_a_doubted_edit(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x = 1\n")
    for _ in range(2):
        await executor.run("read", {"path": "f"})
        await refused(executor, "f", old_string="x = 1", new_string="x = “1”")


_TWO_FORMS: list[dict[str, Json]] = [
    {},
    {"old_string": "x"},
    {"edits": []},
    {"old_string": "a", "new_string": "b", "edits": [{"old_string": "a", "new_string": "b"}]},
]


@pytest.mark.parametrize("arguments", _TWO_FORMS)
async def test_exactly_one_form_is_required(executor: Executor, arguments: dict[str, Json]):
    outcome = await executor.run("edit", {"path": "f", **arguments})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, InvalidArguments)


async def test_file_too_large_for_memory_is_not_edited(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("text\n" * 2_000)
    os.truncate(tmp_path / "f", (1 << 26) + 1)
    await executor.run("read", {"path": "f", "limit": 5})
    assert "has 67108865 bytes" in await refused(executor, "f", old_string="text", new_string="new", replace_all=True)


async def test_replacements_that_would_fill_the_memory_are_refused(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(edit_tool, "_MOST_CHARS", 1 << 16)
    (tmp_path / "f").write_text("a" * 1_000)
    await executor.run("read", {"path": "f"})
    change = {"old_string": "a", "new_string": "b" * 1_000, "replace_all": True}
    assert "would grow to 1000000 characters" in await refused(executor, "f", **change)
    double: dict[str, Json] = {"old_string": "a", "new_string": "aa", "replace_all": True}
    assert "edit 7 of 40: " in await refused(executor, "f", edits=[double] * 40)
    assert (tmp_path / "f").read_text() == "a" * 1_000


async def test_byte_that_cannot_be_copied_is_named(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("ä".encode() * 5 + b"\nbad \xff byte\n")
    await executor.run("read", {"path": "f"})
    message = await refused(executor, "f", old_string="bad \ufffd byte", new_string="good")
    assert "column 5 is the byte 0xff, which is not UTF-8 and cannot be copied" in message


async def test_binary_file_is_not_edited(executor: Executor, tmp_path: Path):
    await executor.run("write", {"path": "f", "content": "x\x00\x01\x02"})
    assert "binary" in await refused(executor, "f", old_string="x", new_string="y")


async def test_edits_of_one_file_are_serialized(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("".join(f"<{n}>\n" for n in range(20)))
    await executor.run("read", {"path": "f"})
    calls = [
        ToolCall(str(n), "edit", {"path": "f", "old_string": f"<{n}>", "new_string": f"<{n}!>"}) for n in range(20)
    ]
    await asyncio.gather(*(executor.execute([call]) for call in calls))
    assert (tmp_path / "f").read_text() == "".join(f"<{n}!>\n" for n in range(20))


async def test_edit_declares_read_and_write(executor: Executor, tmp_path: Path):
    path = str(Path(os.path.realpath(tmp_path)) / "f")
    invocation = Edit(tmp_path).bind({"path": "f", "old_string": "a", "new_string": "b"})
    assert set(invocation.accesses()) == {ReadPath(path), WritePath(path)}
    outcome = await executor.run("edit", {"path": "../f", "old_string": "a", "new_string": "b"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Unsafe)


async def test_edit_passes_conformance(tmp_path: Path):
    await check_tool(Edit(tmp_path), {"path": "f", "old_string": "", "new_string": "x"}, folder=tmp_path)  # pyright: ignore[reportArgumentType] - spec is a descriptor


def _external(name: str) -> list[dict[str, Any]]:
    folder = os.environ.get("CALLWRIGHT_CASES")
    if not folder:
        pytest.skip("CALLWRIGHT_CASES does not name the folder with external cases")
    return [json.loads(line) for line in (Path(folder) / "edit" / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["real_commits_single", "crlf_real_commits_single", "real_commits_multi"])
async def test_real_commits_are_applied(executor: Executor, tmp_path: Path, name: str):
    for row in _external(name):
        (tmp_path / "f").write_bytes(row["file_before"].encode("utf-8", "surrogateescape"))
        changes = row.get("edits") or [{"old": row["old"], "new": row["new"]}]
        await edited(executor, "f", edits=changes)
        assert (tmp_path / "f").read_bytes() == row["file_after"].encode("utf-8", "surrogateescape"), row["commit"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("b\r\n", "b\n"), ("b\r\n", "b\r"), ("b\r\n", ""), ("b\r", "c\r"), ("a\r\nb", "a\nb"), ("b", "b\r\nc")],
)
async def test_spelled_out_line_breaks_are_literal(executor: Executor, tmp_path: Path, old: str, new: str):
    (tmp_path / "f").write_bytes(b"a\r\nb\r\n")
    await edited(executor, "f", old_string=old, new_string=new)
    assert (tmp_path / "f").read_bytes() == b"a\r\nb\r\n".replace(old.encode(), new.encode())


async def test_foreign_line_breaks_are_doubted(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a\nb\n")
    await executor.run("read", {"path": "f"})
    assert "line breaks" in await refused(executor, "f", old_string="a", new_string="a\r\nx")
    assert isinstance(await executor.run("edit", {"path": "f", "old": "a", "new": "a\r\nx"}), Completed)
    assert (tmp_path / "f").read_bytes() == b"a\r\nx\nb\n"


@pytest.mark.parametrize(
    "old", ["def f( a,b ):\n  return a\n", "def f(a, b): return a", "def f(a,\n      b):\n    return a\n"]
)
async def test_white_space_miss_returns_the_text_to_copy(executor: Executor, tmp_path: Path, old: str):
    """What the message offers, sent back as old_string, is found."""
    (tmp_path / "f").write_text("import os\n\ndef f(a, b):\n\n    return a\n\nx = 1\n")
    await executor.run("read", {"path": "f"})
    message = await refused(executor, "f", old_string=old, new_string="pass\n")
    offered = json.loads(message[message.index('"') : message.rindex('"') + 1])
    await edited(executor, "f", old_string=offered, new_string="def g(): ..." + offered[len(offered.rstrip()) :])
    assert "def g(): ...\n" in (tmp_path / "f").read_text()


def test_preview_shows_the_lines_before_they_change(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    preview = Edit(tmp_path).preview({"path": "a.txt", "old_string": "two\nthree\n", "new_string": "2\n"})
    assert preview is not None and preview.path == str(tmp_path / "a.txt")
    assert [(row.mark, row.old, row.new, row.text) for row in preview.rows] == [
        (" ", 1, 1, "one"),
        ("-", 2, 0, "two"),
        ("-", 3, 0, "three"),
        ("+", 0, 2, "2"),
        (" ", 4, 3, "four"),
    ]
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"


def test_preview_of_an_edit_without_a_place_leaves_the_next_one_right(tmp_path: Path):
    (tmp_path / "f").write_text("one\n")
    everywhere = {"old_string": "", "new_string": "x", "replace_all": True}
    preview = Edit(tmp_path).preview({"path": "f", "edits": [everywhere, {"old_string": "one", "new_string": "1"}]})
    assert preview is not None
    assert [(row.mark, row.text) for row in preview.rows] == [("+", "x"), ("", "in every place"), ("", "⋯"), *ONE]
    assert [row.old or row.new for row in preview.rows[-2:]] == [1, 1]  # found in the text, which is as before


ONE = [("-", "one"), ("+", "1")]


def test_preview_of_a_text_that_grows_without_end_is_short(tmp_path: Path):
    (tmp_path / "f").write_text("a" * 10_000)
    grow = {"old_string": "a", "new_string": "a" * 10_000, "replace_all": True}
    preview = Edit(tmp_path).preview({"path": "f", "edits": [grow, {"old_string": "one", "new_string": "1"}]})
    assert preview is not None and [(row.mark, row.text) for row in preview.rows[-2:]] == ONE


def test_preview_of_many_places_counts_them_in_one_pass(tmp_path: Path):
    (tmp_path / "f").write_text("a b\n" * 100_000)
    preview = Edit(tmp_path).preview({"path": "f", "old_string": " ", "new_string": "_", "replace_all": True})
    assert preview is not None
    places = preview.rows[-1].text
    assert places.startswith("and the same in line 2, 3, 4, ") and places.endswith("200, 201 and 99799 more")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_preview_shows_lines_in_any_encoding(tmp_path: Path, encoding: str):
    (tmp_path / "f").write_bytes("caf\xe9\r\ntwo\r\n".encode(encoding))
    preview = Write(tmp_path).preview({"path": "f", "content": "caf\xe9\r\n2\r\n"})
    assert preview is not None
    assert [(row.mark, row.text) for row in preview.rows] == [(" ", "caf\xe9"), ("-", "two"), ("+", "2")]


@pytest.mark.parametrize("content", [b"\0\1\2\3", b"line\n" * 300_000])
def test_preview_of_a_file_that_cannot_be_shown_is_not_that_of_a_new_one(tmp_path: Path, content: bytes):
    (tmp_path / "f").write_bytes(content)
    preview = Write(tmp_path).preview({"path": "f", "content": "x\n"})
    assert preview is not None
    notes = [(row.mark, row.text) for row in preview.rows]
    assert notes == [("", f"replaces a file of {len(content):,} bytes, which is not shown:"), ("+", "x")]


def test_preview_of_a_refused_or_unreadable_file_does_not_raise(tmp_path: Path):
    outside = Workspace(tmp_path, outside="refuse")
    assert Edit(outside).preview({"path": "../b", "old_string": "a", "new_string": "b"}) is None
    missing = Edit(outside).preview({"path": "b", "old_string": "a", "new_string": "b"})
    assert missing is not None and [(row.mark, row.text) for row in missing.rows] == [("-", "a"), ("+", "b")]
    written = Write(outside).preview({"path": "b", "content": "x\n"})
    assert written is not None and [(row.mark, row.new, row.text) for row in written.rows] == [("+", 1, "x")]


async def test_change_that_was_made_already_is_said_to_be_there(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\nthe red door\n")
    await edited(executor, "f", old_string="red", new_string="blue")
    refusal = await refused(executor, "f", old_string="red", new_string="blue")
    assert "new_string stands in the file already (line 2)" in refusal
    assert "already" not in await refused(executor, "f", old_string="green", new_string="in")
    assert (tmp_path / "f").read_text() == "one\nthe blue door\n"


@pytest.mark.parametrize("arguments", [{"old_string": "one"}, {"old_string": "one", "new_string": None}])
async def test_edit_without_new_text_deletes_nothing(executor: Executor, tmp_path: Path, arguments: dict[str, Json]):
    (tmp_path / "f").write_text("one\n")
    await executor.run("read", {"path": "f"})
    assert 'to delete the text, give "" as new_string' in await refused(executor, "f", **arguments)
    assert (tmp_path / "f").read_text() == "one\n"
