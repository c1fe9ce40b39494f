"""Parses the replies of shell hooks, merges them and applies them to outcomes.

exit 0      JSON on stdout counts; plain text is context where the event takes it
exit 2      block; stderr is the reason and stdout is ignored; shown to the user where nothing can be blocked
other       an error: reported, and the action continues unless the hook has `onError: "block"`; an allow is ignored
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from callwright.core.calls import Completed, Failed
from callwright.core.content import Output, Text
from callwright.core.errors import Denied, Halted
from callwright.core.json import JsonObject
from callwright.hooks.shell.config import EVENTS, ShellHook
from callwright.hooks.shell.process import HookRun

ReplyDecision: TypeAlias = Literal["", "allow", "ask", "deny"]
_DECISIONS: Mapping[str, ReplyDecision] = {
    "allow": "allow",
    "approve": "allow",
    "accept": "allow",
    "ask": "ask",
    "defer": "ask",
    "deny": "deny",
    "block": "deny",
    "decline": "deny",
    "cancel": "deny",
}
_STRICTEST_FIRST: tuple[ReplyDecision, ...] = ("deny", "ask", "allow")
_TEXT_CHARS = 10_000
_BLOCK = 2


@dataclass(frozen=True, slots=True)
class HookReply:
    """The reply of one hook, or the merged reply of several."""

    decision: ReplyDecision = ""
    reason: str = ""
    arguments: JsonObject | None = None
    """Other arguments for the call, or the content of a form."""
    context: str = ""
    """Text for the model."""
    message: str = ""
    """Text for the user."""
    halt: str = ""
    """The reason to end the run; empty to continue."""
    output: str | None = None
    """Text that replaces the tool's output."""
    error: str = ""
    """What went wrong with the hook itself."""


def read_reply(hook: ShellHook, run: HookRun) -> HookReply:
    """Turn the result of a hook's process into a reply. An output that cannot be parsed is an error, not a decision."""
    if run.problem:
        return _failure_reply(hook, run.problem)
    if run.exit_code == _BLOCK:
        return _deny_reply(hook, _shorten(run.stderr) or f"{hook} blocked this without a reason")
    written, fault = _parse_stdout(run.stdout)
    reply, unknown = (HookReply(), "") if written is None else _parse_reply(hook, written)
    if run.exit_code:
        line = next(iter(run.stderr.splitlines()), "")
        fault = f"ended with exit code {run.exit_code}{': ' + line if line else ''}"
    fault = fault or unknown
    if fault:
        # a failing hook may still restrict; its allow and its rewrite are not to be trusted
        strict = (reply.halt or reply.decision in ("deny", "ask")) and not hook.blocks_on_error
        return replace(reply, arguments=None, error=f"{hook} {fault}") if strict else _failure_reply(hook, fault)
    if written is None and EVENTS[hook.event].text_is_context:
        return HookReply(context=_shorten(run.stdout))
    return reply


def merge_replies(replies: Sequence[HookReply]) -> HookReply:
    """Merge replies: deny beats ask beats allow, the last rewrite counts."""
    found: list[ReplyDecision] = [
        decision for decision in _STRICTEST_FIRST if any(reply.decision == decision for reply in replies)
    ]
    decision: ReplyDecision = found[0] if found else ""
    return HookReply(
        decision,
        "; ".join(reply.reason for reply in replies if reply.decision == decision and reply.reason),
        next((reply.arguments for reply in reversed(replies) if reply.arguments is not None), None),
        "\n".join(reply.context for reply in replies if reply.context),
        halt=next((reply.halt for reply in replies if reply.halt), ""),
        output=next((reply.output for reply in reversed(replies) if reply.output is not None), None),
        error="; ".join(reply.error for reply in replies if reply.error),
    )


def _deny_reply(hook: ShellHook, reason: str) -> HookReply:
    return HookReply("deny", reason) if EVENTS[hook.event].blocks else HookReply(message=f"{hook}: {reason}")


def _failure_reply(hook: ShellHook, fault: str) -> HookReply:
    error = f"{hook} {fault}"
    if hook.blocks_on_error and EVENTS[hook.event].blocks:
        return HookReply("deny", f'{error}, and its onError is "block"', error=error)
    return HookReply(error=error)


def _parse_stdout(stdout: str) -> tuple[Mapping[str, Any] | None, str]:
    if not stdout.startswith("{"):
        return None, ""
    try:
        return cast("dict[str, Any]", json.loads(stdout)), ""
    except ValueError as error:
        return None, f"wrote invalid JSON: {error}"


def _parse_reply(hook: ShellHook, written: Mapping[str, Any]) -> tuple[HookReply, str]:
    """Read the JSON of a hook; the second value is a problem in it."""
    own = _object(written.get("hookSpecificOutput"))
    asked = _object(own.get("decision"))  # of a PermissionRequest
    decision = str(
        own.get("permissionDecision") or asked.get("behavior") or own.get("action") or written.get("decision") or ""
    )
    reason = own.get("permissionDecisionReason") or asked.get("message") or written.get("reason") or ""
    given = own.get("updatedInput") or asked.get("updatedInput") or own.get("content")
    output = own.get("updatedToolOutput", own.get("updatedMCPToolOutput"))
    halting = written.get("continue") is False or asked.get("interrupt") is True
    retry = "the call may be retried" if own.get("retry") is True else ""
    reply = HookReply(
        _DECISIONS.get(decision, ""),
        _shorten(reason),
        cast("JsonObject", given) if isinstance(given, dict) else None,
        _shorten(own.get("additionalContext") or retry),
        _shorten(written.get("systemMessage") or ""),
        _shorten(written.get("stopReason") or asked.get("message") or f"{hook} ended the run") if halting else "",
        output if isinstance(output, str) or output is None else json.dumps(output, ensure_ascii=False),
    )
    return (
        reply,
        f"gave the unknown decision {decision!r}; use allow, ask or deny"
        if decision and decision not in _DECISIONS
        else "",
    )


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _shorten(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _TEXT_CHARS else f"{shown[:_TEXT_CHARS]}… ({len(shown)} characters in all)"


def apply_reply(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """Return the outcome with the hooks' changes. Notes are marked `[hook]`, to tell them from the tool's output."""
    started = isinstance(outcome, Completed) or outcome.started
    if reply.halt:
        return Failed(outcome.call, Halted(reply.halt), started, outcome.seconds, outcome.attempts)
    if reply.error and reply.decision == "deny":  # a hook that must see the outcome could not
        withheld = Denied(f"the outcome is withheld: {reply.error}")
        return Failed(outcome.call, withheld, started, outcome.seconds, outcome.attempts)
    notes = [text for text in (reply.reason if reply.decision == "deny" else "", reply.context) if text]
    if isinstance(outcome, Failed):
        return _add_notes_to_failure(outcome, notes)
    if reply.output is not None:
        outcome = replace(outcome, output=Output(reply.output))
    return replace(outcome, output=_add_notes(outcome.output, notes)) if notes else outcome


def _add_notes_to_failure(outcome: Failed, notes: Sequence[str]) -> Failed:
    outcome.error.message = "\n".join((outcome.error.message, *(f"[hook] {note}" for note in notes)))
    return outcome


def _add_notes(output: Output, notes: Sequence[str]) -> Output:
    written = "\n".join(f"[hook] {note}" for note in notes)
    if isinstance(output.content, str):
        return replace(output, content=f"{output.content}\n{written}")
    return replace(output, content=(*output.content, Text(written)))
