"""Converts files that are not plain text for the `read` tool: images, PDF pages, notebooks."""

import base64
import binascii
import io
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

from callwright.core._lazy import install_command
from callwright.core.content import Image, Part, Text
from callwright.core.errors import ToolFailed

MAX_IMAGE_BYTES = 5 * 1024 * 1024
_MAX_PAGES = 20
_MAX_IMAGES = 20
_MAX_PARTS = 100
_OUTPUT_CHARS = 2000


def pdf_pages(data: bytes, name: str, first: int, count: int) -> str:
    """Return the text of some pages, and how to read the others."""
    try:
        from pypdf import PdfReader  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - an extra
        from pypdf.errors import PyPdfError  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - same
    except ImportError:
        raise ToolFailed(f"{name} is a PDF; reading it needs pypdf: " + install_command("'callwright[pdf]'")) from None
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
    """Return the cells of a notebook with their outputs; the first images stay images, as many as a model can view."""
    images = _Images()
    try:
        notebook = json.loads(data)
        cells = cast("list[dict[str, Any]]", notebook["cells"])
        parts = [part for number, cell in enumerate(cells, 1) for part in _cell(number, cell, images)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ToolFailed(f"{name} is not a readable notebook; read its lines with an explicit limit") from None
    note = "(cells of a notebook; to edit it, read its lines with an explicit limit)"
    return _join_texts([*parts, *images.note(), Text(note if parts else "(the notebook has no cells)")])


class _Images:
    """Decodes the images of a notebook, up to a number and a total size; counts those it leaves out."""

    def __init__(self) -> None:
        self._count = self._bytes = self._left_out = 0

    def decode(self, encoded: str, media_type: str) -> Part | None:
        size = len(encoded) * 3 // 4
        if self._count >= _MAX_IMAGES or self._bytes + size > MAX_IMAGE_BYTES:
            self._left_out += 1
            return None
        try:
            image = Image(base64.b64decode(encoded), media_type)
        except binascii.Error:
            return Text("output: an image that cannot be decoded")
        self._count += 1
        self._bytes += size
        return image

    def note(self) -> list[Part]:
        if not self._left_out:
            return []
        limits = f"at most {_MAX_IMAGES} images and {MAX_IMAGE_BYTES >> 20} MB of a notebook are shown"
        return [Text(f"({self._left_out:,} images are left out: {limits})")]


def _join_texts(parts: list[Part]) -> list[Part]:
    if len(parts) <= _MAX_PARTS:
        return parts
    joined: list[Part] = []
    for _, run in groupby(parts, lambda part: isinstance(part, Text)):
        same = list(run)
        texts = [part.text for part in same if isinstance(part, Text)]
        joined += [Text("\n".join(texts))] if texts else same
    return joined


def _cell(number: int, cell: dict[str, Any], images: _Images) -> list[Part]:
    kind = cell.get("cell_type", "raw")
    parts: list[Part] = [Text(f"--- cell {number}, {kind} ---\n{_join(cell.get('source', ''))}")]
    for output in cell.get("outputs", ()) if kind == "code" else ():
        parts += _output(output, images)
    return parts


def _output(output: dict[str, Any], images: _Images) -> list[Part]:
    data = output.get("data", {})
    text = _join(output.get("text") or data.get("text/plain") or output.get("traceback") or output.get("evalue", ""))
    parts: list[Part] = [Text(f"output: {_cut(text)}")] if text else []
    found = [images.decode(_join(data[kind]), kind) for kind in ("image/png", "image/jpeg") if kind in data]
    return [*parts, *(image for image in found if image is not None)]


def _join(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _cut(text: str) -> str:
    return text if len(text) <= _OUTPUT_CHARS else f"{text[:_OUTPUT_CHARS]}… (+{len(text) - _OUTPUT_CHARS} characters)"
