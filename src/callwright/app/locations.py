"""Paths of settings, trust, sessions and tokens, for the user and for a project."""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from callwright.core.errors import UsageError
from callwright.system.paths import expand_home, is_trusted_repository, resolve_links, trusted_owners

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
    claude: Path = Path("~", ".claude")
    """The user's folder of Claude Code."""

    @classmethod
    def of(
        cls, cwd: str | os.PathLike[str] | None = None, *, home: str | os.PathLike[str] | None = None
    ) -> "Locations":
        """Find the locations for a working folder.

        Args:
            cwd: The working folder; by default that of the process.
            home: The user's folder; by default `CALLWRIGHT_HOME` or `~/.callwright`.

        Raises:
            UsageError: The working folder no longer exists, or the home folder is needed and not known.
        """
        try:
            here = Path(os.path.realpath(cwd or Path.cwd()))
        except FileNotFoundError:
            raise UsageError("the working folder no longer exists; change to another one, such as cd ~") from None
        own = home or _expand_own(os.environ.get("CALLWRIGHT_HOME") or f"~/{FOLDER}")
        claude = _expand_own(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude")
        return cls(Path(own).absolute(), _find_project(here), here, claude=claude.absolute())

    @property
    def own_claude(self) -> Path:
        """The folder of the user's own agents and skills of Claude Code: never one that the project could fill."""
        inside = resolve_links(self.claude).is_relative_to(resolve_links(self.project))
        return Path.home() / ".claude" if inside else self.claude

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
    def agents(self) -> Path:
        """The records of sub-agents, in a file of their own: lists of sessions are for the user's."""
        return self.record / "agents.db"

    @property
    def live(self) -> Path:
        """The folder of the sockets of agents that run in this project."""
        return self.record / "live"

    @property
    def web_link(self) -> Path:
        """The file with the link of the page, while its server runs."""
        return self.record / "web.json"

    @property
    def undo(self) -> Path:
        """The folder with what files were before they were changed."""
        return self.record / "undo"

    @property
    def pinned_tools(self) -> Path:
        """The tool definitions of MCP servers as the user last accepted them."""
        return self.record / "mcp-tools.json"

    @property
    def tokens(self) -> Path:
        """The folder with OAuth tokens of MCP servers."""
        return self.home / "mcp-tokens"


def read_web_link(locations: Locations) -> tuple[str, int] | None:
    """Return the link of the page of a project, with the process id of its server; None if no server runs."""
    try:
        found = json.loads(locations.web_link.read_text("utf-8"))
        link, process_id = str(found["link"]), int(found["pid"])
        os.kill(process_id, 0)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return link, process_id


def _expand_own(path: str) -> Path:
    """Expand the path of a folder of the user's own: without a home it would lie in the working folder."""
    found = expand_home(path)
    if path.startswith("~") and not found.is_absolute():
        raise UsageError(f"the home folder that {path} is in is not known; set HOME")
    return found


def _find_project(here: Path) -> Path:
    if (here / ".git").exists():
        return here
    owners = trusted_owners(here)
    return next((folder for folder in here.parents if is_trusted_repository(folder, owners)), here)
