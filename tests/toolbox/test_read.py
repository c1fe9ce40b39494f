"""The `read` tool on real files."""

import asyncio
import base64
import json
import os
import zlib
from pathlib import Path

import pytest
from tests.counting import count_calls

from callwright import Completed, Effect, Executor, Failed, Registry
from callwright.core.content import Image, Text
from callwright.core.errors import ToolFailed, Unsafe
from callwright.policy import AllowEverything
from callwright.system.paths import Workspace
from callwright.testing import check_tool
from callwright.toolbox._paths import explain_missing
from callwright.toolbox.read import LINE_CHARS, Read


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    return Executor(Registry(Read(tmp_path)), policies=AllowEverything())


async def shown(executor: Executor, path: str, **window: int) -> str:
    outcome = await executor.run("read", {"path": path, **window})
    assert isinstance(outcome, Completed), outcome
    return outcome.text


async def refused(executor: Executor, path: str, **window: int) -> str:
    outcome = await executor.run("read", {"path": path, **window})
    assert isinstance(outcome, Failed), outcome
    assert isinstance(outcome.error, ToolFailed), outcome
    return outcome.text


async def test_lines_are_numbered(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("hello\n\tworld\n")
    assert await shown(executor, "f") == "1\thello\n2\t\tworld\n"


async def test_lines_may_be_shown_without_numbers(tmp_path: Path):
    executor = Executor(Registry(Read(tmp_path, numbered=False)), policies=AllowEverything())
    (tmp_path / "f").write_text("7\thello\n\tworld\n\n12\n")
    (tmp_path / "large").write_text("12\tx\n" * 300_000)
    assert await shown(executor, "f") == "7\thello\n\tworld\n\n12\n"
    assert await shown(executor, "f", offset=2, limit=1) == "\tworld\n(lines 2-2 of 4; continue with offset=3)"
    assert (await shown(executor, "large", offset=9, limit=2)).startswith("12\tx\n12\tx\n(lines 9-10")


async def test_window_tells_range_and_next_offset(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("one\ntwo\nthree\nfour")
    assert await shown(executor, "f", offset=2, limit=2) == "2\ttwo\n3\tthree\n(lines 2-3 of 4; continue with offset=4)"
    assert await shown(executor, "f", offset=4, limit=9) == "4\tfour\n(lines 4-4 of 4; end of file)"


async def test_default_limit_is_two_thousand_lines(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x\n" * 2001)
    text = await shown(executor, "f")
    assert "2000\tx" in text
    assert text.endswith("(lines 1-2000 of 2001; continue with offset=2001)")


async def test_special_cases_have_their_own_messages(executor: Executor, tmp_path: Path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "short").write_text("a\nb\n")
    (tmp_path / "binary").write_bytes(b"\x00\x01\x02")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "file").touch()
    assert await shown(executor, "empty") == "(the file is empty)"
    assert await refused(executor, "short", offset=3) == "offset 3 is past the end: short has 2 lines"
    assert "binary file" in await refused(executor, "binary")
    assert await shown(executor, "folder") == "file\ninner/\n(folder is a folder; entries 1-2 of 2)"
    (tmp_path / "nothing").mkdir()
    assert await shown(executor, "nothing") == "(nothing is an empty folder)"


async def test_missing_file_names_similar_files(executor: Executor, tmp_path: Path):
    (tmp_path / "README.md").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "config.py").touch()
    assert str(tmp_path / "README.md") in await refused(executor, "readme.md")
    assert "config.py" in await refused(executor, "src/confg.py")
    assert str(tmp_path / "src") in await refused(executor, "scr/config.py")


def test_similar_file_among_very_many_is_found_quickly(tmp_path: Path):
    (tmp_path / "config_of_the_package.py").touch()
    errors: list[ToolFailed] = []
    calls: list[int] = []
    for numbers in (range(500), range(500, 4000)):
        for number in numbers:
            (tmp_path / f"module_{number:04}_of_the_package.py").touch()
        missing = tmp_path / "confg_of_the_package.py"
        calls.append(count_calls(lambda: errors.append(explain_missing("x", missing))))  # noqa: B023 - called at once
    assert all(str(tmp_path / "config_of_the_package.py") in error.message for error in errors)
    assert calls[1] < 3 * calls[0]


async def test_long_line_is_cut_with_a_mark(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("é" * (LINE_CHARS + 5) + "\nshort\n")
    text = await shown(executor, "f")
    assert text == f"1\t{'é' * LINE_CHARS}… (+5 characters, line cut)\n2\tshort\n"


async def test_full_window_continues_with_offset(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text(("y" * 1000 + "\n") * 500)
    text = await shown(executor, "f")
    last = text.rstrip().rpartition("\n")[2]
    assert last.endswith(" of 500; continue with offset=100)")
    assert await shown(executor, "f", offset=100, limit=1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "latin-1"])
async def test_encodings_are_decoded(executor: Executor, tmp_path: Path, encoding: str):
    (tmp_path / "f").write_bytes("caf\xe9\r\nna\xefve\r\n".encode(encoding))
    text = await shown(executor, "f")
    assert text.startswith("1\tcaf\xe9\n2\tna\xefve\n")


async def test_half_a_wide_character_is_not_text(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("wide\n".encode("utf-16") + b"\n")
    outcome = await executor.run("read", {"path": "f"})
    assert isinstance(outcome, Failed)
    assert "is a binary file" in outcome.text


async def test_undecodable_bytes_are_counted(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("✓ ✓ ✓ ✓\n".encode() + b"bad \xff\n")
    text = await shown(executor, "f")
    assert "2\tbad \ufffd\n" in text
    assert "1 bytes that are not UTF-8" in text


def png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    head = chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x08\0\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


async def test_image_is_detected_by_content(executor: Executor, tmp_path: Path):
    (tmp_path / "not-a-name.txt").write_bytes(png())
    outcome = await executor.run("read", {"path": "not-a-name.txt"})
    assert isinstance(outcome, Completed)
    assert outcome.output.parts == (Image(png(), "image/png"),)


async def test_notebook_is_shown_as_cells_or_lines(executor: Executor, tmp_path: Path):
    picture = {"data": {"image/png": base64.b64encode(png()).decode(), "text/plain": "<Figure>"}}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "print(1)", "outputs": [{"text": ["1\n"]}, picture]},
    ]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    outcome = await executor.run("read", {"path": "n.ipynb"})
    assert isinstance(outcome, Completed)
    assert Text("--- cell 1, markdown ---\n# Title\ntext") in outcome.output.parts
    assert Image(png(), "image/png") in outcome.output.parts
    assert "output: 1" in outcome.text
    for limit in (1, 2000):  # the default too, if it is given
        assert (await shown(executor, "n.ipynb", limit=limit)).startswith("1\t{")


async def test_notebook_shows_a_bounded_number_of_images(executor: Executor, tmp_path: Path):
    picture = {"data": {"image/png": base64.b64encode(png()).decode()}}
    cells = [{"cell_type": "code", "source": "", "outputs": [picture] * 10}] * 1_000
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    outcome = await executor.run("read", {"path": "n.ipynb"})
    assert isinstance(outcome, Completed)
    images = [part for part in outcome.output.parts if isinstance(part, Image)]
    assert len(images) == 20 and len(outcome.output.parts) < 100
    assert "9,980 images are left out: at most 20 images and 5 MB" in outcome.text


async def test_notebook_leaves_out_large_images(executor: Executor, tmp_path: Path):
    large = {"data": {"image/png": base64.b64encode(bytes(3 << 20)).decode()}}
    cells = [{"cell_type": "code", "source": "", "outputs": [large, large]}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    outcome = await executor.run("read", {"path": "n.ipynb"})
    assert isinstance(outcome, Completed)
    assert sum(isinstance(part, Image) for part in outcome.output.parts) == 1
    assert "1 images are left out" in outcome.text


async def test_line_break_in_a_name_forges_no_entry(executor: Executor, tmp_path: Path):
    (tmp_path / "a\nforged").write_text("")
    (tmp_path / "b\x1b[2J\u202e").mkdir()
    assert (await shown(executor, ".")).splitlines()[:-1] == ["a\\nforged", "b\\x1b[2J\\u202e/"]


async def test_pdf_without_extra_names_the_package(executor: Executor, tmp_path: Path):
    (tmp_path / "f.pdf").write_bytes(b"%PDF-1.4\nnot really")
    assert "PDF" in await refused(executor, "f.pdf")


async def test_named_pipe_is_refused(executor: Executor, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert "named pipe" in await refused(executor, "pipe")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no proc file system here")
async def test_proc_files_and_devices_never_hang(tmp_path: Path):
    executor = Executor(Registry(Read(Workspace(tmp_path, reads="anywhere"))), policies=AllowEverything())
    assert "Name:" in await shown(executor, "/proc/self/status")
    assert "device" in await refused(executor, "/dev/zero")
    assert isinstance(await executor.run("read", {"path": "/proc/kmsg"}), Completed | Failed)


async def test_large_and_small_file_windows_agree(executor: Executor, tmp_path: Path):
    lines = [f"line {index} {'é' * (index % 50)}" for index in range(1, 60_001)]
    (tmp_path / "large").write_text("\ufeff" + "\r\n".join(lines))
    assert (await shown(executor, "large", limit=2)).startswith(f"1\t{lines[0]}\n2\t{lines[1]}\n(lines 1-2; continue")
    for first in (50_000, 3, 59_999, 50_000):
        text = await shown(executor, "large", offset=first, limit=1)
        assert text.startswith(f"{first}\t{lines[first - 1]}\n")
    assert (await shown(executor, "large", offset=60_000)).endswith("end of file)")
    assert "past the end" in await refused(executor, "large", offset=60_001)


async def test_large_utf16_file_is_read(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes("".join(f"line {n}\n" for n in range(1, 100_001)).encode("utf-16"))
    assert (await shown(executor, "f", offset=99_999)).startswith("99999\tline 99999\n100000\tline 100000\n")


async def test_long_lines_of_large_file_are_cut(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes((b"w" * 3000 + b"\r\n") * 1000)
    text = await shown(executor, "f", offset=500, limit=2)
    assert text == f"500\t{'w' * LINE_CHARS}… (+1000 characters, line cut)\n501\t{'w' * LINE_CHARS}… (+1000 " + (
        "characters, line cut)\n(lines 500-501; continue with offset=502)"
    )
    assert "continue with offset=" in await shown(executor, "f")


async def test_other_tasks_run_while_a_giant_line_is_measured(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"x" * 9_000)
    os.truncate(tmp_path / "f", 1 << 26)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await asyncio.sleep(0)
    before = turns
    text = await shown(executor, "f")
    counting.cancel()
    assert "line cut" in text and turns - before >= 5


async def test_giant_line_is_cut_in_bounded_memory(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_bytes(b"z" * 3_000_000 + b"\nend\n")
    text = await shown(executor, "f")
    assert text == f"1\t{'z' * LINE_CHARS}… (+{3_000_000 - LINE_CHARS} characters, line cut)\n2\tend\n"


@pytest.mark.parametrize("spelling", ["file_path", "filePath", "path"])
async def test_aliases_of_other_products_work(executor: Executor, tmp_path: Path, spelling: str):
    (tmp_path / "f").write_text("x\n")
    outcome = await executor.run("Read", {spelling: "f", "offset": "1", "limit": 5})
    assert isinstance(outcome, Completed), outcome


async def test_offset_zero_is_the_first_line(executor: Executor, tmp_path: Path):
    (tmp_path / "f").write_text("x\n")
    assert await shown(executor, "f", offset=0) == "1\tx\n"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "link/x", "a\0b", "~/x"])
async def test_outside_path_is_not_read(executor: Executor, tmp_path: Path, path: str):
    (tmp_path / "link").symlink_to("/etc")
    outcome = await executor.run("read", {"path": path})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Unsafe)
    assert not outcome.started


async def test_folder_swapped_for_link_is_not_read(tmp_path: Path):
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "a" / "f").write_text("harmless")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").write_text("secret")
    invocation = Read(Workspace(tmp_path / "root", outside="ask")).bind({"path": "a/f"})
    invocation.accesses()
    (tmp_path / "root" / "a").rename(tmp_path / "aside")
    (tmp_path / "root" / "a").symlink_to(tmp_path / "other")
    with pytest.raises(Unsafe, match="when it was checked"):
        await invocation.run(None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - refused before it is used


async def test_read_passes_conformance(tmp_path: Path):
    (tmp_path / "f").write_text("x\n")
    tool = Read(tmp_path)
    await check_tool(tool, {"path": "f"}, {"path": "."}, folder=tmp_path)  # pyright: ignore[reportArgumentType] - spec is a descriptor
    assert Read(tmp_path).bind({"path": "f"}).arguments == {"path": "f", "offset": 1, "limit": 2000}
    assert tool.contract().spec.annotations.effect is Effect.READ


@pytest.mark.parametrize("limit", [2**31, 2**63, 2**64 - 1])
async def test_huge_limit_reads_a_large_file(executor: Executor, tmp_path: Path, limit: int):
    (tmp_path / "large").write_text("line\n" * 300_000)
    assert (await shown(executor, "large", limit=limit)).startswith("1\tline\n2\tline\n")
