"""The repository whose settings are checked is the one that git uses.

Each fixture is a repository whose settings name a program. Where bubblewrap is installed, git itself shows that it
would run it: without a network, with an empty home, and with nothing but the fixture to write to.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from callwright import Allow, Ask
from callwright.core.access import Decision
from callwright.policy import judge_command
from callwright.policy.git_folders import list_repositories
from callwright.policy.repository import find_hook
from callwright.shell.git_env import SAFE_ENVIRONMENT


def _judge(line: str, folder: Path, mode: str = "default") -> Decision:
    return judge_command(line, cwd=folder, workspace=folder, mode=mode)  # type: ignore[arg-type] - modes only


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository that runs a program when its differences are shown."""
    folder = tmp_path / "hostile"
    (folder / "sub").mkdir(parents=True)
    _git(folder, "init", "--quiet")
    for file in (folder / "f", folder / "sub/f"):
        file.write_text("a\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "x")
    for file in (folder / "f", folder / "sub/f"):
        file.write_text("b\n")
    _git(folder, "config", "diff.external", f"touch '{tmp_path}/proof'")
    return folder


def _make_decoy(how: str, folder: Path) -> None:
    match how:
        case "empty .git":
            (folder / "sub/.git").mkdir()
        case "settings without a repository":
            (folder / "sub/.git/objects").mkdir(parents=True)
            (folder / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
            (folder / "sub/.git/config").write_text("[core]\n\tbare = false\n")
        case "head that is none":
            for name in ("objects", "refs"):
                (folder / "sub/.git" / name).mkdir(parents=True)
            (folder / "sub/.git/HEAD").write_text("main\n")
        case "common folder without objects":
            for name in ("objects", "refs"):
                (folder / "sub/.git" / name).mkdir(parents=True)
            (folder / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
            (folder / "sub/.git/commondir").write_text("nowhere\n")
        case "bare without objects":
            (folder / "sub/HEAD").write_text("ref: refs/heads/main\n")
            (folder / "sub/config").write_text("\n")
        case "pipe as .git":
            os.mkfifo(folder / "sub/.git")
        case "link to nothing":
            (folder / "sub/.git").symlink_to("nowhere")
        case _:
            raise AssertionError(how)


def _check_effect(folder: Path, top: Path, *, runs: bool) -> None:
    """Compare with whether git runs the program when it shows the differences in a folder."""
    wall = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/root")
    wall += ("--bind", str(top), str(top), "--unshare-all", "--die-with-parent", "--chdir", str(folder))
    path = os.environ.get("PATH", os.defpath)
    environment = {**SAFE_ENVIRONMENT, "PATH": path, "HOME": "/tmp", "GIT_CONFIG_GLOBAL": "/dev/null"}
    if not shutil.which("bwrap") or subprocess.run([*wall, "true"], check=False, capture_output=True).returncode:
        return  # the judgement alone is tested where no sandbox stands
    subprocess.run([*wall, "git", "diff"], env=environment, check=False, capture_output=True, timeout=60)
    assert (top / "proof").exists() is runs


@pytest.mark.parametrize(
    "how",
    [
        "empty .git",
        "settings without a repository",
        "head that is none",
        "common folder without objects",
        "bare without objects",
        "pipe as .git",
        "link to nothing",
    ],
)
def test_decoy_does_not_hide_the_repository_above(hostile: Path, how: str) -> None:
    _make_decoy(how, hostile)
    for mode in ("default", "plan", "auto"):
        for line in ("cd sub && git diff", "git -C sub diff"):
            assert isinstance(_judge(line, hostile, mode), Ask), (mode, line)
    _check_effect(hostile / "sub", hostile.parent, runs=True)


def test_blank_at_the_end_of_a_gitdir_belongs_to_it(hostile: Path) -> None:
    (hostile / ".git").rename(hostile / "real ")
    (hostile / ".git").write_text("gitdir: real \n")
    assert isinstance(_judge("git diff", hostile), Ask)
    _check_effect(hostile, hostile.parent, runs=True)


def test_gitdir_may_hold_any_bytes(hostile: Path) -> None:
    try:
        os.rename(os.fsencode(hostile / ".git"), os.fsencode(hostile) + b"/re\xffal")  # noqa: PTH104 - a name in bytes
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    (hostile / ".git").write_bytes(b"gitdir: re\xffal\n")
    assert isinstance(_judge("git diff", hostile), Ask)
    _check_effect(hostile, hostile.parent, runs=True)


def test_common_folder_is_read_as_git_reads_it(hostile: Path) -> None:
    shared = hostile / "shared "
    (hostile / ".git").rename(shared)
    own = hostile / ".git"
    own.mkdir()
    (shared / "HEAD").rename(own / "HEAD")
    (shared / "index").rename(own / "index")
    (own / "commondir").write_text("../shared \n")
    assert isinstance(_judge("git diff", hostile), Ask)
    _check_effect(hostile, hostile.parent, runs=True)


@pytest.mark.parametrize("text", ["gitdir: nowhere\n", "gitdir:real\n", "gitdir: sub\n", ""])
def test_gitdir_that_leads_to_no_repository_asks(hostile: Path, text: str) -> None:
    (hostile / ".git").rename(hostile / "real")
    (hostile / ".git").write_text(text)
    for line in ("git status", "cd sub && git diff"):
        assert isinstance(_judge(line, hostile), Ask)


def test_link_to_a_folder_leads_to_its_own_repository(hostile: Path) -> None:
    workspace = hostile.parent / "workspace"
    (workspace / "vendor").mkdir(parents=True)
    _git(workspace, "init", "--quiet")
    hostile.rename(workspace / "vendor/hostile")
    (workspace / "link").symlink_to("vendor/hostile/sub")
    assert isinstance(_judge("git diff", workspace), Allow)
    for line in ("cd link && git diff", "git -C link diff"):
        assert isinstance(_judge(line, workspace), Ask), line
    (workspace / "vendor/hostile/rust-toolchain.toml").write_text('[toolchain]\npath = "/evil"\n')
    (workspace / "vendor/hostile/.npmrc").write_text("script-shell=/evil\n")
    (workspace / "vendor/hostile/ruff.toml").write_text("fix = true\n")
    for line in ("cargo --version", "npm ls", "ruff check ."):
        assert isinstance(_judge(line, workspace), Allow), line
        assert isinstance(_judge(f"cd link && {line}", workspace), Ask), line
    _check_effect(workspace / "link", workspace.parent, runs=True)


def test_own_repository_ends_the_search(hostile: Path) -> None:
    _git(hostile / "sub", "init", "--quiet")
    assert isinstance(_judge("cd sub && git diff", hostile), Allow)
    _check_effect(hostile / "sub", hostile.parent, runs=False)
    assert [found.certain for found in list_repositories(str(hostile / "sub"))] == [True]


def test_hook_above_a_decoy_asks(hostile: Path) -> None:
    hook = hostile / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    (hostile / "sub/.git").mkdir()
    assert find_hook(str(hostile / "sub"), "commit") == str(hook.resolve())


def test_object_of_the_repository_above_a_decoy_asks(hostile: Path) -> None:
    _git(hostile, "config", "--unset", "diff.external")
    _git(hostile, "add", ".")
    done = subprocess.run(["git", "rev-parse", ":f"], cwd=hostile, check=True, capture_output=True, text=True)
    (hostile / "sub/.git").mkdir()
    assert isinstance(_judge("cd sub && git status", hostile), Allow)
    assert isinstance(_judge(f"cd sub && git show {done.stdout.strip()}", hostile), Ask)


@pytest.mark.parametrize("line", ["npm ls", "pnpm list", "uv python find", "ruff check ."])
def test_unknown_folder_asks(tmp_path: Path, line: str) -> None:
    assert isinstance(_judge(f'cd "$X" && {line}', tmp_path), Ask)


def test_links_that_lead_to_themselves_are_no_repository(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / ".git").write_text("gitdir: loop\n")
    with pytest.raises(ValueError, match="does not lead to a repository"):
        list(list_repositories(str(tmp_path)))
