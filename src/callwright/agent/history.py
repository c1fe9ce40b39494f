"""Functions over the messages of a conversation: their outcomes, their faults, and unique ids for calls."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.messages import AssistantMessage, Message, ToolMessage

Ending = Completed | Failed


def find_outcomes(messages: Iterable[Message]) -> Iterator[Ending]:
    """Yield the outcomes in a history."""
    return (outcome for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes)


def find_history_faults(messages: Sequence[object]) -> list[str]:
    """List the faults providers reject: calls without outcomes, outcomes without calls."""
    faults: list[str] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            given = [outcome.call.id for outcome in message.outcomes]
            if given != waiting:
                faults.append(f"message {index} has outcomes for {given}, the calls were {waiting}")
            waiting = []
            continue
        if waiting:
            faults.append(f"message {index} comes before the outcomes of {waiting}")
        waiting = [call.id for call in message.calls] if isinstance(message, AssistantMessage) else []
    return [*faults, f"the last calls have no outcomes: {waiting}"] if waiting else faults


def ensure_unique_ids(message: AssistantMessage) -> AssistantMessage:
    """Give every call of a message a unique id; some models repeat ids or leave them out."""
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    if not ids or (all(ids) and (len(ids) == 1 or len(set(ids)) == len(ids))):
        return message
    taken: set[str] = set()
    parts = [_assign_free_id(part, taken) if isinstance(part, ToolCall) else part for part in message.parts]
    return replace(message, parts=tuple(parts))


def _assign_free_id(call: ToolCall, taken: set[str]) -> ToolCall:
    preferred = call.id or "call"
    found, count = preferred, 1
    while found in taken or not found:
        count += 1
        found = f"{preferred}-{count}"
    taken.add(found)
    return call if found == call.id else replace(call, id=found)
