"""An undo that is killed at any system call is taken back by the next process, also if that one is killed too."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.undo.trees import Picture, Workbench, picture

from callwright.system.undo import restore as restoring

CHANGING = ("rename", "link", "unlink", "symlink", "mkdir", "rmdir", "chmod")


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_after(calls: int) -> Generator[None, None, None]:
    """End the block before a system call that changes something, without a chance to take anything back."""
    left = calls

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if left <= 0:
                raise Killed
            left -= 1
            return call(*arguments, **named)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGING:
            patch.setattr(os, name, counting(getattr(os, name)))
        patch.setattr(restoring.Restored, "roll_back", leave)
        yield


def leave(_: restoring.Restored) -> None:
    """Take nothing back."""


def is_killed(action: Callable[[], object], calls: int) -> bool:
    try:
        with killed_after(calls):
            action()
    except Killed:
        return True
    return False


def move_tree(root: Path) -> None:
    (root / "tree").rename(root / "moved")


def move_over(root: Path) -> None:
    (root / "tree/one").rename(root / "a")
    (root / "tree/same").rename(root / "z")


def swap(root: Path) -> None:
    (root / "a").rename(root / "spare")
    (root / "b").rename(root / "a")
    (root / "spare").rename(root / "b")


def rotate(root: Path) -> None:
    (root / "a").rename(root / "spare")
    (root / "b").rename(root / "a")
    (root / "tree/one").rename(root / "b")
    (root / "spare").rename(root / "tree/one")


def replace_folder_by_its_file(root: Path) -> None:
    (root / "tree/inner/deep").rename(root / "spare")
    (root / "tree/inner").rmdir()
    (root / "spare").rename(root / "tree/inner")


def replace_folder_by_a_link(root: Path) -> None:
    (root / "tree/inner").rename(root / "elsewhere")
    (root / "tree/inner").symlink_to("../elsewhere")


def change_modes(root: Path) -> None:
    for name, mode in (("a", 0o600), ("b", 0o700), ("tree/one", 0o755), ("tree", 0o711)):
        (root / name).chmod(mode)


def make_folders(root: Path) -> None:
    (root / "new/er/est").mkdir(parents=True)


def write_over(root: Path) -> None:
    for name in ("a", "b", "tree/one"):
        (root / name).write_text("new")


CHANGES = (
    write_over,
    move_tree,
    move_over,
    swap,
    rotate,
    replace_folder_by_its_file,
    replace_folder_by_a_link,
    change_modes,
    make_folders,
)


def make_bench(folder: Path, change: Callable[[Path], None]) -> tuple[Workbench, Picture, Picture]:
    bench = Workbench(folder)
    (bench.root / "tree/inner").mkdir(parents=True)
    for name in ("a", "b", "tree/one", "tree/inner/deep"):
        (bench.root / name).write_text(f"content of {name}\n")
    (bench.root / "tree/same").write_text("content of a\n")
    (bench.root / "tree/link").symlink_to("one")
    before = picture(bench.root)
    bench.begin_turn()
    with bench.recorder.changing(bench.root):
        change(bench.root)
    return bench, before, picture(bench.root)


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("change", CHANGES)
def test_undo_killed_at_any_call_is_taken_back(tmp_path: Path, change: Callable[[Path], None], again: bool):
    bench, before, after = make_bench(tmp_path, change)
    calls = 0
    while is_killed(lambda: bench.undo(0), calls):
        later = 0
        while again and is_killed(bench.restart, later):
            later += 1
        bench.restart()
        assert not [*tmp_path.rglob(".callwright-undo-*")]
        if bench.log.history.restores:  # killed after the last step, when the undo is on record
            break
        assert picture(bench.root) == after, calls
        calls += 1
    assert calls > 3
    assert picture(bench.root) == before


def test_killed_undo_moves_no_file_to_the_place_of_one_that_was_edited_later(tmp_path: Path):
    bench, _, after = make_bench(tmp_path, swap)
    calls = 0
    while is_killed(lambda: bench.undo(0), calls) and picture(bench.root) == after:  # before the first file was moved
        (bench.root / "b").write_text("edited later")
        bench.restart()
        assert (bench.root / "a").read_text() == "content of b\n"
        assert (bench.root / "b").read_text() == "edited later"
        (bench.root / "b").write_text("content of a\n")
        bench.restart()
        calls += 1
    assert calls
