"""The glob tool on real folders."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.toolbox.calling import call, make_tree

from callwright.core.access import ReadPath
from callwright.core.errors import InvalidArguments, ToolFailed, Unsafe
from callwright.system.search.globs import matches
from callwright.system.search.walk import Folder, Walk
from callwright.toolbox import glob
from callwright.toolbox.glob import Glob


async def test_newest_file_comes_first(tmp_path: Path) -> None:
    for age, name in enumerate(["old.py", "sub/middle.py", "new.py"]):
        make_tree(tmp_path, {name: ""})
        os.utime(tmp_path / name, (1_000 + age, 1_000 + age))
    assert await call(Glob(tmp_path), pattern="**/*.py") == "new.py\nsub/middle.py\nold.py"


async def test_paths_are_usable_by_other_tools(tmp_path: Path) -> None:
    make_tree(tmp_path, {"src/app/a.ts": "", "src/app/b.tsx": "", "src/c.js": ""})
    assert sorted((await call(Glob(tmp_path), pattern="app/*.{ts,tsx}", path="src")).split()) == [
        "src/app/a.ts",
        "src/app/b.tsx",
    ]
    assert await call(Glob(tmp_path), pattern=f"{tmp_path}/src/*.js") == "src/c.js"


async def test_long_result_is_capped_with_a_count(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{number}.txt": "" for number in range(7)})
    text = await call(Glob(tmp_path), pattern="*", limit=3)
    assert text.count(".txt") == 3
    assert text.endswith("(3 newest of 7 files; narrow the pattern or raise limit to see more)")


async def test_ignored_files_are_left_out_with_a_note(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "build/\n*.log\n", "a.py": "", "build/deep/b.py": "", "l/c.log": ""})
    text = await call(Glob(tmp_path), pattern="**/*.py")
    assert text.startswith("a.py\n\n(1 more file matches but .gitignore or .ignore hides it, such as build/deep/b.py")
    assert sorted((await call(Glob(tmp_path), pattern="**/*.py", ignored=True)).split()) == ["a.py", "build/deep/b.py"]
    assert "such as l/c.log; ignored=true" in await call(Glob(tmp_path), pattern="l/*.log")
    assert "ignored" not in await call(Glob(tmp_path), pattern="**/*.md")


async def test_dotfiles_are_listed_but_git_folder_is_not(tmp_path: Path) -> None:
    make_tree(tmp_path, {".github/ci.yml": "", ".git/config.yml": ""})
    assert await call(Glob(tmp_path), pattern="**/*.yml") == ".github/ci.yml"


async def test_one_folder_pattern_suggests_deeper_files(tmp_path: Path) -> None:
    make_tree(tmp_path, {"src/a.py": ""})
    text = await call(Glob(tmp_path), pattern="*.py")
    assert text == "no files match '*.py' in the workspace; 1 file deeper down: use '**/*.py'"


async def test_denied_files_are_invisible(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a.env": "", "b.env": "", ".gitignore": "b.env\n"})
    text = await call(Glob(tmp_path, hidden=lambda path: path.suffix == ".env"), pattern="**/*.env")
    assert text == "no files match '**/*.env' in the workspace"


async def test_link_out_of_workspace_is_not_followed(tmp_path: Path) -> None:
    make_tree(tmp_path, {"outside/a.py": "", "in/b.py": ""})
    (tmp_path / "in" / "link").symlink_to("../outside")
    assert await call(Glob(tmp_path / "in"), pattern="**/*.py") == "b.py"
    for escape in ("link/*.py", "../outside/*.py", f"{tmp_path}/outside/*.py"):
        with pytest.raises(Unsafe):
            await call(Glob(tmp_path / "in"), pattern=escape)


async def test_missing_folder_and_bad_pattern_differ(tmp_path: Path) -> None:
    make_tree(tmp_path, {"source/a.py": ""})
    with pytest.raises(ToolFailed, match="does not exist; did you mean source"):
        await call(Glob(tmp_path), pattern="*", path="sourc")
    with pytest.raises(ToolFailed, match="is a file"):
        await call(Glob(tmp_path), pattern="*", path="source/a.py")
    with pytest.raises(InvalidArguments, match="never closes"):
        await call(Glob(tmp_path), pattern="*.{py")


def test_access_is_the_folder_of_the_pattern(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    assert Glob(tmp_path).bind({"pattern": "src/**/*.py"}).accesses() == [ReadPath(str(root / "src"))]


@pytest.mark.parametrize(
    "pattern",
    [
        "**/ab*.py",
        "a/**/b.py",
        "**/a/**/*",
        "**/[ab]b*[.]py",
        "*/b*.*",
        "**/a\\b*",
        "**/{a,ab}*.py",
        "**/*b.py",
        "?/**",
    ],
)
async def test_listed_files_match_the_pattern(tmp_path: Path, pattern: str) -> None:
    names = ["a/b.py", "a/x/b.py", "b/a/ab1.py", "ab.py", "bb.py", "a/ab.txt", "c/a/b", "a\\b"]
    make_tree(tmp_path, dict.fromkeys(names, ""))
    expected = sorted(name for name in names if matches(pattern, name))
    found = (await call(Glob(tmp_path), pattern=pattern)).split("\n")
    assert sorted(found) == expected or (not expected and found[0].startswith("no files match"))


async def test_files_of_equal_age_are_sorted_by_name(tmp_path: Path) -> None:
    make_tree(tmp_path, dict.fromkeys(["c", "a", "d", "b"], ""))
    for name, time in {"a": 1_000, "b": 1_000, "c": 1_000, "d": 2_000}.items():
        os.utime(tmp_path / name, (time, time))
    assert (await call(Glob(tmp_path), pattern="*", limit=3)).split("\n")[:3] == ["d", "a", "b"]


async def test_ignored_folder_by_path_has_a_note(tmp_path: Path) -> None:
    make_tree(tmp_path, {".gitignore": "build/\n", "build/a.py": ""})
    assert "is ignored by" in await call(Glob(tmp_path), pattern="*.py", path="build")


async def test_line_break_in_a_name_forges_no_line(tmp_path: Path) -> None:
    make_tree(tmp_path, {"a\nsecret.py": "", "b\x1b[2J.py": ""})
    found = await call(Glob(tmp_path), pattern="*.py")
    assert sorted(found.splitlines()) == ["a\\nsecret.py", "b\\x1b[2J.py"]


@pytest.mark.parametrize("late", [False, True])
async def test_link_put_in_place_of_the_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    make_tree(tmp_path, {"in/sub/a": "", "out/secret": ""})

    def swap() -> None:  # as a command in the background can
        if not (tmp_path / "in/moved").exists():
            (tmp_path / "in/sub").rename(tmp_path / "in/moved")
            (tmp_path / "in/sub").symlink_to(tmp_path / "out")

    if late:
        walk_folders = glob.walk_folders

        def walk_late(walk: Walk) -> Iterator[Folder]:
            swap()
            return walk_folders(walk)

        monkeypatch.setattr(glob, "walk_folders", walk_late)
        assert await call(Glob(tmp_path / "in"), pattern="*", path="sub") == "sub/a"
        return

    def hide(_: Path) -> bool:
        swap()
        return False

    with pytest.raises(Unsafe, match="link that appeared"):
        await call(Glob(tmp_path / "in", hidden=hide), pattern="*", path="sub")
