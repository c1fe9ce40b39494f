"""`Edge`: the tools of a request where they leave us, with their names and arguments on the way out and back."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from callwright.core.call import ToolCall
from callwright.core.json import JsonObject, compact
from callwright.core.message import AssistantPart, Stop
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest
from callwright.providers.encoding import Kept, call_arguments, listed, parsed_object, to_bytes, wire_name
from callwright.providers.formats import Shape
from callwright.providers.late import NOBODY, Late, all_joined
from callwright.providers.strict import StrictForm, strict_form

_NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Edge:
    """What one set of tools looks like to a provider."""

    tools: bytes
    """The encoded list; empty where there are no tools."""
    key: Hashable
    """Names everything about the tools that the encoding of a message depends on."""
    wire: Mapping[str, str]
    own: Mapping[str, str]
    forms: Mapping[str, StrictForm]
    """The tools that are sent in strict mode."""
    late: Mapping[str, bytes]
    """The tools that join where the history says so, with what is to be sent of them there."""

    def outward_name(self, call: ToolCall) -> str:
        """The name a call is replayed under."""
        return self.wire.get(call.name) or wire_name(call.name)

    def inward_name(self, name: str) -> str:
        """The tool a model meant by a name."""
        return self.own.get(name, name)

    def outward(self, call: ToolCall) -> JsonObject:
        """The arguments a call is replayed with, as the model had written them."""
        arguments = call_arguments(call)
        form = self.forms.get(call.name)
        return arguments if form is None or "invalid_json" in arguments else form.outward(arguments)

    def inward(self, call_id: str, name: str, text: str, *, cut: bool = False) -> ToolCall:
        """A model's call as ours. Text is kept as it came, except where strict mode or silence must be translated."""
        own = self.inward_name(name)
        if not text.strip() and not cut:
            return ToolCall(call_id, own)
        form = self.forms.get(own)
        arguments = None if form is None or cut else parsed_object(text)
        if form is None or arguments is None:
            return ToolCall(call_id, own, text)
        return ToolCall(call_id, own, compact(form.inward(arguments)))


class Edges:
    """Makes edges, one for each set of tools it meets."""

    def __init__(
        self,
        provider: str,
        shape: Callable[[ToolSpec, str, bool], Shape],
        *,
        strict: bool = False,
        late: Late = "never",
    ) -> None:
        self._provider = provider
        self._shape = shape
        self._strict = strict
        self._late: Late = late
        self._kept: Kept[Edge] = Kept()

    def of(self, request: ModelRequest) -> Edge:
        """The edge for a request's tools; the same as last time while they are the same."""
        names = request.wire_names or _NO_NAMES  # requests without any have an empty mapping of their own each
        joined = NOBODY if self._late == "never" else all_joined(request.messages)
        return self._kept.of(request.tools, names, joined, make=lambda: self._make(request, joined))

    def _make(self, request: ModelRequest, joined: frozenset[str]) -> Edge:
        wire = {spec.name: request.wire_names.get(spec.name, spec.name) for spec in request.tools}
        forms: dict[str, StrictForm] = {}
        if self._strict:
            found = {spec.name: strict_form(spec.input_schema) for spec in request.tools}
            # strict mode helps where it says all that the schema says; elsewhere it would cost valid calls
            forms = {name: form for name, form in found.items() if form.schema is not None and not form.notes}
        shapes = {spec.name: self._shape(spec, wire[spec.name], spec.name in forms).payload for spec in request.tools}
        late = {
            spec.name: to_bytes(shapes[spec.name]) for spec in request.tools if spec.deferred and spec.name in joined
        }
        if len(late) == len(shapes):  # no API takes a request in which there is nothing from the start
            late = {}
        everything = {**request.wire_names, **wire}
        renamed = frozenset((name, sent) for name, sent in everything.items() if name != sent)
        return Edge(
            self._listed(shapes, late),
            (self._provider, renamed, frozenset(forms), self._dependent(late, joined)),
            everything,
            {sent: name for name, sent in everything.items()},
            forms,
            late,
        )

    def _dependent(self, late: Mapping[str, bytes], joined: frozenset[str]) -> frozenset[object]:
        """What messages depend on: definitions they bring along, or whether what they refer to is still there."""
        return frozenset(late.items()) if self._late == "by definition" else frozenset(joined - late.keys())

    def _listed(self, shapes: Mapping[str, JsonObject], late: Mapping[str, bytes]) -> bytes:
        if self._late == "by definition":
            shown = [shape for name, shape in shapes.items() if name not in late]
        else:
            shown = [{**shape, "defer_loading": True} if name in late else shape for name, shape in shapes.items()]
        return listed([to_bytes(shape) for shape in shown]) if shown else b""


def stop_for(stop: Stop, parts: tuple[AssistantPart, ...]) -> Stop:
    """Say `calls` where a server calls a message with calls an ordinary end."""
    return "calls" if stop == "end" and any(isinstance(part, ToolCall) for part in parts) else stop
