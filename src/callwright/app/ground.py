"""Where an agent works and what it may do there: folders, rules, mode and shell."""

from dataclasses import dataclass
from pathlib import Path

from callwright.app.places import Places
from callwright.app.rules import rules_in
from callwright.app.settings import Settings
from callwright.app.tools import shell_tool
from callwright.app.wishes import Wishes
from callwright.core.errors import UsageError
from callwright.policy import LoadedRules, ModeSwitch, Rules
from callwright.policy.places import Surroundings
from callwright.system.paths import Workspace
from callwright.toolbox import Bash


@dataclass(frozen=True, slots=True)
class Ground:
    """What tools, hooks and policies of one app stand on together."""

    workspace: Workspace
    here: Surroundings
    loaded: LoadedRules
    """The rules with what is wrong with them."""
    rules: Rules
    switch: ModeSwitch
    bash: Bash

    @property
    def confined(self) -> bool:
        """Whether a sandbox keeps commands inside; a wall with holes answers no question."""
        sandbox = self.bash.sandbox
        return sandbox.kind != "none" and not sandbox.gaps

    def folder(self) -> str:
        """The folder the next command would run in."""
        return str(self.bash.bind({"command": "true"}).folder)


def ground_for(settings: Settings, places: Places, wishes: Wishes) -> Ground:
    """Read it from the settings and from what this run asks for."""
    workspace = Workspace(places.cwd, *_directories(settings, wishes), reads="anywhere", outside="ask")
    here = Surroundings.within(workspace, places.cwd)
    loaded = rules_in(settings, here, allow=wishes.allow, ask=wishes.ask, deny=wishes.deny)
    barred = ("bypass",) if settings.last("permissions", "disableBypassPermissionsMode") else ()
    switch = ModeSwitch(wishes.mode or settings.last("permissions", "defaultMode") or "default", barred=barred)
    bash = shell_tool(workspace, settings.last("sandbox") or "off")
    return Ground(workspace, here, loaded, Rules(loaded.rules, here), switch, bash)


def _directories(settings: Settings, wishes: Wishes) -> list[Path]:
    asked = [Path(folder).expanduser().absolute() for folder in wishes.directories]
    for folder in asked:
        if not folder.is_dir():
            raise UsageError(f"--add-dir {folder} is not a folder")
    return [*settings.directories(), *asked]
