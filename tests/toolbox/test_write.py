"""The `write` tool on real files."""

import os
from pathlib import Path

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.core.errors import Unsafe
from callwright.core.json import Json
from callwright.policy import AllowEverything
from callwright.testing import check_tool
from callwright.toolbox.read import SMALL_BYTES, Read
from callwright.toolbox.write import Write


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    return Executor(Registry(Read(tmp_path), Write(tmp_path)), policies=AllowEverything())


async def written(executor: Executor, path: str, content: str, **more: Json) -> str:
    outcome = await executor.run("write", {"path": path, "content": content, **more})
    assert isinstance(outcome, Completed), outcome
    return outcome.text


async def refused(executor: Executor, path: str, content: str, **more: Json) -> str:
    outcome = await executor.run("write", {"path": path, "content": content, **more})
    assert isinstance(outcome, Failed), outcome
    return outcome.text


async def test_new_file_is_written_with_its_folders(executor: Executor, tmp_path: Path):
    path = tmp_path / "a" / "b" / "test.txt"
    assert await written(executor, str(path), "hello from agent") == f"Wrote 16 bytes to {path}"
    assert path.read_bytes() == b"hello from agent"
    assert await written(executor, "é.txt", "é") == "Wrote 2 bytes to é.txt"


async def test_existing_file_must_have_been_read(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("precious")
    assert "was not read in this session" in await refused(executor, "f", "new")
    assert (tmp_path / "f").read_text() == "precious"
    await executor.run("read", {"path": "f"})
    await written(executor, "f", "new")
    await written(executor, "f", "newer")
    assert (tmp_path / "f").read_text() == "newer"


async def test_overwrite_replaces_an_unread_file(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("precious")
    assert "overwrite=true" in await refused(executor, "f", "new")
    await written(executor, "f", "new", overwrite=True)
    assert (tmp_path / "f").read_text() == "new"


async def test_text_in_place_of_a_binary_file_is_written_as_given(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"\0\1\2\r\n")
    await written(executor, "f", "a\nb\n", overwrite=True)
    assert (tmp_path / "f").read_bytes() == b"a\nb\n"


async def test_change_is_detected_by_content(executor: Executor, tmp_path: Path):
    path = tmp_path / "f"
    path.write_text("one")
    await executor.run("read", {"path": "f"})
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "was changed" in await refused(executor, "f", "new")
    assert path.read_text() == "two"
    path.write_text("one")
    await written(executor, "f", "new")


async def test_file_being_written_is_left_alone(executor: Executor, tmp_path: Path):
    path = tmp_path / "f"
    path.write_text("one")
    await executor.run("read", {"path": "f"})
    with path.open("a") as rival:
        assert "is being written" in await refused(executor, "f", "new")
        rival.write(" two")
    assert path.read_text() == "one two"


async def test_partly_read_file_is_not_replaced(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("a\nb\nc\n")
    await executor.run("read", {"path": "f", "limit": 2})
    assert "only a part" in await refused(executor, "f", "new")
    await executor.run("read", {"path": "f", "offset": 3})
    await written(executor, "f", "a\nnew")


async def test_file_with_cut_line_was_not_read_whole(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x" * 5000)
    await executor.run("read", {"path": "f"})
    assert "only a part" in await refused(executor, "f", "new")


async def test_file_that_was_written_counts_as_read_after_a_look_at_a_part(executor: Executor, tmp_path: Path):
    lines = "".join(f"{number}\n" for number in range(50))
    await written(executor, "f", lines)
    await executor.run("read", {"path": "f", "offset": 20, "limit": 5})
    await written(executor, "f", f"{lines}more\n")
    assert (tmp_path / "f").read_text() == f"{lines}more\n"


async def test_large_file_is_known_by_parts_and_identity(executor: Executor, tmp_path: Path):
    path = tmp_path / "large"
    path.write_bytes((b"x" * 999 + b"\n") * (SMALL_BYTES // 1000 + 2))
    offset, text = 1, ""
    while "end of file" not in text:
        outcome = await executor.run("read", {"path": "large", "offset": offset})
        assert isinstance(outcome, Completed)
        text = outcome.text
        offset = int(text.rpartition("offset=")[2].rstrip(")") or 0) if "offset=" in text else 0
    path.touch()
    assert "was changed" in await refused(executor, "large", "new")
    await written(executor, "large", "new", overwrite=True)


async def test_sessions_have_separate_reads(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x")
    await executor.run("read", {"path": "f"})
    other = Executor(executor.registry, policies=AllowEverything())
    outcome = await other.run("write", {"path": "f", "content": "y"})
    assert isinstance(outcome, Failed)


async def test_mode_breaks_mark_and_encoding_are_kept(executor: Executor, tmp_path: Path):
    (tmp_path / "crlf").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    (tmp_path / "crlf").chmod(0o755)
    (tmp_path / "wide").write_bytes("a\n".encode("utf-16"))
    (tmp_path / "latin").write_bytes("\xe9\n".encode("latin-1"))
    for name in ("crlf", "wide", "latin"):
        await executor.run("read", {"path": name})
        await written(executor, name, "\xe8\nx\n")
    assert (tmp_path / "crlf").read_bytes() == b"\xef\xbb\xbf\xc3\xa8\r\nx\r\n"
    assert (tmp_path / "crlf").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "wide").read_bytes() == "\xe8\nx\n".encode("utf-16")
    assert (tmp_path / "latin").read_bytes() == b"\xe8\nx\n"


async def test_write_through_link_keeps_the_link(executor: Executor, tmp_path: Path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    await executor.run("read", {"path": "link"})
    await written(executor, "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("path", ["../x", "/etc/x", "link/x", "dangling"])
async def test_outside_path_is_not_written(executor: Executor, tmp_path: Path, path: str):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "dangling").symlink_to(outside / "new")
    outcome = await executor.run("write", {"path": path, "content": "x"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Unsafe)
    assert not list(outside.iterdir())


async def test_blocking_folder_or_file_is_named(executor: Executor, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    assert "is a folder" in await refused(executor, "folder", "x")
    assert "names a folder" in await refused(executor, "new/", "x")
    assert "a file, not a folder" in await refused(executor, "file/below", "x")


@pytest.mark.file_modes
async def test_read_only_file_is_not_replaced(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0o444)
    await executor.run("read", {"path": "f"})
    assert "read-only" in await refused(executor, "f", "y")


@pytest.mark.parametrize("overwrite", [False, True])
async def test_file_too_large_for_memory_is_not_replaced(executor: Executor, tmp_path: Path, overwrite: bool):
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", (1 << 26) + 1)
    assert "has 67108865 bytes" in await refused(executor, "f", "short", overwrite=overwrite)
    assert (tmp_path / "f").stat().st_size == (1 << 26) + 1


async def test_write_passes_conformance(tmp_path: Path):
    await check_tool(Write(tmp_path), {"path": "f", "content": "x", "overwrite": True}, folder=tmp_path)  # pyright: ignore[reportArgumentType] - spec is a descriptor


async def test_result_names_the_lines_that_a_shorter_text_lost(executor: Executor, tmp_path: Path):
    (tmp_path / "notes.txt").write_text("call Ann\npay rent\nbuy milk\n\n")
    await executor.run("read", {"path": "notes.txt"})
    lost = "Wrote 9 bytes to notes.txt; 2 of its 3 lines are no longer in it:\ncall Ann\npay rent"
    assert await written(executor, "notes.txt", "buy milk\n") == lost
    assert await written(executor, "notes.txt", "buy bread\nbuy milk\n") == "Wrote 19 bytes to notes.txt"
    assert await written(executor, "notes.txt", "buy eggs\nbuy ham\n") == "Wrote 17 bytes to notes.txt"


async def test_result_names_only_the_first_lost_lines(executor: Executor, tmp_path: Path):
    (tmp_path / "long.txt").write_text("kept\n" + "".join(f"{number} {'x' * 1000}\n" for number in range(30)))
    await executor.run("read", {"path": "long.txt"})
    text = await written(executor, "long.txt", "kept\nnew\n")
    assert "30 of its 31 lines" in text and text.endswith("… (22 more lines)") and len(text) < 2000


async def test_shorter_text_without_any_line_of_the_file_is_refused(executor: Executor, tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("call Ann\npay rent\n")
    await executor.run("read", {"path": "notes.txt"})
    text = await refused(executor, "notes.txt", "buy milk\n")
    assert "none of its 2 lines:\ncall Ann\npay rent\n" in text
    assert notes.read_text() == "call Ann\npay rent\n"
    await written(executor, "notes.txt", "call Ann\npay rent\nbuy milk\n")
    await written(executor, "notes.txt", "buy bread\n", overwrite=True)
    await written(executor, "notes.txt", "")
    assert notes.read_text() == ""


async def test_lines_of_a_file_that_was_not_read_are_not_shown(executor: Executor, tmp_path: Path):
    (tmp_path / "id_rsa").write_text("a secret\nand another\n")
    assert await written(executor, "id_rsa", "new", overwrite=True) == "Wrote 3 bytes to id_rsa"


async def test_indented_lines_count_as_kept(executor: Executor, tmp_path: Path):
    (tmp_path / "f.py").write_text("one()\ntwo()\nthree()\n")
    await executor.run("read", {"path": "f.py"})
    assert "1 of its 3 lines" in await written(executor, "f.py", "    one()\n    two()\n")


async def test_lines_joined_into_one_are_kept(executor: Executor, tmp_path: Path):
    (tmp_path / "a.json").write_text('{\n  "host": "x"\n}\n')
    await executor.run("read", {"path": "a.json"})
    await written(executor, "a.json", '{"host":"x", "debug": true}')
