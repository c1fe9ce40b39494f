"""Records and outcomes of sessions as JSON for displays: nothing is escaped, long texts are cut, images are named."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from callwright.clip import find_output_ids
from callwright.core.calls import Approve, Completed, Failed, Interrupted, Outcome, Question, Reply, ToolCall
from callwright.core.content import WEB_IMAGES, File, Image, Part, Text, tokens_for
from callwright.core.json import thaw
from callwright.core.messages import AssistantMessage, Message, Thinking, ToolMessage, Usage, UserMessage
from callwright.providers.encoding import read_arguments
from callwright.providers.pricing import Prices
from callwright.sessions.base import StoredRecord
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Compacted,
    Ended,
    LimitReached,
    Record,
    Rewound,
    Said,
    Started,
    UndoPoint,
)
from callwright.toolbox.change_preview import preview_change

_MOST_TEXT_CHARS = 200_000
_MOST_PREVIEWED_CHARS = 100_000
Fields = dict[str, Any]
PricesOf = Callable[[str], Prices | None]
AskedFields = Callable[[Question, float], Fields]


def _cut_text(text: str) -> Fields:
    """Return a text, and how many characters in its middle were left out if it is long."""
    missing = len(text) - _MOST_TEXT_CHARS
    if missing <= 0:
        return {"text": text}
    half = _MOST_TEXT_CHARS // 2
    return {"text": f"{text[:half]}\n[{missing} characters left out]\n{text[-half:]}", "cut": missing}


def outcome_fields(outcome: Outcome, image_url: Callable[[int], str] | None = None) -> Fields:
    """Return an outcome as JSON.

    Args:
        outcome: The outcome.
        image_url: Returns where to fetch the image at a place among the parts; without it images are only named.
    """
    call = outcome.call
    base: Fields = {"call": call.id, "name": call.name, "ok": isinstance(outcome, Completed), "code": ""}
    if isinstance(outcome, Interrupted):
        return {**base, "code": "interrupted", "text": outcome.text, "started": False, **_NO_FIGURES}
    found: Fields = {
        **base,
        **_cut_text(outcome.text),
        "seconds": outcome.seconds,
        "attempts": outcome.attempts,
        "tokens": tokens_for(len(outcome.text)),
        "repairs": [repair.note for repair in outcome.repairs],
        "output_id": next(iter(find_output_ids(outcome)), None),
    }
    match outcome:
        case Failed(error=error, started=started):
            return {**found, "code": error.code, "started": started, "parts": [], "structured": None}
        case Completed(output=output):
            plain = isinstance(output.content, str)
            parts = [] if plain else _parts_fields(output.parts, image_url)
            return {**found, "started": True, "parts": parts, "structured": _structured(output.structured)}


_NO_FIGURES: Fields = {
    "seconds": 0.0,
    "attempts": 0,
    "tokens": 0,
    "repairs": [],
    "parts": [],
    "structured": None,
    "output_id": None,
}


def _structured(value: Any) -> Any:
    plain = thaw(value)
    return plain if plain is None or len(json.dumps(plain, default=str)) <= _MOST_TEXT_CHARS else None


def _parts_fields(parts: Iterable[Part], image_url: Callable[[int], str] | None = None) -> list[Fields]:
    """Return content parts as JSON; the data of images and files is left out."""
    found: list[Fields] = []
    for place, part in enumerate(parts):
        match part:
            case Text(text):
                found.append({"type": "text", **_cut_text(text)})
            case Image(data, media_type) if media_type in WEB_IMAGES and image_url is not None:
                found.append({"type": "image", "media_type": media_type, "size": len(data), "url": image_url(place)})
            case Image(data, media_type):
                found.append({"type": "file", "name": "", "media_type": media_type, "size": len(data)})
            case File(data, media_type, name):
                found.append({"type": "file", "name": name, "media_type": media_type, "size": len(data)})
    return found


def reply_fields(reply: Reply) -> Fields:
    """Return a reply as JSON."""
    approved = isinstance(reply, Approve)
    arguments = reply.arguments if approved else None
    return {
        "approved": approved,
        "scope": reply.scope if approved else "once",
        "reason": "" if approved else reply.reason,
        "by": reply.by,
        "edited": arguments is not None,
        "arguments": None if arguments is None else thaw(arguments),
    }


def usage_fields(usage: Usage) -> Fields:
    """Return token counts as JSON."""
    return {name: getattr(usage, name) for name in usage.__match_args__}


def call_fields(call: ToolCall) -> Fields:
    """Return a call of a message as JSON, with what an edit or a write puts into its file."""
    arguments = read_arguments(call)
    changes = call.name in ("edit", "write") and isinstance(arguments, dict)
    preview = _preview_fields(cast("Fields", arguments)) if changes else None
    return {"type": "call", "id": call.id, "name": call.name, "arguments": arguments, "preview": preview}


def _preview_fields(arguments: Fields) -> Fields | None:
    if sum(len(value) for value in arguments.values() if isinstance(value, str)) > _MOST_PREVIEWED_CHARS:
        return None
    preview = preview_change(arguments, "")
    if preview is None:
        return None
    # without the file, which has changed since: the lines have no numbers
    rows = [{"mark": row.mark or "@", "old": None, "new": None, "text": row.text} for row in preview.rows]
    return {"kind": "diff", "path": str(arguments.get("path", "")), "rows": rows}


class RecordView:
    """Describes the records of one session as JSON.

    Args:
        session_id: The session.
        prices_of: Returns the prices of a model by name.
        asked: Describes a question that was asked at a time.
        image_url: Returns where to fetch an image, by the position of its record and its place there.
    """

    def __init__(
        self, session_id: str, prices_of: PricesOf, asked: AskedFields, image_url: Callable[[int, int], str]
    ) -> None:
        self.session_id = session_id
        self._prices_of = prices_of
        self._asked = asked
        self._image_url = image_url

    def fields(self, stored: StoredRecord) -> Fields:
        """Return one record as JSON."""
        return {"position": stored.position, "at": stored.at, **self._record(stored.record, stored)}

    def _record(self, record: Record, stored: StoredRecord) -> Fields:
        match record:
            case Said(message, turn_id):
                return self._message(message, turn_id, stored.position)
            case Asked(questions):
                return {"kind": "asked", "questions": [self._asked(question, stored.at) for question in questions]}
            case Answered(replies):
                return {"kind": "answered", "replies": {key: reply_fields(reply) for key, reply in replies.items()}}
            case Began(digests):
                return {"kind": "began", "calls": list(digests)}
            case Started(call_ids):
                return {"kind": "started", "calls": list(call_ids)}
            case Ended(outcome):
                return {"kind": "ended", "outcome": outcome_fields(outcome)}
            case Compacted(messages):
                first = messages[0].content if messages and isinstance(messages[0], UserMessage) else ""
                summary = first if isinstance(first, str) else ""
                return {"kind": "compacted", "messages": len(messages), "summary": summary}
            case LimitReached(kind):
                return {"kind": "limit", "limit": kind}
            case UndoPoint(label=label):
                return {"kind": "undo_point", "label": label}
            case Rewound(position=position, redo=redo, note=note):
                return {"kind": "rewound", "to": position, "redo": redo, "note": note}
            case _:
                return {"kind": "other", "name": type(record).__name__.lower()}

    def _message(self, message: Message, turn_id: str, position: int) -> Fields:
        match message:
            case UserMessage(content):
                parts = (Text(content),) if isinstance(content, str) else content
                shown = _parts_fields(parts, lambda place: self._image_url(position, place))
                return {"kind": "user", "parts": shown, "automatic": bool(turn_id)}
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage(outcomes):
                return {"kind": "outcomes", "outcomes": list(self._outcomes(outcomes, position))}

    def _outcomes(self, outcomes: Iterable[Completed | Failed], position: int) -> Iterator[Fields]:
        start = 0
        for outcome in outcomes:
            yield outcome_fields(outcome, lambda place, base=start: self._image_url(position, base + place))
            start += len(outcome.output.parts) if isinstance(outcome, Completed) else 0

    def _assistant(self, message: AssistantMessage) -> Fields:
        parts: list[Fields] = []
        for part in message.parts:
            match part:
                case Text(text):
                    parts.append({"type": "text", **_cut_text(text)})
                case Thinking(text):
                    parts.append({"type": "thinking", **_cut_text(text)})
                case ToolCall():
                    parts.append(call_fields(part))
        prices = self._prices_of(message.model) if message.usage.total else None
        return {
            "kind": "assistant",
            "model": message.model,
            "stop": message.stop,
            "usage": usage_fields(message.usage),
            "cost": None if prices is None else prices.request_cost(message.usage),
            "parts": parts,
        }


def find_image(record: Record, place: int) -> Image | None:
    """Return the image at a place of a record: among the parts of a prompt, or of all outcomes of a turn."""
    if not isinstance(record, Said):
        return None
    parts: list[Part] = []
    match record.message:
        case UserMessage(content) if not isinstance(content, str):
            parts = list(content)
        case ToolMessage(outcomes):
            for outcome in outcomes:
                parts += outcome.output.parts if isinstance(outcome, Completed) else ()
        case _:
            pass
    found = parts[place] if 0 <= place < len(parts) else None
    return found if isinstance(found, Image) else None
