"""OpenAI's strict mode: the schema it accepts, and the conversion of arguments into its shape and back."""

from dataclasses import dataclass

from callwright.core.json import Json, JsonObject, read_object
from callwright.core.spec import ToolSpec
from callwright.providers.schemas.inspect import as_list
from callwright.providers.schemas.merge import object_root
from callwright.providers.schemas.openai_strict_codec import Codec, Direction
from callwright.providers.schemas.openai_strict_compiler import StrictCompiler
from callwright.providers.schemas.openai_strict_read import Inexpressible

# the limits that OpenAI documents
_PROPERTIES = 5_000
_LEVELS = 10
_NAME_CHARS = 120_000
_CHOICES = 1_000
_LONG_ENUM = 250
_LONG_ENUM_CHARS = 15_000


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A tool's schema in strict mode, or the reason why it has none."""

    schema: JsonObject | None
    """The strict schema; None where the tool must be sent without strict mode."""
    notes: tuple[str, ...]
    """What strict mode cannot express about this tool, by path."""
    codec: Codec | None = None

    def to_wire(self, arguments: JsonObject) -> JsonObject:
        """Convert the tool's arguments to strict shape, for replaying calls to the model."""
        return self._convert(arguments, "out")

    def from_wire(self, arguments: JsonObject) -> JsonObject:
        """Convert a model's strict arguments to the tool's. What does not fit stays, for `bind` to report.

        Raises:
            RepeatedMember: A further property of an object has two values.
        """
        return self._convert(arguments, "back")

    def _convert(self, arguments: JsonObject, direction: Direction) -> JsonObject:
        if self.codec is None:
            return arguments
        try:
            converted: Json = self.codec.convert(arguments, direction).value
        except RecursionError:  # nested deeper than any tool reads; `bind` reports it
            return arguments
        return converted if isinstance(converted, dict) else arguments


def strict_form(schema: JsonObject) -> StrictForm:
    """Compile a tool's input schema for strict mode, or return the reason why valid calls would be lost."""
    root, lost = object_root(schema)
    compiler = StrictCompiler(root)
    try:
        strict, codec = compiler.compile()
    except (Inexpressible, RecursionError) as error:
        reason = str(error) if isinstance(error, Inexpressible) else "arguments: nested too deeply"
        return StrictForm(None, (f"not sent in strict mode: {reason}",))
    excess = over_limit(strict)
    if excess:
        return StrictForm(None, (f"not sent in strict mode: {excess}",))
    return StrictForm(strict, lost + compiler.notes, codec)


def from_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Convert the arguments a model gave in strict mode to the tool's own.

    Nulls that mean "left out" are removed, nulls the tool's schema allows stay, and maps and free-form values get
    their own shape again. A tool that strict mode cannot express was sent without it: its arguments stay unchanged.

    Raises:
        RepeatedMember: A further property of an object has two values.
    """
    return strict_form(spec.input_schema).from_wire(arguments)


def to_strict(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """Convert a tool's own arguments to strict shape: the inverse of `from_strict`."""
    return strict_form(spec.input_schema).to_wire(arguments)


def over_limit(schema: JsonObject) -> str:
    """Describe the first documented limit that a strict schema exceeds; empty when it exceeds none."""
    count = _Count(read_object(schema.get("$defs")))
    levels = count.count_levels(schema)
    for name in count.definitions:
        count.count_levels_of(name)
    chars = count.chars + sum(map(len, count.definitions))
    if count.properties > _PROPERTIES:
        return f"{count.properties} properties; the limit is {_PROPERTIES}"
    if levels > _LEVELS:
        return f"objects nested {levels} deep; the limit is {_LEVELS}"
    if chars > _NAME_CHARS:
        return f"{chars} characters of names and choices; the limit is {_NAME_CHARS}"
    if count.choices > _CHOICES:
        return f"{count.choices} choices in all; the limit is {_CHOICES}"
    return (
        f"an enum of over {_LONG_ENUM} values is longer than {_LONG_ENUM_CHARS} characters" if count.long_enum else ""
    )


class _Count:
    """Sizes of a schema, with each definition counted once."""

    def __init__(self, definitions: JsonObject) -> None:
        self.definitions = definitions
        self.properties = self.chars = self.choices = 0
        self.long_enum = False
        self._known: dict[str, int] = {}

    def count_levels(self, node: JsonObject) -> int:
        names: JsonObject = read_object(node.get("properties"))
        values = as_list(node.get("enum"))
        length = sum(len(str(value)) for value in values)
        self.properties += len(names)
        self.choices += len(values)
        self.chars += sum(map(len, names)) + length
        self.long_enum = self.long_enum or (len(values) > _LONG_ENUM and length > _LONG_ENUM_CHARS)
        inside = (*names.values(), *as_list(node.get("anyOf")), node.get("items"))
        deepest = max((self.count_levels(child) for child in inside if isinstance(child, dict)), default=0)
        reference = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if reference in self.definitions:
            deepest = max(deepest, self.count_levels_of(reference))
        return deepest + ("properties" in node)

    def count_levels_of(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = 0  # recursion is allowed, so a definition inside itself adds no level
            self._known[name] = self.count_levels(read_object(self.definitions[name]))
        return self._known[name]
