"""What a shell hook's exit code and output mean: the contract other agents have, read strictly.

exit 0      JSON on stdout counts; plain text is context where the event takes any
exit 2      stop; stderr is the reason, whatever stdout says
other       an error: reported, and the action goes on unless the hook says `onError: "block"`
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from toolwright.core.json import JsonObject
from toolwright.hooks.shell_config import ShellHook
from toolwright.hooks.shell_run import Ran

Word: TypeAlias = Literal["", "allow", "ask", "deny"]
_WORDS: Mapping[str, Word] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "defer": "ask",
    "deny": "deny",
    "block": "deny",
}
_TEXT_IS_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit"})
_MOST_CHARS = 10_000
_BLOCK = 2


@dataclass(frozen=True, slots=True)
class HookReply:
    """What one hook said."""

    word: Word = ""
    reason: str = ""
    arguments: JsonObject | None = None
    """What the call is to be made with instead."""
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


def read_reply(hook: ShellHook, ran: Ran) -> HookReply:
    """Understand what a hook did; what cannot be understood is an error, never a decision."""
    if ran.problem:
        return _failed(hook, ran.problem)
    if ran.exit_code == _BLOCK:
        return HookReply("deny", _short(ran.stderr) or f"{hook} said no without a reason")
    said, fault = _said(ran.stdout)
    if ran.exit_code:
        line = next(iter(ran.stderr.splitlines()), "")
        fault = f"ended with exit code {ran.exit_code}{': ' + line if line else ''}"
    reply = HookReply() if said is None else _understood(hook, said)
    if fault and not reply.word:
        return _failed(hook, fault)
    if said is None and hook.event in _TEXT_IS_CONTEXT:
        return HookReply(context=_short(ran.stdout))
    return reply


def _failed(hook: ShellHook, fault: str) -> HookReply:
    error = f"{hook} {fault}"
    return (
        HookReply("deny", f"{error}, and it must not be passed over", error=error)
        if hook.blocks_on_error
        else (HookReply(error=error))
    )


def _said(stdout: str) -> tuple[Mapping[str, Any] | None, str]:
    if not stdout.startswith("{"):
        return None, ""
    try:
        return cast("dict[str, Any]", json.loads(stdout)), ""
    except ValueError as error:
        return None, f"wrote something that is not JSON: {error}"


def _understood(hook: ShellHook, said: Mapping[str, Any]) -> HookReply:
    special: object = said.get("hookSpecificOutput")
    own = cast("dict[str, Any]", special) if isinstance(special, dict) else dict[str, Any]()
    word = str(own.get("permissionDecision") or said.get("decision") or "")
    arguments = own.get("updatedInput")
    output = own.get("updatedToolOutput")
    return HookReply(
        _WORDS.get(word, ""),
        _short(own.get("permissionDecisionReason") or said.get("reason") or ""),
        cast("JsonObject", arguments) if isinstance(arguments, dict) else None,
        _short(own.get("additionalContext") or ""),
        _short(said.get("systemMessage") or ""),
        _short(said.get("stopReason") or f"{hook} ended the run") if said.get("continue") is False else "",
        output if isinstance(output, str) else None,
        f"{hook} gave the decision {word!r}, which nobody knows" if word and word not in _WORDS else "",
    )


def _short(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= _MOST_CHARS else f"{shown[:_MOST_CHARS]}… ({len(shown)} characters in all)"
