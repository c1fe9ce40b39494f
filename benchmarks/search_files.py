"""Glob and grep on a large tree, compared with ripgrep and git including their process start."""

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from callwright.core.calls import ToolCall
from callwright.system.search import content as engines
from callwright.system.search.ripgrep import ContentQuery, find_ripgrep
from callwright.tool.base import State, ToolContext
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep

_FILES = 30_000
_ROUNDS = 7
_LITERAL = "needle_in_a_haystack"
_REGEX = r"need\w+_in_a_[a-z]+\(\d\)"


class _Scope:
    session_id = turn_id = ""
    cancelled = False
    state = State()

    def report(self, call: ToolCall, progress: object) -> None: ...

    def execute(self, context: ToolContext, calls: Sequence[ToolCall]) -> Awaitable[list[Any]]:
        raise NotImplementedError


def make_tree(root: Path, files: int = _FILES) -> None:
    """Write a tree of pieces of the standard library's source, most of them a few folders deep, and commit it."""
    chance = random.Random(1)
    lines = [line for path in sorted(Path(os.__file__).parent.glob("*.py")) for line in path.read_text().splitlines()]
    folders = [root]
    for number in range(files // 8):
        parent = chance.choice(folders[-400:])
        folders.append(parent / f"d{number}" if len(parent.parts) - len(root.parts) < 8 else root / f"d{number}")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        start = chance.randrange(len(lines))
        needle = ["needle_in_a_haystack(7)"] if number % 500 == 0 else []
        ending = chance.choice(["go", "py", "md", "txt", "c"])
        text = "\n".join([*lines[start : start + chance.randint(20, 450)], *needle])
        (chance.choice(folders) / f"f{number}.{ending}").write_text(text)
    (root / ".gitignore").write_text("*.log\nbuild/\nnode_modules/\n/dist\n*.egg-info/\n")
    for step in (
        ["init", "-q"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *step], cwd=root, check=True)
    subprocess.run(["git", "gc", "-q"], cwd=root, check=True)


async def call(tool: Any, **arguments: Any) -> None:
    """Bind and run a call of the tool."""
    await tool.bind(arguments).run(ToolContext(ToolCall("1", "call"), _Scope()))


async def compare(name: str, ours: Callable[[], Awaitable[object]], theirs: list[str], root: Path) -> None:
    """Print the best of interleaved rounds: wall time, and processor time, which a busy machine distorts less."""
    best = [[float("inf")] * 2, [float("inf")] * 2]
    for _ in range(_ROUNDS):
        for place in (0, 1):
            wall, processor = time.perf_counter(), _processor_seconds()
            await (ours() if place == 0 else _run(theirs, root))
            spent = (time.perf_counter() - wall, _processor_seconds() - processor)
            best[place] = [min(pair) for pair in zip(best[place], spent, strict=True)]
    (wall, processor), (their_wall, their_processor) = best
    print(
        f"{name:<46} {wall * 1e3:7.1f} {their_wall * 1e3:7.1f} {wall / their_wall:5.2f}x"
        f" {processor * 1e3:9.0f} {their_processor * 1e3:7.0f} {processor / their_processor:5.2f}x"
    )


async def _run(command: list[str], root: Path) -> None:
    """Run the other program, wait for it and read its output."""
    subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)  # noqa: ASYNC221 - alone


def _processor_seconds() -> float:
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


async def measure(root: Path) -> None:
    """Print the table."""
    program = find_ripgrep() or sys.exit("ripgrep is not installed: nothing to compare with")
    seen = ["--hidden", "--glob=!.git", "--no-config"]
    glob, grep = Glob(root), Grep(root)
    listing = [program, "--files", *seen]
    newest = [*listing, "--sortr=modified"]
    newest_go = [*newest, "--type-add=wanted:*.go", "--type=wanted"]  # --glob would bring ignored files back
    git_listing = [
        "git",
        "ls-files",
        "-co",
        "--exclude-standard",
    ]  # other files: not what .ignore says, tracked ones all
    print(f"{f'best of {_ROUNDS} rounds, ms':<46} {'wall':>7} {'theirs':>7} {'':6} {'processor':>9} {'theirs':>7}")
    await compare("glob **/f12*.md / rg --files", lambda: call(glob, pattern="**/f12*.md"), listing, root)
    await compare("glob **/f12*.md / git ls-files -co", lambda: call(glob, pattern="**/f12*.md"), git_listing, root)
    await compare("glob **/f123*.c, few / rg --files", lambda: call(glob, pattern="**/f123*.c"), listing, root)
    await compare("glob **/*.go, newest first / rg --files", lambda: call(glob, pattern="**/*.go"), listing, root)
    await compare("glob **/*.go / rg --sortr modified *.go", lambda: call(glob, pattern="**/*.go"), newest_go, root)
    await compare("glob **/* / rg --sortr modified", lambda: call(glob, pattern="**/*"), newest, root)
    await compare("glob d1/**/* / rg --files d1", lambda: call(glob, pattern="d1/**/*"), [*listing, "d1"], root)
    for title, pattern in (("literal", _LITERAL), ("regex", _REGEX)):
        for mode, flag in (("files", "-l"), ("count", "-c"), ("content", "-n")):
            theirs = [program, flag, *seen, pattern, "./"]
            query = ContentQuery(pattern, root, root, mode=mode)  # pyright: ignore[reportArgumentType] - a literal above
            await compare(
                f"grep {title} {mode} / rg", lambda m=mode, p=pattern: call(grep, pattern=p, mode=m), theirs, root
            )
            await compare(
                f"grep {title} {mode}, no ripgrep / rg", lambda q=query: engines.search_python(q), theirs, root
            )
        git_grep = ["git", "grep", "--untracked", "-lP", pattern]
        await compare(f"grep {title} files / git grep", lambda p=pattern: call(grep, pattern=p), git_grep, root)


def main() -> None:
    """Measure on the tree given with `--tree=`, or on a generated one."""
    given = [flag.removeprefix("--tree=") for flag in sys.argv if flag.startswith("--tree=")]
    if given:
        asyncio.run(measure(Path(given[0]).resolve()))
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "tree"
        root.mkdir()
        make_tree(root)
        asyncio.run(measure(root))


if __name__ == "__main__":
    main()
