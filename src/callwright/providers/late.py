"""Tools that join a conversation in the middle, where a search found them.

Definitions stand before everything else in a prompt, so one more of them invalidates all that a provider has cached.
Two APIs let a tool join later instead: Anthropic's by reference to a definition that is sent but not shown, OpenAI's
Responses by an item that brings the definition along.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from callwright.core.history import History
from callwright.core.message import Message, ToolMessage
from callwright.core.reveal import revealed_by
from callwright.providers.encoding import kept_with

Late: TypeAlias = Literal["never", "by reference", "by definition"]
"""How an API lets tools join: not at all, or one of the two ways."""
NOBODY: frozenset[str] = frozenset()


def joined(message: Message) -> tuple[str, ...]:
    """The tools that a message's searches revealed, each once."""
    if not isinstance(message, ToolMessage):
        return ()
    return tuple(dict.fromkeys(name for outcome in message.outcomes for name in revealed_by(outcome)))


def all_joined(messages: Sequence[Message]) -> frozenset[str]:
    """The tools that have joined a conversation so far; the same object until there are more.

    A tool whose search was compacted away is not among them.
    """
    if not isinstance(messages, History) or not messages:
        return frozenset(name for message in messages for name in joined(message)) or NOBODY
    return kept_with(messages, _Joined, _Joined).upto(messages)


class _Joined:
    """What has joined a history that only grows."""

    __slots__ = ("_count", "_names")

    def __init__(self) -> None:
        self._count = 0
        self._names = NOBODY

    def upto(self, messages: History) -> frozenset[str]:
        """All that have joined by now."""
        fresh = [name for message in messages[self._count :] for name in joined(message)]
        self._count = len(messages)
        if fresh:
            self._names = self._names.union(fresh)
        return self._names
