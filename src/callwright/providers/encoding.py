"""JSON encoding of requests: each message and each set of tools once, not once per turn; media as an API accepts it."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any, Generic, TypeAlias, TypeVar, cast

from callwright.core.calls import ToolCall
from callwright.core.content import (
    WEB_IMAGES,
    File,
    Image,
    Part,
    Text,
    image_type,
    is_whole_image,
    plain_media_type,
    text_of_file,
)
from callwright.core.json import Json, JsonObject, compact, is_deep, make_object, parse_finite, refuse_constant, thaw
from callwright.core.messages import History, Message, Thinking, encode_messages

Made = TypeVar("Made")

_ANSWER_AS = "\n\nWhen you give the final answer, write only JSON that matches this schema, without other text:\n"
_MAX_ENTRIES = 64
_MOST_TOKENS = 2**53 - 1
_ALLOWED_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
FIRST_HALVES = frozenset(map(chr, range(0xD800, 0xDC00)))
"""What a text ends with whose last character was cut in two."""


def to_bytes(value: object) -> bytes:
    """Encode JSON for the wire. A lone surrogate, which no server accepts, becomes a question mark."""
    return compact(value).encode("utf-8", "replace")


def join_halves(text: str) -> str:
    """Make those characters whole that a server of JavaScript or Java sent in two pieces."""
    return _HALVES.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def ask_for_schema(system: str, schema: JsonObject) -> str:
    """Return instructions that also ask for an answer of a schema, for an API that cannot enforce it."""
    return f"{system}{_ANSWER_AS}{compact(schema)}".strip()


def join_list(items: Sequence[bytes]) -> bytes:
    """Join encoded values into an encoded list."""
    return b"[" + b",".join(items) + b"]"


def assemble(fields: "Mapping[str, bytes | Pieces]") -> bytes:
    """Join encoded fields into an encoded object."""
    pieces: Pieces = []
    for name, value in fields.items():
        pieces += [b"," if pieces else b"{", to_bytes(name), b":"]
        pieces += [value] if isinstance(value, bytes) else value
    pieces.append(b"}")
    return join_pieces(pieces)


def list_pieces(*values: "bytes | JoinedMessages") -> "Pieces":
    """Build an encoded list from encoded values without copying them; a value may hold several items already."""
    pieces: Pieces = []
    for value in values:
        if value:
            pieces += [b"," if pieces else b"[", value]
    return [*pieces, b"]"] if pieces else [b"[]"]


def join_pieces(pieces: "Pieces") -> bytes:
    """Join the pieces of a body; joined messages among them, at most once, are not copied."""
    for place, piece in enumerate(pieces):
        if isinstance(piece, JoinedMessages):
            return piece.embed(tuple(pieces[:place]), pieces[place + 1 :])
    return b"".join(cast("list[bytes]", pieces))


def encode_history(
    messages: Sequence[Message], key: Hashable, encode: Callable[[Message], bytes], *, unjoined: int = 0
) -> "tuple[bytes | JoinedMessages, list[bytes]]":
    """Encode messages: all but the last `unjoined` ones joined by commas, and the last ones separately.

    The joined part is cached with a `History` and only extended: joining thousands of messages again in every turn
    would cost more than the rest of the turn.
    """
    fragments = encode_messages(messages, key, encode)
    count = max(0, len(fragments) - unjoined)
    last = list(fragments[count:])
    if not isinstance(messages, History) or not count:
        return b",".join(fragments[:count]), last
    joined = cache_with_history(messages, (key, JoinedMessages), JoinedMessages)
    return (joined if joined.extend_to(fragments, count) else b",".join(fragments[:count])), last


def cache_with_history(messages: Sequence[Message], key: Hashable, make: Callable[[], Made]) -> Made:
    """Return the value cached with a history, or make it now; it lives as long as the history."""
    if not isinstance(messages, History) or not messages:
        return make()
    first = messages[0]
    return messages.encode(key, lambda message: make() if message is first else None)[0] or make()


class JoinedMessages:
    """Encoded messages inside the body of the last request, which the next turn extends instead of copying it.

    A `BytesIO` gives its content away without a copy and copies it only if it is changed while the content is still in
    use. The vendors' clients have dropped a body when the model's message is complete, so the next turn changes it in
    place.
    """

    __slots__ = ("_before", "_buffer", "_count", "_end", "_fragments", "_written")

    def __init__(self) -> None:
        self._fragments: Sequence[bytes] = ()
        self._count = 0
        self._before: Sequence[object] = ()
        self._buffer = BytesIO()
        self._written = 0
        self._end = 0

    def extend_to(self, fragments: Sequence[bytes], count: int) -> bool:
        """Hold the first `count` messages; return False if it has more, which cannot be taken back out."""
        if count < self._count:
            return False
        self._fragments, self._count = fragments, count
        return True

    def embed(self, before: "Sequence[bytes | JoinedMessages]", after: "Pieces") -> bytes:
        """Return a body: the messages between other pieces."""
        buffer = self._buffer
        if before != self._before:  # the fields in front of the conversation have changed
            self._before, self._buffer, self._written = before, (buffer := BytesIO()), 0
            buffer.writelines(cast("Sequence[bytes]", before))
        else:
            buffer.seek(self._end)
        added = self._fragments[self._written : self._count]
        if added and self._written:
            buffer.write(b",")
        buffer.write(b",".join(added))
        self._written, self._end = self._count, buffer.tell()
        buffer.writelines(cast("list[bytes]", after))
        buffer.truncate()
        return buffer.getvalue()


Pieces: TypeAlias = list[bytes | JoinedMessages]
"""JSON in pieces, to be joined in one copy."""


def merge_options(fields: Mapping[str, bytes], options: Mapping[str, Json], merged: frozenset[str]) -> dict[str, bytes]:
    """Encode fields with a request's own options, which replace fields of the same names.

    Those named in `merged` are objects that also hold what callwright sends, such as the schema of the answer: there an
    option replaces only its own keys.
    """
    joined = dict(fields)
    for name, value in options.items():
        if name in merged and name in fields and isinstance(value, Mapping):
            value = _merge(json.loads(fields[name]), value)
        joined[name] = to_bytes(value)
    return joined


def _merge(ours: Any, own: Any) -> Any:
    if not isinstance(ours, Mapping) or not isinstance(own, Mapping):
        return own
    return {**ours, **{key: _merge(ours[key], value) if key in ours else value for key, value in own.items()}}  # pyright: ignore[reportUnknownVariableType] - JSON


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else, also for NaN, infinities and two values for one key."""
    try:
        written = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
        value = _STANDARD.decode(written)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
"""The end of a text in which an escape is incomplete, or the second half of a character is missing."""


_MOST_CUT_LEVELS = 1_000
"""No call is nested so deep, and what closes more levels is written anew with each of them."""


def parse_cut_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object that was cut off, without the part that is incomplete; None if nothing can be read.

    A text that was cut off keeps what there is of it.
    """
    closing, inside, escaped = "", False, False
    complete = (0, "")  # the end of what is complete before the last comma or bracket, and what closes it
    for place, character in enumerate(text):
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "{[":
            if len(closing) > _MOST_CUT_LEVELS:
                return None
            closing = ("}" if character == "{" else "]") + closing
            complete = (place + 1, closing)
        elif character in "}]":
            closing = closing[1:]
        elif character == ",":
            complete = (place, closing)
    written = _CUT_ESCAPE.sub(r"\1", text, count=1) + '"' if inside else text
    found = parse_object(written + closing)
    return parse_object(text[: complete[0]] + complete[1]) if found is None else found


def get_object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; an empty one where there is none."""
    found = data.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def read_count(value: object) -> int:
    """Read a number of tokens: some servers send it as text, and what is no number counts as none.

    A negative one would give a run more tokens than its limit, and a giant one could be stored and not be read again.
    """
    try:
        return min(max(0, int(cast("Any", value) or 0)), _MOST_TOKENS)
    except (TypeError, ValueError, OverflowError):
        return 0


def call_arguments(call: ToolCall) -> JsonObject:
    """Return a call's arguments as the object every API expects, whatever the model wrote."""
    if not isinstance(call.arguments, (str, bytes)):
        return call.arguments
    text = call.arguments if isinstance(call.arguments, str) else call.arguments.decode(errors="replace")
    if not text.strip():
        return {}
    found = parse_object(text)
    return {"invalid_json": text} if found is None else found


def read_arguments(call: ToolCall) -> Any:
    """Return a call's arguments as an object, to be shown; the text as the model wrote it if not one, or very deep."""
    given = call.arguments.decode(errors="replace") if isinstance(call.arguments, bytes) else call.arguments
    if not isinstance(given, str):
        return thaw(given)
    found = None if is_deep(given) else parse_object(given or "{}")
    return given if found is None else found


def wire_id(call_id: str) -> str:
    """Return a call id that every API accepts: its own where allowed, else a hash of it."""
    if _ALLOWED_ID.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def wire_name(name: str) -> str:
    """Make the name of an unknown tool acceptable: an old call in the history, or a tool the model invented."""
    return _FORBIDDEN.sub("_", name)[:64] or "unnamed"


def wrap_opaque(provider: str, value: Json, origin: str = "") -> Json:
    """Tag a value that a provider must get back unchanged, so that no other provider receives it.

    `origin` is the server that made it, if that is not the vendor's own.

    Raises:
        ValueError: A number in it is not finite, so that it could not be stored.
    """
    _check_finite(value)
    return {"provider": provider, "value": value, **({"origin": origin} if origin else {})}


def _check_finite(value: object) -> None:
    if isinstance(value, Mapping):
        value = list(cast("Mapping[str, object]", value).values())
    if isinstance(value, (list, tuple)):
        for part in cast("Sequence[object]", value):
            _check_finite(part)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the number {value} is not JSON")


def unwrap_opaque(provider: str, part: Thinking, origin: str = "") -> Any:
    """Return the value a provider must get back, or None if the part is from another provider or server."""
    opaque = part.opaque
    if not isinstance(opaque, Mapping) or opaque.get("provider") != provider or opaque.get("origin", "") != origin:
        return None
    return opaque.get("value")


class IdentityCache(Generic[Made]):
    """Caches values by the identity of the objects they were made from.

    Args:
        entries: How many values are kept; the oldest is dropped first.
    """

    def __init__(self, entries: int = _MAX_ENTRIES) -> None:
        self._entries = entries
        self._made: dict[tuple[int, ...], tuple[tuple[object, ...], Made]] = {}

    def get(self, *sources: object, make: Callable[[], Made]) -> Made:
        """Return the value made from these very objects, or make it now."""
        key = tuple([id(source) for source in sources])
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= self._entries:
                del self._made[next(iter(self._made))]
            # holding the sources keeps their ids from being reused
            found = self._made[key] = (sources, make())
        return found[1]


_STANDARD = json.JSONDecoder(object_pairs_hook=make_object, parse_constant=refuse_constant, parse_float=parse_finite)


PDF = "application/pdf"
_OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/jfif": "image/jpeg",
    "image/x-png": "image/png",
    "image/apng": "image/png",
    "application/x-pdf": PDF,
    "audio/x-wav": "audio/wav",
    "audio/mpeg3": "audio/mp3",
}
_PDF_HEADER_BYTES = 1024
"""Readers look for the header in so many bytes."""


def fit_media(part: Part, images: Collection[str] = WEB_IMAGES, files: tuple[str, ...] = (PDF,)) -> Part:
    """Return a part as an API accepts it: an image or file under its exact media type, or as text.

    Args:
        part: The part of a message.
        images: The media types of images that the API accepts.
        files: The beginnings of the media types of files that the API accepts.
    """
    if isinstance(part, Text):
        return part
    media_type = _media_type(part)
    if _is_damaged(part.data, media_type):
        return Text(f"[{_name(part)}: {media_type}, {len(part.data)} bytes, which is damaged and cannot be shown]")
    if media_type in images:
        return part if isinstance(part, Image) and part.media_type == media_type else Image(part.data, media_type)
    if media_type.startswith(files):
        name = part.name if isinstance(part, File) else ""
        return part if isinstance(part, File) and part.media_type == media_type else File(part.data, media_type, name)
    return Text(file_text(part))


def _is_damaged(data: bytes, media_type: str) -> bool:
    """Whether bytes are not what they are called: the API would refuse them with this request and every later one."""
    if media_type in WEB_IMAGES:
        return not is_whole_image(data)
    return media_type == PDF and b"%PDF" not in data[:_PDF_HEADER_BYTES]


def _media_type(part: Image | File) -> str:
    """Return the media type, by the content where that is certain: servers refuse an image under another's name."""
    plain = plain_media_type(part)
    return image_type(part.data) or _OTHER_NAMES.get(plain, plain)


def base64_text(part: Image | File) -> str:
    """Return the bytes of a part as base64."""
    return b64encode(part.data).decode()


def data_url(part: Image | File) -> str:
    """Return a data URL with the bytes of a part."""
    return f"data:{part.media_type};base64,{base64_text(part)}"


def _name(part: Image | File) -> str:
    return (part.name if isinstance(part, File) else "") or ("an image" if isinstance(part, Image) else "a file")


def file_text(part: Image | File) -> str:
    """Return a part as text for an API that does not accept it: its content if it is text, else a placeholder."""
    text = text_of_file(part)
    if text is not None:
        return f"{_name(part)}:\n{text}"
    return f"[{_name(part)}: {_media_type(part)}, {len(part.data)} bytes, which cannot be shown here]"
