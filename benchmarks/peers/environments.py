"""One virtual environment per package, kept between runs."""

import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 900


class CannotInstall(Exception):
    """The package manager's own last words."""


def home() -> Path:
    """Where environments and results are kept: CALLWRIGHT_BENCH_HOME, or the user's cache."""
    given = os.environ.get("CALLWRIGHT_BENCH_HOME")
    return Path(given) if given else Path.home() / ".cache" / "callwright-benchmarks"


def environment(name: str, requirements: Sequence[str]) -> Path:
    """Give the Python that has the package, installing it on first use or when the requirements have changed."""
    folder = home() / name
    python, installed = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if not python.exists():
        venv.create(folder, with_pip=True)
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        _install(python, requirements)
        installed.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path, requirements: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", *requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"pip took longer than {_SECONDS} s") from None
    if done.returncode != 0:
        raise CannotInstall((done.stderr.strip().splitlines() or ["pip failed without a word"])[-1])
