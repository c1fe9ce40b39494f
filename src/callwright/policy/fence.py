"""The path fence: writes stay inside the workspace, reads too where that is asked for, whichever tool wants them."""

from callwright.core.access import Access, Ask, Decision, DeletePath, Deny, ReadPath, WritePath
from callwright.policy.decide import Policy, Tier
from callwright.policy.line import places_for, shown
from callwright.policy.names import words
from callwright.policy.places import Surroundings
from callwright.policy.subject import Subject
from callwright.system.paths import Workspace

_HARMLESS_DEVICES = words(
    "/dev/null /dev/zero /dev/full /dev/stdin /dev/stdout /dev/stderr /dev/tty /dev/random /dev/urandom"
)


class Fence(Policy):
    """Asks about paths outside the workspace, showing where they really lead; inside it has no opinion."""

    tier = Tier.MODE

    def __init__(self, workspace: Workspace, here: Surroundings | None = None) -> None:
        self.workspace = workspace
        self.here = here or Surroundings.within(workspace)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        match access:
            case ReadPath(path):
                return None if self._reads_freely(path, subject) else self._outside(path, "read", subject)
            case WritePath(path):
                return None if path in _HARMLESS_DEVICES else self._outside(path, "write to", subject)
            case DeletePath(path):
                return self._outside(path, "remove", subject)
            case _:
                return None

    def _reads_freely(self, path: str, subject: Subject) -> bool:
        if path in _HARMLESS_DEVICES:
            return True
        return self.workspace.reads == "anywhere" and places_for(path, subject, self.here).known

    def _outside(self, path: str, verb: str, subject: Subject) -> Decision | None:
        places = places_for(path, subject, self.here)
        if not places.known:
            return Ask(f"would {verb} {shown(path)}, and where that leads cannot be told", "workspace fence")
        for real in places.real:
            if not self.here.inside(real):
                return self._refused(path, real, verb)
        return None

    def _refused(self, path: str, real: str, verb: str) -> Decision:
        leads = shown(real) if path == real else f"{shown(path)}, which leads to {shown(real)},"
        reason = f"would {verb} {leads} outside the workspace {' and '.join(self.here.roots)}"
        return Deny(reason, "workspace fence") if self.workspace.outside == "refuse" else Ask(reason, "workspace fence")
