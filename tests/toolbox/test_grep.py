"""The grep tool on real files."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.toolbox.calling import call, make_tree

from callwright.core.access import ReadPath
from callwright.core.errors import InvalidArguments, ToolFailed, Unsafe
from callwright.system.search import content
from callwright.toolbox.grep import Grep

_TREE = {
    "a.py": "import os\n\ndef main():\n    return os.sep\n",
    "lib/b.py": "def main():\n    pass\ndef other():\n    main()\n",
    "lib/c.ts": "function main() {}\n",
}


async def test_files_mode_is_the_default(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    assert await call(Grep(tmp_path), pattern="def main") == "a.py\nlib/b.py"


async def test_content_mode_shows_context_lines(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    text = await call(Grep(tmp_path), pattern="def main", mode="content", context=1)
    assert text.splitlines() == [
        "a.py-2-",
        "a.py:3:def main():",
        "a.py-4-    return os.sep",
        "--",
        "lib/b.py:1:def main():",
        "lib/b.py-2-    pass",
    ]


async def test_call_that_asks_for_lines_around_matches_gets_them_without_a_mode(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    assert await call(Grep(tmp_path), pattern="other", after=1) == "lib/b.py:3:def other():\nlib/b.py-4-    main()"
    assert await call(Grep(tmp_path), pattern="other", mode="files", after=1) == "lib/b.py"


async def test_counts_are_exact_on_every_page(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    text = await call(Grep(tmp_path), pattern="main", mode="count", limit=1, offset=1)
    assert text == "lib/b.py:2\n\n(files 2 to 2 of 3; offset=2 for more)\n4 matching lines in 3 files"


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
async def test_line_break_in_a_name_forges_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "python":
        monkeypatch.setattr("callwright.system.search.content.find_ripgrep", lambda: None)
    make_tree(tmp_path, {"a\nb.py:9:forged": "main\n", "d\n/--\n.env/e.py": "x\nmain\n", "c.py": "main\n"})
    expected = ["a\\nb.py:9:forged", "c.py", "d\\n/--\\n.env/e.py"]
    files = await call(Grep(tmp_path), pattern="main")
    content = await call(Grep(tmp_path), pattern="main", mode="content")
    counts = await call(Grep(tmp_path), pattern="main", mode="count")
    assert files.splitlines()[:3] == expected
    assert content.splitlines()[:3] == [f"{expected[0]}:1:main", "c.py:1:main", f"{expected[2]}:2:main"]
    assert counts.splitlines()[:3] == [f"{name}:1" for name in expected]


async def test_offset_past_the_end_has_a_note(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    assert await call(Grep(tmp_path), pattern="main", offset=9) == "no entries at offset 9: there are 3 files"


async def test_aliases_of_other_products_work(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    spelled = {"pattern": "DEF MAIN", "output_mode": "content", "-i": True, "-A": 1, "-n": False, "head_limit": 2}
    assert await call(Grep(tmp_path), **spelled) == (
        "a.py:def main():\na.py-    return os.sep\n\n(lines 1 to 2 of 4; offset=2 for more)"
    )
    assert await call(Grep(tmp_path), pattern="main", output_mode="files_with_matches", include="*.ts") == "lib/c.ts"


@pytest.mark.parametrize(
    ("narrowed", "expected"),
    [
        ({"glob": "*.ts"}, "lib/c.ts"),
        ({"glob": "lib/*.{py,ts}"}, "lib/b.py\nlib/c.ts"),
        ({"glob": "!*.py"}, "lib/c.ts"),
        ({"glob": "lib/**", "type": "py"}, "lib/b.py"),
        ({"type": "ts"}, "lib/c.ts"),
        ({"path": "lib", "glob": "lib/*.ts"}, "lib/c.ts"),
        ({"path": "lib/b.py"}, "lib/b.py"),
    ],
)
async def test_glob_and_type_narrow_the_files(tmp_path: Path, narrowed: dict[str, object], expected: str) -> None:
    make_tree(tmp_path, _TREE)
    assert await call(Grep(tmp_path), pattern="main", **narrowed) == expected


async def test_glob_does_not_include_ignored_files(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "*.log\n", "a.log": "needle", "b.txt": "needle"})
    assert await call(Grep(tmp_path), pattern="needle") == "b.txt"
    assert (await call(Grep(tmp_path), pattern="needle", glob="*.log")).startswith("no matches for 'needle'")
    assert await call(Grep(tmp_path), pattern="needle", glob="*.log", ignored=True) == "a.log"


async def test_ignored_path_is_searched_with_a_note(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "build/\n*.log\n", "build/sub/a.log": "needle"})
    text = await call(Grep(tmp_path), pattern="needle", path="build/sub")
    assert text.startswith("build/sub/a.log\n\n(build/sub is ignored by ")
    assert ".gitignore:1 (build/)" in text


async def test_dot_folders_are_searched(tmp_path: Path) -> None:
    make_tree(tmp_path, {".github/ci.yml": "needle", ".git/HEAD": "needle"})
    assert await call(Grep(tmp_path), pattern="needle") == ".github/ci.yml"


async def test_bad_pattern_has_the_engine_error(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    with pytest.raises(InvalidArguments, match="unclosed group"):
        await call(Grep(tmp_path), pattern="(")
    with pytest.raises(InvalidArguments, match="unrecognized file type: nope"):
        await call(Grep(tmp_path), pattern="a", type="nope")
    with pytest.raises(InvalidArguments, match="never closes"):
        await call(Grep(tmp_path), pattern="a", glob="*.{py")


async def test_pattern_like_an_option_is_a_pattern(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "--files and --pre=sh\n"})
    assert await call(Grep(tmp_path), pattern="--pre=sh", mode="content") == "a:1:--files and --pre=sh"


async def test_denied_files_are_invisible(tmp_path: Path) -> None:
    make_tree(tmp_path, {".env": "needle", "a": "needle"})
    grep = Grep(tmp_path, hidden=lambda path: path.name == ".env")
    for mode, expected in (("files", "a"), ("content", "a:1:needle"), ("count", "a:1\n\n1 matching line in 1 file")):
        assert await call(grep, pattern="needle", mode=mode) == expected
        with pytest.raises(ToolFailed, match=r"'\.env' does not exist"):
            await call(grep, pattern="needle", mode=mode, path=".env")


async def test_outside_path_is_not_searched(tmp_path: Path) -> None:
    make_tree(tmp_path, {"outside/a": "needle", "in/b": "needle"})
    (tmp_path / "in" / "link").symlink_to("../outside")
    assert await call(Grep(tmp_path / "in"), pattern="needle") == "b"
    for escape in ("link", "../outside", str(tmp_path / "outside" / "a")):
        with pytest.raises(Unsafe):
            await call(Grep(tmp_path / "in"), pattern="needle", path=escape)


async def test_ripgrep_config_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(tmp_path, {"rc": "--files\n--pre=/bin/false\n", "in/a": "needle"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    assert await call(Grep(tmp_path / "in"), pattern="needle") == "a"


async def test_long_lines_are_cut_and_multiline_works(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a": "x" * 5_000 + "\n", "b": "one\ntwo\n"})
    text = await call(Grep(tmp_path), pattern="^x", mode="content")
    assert len(text) < 600
    assert "omitted" in text
    assert await call(Grep(tmp_path), pattern="one.two", multiline=True) == "b"


async def test_cancel_stops_the_search(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1 << 38)  # hours of zeros
    running = asyncio.ensure_future(call(Grep(tmp_path), pattern="x", path="huge"))
    while str(tmp_path) not in _working_folders():  # noqa: ASYNC110 - no event tells when another process is up
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert str(tmp_path) not in _working_folders()


def _working_folders() -> set[str]:
    folders: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            folders.add(str((process / "cwd").readlink()))
    return folders


async def test_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolFailed, match="neither a file nor a folder"):
        await call(Grep(tmp_path), pattern="x", path="pipe")


def test_access_is_the_searched_path(tmp_path: Path) -> None:
    make_tree(tmp_path, _TREE)
    root = Path(os.path.realpath(tmp_path))
    assert Grep(tmp_path).bind({"pattern": "x", "path": "lib"}).accesses() == [ReadPath(str(root / "lib"))]


@pytest.mark.parametrize("mode", ["files", "content", "count"])
async def test_secrets_are_searched_only_if_named(tmp_path: Path, mode: str) -> None:
    make_tree(
        tmp_path, {".env": "KEY=hunter2\n", "sub/.ssh/id_rsa": "hunter2\n", ".env.example": "KEY=\n", "a.py": "KEY\n"}
    )
    for pattern in ("hunter2", "KEY=h"):
        text = await call(Grep(tmp_path), pattern=pattern, mode=mode, ignored=True)
        assert text.startswith("no matches")
        # an answer that differs would tell whether the pattern matches the secret
        assert text == (await call(Grep(tmp_path), pattern="absent!", mode=mode, ignored=True)).replace(
            "absent!", pattern
        )
    assert "a.py" in await call(Grep(tmp_path), pattern="KEY", mode=mode)
    assert ".env.example" in await call(Grep(tmp_path), pattern="KEY", mode=mode)
    for path in (".env", "sub/.ssh"):
        assert not (await call(Grep(tmp_path), pattern="hunter2", mode=mode, path=path)).startswith("no matches")


async def test_a_line_that_quotes_the_note_on_binary_files_is_a_line(tmp_path: Path) -> None:
    make_tree(tmp_path, {"notes.txt": "grep said x: binary file matches (found it\n"})
    text = await call(Grep(tmp_path), pattern="binary file matches", mode="content")
    assert text == "notes.txt:1:grep said x: binary file matches (found it"


def swap(entry: Path, outside: Path) -> None:
    """Put a link in the place of an entry, as a command in the background can."""
    if not entry.is_symlink():
        entry.rename(entry.with_name("moved"))
        entry.symlink_to(outside)


@pytest.mark.parametrize("path", ["sub", "sub/a"])
async def test_link_put_in_place_of_a_checked_entry_is_refused(tmp_path: Path, path: str) -> None:
    make_tree(tmp_path, {"in/sub/a": "key", "out/secret": "key = 1", "out/a": "key = 1"})

    def hide(_: Path) -> bool:
        swap(tmp_path / "in" / path, tmp_path / "out" / ("secret" if path == "sub/a" else ""))
        return False

    with pytest.raises(Unsafe, match="link that appeared"):
        await call(Grep(tmp_path / "in", hidden=hide), pattern="key", path=path, mode="content")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="descriptors have no paths here")  # noqa: PTH110 - no path object is needed
@pytest.mark.parametrize("engine", ["ripgrep", "python"])
@pytest.mark.parametrize("path", ["sub", "sub/a"])
async def test_link_put_in_place_of_an_open_entry_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, engine: str
) -> None:
    make_tree(tmp_path, {"in/sub/a": "key", "out/secret": "key = 1", "out/a": "key = 1"})
    find = content.find_ripgrep

    def find_late() -> str | None:
        swap(tmp_path / "in" / path, tmp_path / "out" / ("secret" if path == "sub/a" else ""))
        return find() if engine == "ripgrep" else None

    monkeypatch.setattr(content, "find_ripgrep", find_late)
    text = await call(Grep(tmp_path / "in"), pattern="key", path=path, mode="content")
    assert "= 1" not in text and (text.startswith("sub/a:1:key") or engine == "python")
