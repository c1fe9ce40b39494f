"""The wall around commands: the workspace can be written, the rest only read, the network is off unless allowed."""

import json
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from callwright.core.errors import Unsafe, UsageError
from callwright.system.sandbox import bubblewrap, landlock

SandboxMode: TypeAlias = Literal["require", "prefer", "off"]
SandboxKind: TypeAlias = Literal["bubblewrap", "landlock", "none"]

_INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and allow user namespaces"
_LANDLOCK_GAPS = (
    "permissions, owners and times of files anywhere can be changed",
    "programs listening on local sockets (docker, ssh-agent) can be reached",
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What confines commands here, chosen once; `gaps` says what it does not hold."""

    kind: SandboxKind
    writable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    network: bool = False
    gaps: tuple[str, ...] = ()
    strict: bool = False
    """Refuse the command where a protected path cannot be held, instead of going on without."""

    def describe(self) -> str:
        """Say in a sentence what is in force, for people and for prompts."""
        if self.kind == "none":
            return f"commands are not confined{''.join(f': {gap}' for gap in self.gaps)}"
        folders = ", ".join(str(path) for path in self.writable)
        network = "on" if self.network else "off"
        held = f"; protected: {', '.join(str(path) for path in self.protected)}" if self.protected else ""
        missing = f"; not covered: {'; '.join(self.gaps)}" if self.gaps else ""
        return f"{self.kind}: writing only in {folders}; network {network}{held}{missing}"

    @contextmanager
    def confine(self, argv: Sequence[str], cwd: str) -> Generator[tuple[str, ...], None, None]:
        """Lend the command line that runs `argv` confined. Leave it only when the command has ended."""
        if self.kind == "none":
            yield tuple(argv)
        elif self.kind == "landlock":
            request = {"writable": [str(path) for path in self.writable], "network": self.network}
            yield (sys.executable, "-I", "-S", landlock.__file__, json.dumps(request), *argv)
        else:
            protected = [path for path in self.protected if self._can_protect(path)]
            with bubblewrap.wrap_command(
                argv, cwd=cwd, writable=self.writable, protected=protected, network=self.network
            ) as wrapped:
                yield wrapped

    def _can_protect(self, path: Path) -> bool:
        # a mount covers what a link leads to, never the link itself, which could be replaced
        if path.parent.resolve() / path.name == path and not path.is_symlink():
            return True
        if self.strict:
            raise Unsafe(f"{path} must be protected, but a link is on the way to it; make it a plain file or folder")
        return False


def find_sandbox(
    mode: SandboxMode, *, writable: Iterable[str | Path], protected: Iterable[str | Path] = (), network: bool = False
) -> Sandbox:
    """Choose what this machine offers; "require" raises where that is not enough.

    Protected paths are absolute, or relative to every writable folder; they need not exist.
    """
    if mode == "off":
        return Sandbox("none")
    folders = tuple(Path(folder).resolve() for folder in writable)
    # joined without following links: whether one is on the way is asked each time, because it can appear later
    paths = tuple(dict.fromkeys(folder / path for path in protected for folder in folders))
    problem = bubblewrap.find_problem()
    if not problem:
        return Sandbox("bubblewrap", folders, paths, network, strict=mode == "require")
    if _landlock_suffices(network=network) and not (paths and mode == "require"):
        gaps = (*(("protected paths inside these folders can be changed",) if paths else ()), *_LANDLOCK_GAPS)
        return Sandbox("landlock", folders, paths, network, gaps)
    if mode == "require":
        raise UsageError(f'sandbox="require", but commands cannot be confined here: {problem}; {_INSTALL}')
    return Sandbox("none", gaps=(f"{problem}; {_INSTALL}",))


def _landlock_suffices(*, network: bool) -> bool:
    # before version 3 a file outside could still be emptied
    return landlock.version() >= 3 and (network or landlock.has_seccomp())
