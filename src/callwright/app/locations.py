"""Paths of settings, trust, sessions and tokens, for the user and for a project."""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = ".callwright"
_MANAGED = Path("/etc/callwright/settings.json")


@dataclass(frozen=True, slots=True)
class Locations:
    """The files and folders of one run.

    Create it with `Locations.of`.
    """

    home: Path
    """The user's folder: settings, trust, sessions. A repository cannot place files here."""
    project: Path
    """The root of the repository, or the working folder outside of one."""
    cwd: Path
    managed: Path = _MANAGED
    """Settings of the machine's administrator, which override all others."""

    @classmethod
    def of(
        cls, cwd: str | os.PathLike[str] | None = None, *, home: str | os.PathLike[str] | None = None
    ) -> "Locations":
        """Find the locations for a working folder.

        Args:
            cwd: The working folder; by default that of the process.
            home: The user's folder; by default `CALLWRIGHT_HOME` or `~/.callwright`.
        """
        here = Path(os.path.realpath(cwd or Path.cwd()))
        own = home or os.environ.get("CALLWRIGHT_HOME") or Path("~", FOLDER).expanduser()
        return cls(Path(own).absolute(), _find_project(here), here)

    @property
    def user_settings(self) -> Path:
        return self.home / "settings.json"

    @property
    def project_settings(self) -> Path:
        return self.project / FOLDER / "settings.json"

    @property
    def local_settings(self) -> Path:
        return self.project / FOLDER / "settings.local.json"

    @property
    def project_servers(self) -> Path:
        return self.project / ".mcp.json"

    @property
    def trust(self) -> Path:
        return self.home / "trust.json"

    @property
    def record(self) -> Path:
        """The folder of this project's sessions; projects of the same name have different ones."""
        digest = sha256(os.fsencode(self.project)).hexdigest()[:12]
        return self.home / "projects" / f"{self.project.name or 'root'}-{digest}"

    @property
    def sessions(self) -> Path:
        return self.record / "sessions.db"

    @property
    def seen_tools(self) -> Path:
        """The tool definitions of MCP servers as the user last accepted them."""
        return self.record / "mcp-tools.json"

    @property
    def tokens(self) -> Path:
        """The folder with OAuth tokens of MCP servers."""
        return self.home / "mcp-tokens"


def _find_project(here: Path) -> Path:
    for folder in (here, *here.parents):
        # a file in worktrees and submodules, a folder elsewhere
        if (folder / ".git").exists():
            return folder
    return here
