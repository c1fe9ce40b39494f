"""The events of OpenAI's Responses API as a message that grows."""

from typing import Any

from callwright.core.content import Text
from callwright.core.message import AssistantMessage, AssistantPart, Stop, Thinking
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.edge import Edge, stop_for
from callwright.providers.encoding import kept, nested
from callwright.providers.faults import broken, status_failure
from callwright.providers.openai_client import openai_usage
from callwright.providers.openai_responses_messages import PROVIDER

Event = dict[str, Any]

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_LAST = ("response.completed", "response.incomplete")


class ResponsesDraft:
    """The message so far."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._items: dict[int, Event] = {}
        self._response: Event | None = None

    def take(self, event: Event) -> list[ModelEvent]:
        """Take in one event; say what of it is news."""
        kind = event.get("type", "")
        if kind == "response.output_item.added":
            return self._added(event["output_index"], event["item"])
        if kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind == "response.function_call_arguments.delta":
            item = self._items[event["output_index"]]
            item["arguments"] = item.get("arguments", "") + event["delta"]
            return [CallDelta(item["call_id"], self._edge.inward_name(item["name"]), event["delta"])]
        elif kind in _TEXT and event["delta"]:
            return [TextDelta(event["delta"])]
        elif kind in _THOUGHT and event["delta"]:
            return [ThinkingDelta(event["delta"])]
        elif kind in _LAST:
            self._response = event["response"]
        elif kind in ("response.failed", "error"):
            raise status_failure(200, nested(event, "response") or event, {})
        return []

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        response = self._response
        if response is None:
            raise broken("it ended before the message did")
        # some gateways leave the list in the last event empty
        items: list[Event] = response.get("output") or [item for _, item in sorted(self._items.items())]
        stop = self._stop(response, items)
        parts: list[AssistantPart] = []
        for item in items:
            parts += self._parts(item, cut=stop == "length" and item is items[-1])
        usage = openai_usage(nested(response, "usage"), "input", "output")
        return AssistantMessage(tuple(parts), stop_for(stop, tuple(parts)), usage, response.get("model", ""))

    def _added(self, index: int, item: Event) -> list[ModelEvent]:
        self._items[index] = item
        if item.get("type") == "function_call":
            return [CallDelta(item["call_id"], self._edge.inward_name(item["name"]), "")]
        return []

    def _stop(self, response: Event, items: list[Event]) -> Stop:
        why = nested(response, "incomplete_details").get("reason")
        if response.get("status") == "incomplete":
            return "length" if why == "max_output_tokens" else "refusal" if why == "content_filter" else "other"
        refused = any(part.get("type") == "refusal" for item in items for part in item.get("content") or ())
        return "refusal" if refused else "end"

    def _parts(self, item: Event, *, cut: bool) -> list[AssistantPart]:
        match item.get("type"):
            case "function_call":
                return [self._edge.inward(item["call_id"], item["name"], item.get("arguments", ""), cut=cut)]
            case "message":
                text = "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or ())
                phase = item.get("phase")
                label = [Thinking("", kept(PROVIDER, {"phase": phase}))] if phase else []
                return [*label, Text(text)] if text else []
            case "reasoning":
                return [_thought(item)]
            case _:  # tools the API runs itself: handed back as they are
                return [Thinking("", kept(PROVIDER, item))]


def _thought(item: Event) -> Thinking:
    told: list[Event] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    said = "\n\n".join([part["text"] for part in told])
    if not item.get("encrypted_content"):
        return Thinking(said)  # the API keeps nothing for us, so it would not know this item again
    wanted = ("type", "id", "summary", "content", "encrypted_content")
    return Thinking(said, kept(PROVIDER, {name: item[name] for name in wanted if item.get(name) is not None}))
