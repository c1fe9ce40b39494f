"""What becomes of an outcome when hooks have seen it: notes are added, outputs replaced or withheld, runs ended.

What a shell hook's exit code and output mean: the contract other agents have, read strictly.

exit 0      JSON on stdout counts; plain text is context where the event takes any
exit 2      stop; stderr is the reason, whatever stdout says; shown to the person where nothing can be stopped
other       an error: reported, and the action goes on unless the hook says `onError: "block"`; no yes counts
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
    """What one hook written, or several together."""

    decision: ReplyDecision = ""
    reason: str = ""
    arguments: JsonObject | None = None
    """What the call is to be made with instead, or how a form is to be filled in."""
    context: str = ""
    """Told to the model."""
    message: str = ""
    """Told to the person."""
    halt: str = ""
    """Ends the run, for this reason."""
    output: str | None = None
    """What the model is to read instead of the tool's output."""
    error: str = ""
    """What went wrong with the hook itself."""


def read_reply(hook: ShellHook, run: HookRun) -> HookReply:
    """Understand what a hook did; what cannot be understood is an error, never a decision."""
    if run.problem:
        return _failure_reply(hook, run.problem)
    if run.exit_code == _BLOCK:
        return _deny_reply(hook, _shorten(run.stderr) or f"{hook} written no without a reason")
    written, fault = _parse_stdout(run.stdout)
    reply, unknown = (HookReply(), "") if written is None else _parse_reply(hook, written)
    if run.exit_code:
        line = next(iter(run.stderr.splitlines()), "")
        fault = f"ended with exit code {run.exit_code}{': ' + line if line else ''}"
    fault = fault or unknown
    if fault:
        strict = (reply.halt or reply.decision in ("deny", "ask")) and not hook.blocks_on_error
        return replace(reply, arguments=None, error=f"{hook} {fault}") if strict else _failure_reply(hook, fault)
    if written is None and EVENTS[hook.event].text_is_context:
        return HookReply(context=_shorten(run.stdout))
    return reply


def merge_replies(replies: Sequence[HookReply]) -> HookReply:
    """Make one reply of several: deny beats ask beats allow, the last rewrite counts."""
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
        return HookReply("deny", f"{error}, and it must not be passed over", error=error)
    return HookReply(error=error)


def _parse_stdout(stdout: str) -> tuple[Mapping[str, Any] | None, str]:
    if not stdout.startswith("{"):
        return None, ""
    try:
        return cast("dict[str, Any]", json.loads(stdout)), ""
    except ValueError as error:
        return None, f"wrote something that is not JSON: {error}"


def _parse_reply(hook: ShellHook, written: Mapping[str, Any]) -> tuple[HookReply, str]:
    """Read what a hook wrote; the second value is what is wrong with it."""
    own = _object(written.get("hookSpecificOutput"))
    asked = _object(own.get("decision"))  # of a PermissionRequest
    decision = str(
        own.get("permissionDecision") or asked.get("behavior") or own.get("action") or written.get("decision") or ""
    )
    reason = own.get("permissionDecisionReason") or asked.get("message") or written.get("reason") or ""
    given = own.get("updatedInput") or asked.get("updatedInput") or own.get("content")
    output = own.get("updatedToolOutput", own.get("updatedMCPToolOutput"))
    halting = written.get("continue") is False or asked.get("interrupt") is True
    retry = "it may be tried again" if own.get("retry") is True else ""
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
        f"gave the decision {decision!r}, which nobody knows" if decision and decision not in _DECISIONS else "",
    )


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _shorten(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _TEXT_CHARS else f"{shown[:_TEXT_CHARS]}… ({len(shown)} characters in all)"


def apply_reply(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """The outcome as the hooks want it; their notes are marked, so that nobody takes them for the tool's words."""
    started = isinstance(outcome, Completed) or outcome.started
    if reply.halt:
        return Failed(outcome.call, Halted(reply.halt), started, outcome.seconds, outcome.attempts)
    if reply.error and reply.decision == "deny":  # it was there to see this, and could not
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
