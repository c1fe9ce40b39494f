"""The encoding of records as JSON, and a strict decoder: what it returns has the types the program relies on."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from callwright.core import access as accesses
from callwright.core.access import Access
from callwright.core.calls import Decline, Question, Reply
from callwright.core.decisions import check_reply, make_reply
from callwright.core.errors import UsageError, safe_repr
from callwright.core.json import map_texts
from callwright.core.spec import Effect
from callwright.sessions.message_encoding import (
    Data,
    UnreadableRecord,
    check_field,
    decode_message,
    decode_outcome,
    decode_usage,
    encode_message,
    encode_outcome,
    encode_usage,
    take_field,
    take_list,
    write_json,
)
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Checkpoint,
    Compacted,
    Ended,
    Kept,
    LimitReached,
    Record,
    Rewound,
    Said,
    Spent,
    Started,
    UndoPoint,
)
from callwright.tool.validators import to_json

_ACCESSES = {kind.__name__: kind for kind in accesses.Access.__args__}
_MANY_DIGITS = 4_000  # Python reads no number of more than 4,300
_QUESTION_KINDS = {"arguments": dict, "expires_at": int, "running": bool}  # all others are texts


@runtime_checkable
class Redactor(Protocol):
    """Replaces secrets in texts, and in data, where the name of a field may tell one; `hooks.Redact` is one."""

    def clean(self, text: str) -> str: ...
    def clean_data(self, value: Any) -> Any: ...


Redaction: TypeAlias = Redactor | Callable[[str], str]


class _EachText:
    """Applies a function to every text by itself."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function

    def clean(self, text: str) -> str:
        cleaned = self._function(text)
        if not isinstance(cast(object, cleaned), str):  # what is stored instead could not be read back
            raise UsageError(f"redact must return a text, got {safe_repr(cleaned)}")
        return cleaned

    def clean_data(self, value: Any) -> Any:
        return map_texts(value, self.clean)


def make_redactor(given: Redaction | None) -> Redactor | None:
    """Return what replaces the secrets in records and texts; None if nothing does.

    Raises:
        UsageError: It is neither a redactor nor a function.
    """
    if isinstance(given, type) or not (given is None or isinstance(given, Redactor) or callable(given)):
        raise UsageError(f"expected Redact() or a function of a text as redact, got {safe_repr(given)}")
    return given if given is None or isinstance(given, Redactor) else _EachText(given)


def dump_record(record: Record, redact: Redaction | None = None) -> str:
    """Encode a `record` as one line of JSON; `redact` is applied to the texts in it."""
    redactor = make_redactor(redact)
    data = encode_record(record) if redactor is None else _redact(record, redactor)
    try:
        encoded = to_json(data, fallback=str)  # half the time of the standard library
        if len(encoded) < _MANY_DIGITS:  # a longer one may hold a number that could not be read back
            return encoded.decode()
    except ValueError:  # a lone surrogate, bytes, or nested too deep
        pass
    text = write_json(data)
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-8 cannot encode a lone surrogate, an escape sequence can
        return json.dumps(data, separators=(",", ":"), default=str)
    return text


def _redact(record: Record, redactor: Redactor) -> Data:
    data: Data = redactor.clean_data(encode_record(record))
    if isinstance(record, Began):  # the names are ids of calls, which tell nothing, and a digest is no secret
        data["digests"] = {redactor.clean(call_id): digest for call_id, digest in record.digests.items()}
    return data


def load_record(text: str | bytes) -> Record:
    """Decode what `dump_record` wrote.

    Raises:
        UnreadableRecord: The text is damaged, or a later version wrote it.
    """
    try:
        data: object = json.loads(text if isinstance(text, str) else text.decode())
        if not isinstance(data, dict):
            raise UnreadableRecord(f"expected a JSON object, got {safe_repr(data)}")
        return decode_record(cast("Data", data))
    except UnreadableRecord:
        raise
    except RecursionError:
        raise UnreadableRecord("it is nested too deeply") from None
    # Whatever a constructor or decoder makes of foreign values: a damaged record must not crash the reader.
    except Exception as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from error


def load_blob(body: object) -> Record | None:
    """Return the record of a stored blob; None if it cannot be read."""
    try:
        return load_record(body) if isinstance(body, (bytes, str)) else None
    except UnreadableRecord:
        return None


def encode_record(record: Record) -> Data:
    """Encode a record as a JSON object."""
    match record:
        case Said(message, turn_id, key):
            said = encode_message(message)
            if turn_id:
                said["turn"] = check_field(turn_id, "turn", str)
            if key:
                said["key"] = check_field(key, "key", str)
            return said
        case Began(digests, each):
            return {"kind": "began", "digests": dict(digests), **({"each": True} if each else {})}
        case Started(call_ids):
            return {"kind": "started", "calls": list(call_ids)}
        case Ended(outcome):
            return {"kind": "ended", **encode_outcome(outcome)}
        case Asked(questions, paused):
            asked: Data = {"kind": "asked", "questions": list(map(_encode_question, questions))}
            return {**asked, "paused": True} if paused else asked
        case Answered(replies):
            return {"kind": "answered", "replies": {key: _encode_reply(reply) for key, reply in replies.items()}}
        case Kept(path, note):
            return {"kind": "kept", "path": path, "note": note}
        case Compacted(messages, usage):
            return {"kind": "compacted", "messages": [*map(encode_message, messages)], "usage": encode_usage(usage)}
        case Spent(usage, cost):
            return {"kind": "spent", "usage": encode_usage(usage), "cost": cost}
        case LimitReached(kind):
            return {"kind": "limit", "limit": kind}
        case Checkpoint(step, state, waiting):
            return {"kind": "checkpoint", "step": step, "state": state, "waiting": waiting}
        case UndoPoint(point_id, label, data):
            return {"kind": "undo_point", "id": point_id, "label": label, "data": data}
        case Rewound(position, restored, redo, note):
            return {"kind": "rewound", "position": position, "restored": restored, "redo": redo, "note": note}
        case _:
            raise UnreadableRecord(f"expected a record, got {safe_repr(record)}")


def decode_record(data: Data) -> Record:
    """Decode a record.

    Raises:
        UnreadableRecord: The kind of record is unknown, so a later version wrote it, or a field is not as it must be.
    """
    match take_field(data, "kind", str):
        case "user" | "assistant" | "outcomes":
            turn_id, key = (check_field(data.get(name, ""), name, str) for name in ("turn", "key"))
            return Said(decode_message(data), turn_id, key)
        case "began":
            given: dict[str, Any] = take_field(data, "digests", dict)
            digests = {key: check_field(value, "digests", str) for key, value in given.items()}
            return Began(digests, each=check_field(data.get("each", False), "each", bool))
        case "started":
            return Started(tuple(take_list(data, "calls", str)))
        case "kept":
            return Kept(take_field(data, "path", str), data.get("note"))
        case "ended":
            return Ended(decode_outcome(data))
        case "asked":
            asked = tuple(_decode_question(question) for question in take_list(data, "questions"))
            return Asked(asked, paused=check_field(data.get("paused", False), "paused", bool))
        case "answered":
            replies: Data = take_field(data, "replies", dict)
            return Answered({key: _decode_reply(check_field(reply, "replies", dict)) for key, reply in replies.items()})
        case "compacted":
            kept = tuple(decode_message(message) for message in take_list(data, "messages"))
            return Compacted(kept, decode_usage(data))
        case "spent":
            return Spent(decode_usage(data), take_field(data, "cost", int, float, type(None)))
        case "limit":
            return LimitReached(take_field(data, "limit", str))
        case "checkpoint":
            return Checkpoint(
                take_field(data, "step", str), take_field(data, "state", object), take_field(data, "waiting", str)
            )
        case "undo_point":
            return UndoPoint(take_field(data, "id", str), take_field(data, "label", str), data.get("data"))
        case "rewound":
            position, redo = take_field(data, "position", int), take_field(data, "redo", bool)
            return Rewound(position, take_field(data, "restored", str), redo, take_field(data, "note", str))
        case kind:
            raise UnreadableRecord(f"unknown kind {kind!r}; upgrade callwright to read it")


def encode_access(access: Access) -> Data:
    """Encode an access."""
    data: Data = {"type": type(access).__name__, **{each.name: getattr(access, each.name) for each in fields(access)}}
    return data | {"touches": list(map(encode_access, data["touches"]))} if "touches" in data else data


def decode_access(data: Data) -> Access:
    """Decode an access."""
    fields = {name: Effect(value) if name == "effect" else value for name, value in data.items() if name != "type"}
    if "touches" in data:  # texts, as once written, are left out: they are for display only
        listed: list[Any] = take_field(data, "touches", list)
        fields["touches"] = tuple(decode_access(cast("Data", part)) for part in listed if isinstance(part, dict))
    return _ACCESSES[take_field(data, "type", str)](**fields)


def _encode_question(question: Question) -> Data:
    data = {each.name: getattr(question, each.name) for each in fields(question)}
    return {**data, "accesses": [encode_access(access) for access in question.accesses]}


def _decode_question(data: Data) -> Question:
    touched: Any = tuple(decode_access(access) for access in take_list(data, "accesses"))
    for name in sorted({"call_id", "tool", "digest", "summary", "arguments", *data} - {"accesses", "approved"}):
        take_field(data, name, _QUESTION_KINDS.get(name, str))
    approved: Any = tuple(take_list(data, "approved", str)) if "approved" in data else ()
    return Question(**{**data, "accesses": touched, "approved": approved})


def _encode_reply(reply: Reply) -> Data:
    checked = check_reply(reply)
    by = {"by": checked.by} if checked.by else {}
    if isinstance(checked, Decline):
        return {"decline": checked.reason, **by}
    return {"approve": checked.scope, "arguments": checked.arguments, **by}


def _decode_reply(data: Data) -> Reply:
    by = check_field(data.get("by", ""), "by", str)
    if "decline" in data:
        return Decline(take_field(data, "decline", str), by)
    scope: Any = take_field(data, "approve", str)
    reply = make_reply(True, arguments=take_field(data, "arguments", dict, type(None)), scope=scope, by=by)
    if isinstance(reply, Decline):
        raise UsageError(reply.reason)
    return reply
