"""Sandboxes, a workspace with secrets and protected paths, and a home folder for the tests of walls."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import LONG_SECONDS

from callwright.core.access import Confinement
from callwright.system.sandbox import bubblewrap, landlock
from callwright.system.sandbox.sandbox import Sandbox, SandboxKind, find_sandbox
from callwright.system.sandbox.wall import NamedPaths

READ_ONLY, WORKSPACE, NETWORK, APPROVED = (
    Confinement.READ_ONLY,
    Confinement.WORKSPACE,
    Confinement.NETWORK,
    Confinement.APPROVED,
)
Attempt = Callable[..., subprocess.CompletedProcess[str]]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def runnable() -> list[SandboxKind]:
    kinds: list[SandboxKind] = []
    if not bubblewrap.find_problem():
        kinds.append("bubblewrap")
    if landlock.version() >= 3 and landlock.has_seccomp():
        kinds.append("landlock")
    return kinds


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_text("PRIVATE KEY\n")
    (folder / ".ssh" / "known_hosts").write_text("a host\n")
    (folder / ".aws").mkdir()
    (folder / ".aws" / "credentials").write_text("aws_secret = hunter2\n")
    (folder / ".bash_history").write_text("export TOKEN=hunter2\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".env").write_text("SECRET=hunter2\n")
    (folder / "AGENTS.md").write_text("Be careful.\n")
    (folder / "sub" / ".vscode").mkdir(parents=True)
    (folder / "sub" / "server.key").write_text("PRIVATE KEY\n")
    (tmp_path / "file").write_text("as it was")
    return folder


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request: pytest.FixtureRequest, workspace: Path) -> Sandbox:
    if request.param not in runnable():
        pytest.skip(f"{request.param} does not work on this machine")
    return Sandbox(request.param, (str(workspace),))


@pytest.fixture
def complete(workspace: Path) -> Sandbox:
    if "bubblewrap" not in runnable():
        pytest.skip("bubblewrap does not work on this machine")
    return find_sandbox("require", roots=[workspace])


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing here"))


@pytest.fixture
def attempt(tmp_path: Path, workspace: Path) -> Attempt:
    def run(
        sandbox: Sandbox, line: str, confinement: Confinement = Confinement.READ_ONLY, named: NamedPaths | None = None
    ) -> subprocess.CompletedProcess[str]:
        scratch = tmp_path / "scratch"
        with sandbox.confine(
            ("bash", "-c", line), str(workspace), confinement, scratch=scratch, named=named or NamedPaths()
        ) as confined:
            return subprocess.run(
                confined.argv, cwd=workspace, capture_output=True, text=True, timeout=LONG_SECONDS, check=False
            )

    return run
