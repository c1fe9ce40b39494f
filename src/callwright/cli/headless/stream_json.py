"""What a headless run prints: the lines of `--output-format stream-json` and the document of `json`.

The field names are those that existing programs already parse.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from callwright.agent.results import Done, Paused, Result
from callwright.app.app import App
from callwright.core.calls import Completed, Failed, Question, ToolCall
from callwright.core.content import Text
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Thinking, Usage
from callwright.core.run_events import RequestEnded
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.process import HookRun
from callwright.providers.encoding import read_arguments

_SUBTYPES = {
    "turns": "error_max_turns",
    "money": "error_max_budget_usd",
    "output": "error_max_structured_output_retries",
    "cancelled": "interrupted",
}
_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "paused": "pause_turn"}


_COMPATIBLE_VERSION = "2.1.248"
"""The version of Claude Code whose stream and control messages these are; its SDKs check it."""


def init_line(app: App, session_id: str) -> dict[str, Any]:
    """Return the first line of a stream: model, tools and servers of the run."""
    servers = [] if app.servers is None else app.servers.status()
    return {
        "type": "system",
        "subtype": "init",
        "session_id": session_id,
        "cwd": str(app.locations.cwd),
        "model": app.agent.provider.model,
        "permissionMode": app.switch.mode,
        "tools": [spec.name for spec in app.agent.registry.snapshot().definitions],
        "mcp_servers": [{"name": status.name, "status": status.condition} for status in servers],
        "slash_commands": [skill.name for skill in app.skills if skill.user_invocable],
        "skills": [skill.name for skill in app.skills],
        "agents": list(app.tasks.definitions),
        "plugins": [],
        "apiKeySource": "none",
        "output_style": "default",
        "claude_code_version": _COMPATIBLE_VERSION,
        "problems": list(app.problems),
        "uuid": str(uuid.uuid4()),
    }


def assistant_line(message: AssistantMessage, session_id: str) -> dict[str, Any]:
    """Return the line for one message of the model."""
    body = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": [_part(part) for part in message.parts],
        "stop_reason": _STOPS.get(message.stop, message.stop),
        "usage": usage_fields(message.usage),
    }
    return {"type": "assistant", "message": body, **_place(session_id)}


def _place(session_id: str) -> dict[str, Any]:
    """Return the fields of every message that tell where it belongs; all are of the conversation itself."""
    return {"parent_tool_use_id": None, "session_id": session_id, "uuid": str(uuid.uuid4())}


def partial_line(delta: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the line for a piece of a message that is being written."""
    inner = {"type": "content_block_delta", "index": 0, "delta": delta}
    return {"type": "stream_event", "event": inner, **_place(session_id)}


def hook_line(hook: ShellHook, run: HookRun | None, session_id: str) -> dict[str, Any]:
    """Return the line for the start of a hook, or with its result for the end."""
    name = f"{hook.event}:{hook.matcher}" if hook.matcher else hook.event
    hooked = {"hook_name": name, "hook_event": hook.event}
    if run is None:
        return _system_line("hook_started", session_id, **hooked)
    outcome = "error" if run.problem or run.exit_code else "success"
    return _system_line("hook_response", session_id, **hooked) | {
        "stdout": run.stdout,
        "stderr": run.problem or run.stderr,
        "exit_code": run.exit_code,
        "outcome": outcome,
    }


def state_line(state: str, session_id: str) -> dict[str, Any]:
    """Return the line that tells an SDK whether further turns follow; it keeps the line from its caller."""
    return _system_line("session_state_changed", session_id, state=state, sdk_host_only=True)


def _system_line(subtype: str, session_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields, "session_id": session_id, "uuid": str(uuid.uuid4())}


def _part(part: Text | Thinking | ToolCall) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": ""}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": read_arguments(part)}


def outcome_line(outcome: Completed | Failed, session_id: str) -> dict[str, Any]:
    """Return the line for the outcome of one call, as the user message the model receives."""
    part = {
        "type": "tool_result",
        "tool_use_id": outcome.call.id,
        "content": outcome.text,
        "is_error": isinstance(outcome, Failed),
    }
    return {"type": "user", "message": {"role": "user", "content": [part]}, **_place(session_id)}


def denial_entry(outcome: Failed) -> dict[str, Any]:
    """Return one entry of the list of denied calls."""
    call = outcome.call
    return {
        "tool_name": call.name,
        "tool_use_id": call.id,
        "tool_input": read_arguments(call),
        "reason": outcome.error.message,
    }


def usage_fields(usage: Usage) -> dict[str, int]:
    """Return the token counts under the names other programs use."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def question_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a question that must be answered before the session continues."""
    return {
        "id": question.id,
        "tool_use_id": question.call_id,
        "tool_name": question.tool,
        "tool_input": thaw(question.arguments),
        "summary": question.summary,
        "reason": question.reason,
        "kind": question.kind,
        **({"url": question.url} if question.url else {}),
    }


@dataclass(slots=True)
class RunTotals:
    """What the model requests of one run took."""

    seconds: float = 0.0
    by_model: dict[str, tuple[Usage, float | None]] = field(default_factory=dict[str, tuple[Usage, float | None]])

    def add(self, event: RequestEnded) -> None:
        """Count a request."""
        self.seconds += event.seconds
        if event.message is None:
            return
        usage, cost = self.by_model.get(event.began.model, (Usage(), 0.0))
        total = None if cost is None or event.cost is None else cost + event.cost
        self.by_model[event.began.model] = usage + event.message.usage, total

    def fields(self) -> dict[str, Any]:
        """Return the fields of a result."""
        return {
            model: {
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "cacheReadInputTokens": usage.cache_read_tokens,
                "cacheCreationInputTokens": usage.cache_write_tokens,
                "webSearchRequests": 0,
                "costUSD": cost,
            }
            for model, (usage, cost) in self.by_model.items()
        }


def result_line(
    result: Result, *, code: int, seconds: float, denials: list[dict[str, Any]], totals: RunTotals
) -> dict[str, Any]:
    """Return the last line of a stream, which is also the whole output of `--output-format json`."""
    text = result.text if not isinstance(result, Paused) else ""
    return {
        "type": "result",
        "subtype": _subtype(result),
        # a pause is an expected end for a script, which continues with --answers
        "is_error": not isinstance(result, (Done, Paused)),
        "exit_code": code,
        "duration_ms": round(seconds * 1000),
        "duration_api_ms": round(totals.seconds * 1000),
        "num_turns": result.turns,
        "result": text,
        "session_id": result.session_id,
        "total_cost_usd": None if result.cost is None else round(result.cost, 6),
        "usage": usage_fields(result.usage),
        "modelUsage": totals.fields(),
        "uuid": str(uuid.uuid4()),
        "permission_denials": denials,
        **_result_details(result),
    }


def _subtype(result: Result) -> str:
    if isinstance(result, Done):
        return "success"
    return "paused" if isinstance(result, Paused) else _SUBTYPES.get(result.kind, "error_during_execution")


def _result_details(result: Result) -> dict[str, Any]:
    if isinstance(result, Done):
        return {} if result.output is None else {"structured_output": result.output}
    if isinstance(result, Paused):
        return {"questions": [question_fields(question) for question in result.questions]}
    return {"terminal_reason": result.reason, "errors": [result.reason]}
