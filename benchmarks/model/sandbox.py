"""Runs what a model wrote: without a network, with only the task's folder writable. Standard library only."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 20


def run_confined(argv: Sequence[str], project: Path) -> tuple[int, str]:
    """Run a program in bubblewrap and return its exit code and output.

    Raises:
        FileNotFoundError: bubblewrap is not installed; nothing is run without it.
    """
    folder = project.parent
    wall = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    wall += ["--tmpfs", "/home", "--tmpfs", "/root", "--bind", str(folder), str(folder), "--chdir", str(project)]
    wall += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", str(folder)]
    try:
        done = subprocess.run(
            [*wall, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, f"stopped after {_SECONDS} s"
    return done.returncode, done.stdout + done.stderr


def run_python(project: Path, code: str) -> bool:
    """Tell whether a Python program runs without an error in the project's folder."""
    python = shutil.which("python3", path="/usr/bin:/bin")  # one outside of the home folders, which are not there
    if python is None:
        raise FileNotFoundError("there is no /usr/bin/python3 to check programs with")
    program = f"import sys; sys.path.insert(0, {str(project)!r}); exec({code!r})"
    # no bytecode: a file of the same size, changed within a second, would be taken for the old one
    return run_confined([python, "-I", "-S", "-B", "-X", "pycache_prefix=/nowhere", "-c", program], project)[0] == 0
