"""Reading of the Responses API's event stream: the standard, and the deviations of gateways."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from callwright.core.calls import ToolCall
from callwright.core.content import Text
from callwright.core.json import canonical, compact
from callwright.core.messages import AssistantMessage, AssistantPart, Stop, Thinking
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.encoding import get_object, join_halves, parse_object, wrap_opaque
from callwright.providers.errors import broken_stream, status_failure
from callwright.providers.openai.client import STREAM_ENDED, openai_usage
from callwright.providers.tool_encoding import EncodedTools, finish_message

PROVIDER = "openai"
Event = dict[str, Any]
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_LAST = ("response.completed", "response.incomplete")


@dataclass(slots=True)
class _Streamed:
    """An item as it was streamed."""

    index: object
    item: Event
    done: bool = False
    written: str | None = None
    """The arguments of a call as they were streamed."""


class ResponsesDraft:
    """A message under construction from the Responses API's events; `origin` is the server, if not OpenAI's."""

    def __init__(self, tools: EncodedTools, origin: str = "") -> None:
        self._tools = tools
        self._origin = origin
        self._streamed: list[_Streamed] = []
        self._said: list[Event] = []  # the text as it was streamed, in pieces of content
        self._response: Event | None = None
        self.ended = False

    def take(self, event: Any) -> list[ModelEvent]:
        """Add one event, or a whole unstreamed response, and return the model events it causes."""
        if event is STREAM_ENDED:
            return []
        if event.get("object") == "response":
            return self._take_whole(event)
        kind = event.get("type", "")
        if kind == "response.output_item.added":
            return self._start_item(event["output_index"], event["item"])
        if kind == "response.output_item.done":
            self._end_item(event["output_index"], event["item"])
        elif kind == "response.function_call_arguments.delta":
            return self._extend_call(self._find_call(event), event["delta"])
        elif kind == "response.function_call_arguments.done":
            call = self._find_call(event)
            call.written = _arguments_of(event) if call.written is None else call.written
        elif kind in _TEXT and event["delta"]:
            self._said.append({"type": kind.split(".")[1], "text": event["delta"]})
            return [TextDelta(event["delta"])]
        elif kind in _THOUGHT and event["delta"]:
            return [ThinkingDelta(event["delta"])]
        elif kind in _LAST:
            self._response, self.ended = event["response"], True
        elif kind in ("response.failed", "error"):
            raise status_failure(200, get_object(event, "response") or event, {})
        return []

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        response = self._response
        if response is None:
            raise broken_stream("it ended before the message was complete")
        # some gateways leave the list in the last event empty
        items: list[Event] = response.get("output") or [_check_done(each) for each in self._in_order()]
        items = [item for item in items if isinstance(item, dict)]  # pyright: ignore[reportUnnecessaryIsInstance] - JSON
        items = self._add_text(self._check_calls(items, response.get("status")))
        stop = self._stop(response, items)
        parts: list[AssistantPart] = []
        for item in items:
            parts += self._parts(item, cut=stop == "length" and item is items[-1])
        usage = openai_usage(get_object(response, "usage"), "input", "output")
        return finish_message(parts, stop, usage, response.get("model"))

    def _in_order(self) -> list[_Streamed]:
        return sorted(self._streamed, key=lambda each: cast("int", each.index))  # several may have one index

    def _check_calls(self, items: list[Event], status: str | None) -> list[Event]:
        """Return the last event's items, calls without arguments with those that were streamed.

        Raises `ProviderError` if a call is missing, or differs from what was streamed.
        """
        checked = list(items)
        free = set(range(len(checked)))  # a model may give two calls the same id
        fewer = _count_calls(items) < _count_calls(each.item for each in self._streamed)  # else ids may have changed
        for each in self._in_order():
            if each.item.get("type") != "function_call" or any(item is each.item for item in checked):
                continue
            place = next((at for at in sorted(free) if _is_same_item(checked[at], each.item)), None)
            if place is not None:
                free.remove(place)
                checked[place] = _merge_call(each, checked[place])
            elif fewer and (each.done or status in (None, "completed")):
                raise broken_stream("a call that was streamed is missing at the end")
        return checked

    def _add_text(self, items: list[Event]) -> list[Event]:
        """Return the items with the text that was streamed, if they have none."""
        told = any(item.get("type") == "message" and _join_content(item.get("content")) for item in items)
        if told or not self._said:
            return items
        first = next((at for at, item in enumerate(items) if item.get("type") == "function_call"), len(items))
        return [*items[:first], {"type": "message", "content": self._said}, *items[first:]]

    def _take_whole(self, response: Event) -> list[ModelEvent]:
        if response.get("status") == "failed":
            raise status_failure(200, response, {})
        self._response = response
        said = "".join(part.text for part in self.message().parts if isinstance(part, Text))
        return [TextDelta(said)] if said else []

    def _find_call(self, event: Event) -> _Streamed:
        """Return the call that an event is about: of several under one index that of its id, else the last one."""
        there = self._find_at(event["output_index"])
        named = [each for each in there if event.get("item_id") and each.item.get("id") == event["item_id"]]
        if not there:
            self._streamed.append(_Streamed(event["output_index"], {}))
        return (named or there or self._streamed)[-1]

    def _extend_call(self, call: _Streamed, text: str) -> list[ModelEvent]:
        item = call.item
        if not item.get("name"):
            raise broken_stream("the arguments of a call came before its name")
        item["arguments"] = (item.get("arguments") or "") + text
        call.written = (call.written or "") + text
        return [CallDelta(_find_call_id(item), self._tools.tool_name_of(item["name"]), text)]

    def _start_item(self, index: object, item: Event) -> list[ModelEvent]:
        there = self._find_at(index)
        begun = next((each for each in there if _is_same_item(each.item, item)), None)
        if begun is None:  # another one, even if a gateway sends all items under one index
            self._streamed.append(_Streamed(index, dict(item)))  # it grows
        elif not begun.done:  # announced again
            begun.item, begun.written = dict(item), None
        if item.get("type") == "function_call":
            return [CallDelta(_find_call_id(item), self._tools.tool_name_of(item["name"]), "")]
        return []

    def _end_item(self, index: object, item: Event) -> None:
        there = self._find_at(index)
        same = [each for each in there if _is_same_item(each.item, item)]
        begun = next(iter(same or [each for each in there if not each.done][-1:]), None)  # a gateway may change the ids
        if begun is None:
            begun = _Streamed(index, item)
            self._streamed.append(begun)
        elif begun.item.get("type") == item.get("type") == "function_call":
            item = _merge_call(begun, item)
        begun.item, begun.done = item, True

    def _find_at(self, index: object) -> list[_Streamed]:
        return [each for each in self._streamed if each.index == index]

    def _stop(self, response: Event, items: list[Event]) -> Stop:
        why = get_object(response, "incomplete_details").get("reason")
        if response.get("status") == "incomplete":
            return "length" if why == "max_output_tokens" else "refusal" if why == "content_filter" else "other"
        if response.get("status") not in (None, "completed"):
            return "other"
        contents = [item.get("content") for item in items]
        parts = [part for content in contents if isinstance(content, list) for part in cast("list[Any]", content)]
        refused = any(isinstance(part, dict) and "refusal" in (part.get("type") or "") for part in parts)  # pyright: ignore[reportUnknownMemberType] - JSON
        return "refusal" if refused else "end"

    def _read_call(self, item: Event, *, cut: bool) -> ToolCall:
        name = item.get("name")
        if not name:
            raise broken_stream("a call has no name")
        return self._tools.read_call(_find_call_id(item), name, _arguments_of(item), cut=cut)

    def _parts(self, item: Event, *, cut: bool) -> list[AssistantPart]:
        match item.get("type"):
            case "function_call":
                return [self._read_call(item, cut=cut or item.get("status") == "incomplete")]
            case "message":
                text = _join_content(item.get("content"))
                phase = item.get("phase")
                label = [Thinking("", wrap_opaque(PROVIDER, {"phase": phase}, self._origin))] if phase else []
                return [*label, Text(text)] if text else []
            case "reasoning":
                return [_read_reasoning(item, self._origin)]
            case None:  # sent back, it would be refused for good
                raise broken_stream("an item has no type")
            case _:  # tools the API runs itself: sent back unchanged
                return [Thinking("", wrap_opaque(PROVIDER, item, self._origin))]


def _find_call_id(call: Event) -> str:
    """Return the id of a call; some gateways send only that of its item, and the agent makes up a missing one."""
    return call.get("call_id") or call.get("id") or ""


def _arguments_of(call: Event) -> str:
    written = call.get("arguments")
    return written if isinstance(written, str) else "" if written is None else compact(written)


def _check_done(streamed: _Streamed) -> Event:
    item = streamed.item
    if item.get("type") == "function_call" and not streamed.done and not item.get("arguments"):
        raise broken_stream("the arguments of a call never came")
    return item


def _merge_call(begun: _Streamed, ended: Event) -> Event:
    """Return a call as it ended, with the arguments that were streamed if it has none."""
    text, streamed = (join_halves(each) for each in (_arguments_of(ended), begun.written or _arguments_of(begun.item)))
    cut = ended.get("status") == "incomplete"
    same = cut or not text.strip() or not streamed.strip() or _are_same_arguments(text, streamed)
    if not same or ended.get("name") != begun.item.get("name"):
        raise broken_stream("a call differs from what was streamed of it")
    return ended if text.strip() else {**ended, "arguments": streamed}


def _count_calls(items: Iterable[Event]) -> int:
    return sum(item.get("type") == "function_call" for item in items)


def _is_same_item(item: Event, streamed: Event) -> bool:
    same = any(streamed.get(name) and item.get(name) == streamed[name] for name in ("call_id", "id"))
    return same and item.get("type") == streamed.get("type")


def _are_same_arguments(text: str, streamed: str) -> bool:
    """Tell whether two texts are the same arguments, perhaps with other white space."""
    if text.strip() == streamed.strip():
        return True
    first, second = parse_object(text), parse_object(streamed)
    return first is not None and second is not None and canonical(first) == canonical(second)


def _join_content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content or ())


def _read_reasoning(item: Event, origin: str) -> Thinking:
    texts: list[Event] = [*(item.get("summary") or ()), *(item.get("content") or ())]
    text = "\n\n".join([part["text"] for part in texts if part.get("text")])
    if not item.get("encrypted_content"):
        return Thinking(text)  # nothing is stored at OpenAI, so the item could not be found again
    names = ("type", "id", "summary", "content", "encrypted_content")
    kept = {name: item[name] for name in names if item.get(name) is not None}
    return Thinking(text, wrap_opaque(PROVIDER, kept, origin))
