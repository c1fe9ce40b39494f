"""Final messages that are no answer: calls written as text, and messages that say nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from secrets import token_hex

from callwright.core.calls import Completed, Failed, Repair, ToolCall
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Message, Thinking
from callwright.executor.repair import tell_repairs
from callwright.providers.base import Provider
from callwright.registry.catalog import Catalog
from callwright.stats import Stats
from callwright.tool.arguments import clip_value

_PREFIX = "text_"
_NOTE = Repair("text", "the call was read from the text of the message")
_SWITCH_AFTER = 2
"""How many messages with calls as text make a session change to schema mode."""
_UNKNOWN = (
    "there is no tool {name}: nothing ran, and nothing has changed. The next step is a call of one of these tools: "
    "{tools}"
)
_MOST_NAMES = 20
EMPTY_REPLY = (
    "your message had no text and no call. If the task is done, say what you did in a few words; if not, go on with "
    "the next call"
)
_NO_TEXT = "(no text)"
_PROSE = (
    "your message has a call of {name} among other text, or one that cannot be read, so nothing ran{why}. Make the "
    "call with the tool-calling format and nothing else in the message, or answer in words without it"
)


class TextReplies:
    """What one run makes of messages without calls."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._as_text = 0
        """How many messages wrote their calls as text."""
        self.asked = False
        """Whether the model was asked again since its last call: that is done once."""

    def read_calls(self, reply: AssistantMessage, catalog: Catalog) -> AssistantMessage:
        """Return a message that is nothing but calls written as text with these calls; any other as it is."""
        text = reply.text
        if not catalog.tools or reply.stop not in ("end", "calls") or not _may_hold_call(text):
            return reply
        from callwright.repairs.text_calls import read_text_calls  # many patterns, which few replies need

        found = read_text_calls(text, catalog.spellings)
        if not found:
            return reply
        self._as_text += 1
        if self._as_text >= _SWITCH_AFTER:
            self._use_schema()
        thoughts = tuple(part for part in reply.parts if isinstance(part, Thinking))
        calls = tuple(ToolCall(f"{_PREFIX}{token_hex(8)}", call.name, call.arguments) for call in found)
        return replace(reply, parts=(*thoughts, *calls), stop="calls")

    def find_problem(self, reply: AssistantMessage, catalog: Catalog, history: Iterable[Message]) -> str | None:
        """Return what to tell the model about a message that is no answer; None for an answer."""
        text = reply.text
        if not text.strip():
            return EMPTY_REPLY
        if not catalog.tools or not _may_hold_call(text):
            return None
        from callwright.repairs.prose_calls import find_call_in_prose, find_repeated_key, find_unknown_call

        known = find_call_in_prose(text, catalog.spellings)
        unknown = find_unknown_call(text) if known is None else None
        if known is None and unknown is None:
            return None
        if not _has_own_calls(history):  # the next call would be written as text too
            self._use_schema()
        if unknown is not None:
            return _UNKNOWN.format(name=clip_value(unknown.strip()) or "without a name", tools=_list_names(catalog))
        why = find_repeated_key(text)
        return _PROSE.format(name=known, why=why and f": {why}")

    def _use_schema(self) -> None:
        if (switch := getattr(self._provider, "use_schema", None)) is not None:
            switch()

    def may_ask(self) -> bool:
        """Whether the model may be asked again: once, until it makes a call."""
        asked, self.asked = self.asked, True
        return not asked


def _has_own_calls(history: Iterable[Message]) -> bool:
    """Whether the model has made a call in the form of the server, in this run or before."""
    said = (message for message in history if isinstance(message, AssistantMessage))
    return any(not is_text_call(call) for message in said for call in message.calls)


def _list_names(catalog: Catalog) -> str:
    names = [spec.name for spec in catalog.definitions]
    return ", ".join(names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], "…"])


def fill_empty(reply: AssistantMessage) -> AssistantMessage:
    """Return a message that every provider accepts in a history, also if the model said nothing."""
    return reply if reply.text.strip() else replace(reply, parts=(*reply.parts, Text(_NO_TEXT)))


def is_filled(reply: AssistantMessage) -> bool:
    """Whether a message of the history is one in which the model said nothing."""
    return reply.text.strip() == _NO_TEXT


def is_text_call(call: ToolCall) -> bool:
    """Whether the model wrote a call as text; then it wrote all calls of the message so."""
    return call.id.startswith(_PREFIX)


def note_text_calls(outcomes: Sequence[Completed | Failed], stats: Stats) -> Sequence[Completed | Failed]:
    """Tell the model about calls that it wrote as text, and count them."""
    return [_note(outcome, stats) if is_text_call(outcome.call) else outcome for outcome in outcomes]


def _note(outcome: Completed | Failed, stats: Stats) -> Completed | Failed:
    stats.count_repairs(outcome.call.name, (_NOTE,))
    return tell_repairs(outcome, (*outcome.repairs, _NOTE), note=f"({_NOTE.note.capitalize()}.)")


def _may_hold_call(text: str) -> bool:
    """Tell quickly whether a text can hold a call: almost all answers cannot."""
    return "{" in text or "<" in text or "(" in text
