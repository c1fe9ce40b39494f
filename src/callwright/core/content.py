"""The outputs of tools: text, images, files and structured data; checked where they are made."""

from collections.abc import Iterable
from typing import Any, TypeAlias, cast

from callwright.core._fast import frozen
from callwright.core.errors import UsageError, safe_repr
from callwright.core.json import Json, check_json


@frozen
class Text:
    """A text part."""

    text: str

    def __post_init__(self) -> None:
        _set(self, "text", _check_text(self.text, "Text.text"))


@frozen
class Image:
    """An image for the model."""

    data: bytes
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        _set(self, "data", _check_data(self.data, "Image.data"))
        _set(self, "media_type", _check_text(self.media_type, "Image.media_type"))


WEB_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The images that models view and browsers show. Not SVG, which can hold scripts."""


def image_type(data: bytes) -> str | None:
    """Return which of them some bytes begin as; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data.startswith(b"RIFF") and data[8:12] == b"WEBP" else None


def is_whole_image(data: bytes) -> bool:
    """Whether bytes are an image of these types that was not cut off: an API refuses the whole request with another.

    A JPEG or GIF that was cut off is whole: it can be shown in part.
    """
    match image_type(data):
        case "image/png":
            return _has_last_chunk(data)
        case "image/webp":
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")
        case kind:
            return kind is not None


def _has_last_chunk(png: bytes) -> bool:
    place = 8
    while place + 12 <= len(png):
        if png[place + 4 : place + 8] == b"IEND":
            return True
        place += 12 + int.from_bytes(png[place : place + 4])
    return False


@frozen
class File:
    """A document for the model."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""

    def __post_init__(self) -> None:
        _set(self, "data", _check_data(self.data, "File.data"))
        _set(self, "media_type", _check_text(self.media_type, "File.media_type"))
        _set(self, "name", _check_text(self.name, "File.name"))


Part: TypeAlias = Text | Image | File

_TEXT_TYPES = frozenset(
    "application/json application/xml application/yaml application/x-yaml application/toml application/javascript "
    "application/x-sh application/sql image/svg+xml".split()
)


def plain_media_type(part: Image | File) -> str:
    """Return the media type of a part without parameters, in lower case."""
    return part.media_type.partition(";")[0].strip().lower()


def text_of_file(part: Image | File) -> str | None:
    """Return the text of a file that is text by its type, which models read as text; None for any other file."""
    kind = plain_media_type(part)
    textual = kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+json", "+xml"))
    return part.data.decode(errors="replace") if textual and image_type(part.data) is None else None


@frozen
class Output:
    """The output of a completed call: content for the model and, optionally, structured data for programs.

    Args:
        content: A text, or content parts.
        structured: JSON data; copied, so that a later change of the original changes nothing here.

    Raises:
        UsageError: The content is neither text nor parts, or the data is not JSON.
    """

    content: str | tuple[Part, ...] = ""
    structured: Json = None

    def __post_init__(self) -> None:
        if type(self.content) is not str:
            _set(self, "content", _check_content(self.content))
        if self.structured is not None:
            try:
                _set(self, "structured", check_json(self.structured))
            except ValueError as error:
                raise UsageError(f"Output.structured must be JSON: {error}") from error

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts, also where it is a plain text."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content

    def with_note(self, note: str) -> "Output":
        """Return the same output with a note for the model on a line of its own at the end."""
        content = self.content
        if isinstance(content, str):
            return Output(f"{content}\n{note}" if content else note, self.structured)
        return Output((*content, Text(note)), self.structured)


_set = object.__setattr__


def _check_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, got {safe_repr(value)}")
    return str.__str__(value)  # of a string enum its value


def _check_data(value: object, name: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(cast("bytes", value))
    raise UsageError(f"{name} must be bytes, got {safe_repr(value)}")


def _check_content(value: object) -> str | tuple[Part, ...]:
    if isinstance(value, str):
        return str.__str__(value)
    if not isinstance(value, (tuple, list)):
        raise UsageError(f"Output.content must be text or content parts, got {safe_repr(value)}")
    return tuple(_check_part(part) for part in cast("Iterable[Any]", value))


def _check_part(value: object) -> Part:
    if isinstance(value, (Text, Image, File)):
        return value
    if isinstance(value, str):
        return Text(value)
    raise UsageError(f"a content part must be Text, Image or File, got {safe_repr(value)}")


_CHARS_PER_TOKEN = 4
"""An estimate, which fits English text and JSON."""


def tokens_for(chars: int) -> int:
    """Estimate the tokens of that many characters."""
    return -(-chars // _CHARS_PER_TOKEN)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return tokens_for(len(text))
