"""`--answers`: what a script says to the questions a paused session waits for.

What a headless run is given on stdin: context, a prompt, or messages line by line.

What headless runs print: the JSON shapes other programs already read.
"""

import json
import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

from callwright.agent.results import Done, Paused, Result
from callwright.app.app import App
from callwright.app.skills.service import STDIN_BEGINS
from callwright.cli.render.calls import arguments_of
from callwright.core.calls import Answers, Completed, Failed, Question, ToolCall
from callwright.core.content import Text
from callwright.core.errors import UsageError
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Thinking, Usage
from callwright.sessions.base import SessionStore
from callwright.sessions.records import Asked, count_settled_records


async def open_questions(store: SessionStore, session_id: str) -> tuple[Question, ...]:
    """What a session waits for; empty if it waits for nothing."""
    records = await store.read(session_id)
    asked = [record for record in records[count_settled_records(records) :] if isinstance(record, Asked)]
    return asked[-1].questions if asked else ()


def read_answers(given: str, questions: Sequence[Question]) -> Answers:
    """Read `allow`, `deny`, or an object by call id: "allow", "deny", {"deny": why}, {"allow": arguments}."""
    choices = {"*": given} if given in ("allow", "deny") else _object(given)
    waiting = [question.call_id for question in questions]
    if waiting and choices.keys().isdisjoint({"*", *waiting, *(question.id for question in questions)}):
        raise UsageError(f"--answers names {', '.join(choices) or 'no call'}; what waits is {', '.join(waiting)}")
    answers = Answers()
    for question in questions:
        choice = choices.get(question.id, choices.get(question.call_id, choices.get("*")))
        match choice:
            case "allow":
                answers.approve(question)
            case {"allow": arguments} if isinstance(arguments, dict):
                answers.approve(question, arguments=cast("dict[str, Any]", arguments))
            case "deny":
                answers.decline(question)
            case {"deny": str() as reason}:
                answers.decline(question, reason)
            case None:
                pass
            case _:
                raise UsageError(f"--answers: {choice!r} is neither allow nor deny")
    return answers


def _object(given: str) -> dict[str, Any]:
    try:
        content: object = json.loads(given)
    except ValueError as error:
        raise UsageError(f"--answers {given!r} is neither allow, deny nor JSON: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"--answers: expected an object by call id, got {content!r}")
    return cast("dict[str, Any]", content)


_MOST_BYTES = 10 * 1024 * 1024
_FIRST_BYTE_SECONDS = 3.0


def prompt_with_stdin(prompt: str) -> str:
    """Put what was piped in after the prompt; without one it is the prompt. Never waits for a person."""
    piped = _piped(wait=not prompt)
    if not prompt:
        return piped
    return f"{prompt}{STDIN_BEGINS}{piped}\n</stdin>" if piped.strip() else prompt


def _piped(*, wait: bool) -> str:
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if os.isatty(descriptor):
        return ""
    quiet = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
    # whoever started us may have left a pipe open without ever meaning to write to it
    if quiet and not wait and not select.select([descriptor], [], [], _FIRST_BYTE_SECONDS)[0]:
        print(f"callwright: nothing came on stdin in {_FIRST_BYTE_SECONDS:g} s; going on without", file=sys.stderr)
        return ""
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"stdin has more than {_MOST_BYTES} bytes; name the file in the prompt instead")
    return data.decode("utf-8", errors="replace")


def messages_on_stdin() -> Iterator[str]:
    """The prompts of `--input-format stream-json`: one user message a line, until the input ends."""
    number = 0
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            yield _prompt(line, number)
    if not number:
        raise UsageError("there is nothing to say: --input-format stream-json found no message on stdin")


def _prompt(line: str, number: int) -> str:
    try:
        given = json.loads(line)
        content = given["message"]["content"]
        if given["type"] == "user":
            return content if isinstance(content, str) else _text(cast("list[dict[str, Any]]", content), number)
    except (ValueError, LookupError, TypeError):
        pass
    raise UsageError(f'stdin line {number} is no user message: write {{"type": "user", "message": {{"content": "…"}}}}')


def _text(parts: list[dict[str, Any]], number: int) -> str:
    other = next((part["type"] for part in parts if part["type"] != "text"), None)
    if other is not None:
        raise UsageError(
            f"stdin line {number} holds a part of type {other!r}: only text is taken; name files with @FILE"
        )
    return "\n".join(part["text"] for part in parts)


_SUBTYPES = {
    "turns": "error_max_turns",
    "money": "error_max_budget_usd",
    "output": "error_max_structured_output_retries",
    "cancelled": "interrupted",
}
_STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "paused": "pause_turn"}


def init_line(app: App, session_id: str) -> dict[str, Any]:
    """The first line of a stream: what the run has to work with."""
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
    """One message of the model."""
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
    """What came of one call, as the user message that tells the model."""
    part = {
        "type": "tool_result",
        "tool_use_id": outcome.call.id,
        "content": outcome.text,
        "is_error": isinstance(outcome, Failed),
    }
    return {"type": "user", "message": {"role": "user", "content": [part]}, "session_id": session_id}


def denial(outcome: Failed) -> dict[str, Any]:
    """One entry of the list of what was denied."""
    call = outcome.call
    return {
        "tool_name": call.name,
        "tool_use_id": call.id,
        "tool_input": arguments_of(call),
        "reason": outcome.error.message,
    }


def usage_fields(usage: Usage) -> dict[str, int]:
    """Token counts under the names other programs use."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def question_fields(question: Question) -> dict[str, Any]:
    """A question somebody must answer before the session goes on."""
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
    """The last line of a stream, and the whole of `--output-format json`."""
    text = result.text if not isinstance(result, Paused) else ""
    return {
        "type": "result",
        "subtype": _subtype(result),
        "is_error": not isinstance(result, (Done, Paused)),
        "exit_code": code,
        "duration_ms": round(seconds * 1000),
        "num_turns": result.turns,
        "result": text,
        "session_id": result.session_id,
        "total_cost_usd": None if result.cost is None else round(result.cost, 6),
        "usage": usage_fields(result.usage),
        "permission_denials": denials,
        **_more(result),
    }


def _subtype(result: Result) -> str:
    if isinstance(result, Done):
        return "success"
    return "paused" if isinstance(result, Paused) else _SUBTYPES.get(result.kind, "error_during_execution")


def _more(result: Result) -> dict[str, Any]:
    if isinstance(result, Done):
        return {} if result.output is None else {"structured_output": result.output}
    if isinstance(result, Paused):
        return {"questions": [question_fields(question) for question in result.questions]}
    return {"terminal_reason": result.reason}
