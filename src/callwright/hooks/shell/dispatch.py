"""Runs the shell hooks of an event in parallel, each command once, and merges their replies."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from callwright.hooks.base import PendingCall
from callwright.hooks.shell.config import EVENTS, ShellHook
from callwright.hooks.shell.process import HookRun, run_shell_hook
from callwright.hooks.shell.remote import AskModel, CallBack, run_remote_hook
from callwright.hooks.shell.reply import HookReply, merge_replies, read_reply

_CLOSE_SECONDS = 1.5


class TranscriptWriter(Protocol):
    """Writes a session's transcript as JSON lines."""

    async def __call__(self, session_id: str, *, whole: bool) -> str:
        """Return the file, or an empty text if there is none. It may miss recent records unless `whole`."""
        ...


async def _no_transcript(session_id: str, *, whole: bool) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class HookContext:
    """Where hooks run, and what their payload says about it."""

    project: str
    cwd: str = ""
    """The folder commands start in. It never changes: a call that changes folders must not choose which script runs."""
    mode: Callable[[], str] = lambda: "default"
    report: Callable[[str], None] = lambda text: None
    """Called with messages for the user: errors of hooks, and messages from hooks."""
    applies: Callable[[str, PendingCall], bool] = lambda condition, pending: True
    """Whether a condition, the text of a permission rule, matches a call. In doubt it does, because hooks guard."""
    folder: Callable[[], str] = str
    """The current folder of the session's shell; empty for the working folder."""
    transcript: TranscriptWriter = _no_transcript
    passed: tuple[str, ...] = ()
    """Environment variables that hooks get although they look like credentials; `*` stands for any characters."""
    call_back: CallBack | None = None
    """Runs a hook that the driving program registered, and returns its reply."""
    ask_model: AskModel | None = None
    """Asks a model, for hooks that are a prompt."""
    trace: Callable[[ShellHook, HookRun | None], None] = lambda hook, run: None
    """Called when a hook starts, with None, and when it has ended."""


class HookDispatcher:
    """Runs the hooks of an event and merges their replies."""

    def __init__(self, hooks: Iterable[ShellHook], context: HookContext | None = None) -> None:
        self.hooks = tuple(dict.fromkeys(hooks))
        self.context = context or HookContext(os.getcwd())  # noqa: PTH109 - passed to commands as text
        self._running: set[asyncio.Task[None]] = set()
        self._kept: dict[str, list[str]] = {}
        self._objections: dict[str, list[str]] = {}

    def has_hooks_for(self, *events: str) -> bool:
        """Whether there is a hook for any of these events."""
        return any(hook.event in events for hook in self.hooks)

    async def fire(
        self, event: str, fields: Mapping[str, object], *, pending: PendingCall | None = None, session_id: str = ""
    ) -> HookReply:
        """Run an event's hooks and merge their replies: deny beats ask beats allow, the last rewrite counts."""
        due = self.hooks_for(event, fields, pending)
        if not due:
            return HookReply()
        payload = await self._build_payload(event, fields, session_id)
        for hook in due:
            if hook.background:
                self._start_background(hook, payload, session_id)
        replies = await asyncio.gather(*(self._run_hook(hook, payload) for hook in due if not hook.background))
        for reply in replies:
            self._report(reply)
        return merge_replies(replies)

    def hooks_for(
        self, event: str, fields: Mapping[str, object], pending: PendingCall | None = None
    ) -> Sequence[ShellHook]:
        """Return the hooks that run at an event."""
        return _drop_duplicates(
            hook for hook in self.hooks if hook.event == event and self._concerns(hook, fields, pending)
        )

    def keep_context(self, session_id: str, context: str) -> None:
        """Keep context for the model until the next prompt of the session."""
        if context:
            self._kept.setdefault(session_id, []).append(context)

    def take_context(self, session_id: str) -> str:
        """Return and forget the context kept for a session."""
        return "\n".join(self._kept.pop(session_id, ()))

    def take_objections(self, session_id: str) -> str:
        """Return and forget what background hooks with `asyncRewake` object to in a session."""
        return "\n".join(self._objections.pop(session_id, ()))

    async def aclose(self, *, seconds: float = _CLOSE_SECONDS) -> None:
        """Wait a moment for background hooks, then cancel them."""
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
            return hook.matches(names) and (not hook.condition or self.context.applies(hook.condition, pending))
        if hook.condition and not kind.guards:  # a permission rule matches calls only, as `_find_faults` has reported
            return False
        # for a sub-agent: its own name, or the tool that runs it
        names = [str(fields[name]) for name in (kind.matcher_field, "tool_name") if name in fields]
        return not kind.matcher_field or hook.matches(names or [""])

    async def _build_payload(self, event: str, fields: Mapping[str, object], session_id: str) -> Mapping[str, object]:
        context = self.context
        transcript = await context.transcript(session_id, whole=not EVENTS[event].tool)
        return {
            "session_id": session_id,
            **({"transcript_path": transcript} if transcript else {}),
            "cwd": context.folder() or context.cwd or context.project,
            "permission_mode": context.mode(),
            "hook_event_name": event,
            **fields,
        }

    async def _run_hook(self, hook: ShellHook, payload: Mapping[str, object]) -> HookReply:
        context = self.context
        if hook.broken:
            return read_reply(hook, HookRun(problem=f"cannot be run: {hook.broken}"))
        context.trace(hook, None)
        ran = await self._run_kind(hook, payload)
        context.trace(hook, ran)
        return read_reply(hook, ran)

    async def _run_kind(self, hook: ShellHook, payload: Mapping[str, object]) -> HookRun:
        context = self.context
        if hook.kind != "command":
            return await run_remote_hook(hook, payload, call_back=context.call_back, ask_model=context.ask_model)
        cwd, project = context.cwd or context.project, context.project
        return await run_shell_hook(hook, payload, cwd=cwd, project=project, passed=context.passed)

    def _start_background(self, hook: ShellHook, payload: Mapping[str, object], session_id: str) -> None:
        async def run() -> None:
            reply = await self._run_hook(hook, payload)
            self._report(reply)
            # what a background hook objects to has happened; with asyncRewake the model is told of it
            objection = reply.reason if hook.rewake and reply.decision == "deny" else ""
            self.keep_context(session_id, reply.context)
            if objection:
                self._objections.setdefault(session_id, []).append(objection)

        task = asyncio.create_task(run())
        self._running.add(task)  # asyncio keeps only weak references to tasks
        task.add_done_callback(self._running.discard)

    def _report(self, reply: HookReply) -> None:
        for line in (reply.error, reply.message):
            if line:
                self.context.report(line)


def _drop_duplicates(hooks: Iterable[ShellHook]) -> Sequence[ShellHook]:
    """Keep each command once; of two, the one that blocks on errors or has more time."""
    found: dict[tuple[object, ...], ShellHook] = {}
    for hook in hooks:
        what = (hook.kind, hook.command, hook.arguments, hook.shell, hook.headers, hook.environment, hook.model)
        key = (*what, hook.background, hook.rewake, hook.broken)
        known = found.setdefault(key, hook)
        if (hook.stops_on_error, hook.seconds) > (known.stops_on_error, known.seconds):
            found[key] = hook
    return tuple(found.values())
