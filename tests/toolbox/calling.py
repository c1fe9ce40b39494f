"""Making calls of a tool the way the executor does, and folders to make them in."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callwright import Completed, Executor, Failed, Registry
from callwright.policy import AllowEverything


async def call(tool: Any, **arguments: Any) -> str:
    """The text of a call's output; raises its error."""
    outcome = await Executor(Registry(tool), AllowEverything()).run(tool.spec.name, arguments)
    if isinstance(outcome, Failed):
        raise outcome.error
    assert isinstance(outcome, Completed)
    return outcome.text


def make_tree(root: Path, files: Mapping[str, str]) -> None:
    """Write files, with the folders they need."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@contextmanager
def as_other_user() -> Generator[None, None, None]:
    """Act as a user whom permissions stop: as root, who passes them all, take another identity."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
