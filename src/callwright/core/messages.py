"""`History`: the messages of a conversation, only ever added to, each put into a provider's form once.

What a conversation is made of: messages, and what a model's turn cost.

What a search for tools revealed, as its outcome tells sessions and providers.

A rough count of tokens, good enough for budgets and statistics, cheap enough for every call.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from callwright.core.calls import Completed, Failed, Outcome, ToolCall
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


Encoded = TypeVar("Encoded")


class History(Sequence[Message]):
    """An append-only sequence of messages that remembers what encoders made of them."""

    __slots__ = ("_encoded", "_messages")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)
        self._encoded: dict[Hashable, list[Any]] = {}

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self._messages.append(message)

    def encoded(self, key: Hashable, encode: Callable[[Message], Encoded]) -> Sequence[Encoded]:
        """Return every message as `encode` puts it, calling it for those that are new to this `key` only.

        The key must name everything the encoding depends on beside the message. What is returned grows with the
        history and must not be changed.
        """
        known = self._encoded.get(key)
        if known is None:
            known = self._encoded[key] = []
        if len(known) < len(self._messages):
            known.extend([encode(message) for message in self._messages[len(known) :]])
        return known

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


def encoded(messages: Sequence[Message], key: Hashable, encode: Callable[[Message], Encoded]) -> Sequence[Encoded]:
    """Encode any messages; those of a `History` that were encoded before under this key are not encoded again."""
    if isinstance(messages, History):
        return messages.encoded(key, encode)
    return [encode(message) for message in messages]


SEARCH_NAME: Final = "tool_search"
SEARCH_ALIASES: Final = ("ToolSearch", "search_tools")
_SPELLINGS = frozenset((SEARCH_NAME, *SEARCH_ALIASES))


def revealed_by(outcome: Outcome) -> tuple[str, ...]:
    """The tools a call revealed, in that order; none if it was no search."""
    if not isinstance(outcome, Completed) or outcome.call.name not in _SPELLINGS:
        return ()
    found = outcome.output.structured
    names = found.get("revealed") if isinstance(found, dict) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


_CHARS_PER_TOKEN = 4


def tokens_for(chars: int) -> int:
    """About how many tokens that many characters cost: four each, as English prose and JSON come to."""
    return (chars + _CHARS_PER_TOKEN - 1) // _CHARS_PER_TOKEN


def estimate_tokens(text: str) -> int:
    """About how many tokens a text costs."""
    return tokens_for(len(text))
