"""The five tools as plain functions, for packages that come without any. Standard library only."""

import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.model.sandbox import run_confined

MAX_TOKENS = 256
"""The most tokens of one answer, for every package."""
_MOST_CHARS = 10_000


class Calls:
    """Counts the calls of one task, and those that failed."""

    def __init__(self) -> None:
        self.made = 0
        self.failed = 0


def make_tools(project: Path, calls: Calls) -> list[Callable[..., str]]:
    """Return read, write, edit, bash and grep for a project's folder."""

    def find(path: str) -> Path:
        found = (project / path).resolve()
        if not found.is_relative_to(project.resolve()):
            raise ValueError(f"{path} is outside of the project")
        return found

    def count(run: Callable[[], str]) -> str:
        calls.made += 1
        try:
            return run()[:_MOST_CHARS]
        except (OSError, ValueError) as error:
            calls.failed += 1
            return f"error: {error}"

    def read(path: str) -> str:
        """Read a file.

        Args:
            path: Path of the file.
        """
        return count(lambda: find(path).read_text(encoding="utf-8"))

    def write(path: str, content: str) -> str:
        """Write a whole file.

        Args:
            path: Path of the file.
            content: The whole new content.
        """

        def run() -> str:
            find(path).parent.mkdir(parents=True, exist_ok=True)
            find(path).write_text(content, encoding="utf-8")
            return f"wrote {path}"

        return count(run)

    def edit(path: str, old_string: str, new_string: str) -> str:
        """Replace text in a file; it must occur exactly once.

        Args:
            path: Path of the file.
            old_string: The exact text.
            new_string: The text to put in its place.
        """

        def run() -> str:
            text = find(path).read_text(encoding="utf-8")
            if text.count(old_string) != 1:
                raise ValueError(f"old_string occurs {text.count(old_string)} times in {path}")
            find(path).write_text(text.replace(old_string, new_string), encoding="utf-8")
            return f"edited {path}"

        return count(run)

    def bash(command: str) -> str:
        """Run a bash command line in the project's folder.

        Args:
            command: The command line.
        """

        def run() -> str:
            code, output = run_confined(["bash", "-c", command], project)
            return f"{output}\nexit code: {code}"

        return count(run)

    def grep(pattern: str, path: str = ".") -> str:
        """Search files for a regular expression.

        Args:
            pattern: The regular expression.
            path: Folder or file to search.
        """

        def run() -> str:
            wanted = re.compile(pattern)
            top = find(path)
            files = [top] if top.is_file() else sorted(each for each in top.rglob("*") if each.is_file())
            hits = [
                f"{each.relative_to(project.resolve())}:{number}:{line}"
                for each in files
                for number, line in enumerate(each.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
                if wanted.search(line)
            ]
            return "\n".join(hits) or "no matches"

        return count(run)

    return [read, write, edit, bash, grep]
