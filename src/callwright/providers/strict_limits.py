"""How large a schema strict mode takes, as documented by OpenAI."""

from callwright.core.json import JsonObject
from callwright.providers.schema_parts import as_list, as_object

_PROPERTIES = 5_000
_LEVELS = 10
_NAME_CHARS = 120_000
_CHOICES = 1_000
_LONG_ENUM = 250
_LONG_ENUM_CHARS = 15_000


def over_limit(schema: JsonObject) -> str:
    """Name the first documented limit that a strict schema exceeds; empty when it keeps to all of them."""
    count = _Count(as_object(schema.get("$defs")))
    levels = count.levels(schema)
    for name in count.definitions:
        count.levels_of(name)
    chars = count.chars + sum(map(len, count.definitions))
    if count.properties > _PROPERTIES:
        return f"{count.properties} properties, and {_PROPERTIES} are allowed"
    if levels > _LEVELS:
        return f"objects nested {levels} deep, and {_LEVELS} are allowed"
    if chars > _NAME_CHARS:
        return f"{chars} characters of names and choices, and {_NAME_CHARS} are allowed"
    if count.choices > _CHOICES:
        return f"{count.choices} choices in all, and {_CHOICES} are allowed"
    return (
        f"an enum of over {_LONG_ENUM} values is longer than {_LONG_ENUM_CHARS} characters" if count.long_enum else ""
    )


class _Count:
    """Adds up a schema, each definition once."""

    def __init__(self, definitions: JsonObject) -> None:
        self.definitions = definitions
        self.properties = self.chars = self.choices = 0
        self.long_enum = False
        self._known: dict[str, int] = {}

    def levels(self, node: JsonObject) -> int:
        names, values = as_object(node.get("properties")), as_list(node.get("enum"))
        length = sum(len(str(value)) for value in values)
        self.properties += len(names)
        self.choices += len(values)
        self.chars += sum(map(len, names)) + length
        self.long_enum = self.long_enum or (len(values) > _LONG_ENUM and length > _LONG_ENUM_CHARS)
        inside = (*names.values(), *as_list(node.get("anyOf")), node.get("items"))
        deepest = max((self.levels(child) for child in inside if isinstance(child, dict)), default=0)
        reference = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if reference in self.definitions:
            deepest = max(deepest, self.levels_of(reference))
        return deepest + ("properties" in node)

    def levels_of(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = 0  # a definition inside itself adds no level: recursion is allowed
            self._known[name] = self.levels(as_object(self.definitions[name]))
        return self._known[name]
