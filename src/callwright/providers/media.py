"""Images and files in requests: as an API accepts them, else as text."""

from base64 import b64encode
from collections.abc import Collection

from callwright.core.content import File, Image, Part, Text

PDF = "application/pdf"
WEB_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The images that Anthropic and OpenAI accept."""
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
_TEXTUAL = frozenset(
    "application/json application/xml application/yaml application/x-yaml application/toml application/javascript "
    "application/x-sh application/sql image/svg+xml".split()
)


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
    if media_type in images:
        return part if isinstance(part, Image) and part.media_type == media_type else Image(part.data, media_type)
    if media_type.startswith(files):
        name = part.name if isinstance(part, File) else ""
        return part if isinstance(part, File) and part.media_type == media_type else File(part.data, media_type, name)
    return Text(file_text(part))


def _media_type(part: Image | File) -> str:
    """Return the media type, by the content where that is certain: servers refuse an image under another's name."""
    head = part.data[:12]
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:] == b"WEBP":
        return "image/webp"
    plain = part.media_type.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(plain, plain)


def base64_text(part: Image | File) -> str:
    """Return the bytes of a part as base64."""
    return b64encode(part.data).decode()


def data_url(part: Image | File) -> str:
    """Return a data URL with the bytes of a part."""
    return f"data:{part.media_type};base64,{base64_text(part)}"


def file_text(part: Image | File) -> str:
    """Return a part as text for an API that does not accept it: its content if it is text, else a placeholder."""
    name = (part.name if isinstance(part, File) else "") or ("an image" if isinstance(part, Image) else "a file")
    media_type = _media_type(part)
    if media_type.startswith("text/") or media_type in _TEXTUAL or media_type.endswith(("+json", "+xml")):
        return f"{name}:\n{part.data.decode(errors='replace')}"
    return f"[{name}: {media_type}, {len(part.data)} bytes, which cannot be shown here]"
