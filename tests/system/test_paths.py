"""Where paths lead, what is inside, and opening without being led elsewhere."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.waiting import until_so

from callwright.core.errors import Unsafe, UsageError
from callwright.system.paths import Workspace, expand_home, open_folder, open_resolved


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "file").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return Path(os.path.realpath(tmp_path / "root"))


def test_home_of_nobody_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert expand_home("~/a") == Path("/home/someone/a") and expand_home("a/~") == Path("a/~")
    for path in ("~no-such-user/a", "~\0/a", "~\ud800/a"):
        assert expand_home(path) == Path(path)


def test_relative_paths_start_at_the_root(root: Path):
    assert Workspace(root).resolve("a/b/file") == root / "a/b/file"
    assert Workspace(root).resolve("a/../a//b/./file") == root / "a/b/file"


def test_a_missing_tail_is_resolved_too(root: Path):
    (root / "link").symlink_to("a")
    assert Workspace(root).resolve("link/new/deeper") == root / "a/new/deeper"


@pytest.mark.parametrize("path", ["..", "../outside/secret", "a/../../outside", "/etc/passwd", "/", "a/b/../../../x"])
def test_paths_outside_the_root_are_refused(root: Path, path: str):
    for check in (Workspace(root).check_read, Workspace(root).check_write):
        with pytest.raises(Unsafe, match="outside the workspace"):
            check(path)


def test_sibling_with_the_root_as_prefix_is_outside(root: Path):
    (root.parent / "root-evil").mkdir()
    with pytest.raises(Unsafe):
        Workspace(root).check_read(str(root) + "-evil")
    assert not Workspace(root).contains(str(root) + "-evil/x")


@pytest.mark.parametrize("target", ["/etc", "../outside", "../outside/secret", "../outside/not-there-yet"])
def test_links_are_judged_by_their_target(root: Path, target: str):
    (root / "link").symlink_to(target)
    with pytest.raises(Unsafe):
        Workspace(root).check_write("link")
    with pytest.raises(Unsafe):
        Workspace(root).check_read("link/x")


def test_dots_after_a_link_start_at_its_target(root: Path):
    (root / "link").symlink_to(root.parent / "outside")
    with pytest.raises(Unsafe):
        Workspace(root).check_read("link/../root-like")


def test_a_root_reached_through_a_link_is_the_same_root(root: Path):
    (root.parent / "alias").symlink_to(root)
    workspace = Workspace(root.parent / "alias")
    assert workspace.root == root
    assert workspace.contains(root / "a")


def test_refusal_names_path_target_and_root(root: Path):
    (root / "link").symlink_to(root.parent / "outside")
    with pytest.raises(Unsafe) as refusal:
        Workspace(root).check_read("link/secret")
    assert "'link/secret'" in refusal.value.message
    assert str(root.parent / "outside" / "secret") in refusal.value.message
    assert str(root) in refusal.value.message


@pytest.mark.parametrize(
    "path", ["a\0b", "a\nb", "a\x1b[2Jb", "a\x7f", "a\x85b", "x\u202egpj.exe", "a\u2028b", "\ud800", ""]
)
def test_control_characters_and_half_characters_are_refused(root: Path, path: str):
    with pytest.raises(Unsafe):
        Workspace(root, reads="anywhere", outside="ask").resolve(path)


def test_paths_are_never_url_decoded(root: Path):
    assert Workspace(root).resolve("%2e%2e/%2e%2e/etc") == root / "%2e%2e" / "%2e%2e" / "etc"
    with pytest.raises(Unsafe, match="URL"):
        Workspace(root).resolve("file:///etc/passwd")


def test_tilde_means_home_only_as_in_a_shell(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(root / "a"))
    assert Workspace(root).resolve("~/b") == root / "a/b"
    assert Workspace(root).resolve("~") == root / "a"
    assert Workspace(root).resolve("~nobody/b") == root / "~nobody/b"
    assert Workspace(root).resolve("x~/b") == root / "x~/b"


def test_reads_anywhere_still_restricts_writes(root: Path):
    workspace = Workspace(root, reads="anywhere")
    assert workspace.check_read("/etc/passwd") == Path(os.path.realpath("/etc/passwd"))
    with pytest.raises(Unsafe):
        workspace.check_write("/etc/passwd")


def test_outside_ask_only_resolves_paths(root: Path):
    workspace = Workspace(root, outside="ask")
    assert workspace.check_write("../outside/secret") == root.parent / "outside/secret"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_empty_root_raises_usage_error(name: str):
    with pytest.raises(UsageError):
        Workspace(name)


def test_file_as_root_raises_usage_error(tmp_path: Path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UsageError, match="is a file; give the folder"):
        Workspace(tmp_path / "a.txt")


def test_every_root_counts(root: Path):
    workspace = Workspace(root, root.parent / "outside")
    assert workspace.check_write(str(root.parent / "outside" / "x"))
    assert workspace.root == root


def test_a_workspace_is_a_value(root: Path):
    assert Workspace(root) == Workspace.of(str(root)) == Workspace.of(Workspace(root))
    assert len({Workspace(root), Workspace(root), Workspace(root, reads="anywhere")}) == 2


@given(path=st.text(st.sampled_from("ab./~-\\%"), min_size=1, max_size=12))
def test_paths_not_refused_are_inside(path: str):
    root = Path("/nowhere/root")
    try:
        resolved = Workspace(root).check_write(path)
    except Unsafe:
        return
    assert resolved == root or root in resolved.parents


def test_opening_reads_what_was_resolved(root: Path):
    descriptor = open_resolved(root / "a/b/file", os.O_RDONLY)
    assert os.read(descriptor, 100) == b"inside"
    os.close(descriptor)


@pytest.mark.parametrize("swapped", ["a", "a/b", "a/b/file"])
def test_component_swapped_for_a_link_is_not_followed(root: Path, swapped: str):
    path = Workspace(root).check_read("a/b/file")
    (root / swapped).rename(root / "aside")
    (root / swapped).symlink_to(root / "aside")
    with pytest.raises(Unsafe, match="link"):
        open_resolved(path, os.O_RDONLY)


def test_a_circle_of_links_is_refused(root: Path):
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    with pytest.raises(Unsafe):
        open_resolved(Workspace(root).check_write("one"), os.O_WRONLY | os.O_CREAT)


def test_missing_folders_are_made_only_with_create(root: Path):
    with pytest.raises(FileNotFoundError):
        open_folder(root / "x" / "y")
    os.close(open_folder(root / "x" / "y", create=True))
    assert (root / "x" / "y").is_dir()


def test_no_folder_is_made_behind_a_link(root: Path):
    (root / "x").symlink_to(root.parent / "outside")
    with pytest.raises(Unsafe):
        open_folder(root / "x" / "new", create=True)
    assert not (root.parent / "outside" / "new").exists()


def test_failed_walks_leave_no_descriptor_open(root: Path):
    before = _count_descriptors()
    for _ in range(20):
        with pytest.raises(FileNotFoundError):
            open_resolved(root / "a/b/missing/deeper", os.O_RDONLY)
    until_so(lambda: _count_descriptors() <= before)  # threads of other tests may open and close some


def _count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _rows(name: str) -> list[dict[str, Any]]:
    folder = os.environ.get("CALLWRIGHT_CASES")
    if not folder:
        pytest.skip("CALLWRIGHT_CASES does not name the folder with external cases")
    return [json.loads(line) for line in (Path(folder) / "sandbox" / name).read_text().splitlines()]


def test_no_external_traversal_payload_leaves_the_root(root: Path):
    workspace = Workspace(root)
    for row in _rows("traversal_payloads.jsonl"):
        payload = next(str(row[key]) for key in ("payload", "path", "input") if key in row)
        try:
            resolved = workspace.check_read(payload)
        except Unsafe:
            continue
        assert resolved == root or root in resolved.parents


def test_external_boundary_cases_agree():
    for row in _rows("mcpfs_within_allowed.jsonl"):
        if not all(isinstance(each, str) and each for each in row["allowed"] or [""]) or not str(
            row["path"]
        ).startswith("/"):
            continue  # odd roots are refused, and relative paths start at ours
        try:
            inside = Workspace(*row["allowed"]).contains(row["path"])
        except (Unsafe, UsageError):
            inside = False
        assert inside == row["expected"], row


def test_external_trees_of_links_are_followed_only_inside(root: Path):
    rows = _rows("securejoin_lookup.jsonl")
    for line in json.loads((Path(os.environ["CALLWRIGHT_CASES"]) / "sandbox/securejoin_tree.json").read_text()):
        kind, name, *target = line.split(" ")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "dir":
            path.mkdir(exist_ok=True)
        elif kind == "file":
            path.write_text("")
        elif kind == "symlink":
            path.symlink_to(target[0])
    for row in rows:
        if not row["symlink_loop"]:
            assert Workspace(root).contains(root / row["path"].lstrip("/")) == row["realpath_inside_root"], row
