"""The outputs of tools: text, images, files and structured data."""

from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.json import Json


@dataclass(frozen=True, slots=True)
class Text:
    """A text part."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image for the model."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class File:
    """A document for the model."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""


Part: TypeAlias = Text | Image | File


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a completed call: content for the model and, optionally, structured data for programs."""

    content: str | tuple[Part, ...] = ""
    structured: Json = None

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
