"""What a tool may hand back: text, structured data, images and files."""

from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.json import Json


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of text among other parts."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture the model can look at."""

    data: bytes
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class File:
    """A document handed over whole."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""


Part: TypeAlias = Text | Image | File


@dataclass(frozen=True, slots=True)
class Output:
    """What a completed call gives back: content for the model and, where there is some, data for programs."""

    content: str | tuple[Part, ...] = ""
    structured: Json = None

    @property
    def text(self) -> str:
        """The textual parts, joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts, whichever form it was given in."""
        return (Text(self.content),) if isinstance(self.content, str) else self.content
