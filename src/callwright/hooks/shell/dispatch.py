"""Runs the shell hooks of an event: those it concerns, each command once, all side by side."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from callwright.hooks.base import PendingCall
from callwright.hooks.shell.config import EVENTS, ShellHook
from callwright.hooks.shell.process import run_shell_hook
from callwright.hooks.shell.reply import HookReply, merged, read_reply

_LEAVING_SECONDS = 1.5


def _ignore(_: str) -> None:
    return None


def _always(_: str, __: PendingCall) -> bool:
    return True


class Transcript(Protocol):
    """Writes a session down as JSON lines."""

    async def __call__(self, session_id: str, *, whole: bool) -> str:
        """Name the file; empty where there is none. It may lag behind unless `whole`."""
        ...


async def _nowhere(session_id: str, *, whole: bool) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where hooks run and what they are told about it."""

    project: str
    cwd: str = ""
    """Where commands are started, always: a call that changes folders must not choose which script is run."""
    mode: Callable[[], str] = lambda: "default"
    report: Callable[[str], None] = _ignore
    """Told what a person should know: errors of hooks, and what hooks have to say to people."""
    applies: Callable[[str, PendingCall], bool] = _always
    """Whether a condition, a permission rule's text, is about a call; in doubt it is, because hooks guard."""
    folder: Callable[[], str] = str
    """Where the conversation's shell is now; empty for the working folder."""
    transcript: Transcript = _nowhere


class Firing:
    """Runs the hooks of an event and makes one reply of theirs."""

    def __init__(self, hooks: Iterable[ShellHook], setting: Setting | None = None) -> None:
        self.hooks = tuple(dict.fromkeys(hooks))
        self.setting = setting or Setting(os.getcwd())  # noqa: PTH109 - told to commands as text
        self._running: set[asyncio.Task[None]] = set()
        self._late: dict[str, list[str]] = {}

    def listens(self, *events: str) -> bool:
        """Whether any hook waits for one of these events."""
        return any(hook.event in events for hook in self.hooks)

    async def fire(
        self, event: str, fields: Mapping[str, object], *, pending: PendingCall | None = None, session_id: str = ""
    ) -> HookReply:
        """Run an event's hooks and merge what they say: deny beats ask beats allow, the last rewrite counts."""
        due = self.due(event, fields, pending)
        if not due:
            return HookReply()
        payload = await self._told(event, fields, session_id)
        for hook in due:
            if hook.background:
                self._start(hook, payload, session_id)
        replies = await asyncio.gather(*(self._one(hook, payload) for hook in due if not hook.background))
        for reply in replies:
            self._report(reply)
        return merged(replies)

    def due(self, event: str, fields: Mapping[str, object], pending: PendingCall | None = None) -> Sequence[ShellHook]:
        """The hooks that would be run at an event."""
        return _distinct(hook for hook in self.hooks if hook.event == event and self._concerns(hook, fields, pending))

    def tell_later(self, session_id: str, context: str) -> None:
        """Keep something for the model until somebody says something to it."""
        if context:
            self._late.setdefault(session_id, []).append(context)

    def late_context(self, session_id: str) -> str:
        """Take what was kept for the model since this was last asked."""
        return "\n".join(self._late.pop(session_id, ()))

    async def aclose(self, *, seconds: float = _LEAVING_SECONDS) -> None:
        """Give hooks nobody waited for a moment to end, then end them."""
        if not self._running:
            return
        _, left = await asyncio.wait(tuple(self._running), timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _concerns(self, hook: ShellHook, fields: Mapping[str, object], pending: PendingCall | None) -> bool:
        kind = EVENTS[hook.event]
        if kind.tool and pending is not None:
            names = (pending.spec.name, *pending.spec.aliases)
            return hook.matches(names) and (not hook.condition or self.setting.applies(hook.condition, pending))
        if hook.condition:
            return False
        return not kind.matched or hook.matches((str(fields.get(kind.matched, "")),))

    async def _told(self, event: str, fields: Mapping[str, object], session_id: str) -> Mapping[str, object]:
        setting = self.setting
        written = await setting.transcript(session_id, whole=not EVENTS[event].tool)
        return {
            "session_id": session_id,
            **({"transcript_path": written} if written else {}),
            "cwd": setting.folder() or setting.cwd or setting.project,
            "permission_mode": setting.mode(),
            "hook_event_name": event,
            **fields,
        }

    async def _one(self, hook: ShellHook, payload: Mapping[str, object]) -> HookReply:
        setting = self.setting
        ran = await run_shell_hook(hook, payload, cwd=setting.cwd or setting.project, project=setting.project)
        return read_reply(hook, ran)

    def _start(self, hook: ShellHook, payload: Mapping[str, object], session_id: str) -> None:
        async def run() -> None:
            reply = await self._one(hook, payload)
            self._report(reply)
            self.tell_later(session_id, reply.context)

        task = asyncio.create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _report(self, reply: HookReply) -> None:
        for line in (reply.error, reply.message):
            if line:
                self.setting.report(line)


def _distinct(hooks: Iterable[ShellHook]) -> Sequence[ShellHook]:
    """Each command once, wherever it is written; of two the one that is harder to get past, by failure or by time."""
    found: dict[tuple[str, bool], ShellHook] = {}
    for hook in hooks:
        known = found.setdefault((hook.command, hook.background), hook)
        if (hook.blocks_on_error, hook.seconds) > (known.blocks_on_error, known.seconds):
            found[hook.command, hook.background] = hook
    return tuple(found.values())
