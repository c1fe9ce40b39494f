"""Executes shell lines for real, behind the bash tool and its policies, and reports what they did.

Runs only inside the outer sandbox that `harness.py` builds: python -m tests.effects.runner CASES RESULTS FOLDER WORKERS
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypedDict, cast

from callwright.core.calls import Completed, Failed, Interrupted, ToolCall
from callwright.executor import Executor, Turn
from callwright.policy import AllowEverything, ByMode, standard_policies
from callwright.registry import Registry
from callwright.system.paths import Workspace
from callwright.system.sensitive_paths import comparable, is_protected
from callwright.toolbox import Bash, coding_tools

SECRETS = ("hunter2", "bm90IGEgcmVhbCBrZXk", "envsecret", "PASSWORD-OF-HOME")
_SECONDS = 60
_LINES_PER_PART = 200


class Result(TypedDict):
    """What one line did."""

    ran: bool
    """Whether any of it ran."""
    verdict: str
    changed: list[str]
    shown: list[str]
    marked: bool
    """A program of the attacker ran and left its mark."""
    reached: bool
    text: str


def build(base: Path) -> None:
    """Make the throwaway folders: a workspace, a home and a place outside."""
    shutil.rmtree(base, ignore_errors=True)
    workspace, home, outside = base / "ws", base / "home", base / "outside"
    for folder in (workspace, home / ".ssh", outside, workspace / "src"):
        folder.mkdir(parents=True)
    (workspace / ".env").write_text("SECRET=hunter2\n")
    (workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    (workspace / "README").write_text("read me\n")
    (workspace / "src" / "main.py").write_text("print('hi')\n")
    (workspace / "evil.sh").write_text(f"#!/bin/sh\ntouch {base}/PWNED\n")
    (workspace / "evil.sh").chmod(0o755)
    (outside / "keep.txt").write_text("keep\n")
    (home / ".ssh" / "id_rsa").write_text("-----BEGIN KEY-----\nbm90IGEgcmVhbCBrZXk\n-----END KEY-----\n")
    (home / ".netrc").write_text("machine a login b password PASSWORD-OF-HOME\n")


def snapshot(base: Path) -> dict[str, str]:
    """Return what every path below the folder is and holds."""
    return dict(_iterate(base))


def _iterate(base: Path) -> Iterator[tuple[str, str]]:
    # with text and descriptors instead of paths: this runs after every line that ran
    start = len(str(base)) + 1
    pending = [str(base)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                mode = f"{found.st_mode:o}"
                if stat.S_ISREG(found.st_mode):
                    mode = f"{mode} {found.st_mtime_ns} {_digest(entry.path)}"
                elif stat.S_ISLNK(found.st_mode):
                    mode = f"{mode} {os.readlink(entry.path)}"  # noqa: PTH115 - text, for speed
                elif stat.S_ISDIR(found.st_mode):
                    pending.append(entry.path)
                yield entry.path[start:], mode


def _digest(path: str) -> str:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - text, for speed
        return hashlib.sha1(file.readall(), usedforsecurity=False).hexdigest()


class Listener:
    """A loopback server and a local socket that count who connects."""

    def __init__(self, folder: Path) -> None:
        self._accepted = 0
        self._own = 0
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._local = socket.socket(socket.AF_UNIX)
        self._local.bind(str(folder / "daemon"))
        self._local.listen()
        for server in (self._tcp, self._local):
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            self._accepted += 1
            connection.close()

    def count(self) -> int:
        """Return how many have connected; our own connections are accepted after all that came before."""
        for server in (self._tcp, self._local):
            with socket.socket(server.family) as own:
                own.connect(server.getsockname())
                own.recv(1)
            self._own += 1
        return self._accepted - self._own


def harms(changed: list[str], mode: str) -> list[str]:
    """Return the changes that count as harm: all of them, or in auto mode those outside or to protected paths."""
    if mode != "auto":
        return changed
    return [path for path in changed if not path.startswith("ws/") or _is_protected(path)]


def _is_protected(path: str) -> bool:
    """Whether a change counts: commits change a repository, but not what makes git run programs."""
    inside = re.search(r"/\.git/(.*)", path)
    if inside is not None:
        return re.match(r"(?:modules/.*/)?(?:hooks/|config|commondir|info/attributes)", inside[1]) is not None
    return is_protected(comparable(path[2:])) and not path.endswith("/.git")


class Bench:
    """Runs cases one after the other in one folder."""

    def __init__(self, folder: Path) -> None:
        self.base = folder / "B"
        self.listener = Listener(folder)
        self._last: dict[str, str] = {}
        self._connections = 0
        self._built_for: str | None = None
        """The setup after which nothing has changed in the folders; None if something has."""
        self._executors: dict[str, Executor] = {}
        os.environ["API_KEY"] = "envsecret"
        os.environ["HOME"] = str(self.base / "home")
        os.environ.pop("CALLWRIGHT_HOME", None)
        # python itself, not a script of a version manager that looks for it, which takes longer than most lines
        os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"

    def fill(self, text: str) -> str:
        """Put the real paths in the place of the marks."""
        return text.replace("@B@", str(self.base)).replace("@PORT@", str(self.listener.port))

    def prepare(self, setup: str) -> None:
        """Build the folders and run a case's setup."""
        build(self.base)
        if setup:
            subprocess.run(
                ["bash", "-c", self.fill(setup)],
                cwd=self.base / "ws",
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        (self.base / "PWNED").unlink(missing_ok=True)  # a setup may run what it prepares

    def executor(self, case: dict[str, Any]) -> Executor:
        """Return an executor as the case wants it; cases that want the same share one."""
        key = json.dumps(
            [case.get(name) for name in ("mode", "reads", "network_reads", "walled", "unwalled", "sandbox")]
        )
        if key not in self._executors:
            self._executors[key] = self._make_executor(case)
        return self._executors[key]

    def _make_executor(self, case: dict[str, Any]) -> Executor:
        """Return an executor with the library's policies, or with the command's for `walled`."""
        workspace = Workspace(self.base / "ws", reads=case.get("reads", "anywhere"), outside="ask")
        walled = bool(case.get("walled"))
        by_mode = ByMode(
            case["mode"],
            network_reads=case.get("network_reads", "ask"),
            sandboxed=walled,
            auto_allow="walled" if walled else "proven",
        )
        if case.get("unwalled"):  # shows that the harness would see harm
            unsafe = Bash(workspace, sandbox="off", pass_environment=("*",))
            return Executor(Registry(unsafe), AllowEverything())
        tools = [Bash(workspace, sandbox="off")] if case.get("sandbox") == "off" else coding_tools(workspace)
        return Executor(Registry(*tools), standard_policies(workspace, by_mode=by_mode))

    async def run(self, case: dict[str, Any], *, fresh: bool = True) -> Result:
        """Execute one line and report its effects."""
        setup = str(case.get("setup", ""))
        if fresh and setup != self._built_for:
            self.prepare(setup)
            self._last = snapshot(self.base)
            self._connections = self.listener.count()
            self._executors.clear()
            self._built_for = setup
        before, connections = self._last, self._connections
        arguments = {"command": self.fill(case["line"]), "timeout_seconds": 3.0}
        turn = Turn(session_id="s")
        (outcome,) = await self.executor(case).execute([ToolCall("1", "bash", arguments)], turn=turn)
        denied = isinstance(outcome, Failed) and not outcome.started
        after = self._last = before if denied else snapshot(self.base)
        changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        ran = isinstance(outcome, Completed) or (isinstance(outcome, Failed) and outcome.started)
        self._built_for = None if changed else self._built_for
        if ran and fresh:  # its shell may be in another folder now
            self._executors.clear()
        self._connections = self.listener.count()
        text = outcome.text if not isinstance(outcome, Interrupted) else ""
        return Result(
            ran=ran,
            verdict=type(outcome).__name__,
            changed=harms(changed, case["mode"]),
            shown=[secret for secret in SECRETS if secret in text],
            marked=(self.base / "PWNED").exists(),
            reached=self._connections > connections,
            text=text[-300:],
        )


def is_harmful(result: Result) -> bool:
    """Whether a line did harm."""
    return bool(result["changed"] or result["shown"] or result["marked"] or result["reached"])


async def run_all(cases: list[dict[str, Any]], folder: Path) -> list[Result]:
    """Run cases; those with the key `batch` share one folder with their neighbours until one of them does harm."""
    bench = Bench(folder)
    results: dict[int, Result] = {}
    batch = object()
    # cases with the same setup follow each other, because the folders are built anew only after a change
    for place, case in sorted(enumerate(cases), key=lambda each: str(each[1].get("setup", ""))):
        fresh = "batch" not in case or case["batch"] != batch
        result = await bench.run(case, fresh=fresh)
        batch = object() if is_harmful(result) else case.get("batch", object())
        results[place] = result
    return [results[place] for place in range(len(cases))]


def run_part(cases: Sequence[dict[str, Any]], folder: Path) -> list[Result]:
    """Run cases in a folder of their own."""
    folder.mkdir()
    return asyncio.run(run_all([*cases], folder))


def main() -> None:
    """Read the cases, run them in forks of this process, which has imported everything, and write the results."""
    given, results, folder = map(Path, sys.argv[1:4])
    workers = int(sys.argv[4])
    cases = [cast("dict[str, Any]", json.loads(line)) for line in given.read_text().split("\n")]
    # many small parts, so that no worker waits long for the last one
    size = min(_LINES_PER_PART, -(-len(cases) // (2 * workers)))
    parts = [cases[start : start + size] for start in range(0, len(cases), size)]
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        folders = [folder / str(number) for number in range(len(parts))]
        found = [result for part in pool.map(run_part, parts, folders) for result in part]
    results.write_text("\n".join(map(json.dumps, found)))


if __name__ == "__main__":
    main()
