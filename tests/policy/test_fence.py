"""The fence gives the same answer whichever tool asks, and shows where a path really leads."""

from pathlib import Path

import pytest

from callwright import Effect, Executor, Registry, tool
from callwright.core.access import Ask, DeletePath, Deny, ReadPath, RunCommand, WritePath
from callwright.policy import AllowEverything, Fence, PathContext, Policies, Rules, rules_of, standard_policies
from callwright.policy.dry_run import dry_run_call
from callwright.policy.shell_line import PartOfLine
from callwright.shell import analyze
from callwright.system.paths import Workspace

_, _CALL = dry_run_call("read", "x", "/")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work-evil").mkdir()
    return tmp_path / "work"


def _fence(root: Path, **options: str) -> Fence:
    return Fence(Workspace(root, **{"outside": "ask", **options}))  # type: ignore[arg-type] - the options are literals


def test_fence_decides_nothing_inside(root: Path) -> None:
    for access in (ReadPath("a"), WritePath(f"{root}/a/b"), DeletePath("a"), WritePath("x/../y")):
        assert _fence(root).judge(access, _CALL) is None


@pytest.mark.parametrize("path", ["../work-evil/x", "/etc/hosts", "a/../../x", "~/x"])
def test_write_outside_asks_with_the_resolved_path(root: Path, path: str) -> None:
    decision = _fence(root).judge(WritePath(path), _CALL)
    assert isinstance(decision, Ask)
    assert "outside the workspace" in decision.reason


def test_folder_with_the_same_prefix_is_outside(root: Path) -> None:
    decision = _fence(root).judge(WritePath(f"{root}-evil/x"), _CALL)
    assert isinstance(decision, Ask)


def test_link_to_outside_is_outside(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "work-evil")
    decision = _fence(root).judge(WritePath("link/new"), _CALL)
    assert isinstance(decision, Ask)
    assert f"would write to link/new, which leads to {root.resolve().parent}/work-evil/new," in decision.reason
    plain = _fence(root).judge(WritePath("/etc/hosts"), _CALL)
    assert isinstance(plain, Ask) and plain.reason.startswith("would write to /etc/hosts outside the workspace")


def test_reads_are_fenced_only_on_request(root: Path) -> None:
    assert isinstance(_fence(root, reads="inside").judge(ReadPath("/etc/hosts"), _CALL), Ask)
    assert _fence(root, reads="anywhere").judge(ReadPath("/etc/hosts"), _CALL) is None


def test_unknown_path_in_a_line_asks(root: Path) -> None:
    """Whatever else is thought of the line."""
    line = RunCommand('cat "$PLACE/a" > "$PLACE/b"', str(root))
    part = PartOfLine(_CALL, line, analyze(line.line, line.cwd))
    for access in (ReadPath("$PLACE/a"), WritePath("$PLACE/b"), DeletePath("$PLACE/b")):
        decision = _fence(root, reads="anywhere").judge(access, part)
        assert isinstance(decision, Ask) and "target is not known" in decision.reason


@pytest.mark.parametrize("glob", ["*/*/*/*", "many/*"])
def test_glob_with_too_many_matches_asks(root: Path, glob: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.policy.paths._MATCHES", 3)
    for name in ("few/a", "few/b", "many/a", "many/b", "many/c", "a/b/c/d"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    line = RunCommand(f"rm few/* {glob}", str(root))
    part = PartOfLine(_CALL, line, analyze(line.line, line.cwd))
    assert _fence(root).judge(DeletePath(f"{root}/few/*"), part) is None
    decision = _fence(root).judge(DeletePath(f"{root}/{glob}"), part)
    assert isinstance(decision, Ask) and "target is not known" in decision.reason


def test_name_with_an_asterisk_that_a_tool_is_given_is_no_glob(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "work-evil")
    assert _fence(root).judge(WritePath("l*"), _CALL) is None


def test_path_with_a_nul_character_asks(root: Path) -> None:
    assert isinstance(_fence(root).judge(WritePath("a\0b"), _CALL), Ask)


def test_outside_refuse_denies(root: Path) -> None:
    assert isinstance(_fence(root, outside="refuse").judge(WritePath("/etc/hosts"), _CALL), Deny)


def test_unknown_read_is_free_only_for_a_line_behind_the_wall(root: Path) -> None:
    for line, free in (('cat "$PLACE/a"', True), ('cp "$PLACE/a" b', False)):
        access = RunCommand(line, str(root))
        part = PartOfLine(_CALL, access, analyze(line, access.cwd))
        walled = Fence(Workspace(root, reads="anywhere", outside="ask"), walled=True)
        assert (walled.judge(ReadPath("$PLACE/a"), part) is None) is free
        assert isinstance(_fence(root, reads="anywhere").judge(ReadPath("$PLACE/a"), part), Ask)


def test_program_whose_reads_are_unknown_asks_only_behind_a_wall_that_fences_reads(root: Path) -> None:
    line = RunCommand("frobnicate x", str(root))
    plan = analyze(line.line, line.cwd)
    part = PartOfLine(_CALL, line, plan, plan.commands[0])
    decision = Fence(Workspace(root, reads="inside", outside="ask"), walled=True).judge(line, part)
    assert isinstance(decision, Ask) and "may read files outside" in decision.reason
    assert _fence(root, reads="inside").judge(line, part) is None
    assert Fence(Workspace(root, reads="anywhere", outside="ask"), walled=True).judge(line, part) is None


def test_relative_path_starts_from_the_given_folder(root: Path) -> None:
    here = PathContext(str(root / "sub"), "/home/ann", (str(root.resolve()),))
    fence = Fence(Workspace(root, outside="ask"), here)
    assert fence.judge(WritePath("../x"), _CALL) is None
    assert isinstance(fence.judge(WritePath("../../x"), _CALL), Ask)


def test_devices_may_be_read_where_reads_are_fenced(root: Path) -> None:
    for device in ("/dev/null", "/dev/stdin", "/dev/urandom"):
        assert _fence(root, reads="inside").judge(ReadPath(device), _CALL) is None
    assert isinstance(_fence(root).judge(WritePath("/dev/stdin"), _CALL), Ask)  # the file behind `< x`


def test_null_device_may_be_written(root: Path) -> None:
    assert _fence(root).judge(WritePath("/dev/null"), _CALL) is None
    assert isinstance(_fence(root).judge(WritePath("/dev/null2"), _CALL), Ask)


async def test_relative_path_of_a_tool_may_also_mean_the_folder_of_the_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool(effect=Effect.WRITE, accesses=lambda arguments: [WritePath(str(arguments["path"]))])
    def save(path: str) -> str:
        """Save a file, where the process runs."""
        Path(path).write_text("x")
        return "saved"

    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    executor = Executor(Registry(save), standard_policies(root, mode="auto"))
    monkeypatch.chdir(elsewhere)
    assert "outside the workspace" in (await executor.run("save", {"path": "a"})).text
    assert not list(elsewhere.iterdir())
    rules = Rules(rules_of(deny=[f"Edit(/{elsewhere}/**)"]), PathContext.of(root, root))
    denied = Executor(Registry(save), Policies(rules, AllowEverything()))
    assert "forbids it" in (await denied.run("save", {"path": "a"})).text
    monkeypatch.chdir(root)
    assert (await executor.run("save", {"path": "a"})).text == "saved"


@pytest.mark.parametrize(("target", "path"), [("deep", "link/../x"), ("a/deep", "link/../../two/x")])
async def test_relative_path_of_a_tool_follows_links_in_the_folder_of_the_process(
    root: Path, monkeypatch: pytest.MonkeyPatch, target: str, path: str
) -> None:
    @tool(effect=Effect.WRITE, accesses=lambda arguments: [WritePath(str(arguments["path"]))])
    def save(path: str) -> str:
        """Save a file, where the process runs."""
        Path(path).write_text("x")
        return "saved"

    two, out = root.parent / "two", root.parent / "out"
    for folder in (two, out / "two", out / target):
        folder.mkdir(parents=True)
    (two / "link").symlink_to(out / target)
    monkeypatch.chdir(two)
    executor = Executor(Registry(save), standard_policies(Workspace(root, two), mode="auto"))
    assert "outside the workspace" in (await executor.run("save", {"path": path})).text
    assert not list(out.rglob("x"))
