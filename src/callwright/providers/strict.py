"""OpenAI's strict mode: the schema it accepts, and the way of arguments into its shape and back."""

from dataclasses import dataclass

from callwright.core.json import Json, JsonObject
from callwright.core.spec import ToolSpec
from callwright.providers.object_root import object_root
from callwright.providers.strict_arguments import Codec, Way
from callwright.providers.strict_limits import over_limit
from callwright.providers.strict_reading import Inexpressible
from callwright.providers.strict_schema import StrictCompiler


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A tool's schema in strict mode, or why it has none. Made once per tool and kept by whoever sends it."""

    schema: JsonObject | None
    """What strict mode accepts; None where the tool must be sent without it."""
    notes: tuple[str, ...]
    """What strict mode cannot say about this tool, place by place."""
    codec: Codec | None = None

    def outward(self, arguments: JsonObject) -> JsonObject:
        """Write the tool's arguments as a model in strict mode would: for replaying calls to it."""
        return self._convert(arguments, "out")

    def inward(self, arguments: JsonObject) -> JsonObject:
        """Read a model's strict arguments as the tool's. What does not fit is passed on for `bind` to name."""
        return self._convert(arguments, "back")

    def _convert(self, arguments: JsonObject, way: Way) -> JsonObject:
        if self.codec is None:
            return arguments
        try:
            converted: Json = self.codec.convert(arguments, way).value
        except RecursionError:  # nested deeper than any tool reads; `bind` says so
            return arguments
        return converted if isinstance(converted, dict) else arguments


def strict_form(schema: JsonObject) -> StrictForm:
    """Put a tool's input schema into strict mode, or say why that cannot be done without losing calls."""
    root, lost = object_root(schema)
    compiler = StrictCompiler(root)
    try:
        strict, codec = compiler.compiled()
    except (Inexpressible, RecursionError) as error:
        reason = str(error) if isinstance(error, Inexpressible) else "arguments: nested too deeply"
        return StrictForm(None, (f"not sent in strict mode: {reason}",))
    excess = over_limit(strict)
    if excess:
        return StrictForm(None, (f"not sent in strict mode: {excess}",))
    return StrictForm(strict, lost + compiler.notes, codec)


def from_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Read the arguments a model gave in strict mode as the tool's own.

    Nulls that stand for "left out" go, nulls the tool's schema allows stay, and maps and free-form values get their
    own shape again. A tool that strict mode cannot express was sent without it: its arguments come back as they are.
    """
    return strict_form(spec.input_schema).inward(arguments)


def to_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Write a tool's own arguments as a model in strict mode gives them: the inverse of `from_strict`."""
    return strict_form(spec.input_schema).outward(arguments)
