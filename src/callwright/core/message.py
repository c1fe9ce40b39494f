"""What a conversation is made of: messages, and what a model's turn cost."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.core.json import Json

Stop: TypeAlias = Literal["end", "calls", "length", "refusal", "paused", "other"]
"""Why a model stopped: it was done, it wants tools, it ran out of tokens, it refused, it wants to go on later."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more requests; cached ones are not counted as input again."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def total(self) -> int:
        """All tokens that passed, whatever they cost."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning, kept whole so that it can be handed back as the provider wants it."""

    text: str
    opaque: Json = None
    """What the provider needs to recognise its own thought: a signature, an encrypted block, an item id."""


AssistantPart: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person, or a program in a person's place, said."""

    content: str | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One turn of a model: text, thoughts and calls in the order they came."""

    parts: tuple[AssistantPart, ...]
    stop: Stop = "end"
    usage: Usage = Usage()
    model: str = ""

    @property
    def text(self) -> str:
        """What it said, thoughts left out."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls it asked for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The outcomes of one turn's calls: one per call, in call order."""

    outcomes: tuple[Completed | Failed, ...]


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
