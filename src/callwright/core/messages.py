"""The messages of a conversation, their token usage, and the append-only `History` that keeps them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

from callwright.core._fast import frozen
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.core.json import Json

Stop: TypeAlias = Literal["end", "calls", "length", "refusal", "paused", "other"]
"""Why a model stopped: done, tool calls, token limit, refusal, to be continued in another request, other."""


@frozen
class Usage:
    """The tokens of one or more requests; cached input is not included in `input_tokens`."""

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
        """The sum of all tokens, whatever their price."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


NO_USAGE = Usage()
"""Of a message whose provider reports nothing."""


@frozen
class Thinking:
    """A model's reasoning, kept complete, because some providers require it back unchanged."""

    text: str
    opaque: Json = None
    """The provider's own data about it: a signature, an encrypted block, an item id."""


AssistantPart: TypeAlias = Text | Thinking | ToolCall


@frozen
class UserMessage:
    """A message of the user, or of a program in the user's place."""

    content: str | tuple[Part, ...]


@frozen
class AssistantMessage:
    """A message of the model: text, reasoning and calls, in order."""

    parts: tuple[AssistantPart, ...]
    stop: Stop = "end"
    usage: Usage = NO_USAGE
    model: str = ""

    @property
    def text(self) -> str:
        """The text without the reasoning."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        parts = self.parts
        if len(parts) == 1 and type(parts) is tuple:
            return parts if isinstance(parts[0], ToolCall) else ()  # type: ignore[return-value] - a call, the only part
        calls = [part for part in parts if isinstance(part, ToolCall)]
        # a message of nothing but calls is the usual one: no second tuple for the garbage collector
        if type(parts) is tuple and len(calls) == len(parts):
            return parts  # type: ignore[return-value] - all of them are calls
        return tuple(calls)


@frozen
class ToolMessage:
    """The outcomes of one turn's calls: one per call, in call order."""

    outcomes: tuple[Completed | Failed, ...]


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


Encoded = TypeVar("Encoded")


class History(Sequence[Message]):
    """An append-only sequence of messages that caches their encoded forms."""

    __slots__ = ("_encoded", "_messages")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = list(messages)
        self._encoded: dict[Hashable, list[Any]] = {}

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self._messages.append(message)

    def extend(self, messages: Iterable[Message]) -> None:
        """Add messages at the end."""
        self._messages.extend(messages)

    def encode(self, key: Hashable, encode: Callable[[Message], Encoded]) -> Sequence[Encoded]:
        """Return every message as `encode` encodes it; messages already encoded under this key are not encoded again.

        Args:
            key: Identifies everything the encoding depends on, except the message.
            encode: Encodes one message.

        Returns:
            A sequence that grows with the history and must not be changed.
        """
        cached = self._encoded.get(key)
        if cached is None:
            cached = self._encoded[key] = []
        if len(cached) < len(self._messages):
            cached.extend([encode(message) for message in self._messages[len(cached) :]])
        return cached

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


def encode_messages(
    messages: Sequence[Message], key: Hashable, encode: Callable[[Message], Encoded]
) -> Sequence[Encoded]:
    """Encode messages; a `History` encodes only those that were not encoded under this key before."""
    if isinstance(messages, History):
        return messages.encode(key, encode)
    return [encode(message) for message in messages]
