"""Parses the replies of shell hooks, merges them and applies them to outcomes.

exit 0      one JSON object on stdout counts; plain text is context where the event takes it
exit 2      block; stderr is the reason and stdout is ignored; shown to the user where nothing can be blocked
other       an error: reported; stops the action if the event comes before one or the hook has `onError: "block"`

Output that may hold a decision and cannot be read is an error like any other. The strictest of the decisions in one
reply counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, cast

from callwright.core.calls import Completed, Failed
from callwright.core.content import Output
from callwright.core.errors import Denied, Halted
from callwright.core.json import DuplicateKey, JsonObject, parse_strictly, read_object
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
_KNOWN_KEYS: Mapping[str, frozenset[str]] = {
    "the reply": frozenset(
        {"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"}
    ),
    "hookSpecificOutput": frozenset(
        {
            *("hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"),
            *("decision", "action", "content", "updatedToolOutput", "updatedMCPToolOutput", "retry"),
        }
    ),
    "decision": frozenset({"behavior", "message", "interrupt", "updatedInput", "updatedPermissions"}),
}
_REFUSING_KEYS = frozenset(
    {"block", "blocked", "deny", "denied", "reject", "rejected", "refuse", "refused", "error", "forbidden", "abort"}
)
_ALLOWING_KEYS = frozenset({"ok", "allow", "allowed", "approve", "approved", "success", "permitted"})
_DECISION_KEYS = ("permissionDecision", "decision", "behavior", "action", "continue", "hookSpecificOutput")
# plain text without any of these is taken for a log line
_MAY_DECIDE = re.compile(
    r"[{}]|decision|continue|\b(den(y|ied)|block(ed)?|ask|declined?|cancel(led)?|refused?|reject(ed)?|forbid(den)?|"
    r"not (allowed|permitted))\b",
    re.IGNORECASE,
)
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
    """Turn the result of a hook's process into a reply. Output that cannot be read is an error, never an allow."""
    if run.problem:
        return _failure_reply(hook, run.problem)
    if run.exit_code == _BLOCK:
        return _deny_reply(hook, _shorten(run.stderr) or f"{hook} blocked this without a reason")
    kind = EVENTS[hook.event]
    written, fault = _parse_stdout(run.stdout, takes_text=kind.text_is_context or not kind.guards)
    reply, unknown = (HookReply(), "") if written is None else _parse_reply(hook, written)
    if run.exit_code:
        line = next(iter(run.stderr.splitlines()), "")
        fault = f"ended with exit code {run.exit_code}{': ' + line if line else ''}"
    if run.cut and kind.blocks:
        fault = "wrote more than is read of its output"
    fault = fault or unknown
    if fault:
        failed = _failure_reply(hook, fault, unreadable=not run.exit_code)
        # a failing hook may still restrict; its allow and its rewrite are not to be trusted
        if failed.decision == "deny":
            return replace(failed, halt=reply.halt)
        strict = reply.halt or reply.decision in ("deny", "ask")
        return replace(reply, arguments=None, output=None, error=f"{hook} {fault}") if strict else failed
    if written is None and kind.text_is_context:
        return HookReply(context=_shorten(run.stdout))
    return reply


def merge_replies(replies: Sequence[HookReply]) -> HookReply:
    """Merge replies: deny beats ask beats allow, the last rewrite counts.

    An allow counts for the arguments that its hook saw or gave, not for those of another hook.
    """
    found: list[ReplyDecision] = [
        decision for decision in _STRICTEST_FIRST if any(reply.decision == decision for reply in replies)
    ]
    decision: ReplyDecision = found[0] if found else ""
    rewrite = next((reply for reply in reversed(replies) if reply.arguments is not None), None)
    if decision == "allow" and rewrite is not None and rewrite.decision != "allow":
        decision = ""
    return HookReply(
        decision,
        "; ".join(reply.reason for reply in replies if reply.decision == decision and reply.reason),
        None if rewrite is None else rewrite.arguments,
        "\n".join(reply.context for reply in replies if reply.context),
        halt=next((reply.halt for reply in replies if reply.halt), ""),
        output=next((reply.output for reply in reversed(replies) if reply.output is not None), None),
        error="; ".join(reply.error for reply in replies if reply.error),
    )


def _deny_reply(hook: ShellHook, reason: str) -> HookReply:
    return HookReply("deny", reason) if EVENTS[hook.event].blocks else HookReply(message=f"{hook}: {reason}")


def _failure_reply(hook: ShellHook, fault: str, *, unreadable: bool = False) -> HookReply:
    error = f"{hook} {fault}"
    kind = EVENTS[hook.event]
    # a reply about an outcome that cannot be read may have been meant to hide something in it
    withholds = unreadable and kind.tool and kind.blocks and hook.blocks_on_error is not False
    if hook.stops_on_error or withholds:
        explicit = ', and its onError is "block"' if hook.blocks_on_error else ""
        return HookReply("deny", f"{error}{explicit}", error=error)
    return HookReply(error=error)


def _parse_stdout(stdout: str, *, takes_text: bool) -> tuple[Mapping[str, Any] | None, str]:
    """Return the object a hook wrote, or what is wrong with its output; neither for a plain text."""
    text = stdout.removeprefix("\ufeff").strip()
    if not text:
        return None, ""
    try:
        written = parse_strictly(text)
    except DuplicateKey as error:
        return None, f"wrote JSON with the key {error.key!r} twice"
    except RecursionError:
        return None, "wrote JSON that is nested too deeply"
    except ValueError as error:
        if text.startswith("{") or (not takes_text and _MAY_DECIDE.search(text)) or _holds_object(text):
            return None, f"wrote output that is not one JSON object: {error}"
        return None, ""
    if isinstance(written, dict):
        return cast("dict[str, Any]", written), ""
    if takes_text and not _holds_object(text):  # a number or a quoted text as context
        return None, ""
    return None, f"wrote {text[:40]!r}, which is not a JSON object"


def _holds_object(text: str) -> bool:
    """Whether there are the keys of a reply somewhere in a text."""
    return any(f'"{key}"' in text or f"'{key}'" in text for key in _DECISION_KEYS)


def _parse_reply(hook: ShellHook, written: Mapping[str, Any]) -> tuple[HookReply, str]:
    """Read the JSON of a hook; the second value is a problem in it."""
    own = read_object(written.get("hookSpecificOutput"))
    asked = read_object(own.get("decision"))  # of a PermissionRequest
    words = [word for word in _decision_words(written, own, asked) if word is not None and word != ""]
    decisions = {_DECISIONS.get(word, "") for word in words if isinstance(word, str)}
    strictest: list[ReplyDecision] = [one for one in _STRICTEST_FIRST if one in decisions]
    reason = own.get("permissionDecisionReason") or asked.get("message") or written.get("reason") or ""
    given = next((one for one in _given_arguments(own, asked) if one is not None), None)
    output = own.get("updatedToolOutput", own.get("updatedMCPToolOutput"))
    halting = written.get("continue") is False or asked.get("interrupt") is True
    retry = "the call may be retried" if own.get("retry") is True else ""
    reply = HookReply(
        strictest[0] if strictest else "",
        _shorten(reason),
        cast("JsonObject", given) if isinstance(given, dict) else None,
        _shorten(own.get("additionalContext") or retry),
        _shorten(written.get("systemMessage") or ""),
        _shorten(written.get("stopReason") or asked.get("message") or f"{hook} ended the run") if halting else "",
        output if isinstance(output, str) or output is None else json.dumps(output, ensure_ascii=False),
    )
    named = own.get("hookEventName")
    if words and named is not None and named != hook.event:  # perhaps about something else that happened
        return reply, f"gave a decision about {named!r:.80}, not about {hook.event}"
    return reply, _find_reply_fault(written, own, asked, words)


def _decision_words(written: Mapping[str, Any], own: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[object, ...]:
    nested = own.get("decision")
    return (
        own.get("permissionDecision"),
        asked.get("behavior"),
        own.get("action"),
        None if isinstance(nested, dict) else nested,
        written.get("decision"),
    )


def _given_arguments(own: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[object, ...]:
    return own.get("updatedInput"), asked.get("updatedInput"), own.get("content")


def _find_reply_fault(
    written: Mapping[str, Any], own: Mapping[str, Any], asked: Mapping[str, Any], words: Sequence[object]
) -> str:
    for word in words:
        if not isinstance(word, str) or word not in _DECISIONS:
            return f"gave the unknown decision {word!r:.80}; use allow, ask or deny"
    if not isinstance(written.get("hookSpecificOutput") or {}, dict):
        return "gave a hookSpecificOutput that is not an object"
    for name, value in (("continue", written.get("continue")), ("interrupt", asked.get("interrupt"))):
        if value is not None and not isinstance(value, bool):
            return f"gave {name} as {value!r:.80}; use true or false"
    if written.get("stopReason") and written.get("continue") is None:
        return "gave a stopReason without continue; write continue: false to end the run"
    for value in _given_arguments(own, asked):
        if value is not None and not isinstance(value, dict):
            return f"gave arguments that are not an object: {value!r:.80}"
    parts = zip(_KNOWN_KEYS.items(), (written, own, asked), strict=True)
    return next((fault for (where, known), part in parts if (fault := _find_unknown_key(where, known, part))), "")


def _find_unknown_key(where: str, known: frozenset[str], part: Mapping[str, Any]) -> str:
    """Report an unknown key that may hold a decision; others are left to newer versions of the format."""
    for key, value in part.items():
        misspelt = get_close_matches(key.casefold(), [name.casefold() for name in _DECISION_KEYS], n=1, cutoff=0.75)
        decides = isinstance(value, str) and value.strip().casefold() in _DECISIONS
        folded = key.casefold()
        refuses = (folded in _REFUSING_KEYS and value) or (folded in _ALLOWING_KEYS and not value)
        misplaced = any(key in names for names in _KNOWN_KEYS.values())  # such as updatedInput beside, not inside
        if key not in known and (misspelt or decides or refuses or misplaced):
            return f"gave {key!r} in {where}, which may be a decision and is not known"
    return ""


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
    given = (reply.reason if reply.decision == "deny" else "", reply.context)
    note = "\n".join(f"[hook] {text}" for text in given if text)
    if isinstance(outcome, Failed):
        error = outcome.error
        return replace(outcome, error=error.with_message(f"{error.message}\n{note}")) if note else outcome
    if reply.output is not None:
        outcome = replace(outcome, output=Output(reply.output))
    return replace(outcome, output=outcome.output.with_note(note)) if note else outcome
