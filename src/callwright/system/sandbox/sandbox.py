"""The sandbox around commands: only the workspace is writable, the network is off unless allowed."""

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
    """The sandbox in use on this machine, chosen once; `gaps` lists what it does not cover."""

    kind: SandboxKind
    writable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    network: bool = False
    gaps: tuple[str, ...] = ()
    strict: bool = False
    """Whether a command is refused if a path cannot be protected."""

    def describe(self) -> str:
        """Describe the sandbox in a sentence, for people and for prompts."""
        if self.kind == "none":
            return f"commands are not confined{''.join(f': {gap}' for gap in self.gaps)}"
        folders = ", ".join(str(path) for path in self.writable)
        network = "on" if self.network else "off"
        held = f"; protected: {', '.join(str(path) for path in self.protected)}" if self.protected else ""
        missing = f"; not covered: {'; '.join(self.gaps)}" if self.gaps else ""
        return f"{self.kind}: writing only in {folders}; network {network}{held}{missing}"

    @contextmanager
    def confine(self, argv: Sequence[str], cwd: str) -> Generator[tuple[str, ...], None, None]:
        """Yield the command line that runs `argv` in the sandbox; leave the block only when the command has ended.

        Raises:
            Unsafe: The sandbox is strict and a path cannot be protected.
        """
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
        # a mount covers the target of a link, not the link itself, which could be replaced
        if path.parent.resolve() / path.name == path and not path.is_symlink():
            return True
        if self.strict:
            raise Unsafe(f"{path} must be protected, but a link is on the way to it; make it a plain file or folder")
        return False


def find_sandbox(
    mode: SandboxMode, *, writable: Iterable[str | Path], protected: Iterable[str | Path] = (), network: bool = False
) -> Sandbox:
    """Choose the strongest sandbox this machine offers.

    Args:
        mode: "require", "prefer" (go on without where there is none) or "off".
        writable: The folders that commands may write to.
        protected: Paths inside them that stay read-only, absolute or relative to every writable folder; they need not
            exist.
        network: Whether commands may use the network.

    Raises:
        UsageError: The mode is "require" and no sandbox can be used.
    """
    if mode == "off":
        return Sandbox("none")
    folders = tuple(Path(folder).resolve() for folder in writable)
    # joined without following links: links are checked for every command, because one can appear later
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
