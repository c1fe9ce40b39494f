"""Lets hooks know that a conversation is made shorter, and lets them keep it as it is."""

from dataclasses import dataclass

from callwright.hooks.shell import ShellHooks


@dataclass(frozen=True, slots=True)
class CompactionHooks:
    """Speaks for the PreCompact and PostCompact hooks in one session."""

    hooks: ShellHooks
    session_id: str
    trigger: str = "auto"
    """Whether it grew too long or a person asked for it: `manual`."""
    wish: str = ""
    """What the person wants kept above all."""

    async def before(self) -> bool:
        """Whether the history may be made shorter now."""
        fields = {"trigger": self.trigger, "custom_instructions": self.wish}
        reply = await self.hooks.fire("PreCompact", fields, session_id=self.session_id)
        return reply.word != "deny" and not reply.halt

    async def after(self, summary: str) -> None:
        """Tell that it was done; what SessionStart hooks add to a fresh context is told to the model next."""
        fields = {"trigger": self.trigger, "compact_summary": summary}
        await self.hooks.fire("PostCompact", fields, session_id=self.session_id)
        began = await self.hooks.fire("SessionStart", {"source": "compact"}, session_id=self.session_id)
        self.hooks.tell_later(self.session_id, began.context)
