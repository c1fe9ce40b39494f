"""The runtime's workloads in other packages, each installed into an environment of its own.

`python -m benchmarks peers [--only=NAME,NAME] [--write]`. Nothing here but the standard library: every package's own
Python imports this module on its way to the harness.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.page import write_figures
from benchmarks.peers.environments import CannotInstall, environment, home
from benchmarks.peers.report import Measured, report

ROOT = Path(__file__).parents[2]
PEERS = {
    "pydantic-ai": ("pydantic-ai-slim>=2",),
    "openai-agents": ("openai-agents>=0.20",),
    "langgraph": ("langgraph>=1", "langchain-core>=1"),
    "fastmcp": ("fastmcp>=4",),
    "smolagents": ("smolagents>=1.20", "pydantic>=2.12"),  # pydantic is the floor's, not smolagents'
    "strands": ("strands-agents>=1.60",),
    "llm": ("llm>=0.30",),
}
_SECONDS = 900


def main() -> None:
    """Measure, print the tables and, with `--write`, put them into docs/benchmarks.md."""
    only = [flag.removeprefix("--only=") for flag in sys.argv if flag.startswith("--only=")]
    write = "--write" in sys.argv
    if only and write:
        raise SystemExit("the page has all packages: leave out --only= or --write")
    names = only[0].split(",") if only else ["callwright", *PEERS]
    text = report({name: measured(name) for name in names})
    print(text)
    if write:
        write_figures("peers", text)


def measured(name: str) -> Measured:
    """Figures of one package, or the reason why there are none."""
    print(f"measuring {name} …", file=sys.stderr, flush=True)
    try:
        python = Path(sys.executable) if name == "callwright" else environment(name, PEERS[name])
        return _run(python, "ours" if name == "callwright" else name.replace("-", "_"))
    except CannotInstall as error:
        return f"could not be installed: {error}"


def _run(python: Path, adapter: str) -> dict[str, Any] | str:
    result = home() / f"{adapter}.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    command = [str(python), "-m", "benchmarks.peers.harness", adapter, str(result)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {_SECONDS} s"
    if done.returncode != 0 or not result.exists():
        return f"the adapter failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}"
    return json.loads(result.read_text(encoding="utf-8"))
