"""`History`: the messages of a conversation, only ever added to, each put into a provider's form once."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from callwright.core.message import Message

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
