"""`PermissionGate`: one callable decides about everything that destroys."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from callwright.core.spec import Annotations, Effect
from callwright.hooks.base import Hook, PendingCall, Proceed, Refuse, Verdict, settled

CanUseTool: TypeAlias = Callable[[str, Annotations], bool | Awaitable[bool]]


class PermissionGate(Hook):
    """Refuses a tool of effect DESTROY unless `allow(name, annotations)` says yes; it may be async."""

    def __init__(self, allow: CanUseTool) -> None:
        self.allow = allow

    async def before(self, pending: PendingCall) -> Verdict | None:
        annotations = pending.spec.annotations
        if annotations.effect is not Effect.DESTROY or await settled(self.allow(pending.spec.name, annotations)):
            return Proceed()
        return Refuse(f"{pending.spec.name} destroys things and was not permitted")
