"""Which files belong to a user and which to a project."""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FOLDER = ".callwright"
_MANAGED = Path("/etc/callwright/settings.json")


@dataclass(frozen=True, slots=True)
class Locations:
    """The folders one run reads its settings from and keeps its record in."""

    home: Path
    """What belongs to the user: settings, trust, sessions. No repository can put anything here."""
    project: Path
    """The repository's root, or the working folder where there is none."""
    cwd: Path
    managed: Path = _MANAGED
    """What the machine's administrator says; nobody's word counts after it."""

    @classmethod
    def of(
        cls, cwd: str | os.PathLike[str] | None = None, *, home: str | os.PathLike[str] | None = None
    ) -> "Locations":
        """Find them from the working folder; `CALLWRIGHT_HOME` moves the user's own folder."""
        here = Path(os.path.realpath(cwd or Path.cwd()))
        own = home or os.environ.get("CALLWRIGHT_HOME") or Path("~", FOLDER).expanduser()
        return cls(Path(own).absolute(), _project(here), here)

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
        """The folder this project's sessions are kept in; two projects of one name do not share it."""
        mark = sha256(os.fsencode(self.project)).hexdigest()[:12]
        return self.home / "projects" / f"{self.project.name or 'root'}-{mark}"

    @property
    def sessions(self) -> Path:
        return self.record / "sessions.db"

    @property
    def seen_tools(self) -> Path:
        """What MCP servers were last seen to offer here."""
        return self.record / "mcp-tools.json"

    @property
    def tokens(self) -> Path:
        """The folder sign-ins to MCP servers are kept in."""
        return self.home / "mcp-tokens"


def _project(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / ".git").exists():
            return folder
    return here
