"""Images and files in the results of other frameworks' tools: as parts, or as a text that says what is left out."""

import base64
from mimetypes import guess_type
from typing import Literal
from urllib.parse import unquote_to_bytes

from callwright.core.content import File, Image, Part, Text

_DATA_URL = "data:"


def decode_media(
    kind: Literal["image", "file"],
    *,
    data: object = None,
    url: object = None,
    file_id: object = None,
    media_type: object = None,
    name: object = None,
) -> Part:
    """Return an image or a file; a text for what is not in the result itself, or cannot be read.

    Args:
        kind: What it is.
        data: The content in base64, or a data URL.
        url: Where it is, or a data URL.
        file_id: Its id where a provider keeps uploaded files.
        media_type: Its type, if a data URL does not say it.
        name: The name of the file.
    """
    label = name if isinstance(name, str) else ""
    if not isinstance(data, str) and isinstance(url, str) and url.startswith(_DATA_URL):
        data = url
    if isinstance(data, str):
        try:
            content, found = _decode_data(data)
        except ValueError:
            return _leave_out(kind, label, "its data cannot be read")
        told = found or (media_type if isinstance(media_type, str) else "")
        if kind == "image":
            return Image(content, told or "image/png")
        return File(content, told or guess_type(label)[0] or "application/octet-stream", label)
    if isinstance(url, str):
        return Text(f"{kind}: {url}")
    if isinstance(file_id, str):
        return _leave_out(kind, label, f"the tool returned only the id of an uploaded file, {file_id}")
    return _leave_out(kind, label, "the tool returned no data")


def _decode_data(text: str) -> tuple[bytes, str]:
    """Return the content of a data URL, with its media type, or of a text in base64.

    Raises:
        ValueError: It is not base64.
    """
    if not text.startswith(_DATA_URL):
        return base64.b64decode("".join(text.split()), validate=True), ""
    head, _, data = text.removeprefix(_DATA_URL).partition(",")
    content = unquote_to_bytes(data)
    if head.endswith(";base64"):
        content = base64.b64decode(b"".join(content.split()), validate=True)
    return content, head.partition(";")[0]


def _leave_out(kind: str, label: str, reason: str) -> Text:
    return Text(f"[{kind} {label} left out: {reason}]" if label else f"[{kind} left out: {reason}]")
