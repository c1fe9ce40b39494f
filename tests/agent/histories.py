"""What makes a history invalid for providers."""

from collections.abc import Sequence

from callwright.core.messages import AssistantMessage, ToolMessage


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
