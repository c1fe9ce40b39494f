"""Converts files that are not plain text for the `read` tool: images, PDF pages, notebooks."""

import base64
import binascii
import io
import json
from collections.abc import Sequence
from typing import Any, cast

from callwright.core.content import Image, Part, Text
from callwright.core.errors import ToolFailed

MAX_IMAGE_BYTES = 5 * 1024 * 1024
_MAX_PAGES = 20
_OUTPUT_CHARS = 2000
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(head: bytes) -> str | None:
    """Return the media type of an image that models can view, by its first bytes; the file name does not matter."""
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            return media_type
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def pdf_pages(data: bytes, name: str, first: int, count: int) -> str:
    """Return the text of some pages, and how to read the others."""
    try:
        from pypdf import PdfReader  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - an extra
        from pypdf.errors import PyPdfError  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - same
    except ImportError:
        raise ToolFailed(f"{name} is a PDF; reading it needs pypdf: pip install 'callwright[pdf]'") from None
    try:
        reader: Any = cast("Any", PdfReader)(io.BytesIO(data))
        pages = cast("Sequence[Any]", reader.pages)
        total = len(pages)
        if first > total:
            raise ToolFailed(f"offset {first} is past the end: {name} has {total} pages")
        last = min(total, first + min(count, _MAX_PAGES) - 1)
        texts = [f"--- page {n} of {total} ---\n{pages[n - 1].extract_text().strip()}" for n in range(first, last + 1)]
    except PyPdfError as error:  # pyright: ignore[reportUnknownVariableType] - as above
        raise ToolFailed(f"{name} is not a readable PDF: {error}") from None
    more = f"\n(pages {first}-{last} of {total}; continue with offset={last + 1})" if last < total else ""
    return "\n".join(texts) + more


def notebook_cells(data: bytes, name: str) -> list[Part]:
    """Return the cells of a notebook with their outputs; images stay images."""
    try:
        notebook = json.loads(data)
        cells = cast("list[dict[str, Any]]", notebook["cells"])
        parts = [part for number, cell in enumerate(cells, 1) for part in _cell(number, cell)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ToolFailed(f"{name} is not a readable notebook; read its lines with an explicit limit") from None
    note = "(cells of a notebook; to edit it, read its lines with an explicit limit)"
    return [*parts, Text(note if parts else "(the notebook has no cells)")]


def _cell(number: int, cell: dict[str, Any]) -> list[Part]:
    kind = cell.get("cell_type", "raw")
    parts: list[Part] = [Text(f"--- cell {number}, {kind} ---\n{_join(cell.get('source', ''))}")]
    for output in cell.get("outputs", ()) if kind == "code" else ():
        parts += _output(output)
    return parts


def _output(output: dict[str, Any]) -> list[Part]:
    data = output.get("data", {})
    text = _join(output.get("text") or data.get("text/plain") or output.get("traceback") or output.get("evalue", ""))
    parts: list[Part] = [Text(f"output: {_cut(text)}")] if text else []
    for media_type in ("image/png", "image/jpeg"):
        if media_type in data:
            try:
                parts.append(Image(base64.b64decode(_join(data[media_type])), media_type))
            except binascii.Error:
                parts.append(Text("output: an image that cannot be decoded"))
    return parts


def _join(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _cut(text: str) -> str:
    return text if len(text) <= _OUTPUT_CHARS else f"{text[:_OUTPUT_CHARS]}… (+{len(text) - _OUTPUT_CHARS} characters)"
