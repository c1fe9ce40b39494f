"""`ShellHooks`: commands from settings that are run at events and may change, stop or answer for calls."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolwright.core.access import Ask
from toolwright.core.call import Completed, Failed, Interrupted, Outcome, digest_of
from toolwright.core.content import Output, Text
from toolwright.core.errors import Denied, Halted
from toolwright.core.json import JsonObject
from toolwright.core.spec import ToolSpec
from toolwright.hooks.base import Halt, Hook, PendingCall, Refuse, Rewrite, Verdict
from toolwright.hooks.shell_config import ShellHook
from toolwright.hooks.shell_reply import HookReply, Word, read_reply
from toolwright.hooks.shell_run import run_shell_hook

_STRICTEST: tuple[Word, ...] = ("deny", "ask", "allow")
_SPARE_SECONDS = 5.0


def _ignore(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Setting:
    """Where hooks run and what they are told about it."""

    project: str
    cwd: str = ""
    mode: Callable[[], str] = lambda: "default"
    report: Callable[[str], None] = _ignore
    """Told what a person should know: errors of hooks, and what hooks have to say to people."""


class ShellHooks:
    """Runs the hooks of an event side by side and makes one reply of theirs."""

    def __init__(self, hooks: Iterable[ShellHook], setting: Setting | None = None) -> None:
        self.hooks = tuple(dict.fromkeys(hooks))
        self.setting = setting or Setting(os.getcwd())  # noqa: PTH109 - told to commands as text
        self.allowed: set[str] = set()
        """Digests of calls a hook allowed, which spares them the mode's question but no rule's."""
        self._heard: dict[tuple[str, str, str], tuple[str, HookReply]] = {}
        """What was said about calls under way: one that is admitted again after an answer is not asked about again."""

    def listens(self, event: str) -> bool:
        """Whether any hook waits for an event."""
        return any(hook.event == event for hook in self.hooks)

    def call_hooks(self) -> tuple[Hook, ...]:
        """What an executor is given; two, because a call can be rewritten and asked about at once."""
        if not any(hook.event in ("PreToolUse", "PostToolUse", "PostToolUseFailure") for hook in self.hooks):
            return ()
        seconds = max(hook.seconds for hook in self.hooks) + _SPARE_SECONDS
        return _Rewriting(self, seconds), _Deciding(self, seconds)

    async def fire(
        self, event: str, fields: Mapping[str, object], *, names: Sequence[str] = (), session_id: str = ""
    ) -> HookReply:
        """Run an event's hooks and merge what they say: deny beats ask beats allow, the last rewrite counts."""
        due = [hook for hook in self.hooks if hook.event == event and (not names or hook.matches(names))]
        if not due:
            return HookReply()
        setting = self.setting
        payload = {
            "session_id": session_id,
            "transcript_path": "",
            "cwd": setting.cwd or setting.project,
            "permission_mode": setting.mode(),
            "hook_event_name": event,
            **fields,
        }
        replies = await asyncio.gather(*(self._one(hook, payload) for hook in due))
        for reply in replies:
            for line in (reply.error, reply.message):
                if line:
                    setting.report(line)
        return _merged(replies)

    async def _one(self, hook: ShellHook, payload: Mapping[str, object]) -> HookReply:
        setting = self.setting
        ran = await run_shell_hook(hook, payload, cwd=setting.cwd or setting.project, project=setting.project)
        return read_reply(hook, ran)

    async def before(self, pending: PendingCall) -> Verdict | None:
        """Ask the PreToolUse hooks about a call."""
        shown = _shown(pending.spec, pending.arguments, self.setting)
        key, mark = _key(pending), _mark(pending)
        if self._heard.get(key, ("", None))[0] != mark:
            self._heard[key] = mark, await self._asked(pending, shown)
        reply = self._heard[key][1]
        if reply.halt:
            return Halt(reply.halt)
        if reply.word == "deny":
            return Refuse(reply.reason or "a hook said no")
        return None if reply.arguments is None else Rewrite(shown.ours(reply.arguments))

    async def _asked(self, pending: PendingCall, shown: "_Shown") -> HookReply:
        fields = {"tool_name": shown.name, "tool_input": shown.arguments, "tool_use_id": pending.call.id}
        return await self.fire("PreToolUse", fields, names=_names(pending.spec), session_id=pending.session_id)

    def decide(self, pending: PendingCall) -> Verdict | None:
        """Pass on what the hooks said about the call as it is now."""
        _, reply = self._heard.get(_key(pending), ("", HookReply()))
        mark = _mark(pending)
        self.allowed.discard(mark)
        if reply.word == "allow":
            self.allowed.add(mark)
        return Ask(reply.reason or "a hook wants a person to decide", "hook") if reply.word == "ask" else None

    async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        """Let the PostToolUse hooks see what came of a call; they may add to it or replace it."""
        self._heard.pop(_key(pending), None)
        self.allowed.discard(_mark(pending))
        if isinstance(outcome, Interrupted) or (isinstance(outcome, Failed) and not outcome.started):
            return None
        worked = isinstance(outcome, Completed)
        shown = _shown(pending.spec, pending.arguments, self.setting)
        fields = {
            "tool_name": shown.name,
            "tool_input": shown.arguments,
            "tool_use_id": pending.call.id,
            "duration_ms": round(outcome.seconds * 1000),
            **({"tool_response": outcome.text} if worked else {"error": outcome.text}),
        }
        event = "PostToolUse" if worked else "PostToolUseFailure"
        reply = await self.fire(event, fields, names=_names(pending.spec), session_id=pending.session_id)
        return _followed(outcome, reply)


class _Rewriting(Hook):
    def __init__(self, hooks: ShellHooks, seconds: float) -> None:
        self.seconds = seconds
        self._hooks = hooks

    async def before(self, pending: PendingCall) -> Verdict | None:
        return await self._hooks.before(pending)

    async def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | None:
        return await self._hooks.after(pending, outcome)


class _Deciding(Hook):
    def __init__(self, hooks: ShellHooks, seconds: float) -> None:
        self.seconds = seconds
        self._hooks = hooks

    def before(self, pending: PendingCall) -> Verdict | None:
        return self._hooks.decide(pending)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A call in the words other agents' hooks know: `Bash`, and `file_path` in full."""

    name: str
    arguments: JsonObject
    added: str = ""

    def ours(self, arguments: JsonObject) -> JsonObject:
        """Arguments a hook gave back, in our words again."""
        given = dict(arguments)
        if self.added and "file_path" in given:
            path = given.pop("file_path")
            if path != self.added:
                given["path"] = path
        return given


def _shown(spec: ToolSpec, arguments: JsonObject, setting: Setting) -> _Shown:
    name = next((alias for alias in spec.aliases if alias[:1].isupper()), spec.name)
    path = arguments.get("path")
    if spec.group != "file" or not isinstance(path, str) or "file_path" in arguments:
        return _Shown(name, arguments)
    added = str(Path(setting.cwd or setting.project, path).expanduser())
    return _Shown(name, {**arguments, "file_path": added}, added)


def _key(pending: PendingCall) -> tuple[str, str, str]:
    return pending.session_id, pending.turn_id, pending.call.id


def _mark(pending: PendingCall) -> str:
    return digest_of(pending.spec.name, pending.arguments, (), session_id=pending.session_id)


def _names(spec: ToolSpec) -> tuple[str, ...]:
    return (spec.name, *spec.aliases)


def _merged(replies: Sequence[HookReply]) -> HookReply:
    found: list[Word] = [word for word in _STRICTEST if any(reply.word == word for reply in replies)]
    word: Word = found[0] if found else ""
    return HookReply(
        word,
        "; ".join(reply.reason for reply in replies if reply.word == word and reply.reason),
        next((reply.arguments for reply in reversed(replies) if reply.arguments is not None), None),
        "\n".join(reply.context for reply in replies if reply.context),
        halt=next((reply.halt for reply in replies if reply.halt), ""),
        output=next((reply.output for reply in reversed(replies) if reply.output is not None), None),
        error="; ".join(reply.error for reply in replies if reply.error),
    )


def _followed(outcome: Completed | Failed, reply: HookReply) -> Outcome | None:
    if reply.halt:
        return Failed(outcome.call, Halted(reply.halt), True, outcome.seconds, outcome.attempts)
    if reply.error and reply.word == "deny":  # it was there to see this, and could not
        withheld = Denied(f"the outcome is withheld: {reply.error}")
        return Failed(outcome.call, withheld, True, outcome.seconds, outcome.attempts)
    notes = [text for text in (reply.reason if reply.word == "deny" else "", reply.context) if text]
    if isinstance(outcome, Failed) or (not notes and reply.output is None):
        return _added_to_failure(outcome, notes) if isinstance(outcome, Failed) and notes else None
    content = outcome.output.content if reply.output is None else reply.output
    return replace(outcome, output=_with_notes(replace(outcome.output, content=content), notes))


def _added_to_failure(outcome: Failed, notes: Sequence[str]) -> Failed:
    outcome.error.message = "\n".join((outcome.error.message, *(f"[hook] {note}" for note in notes)))
    return outcome


def _with_notes(output: Output, notes: Sequence[str]) -> Output:
    if not notes:
        return output
    said = "\n".join(f"[hook] {note}" for note in notes)
    if isinstance(output.content, str):
        return replace(output, content=f"{output.content}\n{said}")
    return replace(output, content=(*output.content, Text(said)))
