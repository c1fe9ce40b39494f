"""Requests as bytes: each message and each set of tools is encoded once, however long a conversation grows."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, cast

from callwright.core.calls import ToolCall
from callwright.core.content import File, Image
from callwright.core.json import Json, JsonObject, compact
from callwright.core.messages import History, Message, Thinking, encoded

Made = TypeVar("Made")
Pieces: TypeAlias = list[bytes | bytearray]
"""JSON in pieces that have not been joined yet."""

_MOST_KEPT = 64
_ALLOWED_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")


def to_bytes(value: object) -> bytes:
    """Write JSON as it is sent. Half a surrogate pair, which no server takes, becomes a question mark."""
    return compact(value).encode("utf-8", "replace")


def listed(items: Sequence[bytes]) -> bytes:
    """Join encoded values to an encoded list."""
    return b"[" + b",".join(items) + b"]"


def assemble(fields: Mapping[str, bytes | Pieces]) -> bytes:
    """Join encoded fields to an encoded object. Pieces of a field are copied once, here and nowhere else."""
    pieces: Pieces = []
    for name, value in fields.items():
        pieces += [b"," if pieces else b"{", to_bytes(name), b":"]
        pieces += [value] if isinstance(value, bytes) else value
    pieces.append(b"}")
    return b"".join(pieces)


def pieced(*values: bytes | bytearray) -> Pieces:
    """Put an encoded list together out of encoded values, some of which may be several already; none is copied."""
    pieces: Pieces = []
    for value in values:
        if value:
            pieces += [b"," if pieces else b"[", value]
    return [*pieces, b"]"] if pieces else [b"[]"]


def grown(
    messages: Sequence[Message], key: Hashable, encode: Callable[[Message], bytes], *, loose: int = 0
) -> tuple[bytes | bytearray, list[bytes]]:
    """Encode messages: all but the last `loose` ones joined by commas, and those on their own.

    What is joined is kept with a `History` and only ever added to: joining thousands of messages anew in every turn
    would cost more than everything else a turn does.
    """
    fragments = encoded(messages, key, encode)
    settled = max(0, len(fragments) - loose)
    last = list(fragments[settled:])
    if not isinstance(messages, History) or not settled:
        return b",".join(fragments[:settled]), last
    return kept_with(messages, (key, _Growth), _Growth).upto(fragments, settled), last


def kept_with(messages: History, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what was made for a history before, or make it now; it is kept for as long as the history is."""
    first = messages[0]
    return messages.encoded(key, lambda message: make() if message is first else None)[0] or make()


class _Growth:
    """Encoded messages, joined as they come."""

    __slots__ = ("_count", "_joined")

    def __init__(self) -> None:
        self._count = 0
        self._joined = bytearray()

    def upto(self, fragments: Sequence[bytes], count: int) -> bytes | bytearray:
        """The first `count` of them."""
        if count < self._count:
            return b",".join(fragments[:count])
        for fragment in fragments[self._count : count]:
            if self._joined:
                self._joined += b","
            self._joined += fragment
        self._count = count
        return self._joined


def encoded_options(options: Mapping[str, Json]) -> dict[str, bytes]:
    """Encode a request's own options, which replace what we would have sent under the same names."""
    return {name: to_bytes(value) for name, value in options.items()}


def base64_text(part: Image | File) -> str:
    """Give a part's bytes as text."""
    return b64encode(part.data).decode()


def data_url(part: Image | File) -> str:
    """Give a part's bytes as a URL that holds them."""
    return f"data:{part.media_type};base64,{base64_text(part)}"


def file_text(part: File) -> str:
    """Give a file as text, for an API that takes no such files: its content if it is text, else that it is there."""
    name = part.name or "a file"
    if part.media_type.startswith("text/") or part.media_type == "application/json":
        return f"{name}:\n{part.data.decode(errors='replace')}"
    return f"[{name}: {part.media_type}, {len(part.data)} bytes, which cannot be shown here]"


def parsed_object(text: str | bytes) -> dict[str, Any] | None:
    """Read a JSON object; None for anything else, also for what Python reads but JSON does not know."""
    try:
        written = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = _STANDARD.decode(written)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def nested(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object inside an object; an empty one where there is none."""
    found = data.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def call_arguments(call: ToolCall) -> JsonObject:
    """Give a call's arguments as the object every API wants back, whatever the model wrote."""
    if not isinstance(call.arguments, (str, bytes)):
        return call.arguments
    text = call.arguments if isinstance(call.arguments, str) else call.arguments.decode(errors="replace")
    if not text.strip():
        return {}
    found = parsed_object(text)
    return {"invalid_json": text} if found is None else found


def wire_id(call_id: str) -> str:
    """Give a call's id as every API takes it: its own where that is allowed, else one that stands for it."""
    if _ALLOWED_ID.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def wire_name(name: str) -> str:
    """Make a name no tool has any more fit to be sent: an old call, or one of a tool that never was."""
    return _FORBIDDEN.sub("_", name)[:64] or "unnamed"


def kept(provider: str, value: Json) -> Json:
    """Mark what a provider wants back as it is, so that no other provider is handed it."""
    return {"provider": provider, "value": value}


def kept_by(provider: str, part: Thinking) -> Any:
    """Return what a provider wanted back, or None if the part is not that provider's."""
    opaque = part.opaque
    if not isinstance(opaque, Mapping) or opaque.get("provider") != provider:
        return None
    return opaque.get("value")


class Kept(Generic[Made]):
    """Remembers what was made of values that stay the same objects from turn to turn."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[tuple[object, ...], Made]] = {}

    def of(self, *sources: object, make: Callable[[], Made]) -> Made:
        """Return what was made of these very objects before, or make it now."""
        key = tuple([id(source) for source in sources])
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MOST_KEPT:
                del self._made[next(iter(self._made))]
            # the sources are held too: an id is only theirs while they live
            found = self._made[key] = (sources, make())
        return found[1]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is out of range")
    return number


_STANDARD = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
