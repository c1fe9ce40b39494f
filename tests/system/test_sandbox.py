"""The sandbox around commands, tested from the inside."""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callwright.core.errors import Unsafe, UsageError
from callwright.system.sandbox import bubblewrap, landlock
from callwright.system.sandbox.sandbox import Sandbox, SandboxKind, SandboxMode, find_sandbox

Confine = Callable[..., Sandbox]


def runnable() -> list[SandboxKind]:
    kinds: list[SandboxKind] = []
    if not bubblewrap.find_problem():
        kinds.append("bubblewrap")
    if landlock.version() >= 3 and landlock.has_seccomp():
        kinds.append("landlock")
    return kinds


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / ".git" / "hooks").mkdir(parents=True)
    return folder


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, workspace: Path) -> Sandbox:
    if request.param not in runnable():
        pytest.skip(f"{request.param} does not work on this machine")
    return Sandbox(request.param, (workspace,))


@pytest.fixture
def enclosed(workspace: Path) -> Confine:
    if "bubblewrap" not in runnable():
        pytest.skip("bubblewrap does not work on this machine")

    def confine(*protected: str, wish: SandboxMode = "require") -> Sandbox:
        return find_sandbox(wish, writable=[workspace], protected=protected)

    return confine


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing here"))
    bubblewrap.find_problem.cache_clear()
    yield
    bubblewrap.find_problem.cache_clear()


def attempt(sandbox: Sandbox, line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    with sandbox.confine(("bash", "-c", line), str(cwd)) as argv:
        return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)


def reach(sandbox: Sandbox, kind: str, port: int, cwd: Path) -> None:
    program = f"import socket; s = socket.socket(type=socket.{kind}); s.connect(('127.0.0.1', {port})); s.send(b'out')"
    attempt(sandbox, f'{sys.executable} -c "{program}"', cwd)


def test_workspace_is_writable_and_all_is_readable(sandbox: Sandbox, workspace: Path, tmp_path: Path):
    (tmp_path / "outside").write_text("readable")
    line = "mkdir d && echo new > d/a && mv d/a b && ln b c && cat b ../outside > both; cat both; : >/dev/null"
    done = attempt(sandbox, line, workspace)
    assert (done.stdout, done.stderr, done.returncode) == ("new\nreadable", "", 0)


@pytest.mark.parametrize(
    "line",
    [
        "echo changed > ../file",
        "> ../file",
        "rm ../file",
        "mv ../file moved",
        "ln -s x ../new",
        "mkdir ../new",
        "truncate -s0 ../file",
    ],
)
def test_nothing_outside_can_be_changed(sandbox: Sandbox, workspace: Path, tmp_path: Path, line: str):
    (tmp_path / "file").write_text("as it was")
    assert attempt(sandbox, line, workspace).returncode != 0
    assert (tmp_path / "file").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "workspace"]


def test_a_link_does_not_lead_out(sandbox: Sandbox, workspace: Path, tmp_path: Path):
    (tmp_path / "file").write_text("as it was")
    attempt(sandbox, "ln -s .. up; echo changed > up/file; echo changed > /proc/self/root$PWD/../file", workspace)
    assert (tmp_path / "file").read_text() == "as it was"


def test_kernel_settings_cannot_be_changed(sandbox: Sandbox, workspace: Path):
    # the same value again, so that a sandbox that fails this test does no harm
    line = 'value=$(cat /proc/sys/kernel/core_pattern); echo "$value" > /proc/sys/kernel/core_pattern'
    assert attempt(sandbox, line, workspace).returncode != 0


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_the_network_is_off_unless_allowed(sandbox: Sandbox, workspace: Path, kind: str):
    with socket.socket(type=getattr(socket, kind)) as server:
        server.bind(("127.0.0.1", 0))
        if kind == "SOCK_STREAM":
            server.listen()
        port = server.getsockname()[1]
        reach(sandbox, kind, port, workspace)
        assert not was_reached(server)
        reach(Sandbox(sandbox.kind, sandbox.writable, network=True), kind, port, workspace)
        assert was_reached(server)


def was_reached(server: socket.socket) -> bool:
    return bool(select.select([server], [], [], 0.02)[0])


def test_processes_outside_cannot_be_signalled(sandbox: Sandbox, workspace: Path):
    if sandbox.kind == "landlock" and landlock.version() < 6:
        pytest.skip("this kernel's Landlock does not cover signals")
    assert attempt(sandbox, f"kill -0 {os.getpid()}", workspace).returncode != 0


def test_exit_code_is_passed_on(sandbox: Sandbox, workspace: Path):
    assert attempt(sandbox, "exit 7", workspace).returncode == 7


@pytest.mark.parametrize(
    "line",
    [
        "echo evil > .git/hooks/pre-commit",
        "mv .git away && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        "rm -rf .git && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        "mv .git/hooks .git/other && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
        "mkdir -p new && mount --bind new .git/hooks && echo evil > .git/hooks/pre-commit",
        "unshare -rm sh -c 'umount .git/hooks; echo evil > .git/hooks/pre-commit'",
    ],
)
def test_protected_paths_cannot_be_changed_or_moved(enclosed: Confine, workspace: Path, line: str):
    assert attempt(enclosed(".git/hooks"), line, workspace).returncode != 0
    assert list((workspace / ".git" / "hooks").iterdir()) == []
    assert [path.name for path in workspace.iterdir() if path.name != "new"] == [".git"]


@pytest.mark.parametrize(
    "line", ["echo x > .mcp.json", "mkdir -p .agent/x", "rmdir .agent; mkdir -p .agent/x", "touch .agent"]
)
def test_missing_protected_paths_leave_no_trace(enclosed: Confine, workspace: Path, line: str):
    attempt(enclosed(".mcp.json", ".agent/hooks"), line, workspace)
    assert [path.name for path in workspace.iterdir()] == [".git"]


def test_missing_path_stays_protected_until_last_command(enclosed: Confine, workspace: Path):
    sandbox = enclosed(".agent")
    with sandbox.confine(("true",), str(workspace)):
        attempt(sandbox, "true", workspace)
        assert attempt(sandbox, "mkdir .agent/x", workspace).returncode != 0
        assert (workspace / ".agent").is_dir()
    assert not (workspace / ".agent").exists()


def test_a_protected_file_keeps_its_content(enclosed: Confine, workspace: Path):
    (workspace / ".envrc").write_text("as it was")
    line = "echo evil > .envrc; rm -f .envrc; mv .envrc x; cat .envrc"
    assert attempt(enclosed(".envrc"), line, workspace).stdout == "as it was"


def test_a_protected_path_behind_a_link_refuses_the_command(enclosed: Confine, workspace: Path):
    (workspace / "elsewhere").mkdir()
    (workspace / ".agent").symlink_to("elsewhere")
    with pytest.raises(Unsafe, match="link"):
        attempt(enclosed(".agent"), "true", workspace)
    assert attempt(enclosed(".agent", wish="prefer"), "true", workspace).returncode == 0


def test_daemons_behind_local_sockets_are_out_of_reach(enclosed: Confine, workspace: Path, tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "daemon"))
        server.listen()
        program = f"import socket; socket.socket(socket.AF_UNIX).connect('{tmp_path}/daemon')"
        assert attempt(enclosed(), f'{sys.executable} -c "{program}"', workspace).returncode != 0


def test_a_sandboxed_root_has_no_privileges(enclosed: Confine, workspace: Path):
    assert attempt(enclosed(), "grep CapEff /proc/self/status", workspace).stdout.split()[1].strip("0") == ""


def test_off_changes_nothing():
    sandbox = find_sandbox("off", writable=["/"])
    assert sandbox.kind == "none"
    with sandbox.confine(("a", "b"), "/") as argv:
        assert argv == ("a", "b")


@pytest.mark.usefixtures("without_bubblewrap")
def test_require_raises_and_names_what_to_install(workspace: Path):
    with pytest.raises(UsageError, match=r"bubblewrap is not installed.*install bubblewrap"):
        find_sandbox("require", writable=[workspace], protected=[".agent"])


@pytest.mark.usefixtures("without_bubblewrap")
def test_prefer_uses_what_works_and_names_gaps(workspace: Path):
    sandbox = find_sandbox("prefer", writable=[workspace], protected=[".agent"])
    assert sandbox.kind in ("landlock", "none")
    assert ("protected paths" if sandbox.kind == "landlock" else "install bubblewrap") in sandbox.describe()


def test_describe_names_the_sandbox_in_use(enclosed: Confine, workspace: Path):
    told = enclosed(".agent").describe()
    assert told.startswith("bubblewrap: ")
    assert str(workspace) in told
    assert "network off" in told
