"""How calls, outcomes and messages are shown to people: one line each, with nothing in them that hides."""

import json
import sys
from collections.abc import Iterator
from typing import Any, cast

from callwright.cli.columns import cut, visible, width_of
from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.core.json import thaw
from callwright.core.message import AssistantMessage, Message, ToolMessage, UserMessage

_TELLING = ("command", "path", "file_path", "pattern", "url", "query", "name", "id")
_LINE_CHARS = 100


def one_line(text: str, chars: int = _LINE_CHARS) -> str:
    """The first line of a text, cut where it grows too long, with a mark where something was left out."""
    lines = visible(text).strip().splitlines()
    if not lines:
        return ""
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    first = lines[0].replace("\t", " ")
    return cut(first, chars - width_of(more)) + more


def tell(text: str) -> None:
    """Say something to the person on stderr; what of it others wrote, a terminal does not obey."""
    print(f"callwright: {visible(text)}", file=sys.stderr)


def arguments_of(call: ToolCall) -> Any:
    """A call's arguments as an object, or as the text the model wrote where that is none."""
    if not isinstance(call.arguments, (str, bytes)):
        return thaw(call.arguments)
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments if isinstance(call.arguments, str) else call.arguments.decode(errors="replace")


def call_line(call: ToolCall, chars: int = _LINE_CHARS) -> str:
    """A call as a person would say it: the tool and the one argument that tells."""
    read = arguments_of(call)
    if not isinstance(read, dict):
        return f"{call.name} {one_line(str(read), chars)}".strip()
    given = cast("dict[str, object]", read)
    told = next((given[key] for key in _TELLING if key in given), None)
    shown = str(told) if told is not None else json.dumps(given, ensure_ascii=False) if given else ""
    return f"{call.name} {one_line(shown, chars - len(call.name) - 1)}".strip()


def outcome_line(outcome: Completed | Failed, chars: int = _LINE_CHARS) -> str:
    """How a call ended, in one line."""
    if isinstance(outcome, Failed):
        return f"{outcome.error.code}: {one_line(outcome.text, chars - len(outcome.error.code) - 2)}"
    return one_line(outcome.text, chars) or "(no output)"


def transcript(messages: list[Message]) -> Iterator[str]:
    """A conversation as text, message by message."""
    for message in messages:
        match message:
            case UserMessage(content):
                yield f"> {visible(_said(content))}\n"
            case AssistantMessage():
                if message.text:
                    yield f"{visible(message.text)}\n"
            case ToolMessage(outcomes):
                for outcome in outcomes:
                    mark = "✗" if isinstance(outcome, Failed) else "●"
                    yield f"{mark} {call_line(outcome.call)}\n  {outcome_line(outcome)}\n"


def _said(content: str | tuple[Part, ...]) -> str:
    """What a person typed; files that were attached to it come after it and are named in it."""
    if isinstance(content, str):
        return content
    return next((part.text for part in content if isinstance(part, Text)), "")
