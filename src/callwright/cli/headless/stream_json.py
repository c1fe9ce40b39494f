"""What a headless run prints: the lines of `--output-format stream-json` and the document of `json`.

The field names are those that existing programs already parse.
"""

from typing import Any

from callwright.agent.results import Done, Paused, Result
from callwright.app.app import App
from callwright.cli.render.calls import arguments_of
from callwright.core.calls import Completed, Failed, Question, ToolCall
from callwright.core.content import Text
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Thinking, Usage

_SUBTYPES = {
    "turns": "error_max_turns",
    "money": "error_max_budget_usd",
    "output": "error_max_structured_output_retries",
    "cancelled": "interrupted",
}
_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "paused": "pause_turn"}


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
        "problems": list(app.problems),
    }


def assistant_line(message: AssistantMessage, session_id: str) -> dict[str, Any]:
    """Return the line for one message of the model."""
    body = {
        "role": "assistant",
        "model": message.model,
        "content": [_part(part) for part in message.parts],
        "stop_reason": _STOPS.get(message.stop, message.stop),
        "usage": usage_fields(message.usage),
    }
    return {"type": "assistant", "message": body, "session_id": session_id}


def _part(part: Text | Thinking | ToolCall) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part)}


def outcome_line(outcome: Completed | Failed, session_id: str) -> dict[str, Any]:
    """Return the line for the outcome of one call, as the user message the model receives."""
    part = {
        "type": "tool_result",
        "tool_use_id": outcome.call.id,
        "content": outcome.text,
        "is_error": isinstance(outcome, Failed),
    }
    return {"type": "user", "message": {"role": "user", "content": [part]}, "session_id": session_id}


def denial_entry(outcome: Failed) -> dict[str, Any]:
    """Return one entry of the list of denied calls."""
    call = outcome.call
    return {
        "tool_name": call.name,
        "tool_use_id": call.id,
        "tool_input": arguments_of(call),
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


def result_line(result: Result, *, code: int, seconds: float, denials: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last line of a stream, which is also the whole output of `--output-format json`."""
    text = result.text if not isinstance(result, Paused) else ""
    return {
        "type": "result",
        "subtype": _subtype(result),
        # a pause is an expected end for a script, which continues with --answers
        "is_error": not isinstance(result, (Done, Paused)),
        "exit_code": code,
        "duration_ms": round(seconds * 1000),
        "num_turns": result.turns,
        "result": text,
        "session_id": result.session_id,
        "total_cost_usd": None if result.cost is None else round(result.cost, 6),
        "usage": usage_fields(result.usage),
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
    return {"terminal_reason": result.reason}
